#include <stoker/npy.h>
#include <stoker/ops.h>

#include <string.h>

#include "base/alloc.h"
#include "ops/parts.h"

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

static stk_err load_part(const void *params, void *ctx, stk_item *item, size_t part, stk_diag *diag)
{
    (void)params, (void)ctx;
    stk_buffer *bytes = stk_item_bytes(item, part);
    stk_npy header;
    stk_tensor array;
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
    (void)state;
    const stk_npy_opts *o = params;
    return stk_parts_decode(o->parts, item, load_part, NULL, NULL, diag);
}

static uint32_t load_takes(const void *params)
{
    return ((const stk_npy_opts *)params)->parts;
}

stk_op *stk_op_load_npy(const stk_npy_opts *opts, stk_diag *diag)
{
    static const stk_op_class cls = {
        .name = "load_npy",
        .flags = STK_OP_ALONE,
        .in = STK_KIND_BYTES,
        .out = STK_KIND_ARRAY,
        .run = load_run,
        .takes = load_takes,
        .fini = stk_free,
    };
    stk_npy_opts *params = stk_alloc(sizeof(*params));
    if (params) *params = opts ? *opts : (stk_npy_opts){0};
    stk_op *op = params ? stk_op_new(&cls, params) : NULL;
    if (!op) stk_diag_set(diag, STK_ENOMEM, "load_npy: no memory");
    return op;
}
