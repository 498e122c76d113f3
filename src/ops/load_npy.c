#include <stoker/npy.h>
#include <stoker/ops.h>

#include <string.h>

/* The view that a header describes; no element is touched. */
static stk_err view(const stk_npy *h, void *data, stk_tensor *out, stk_diag *diag)
{
    if (h->dtype == STK_DTYPE_NONE)
        return stk_diag_set(
            diag, STK_EUNSUPPORTED,
            "NPY: elements of type %s are not batched: save numbers in the order of "
            "bytes of this machine",
            h->descr);
    if (h->ndim > STK_MAX_NDIM)
        return stk_diag_set(diag, STK_EUNSUPPORTED, "NPY: %d dimensions, at most %d are batched",
                            (int)h->ndim, STK_MAX_NDIM);
    *out = (stk_tensor){.data = data, .dtype = h->dtype, .ndim = h->ndim};
    int64_t stride = (int64_t)h->item_size; /* their product is what the data has at least */
    for (int32_t i = 0; i < h->ndim; i++) {
        const int32_t axis = h->fortran ? i : h->ndim - 1 - i;
        out->shape[axis] = h->shape[axis];
        out->strides[axis] = stride;
        if (h->shape[axis] > 0) stride *= h->shape[axis];
    }
    return STK_OK;
}

static stk_err load_part(stk_item *item, size_t part, stk_diag *diag)
{
    stk_buffer *bytes = stk_item_bytes(item, part);
    stk_npy header;
    stk_tensor array;
    if (!bytes) return stk_diag_set(diag, STK_EINVAL, "there are no bytes: read comes first");
    stk_err err = stk_npy_parse(stk_buffer_data(bytes), stk_buffer_size(bytes), &header, diag);
    if (err) return err;
    err = view(&header, (uint8_t *)stk_buffer_data(bytes) + header.data_offset, &array, diag);
    if (err) return err;
    stk_buffer *mem = stk_buffer_ref(bytes);
    stk_item_set_array(item, part, &array, &mem);
    return STK_OK;
}

static stk_err load_run(const void *params, void *state, stk_item *item, stk_diag *diag)
{
    (void)params, (void)state;
    for (size_t part = 0; part < stk_item_num_parts(item); part++) {
        const stk_err err = load_part(item, part, diag);
        if (!err) continue;
        diag->part = (int)part;
        return err;
    }
    return STK_OK;
}

stk_op *stk_op_load_npy(stk_diag *diag)
{
    static const stk_op_class cls = {
        .name = "load_npy",
        .flags = STK_OP_ALONE,
        .in = STK_KIND_BYTES,
        .out = STK_KIND_ARRAY,
        .run = load_run,
    };
    stk_op *op = stk_op_new(&cls, NULL);
    if (!op) stk_diag_set(diag, STK_ENOMEM, "load_npy: no memory");
    return op;
}
