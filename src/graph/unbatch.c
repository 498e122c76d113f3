/* unbatch: a batch becomes its samples again; arrays share the batch's memory. */
#include "graph/steps.h"

static stk_err share_field(stk_batch *b, size_t field, int64_t index, stk_item *out, size_t i)
{
    stk_tensor all, one = {0};
    stk_buffer *mem = NULL;
    stk_err err = stk_batch_array(b, field, &all, &mem);
    if (err) return err;
    one.data = (uint8_t *)all.data + index * all.strides[0];
    one.dtype = all.dtype;
    one.ndim = all.ndim - 1;
    for (int32_t d = 0; d < one.ndim; d++) {
        one.shape[d] = all.shape[d + 1];
        one.strides[d] = all.strides[d + 1];
    }
    stk_item_set_array(out, i, &one, &mem);
    return STK_OK;
}

static stk_err unbatch_expand(const void *params, void *state, void **cursor, stk_item *in,
                              int64_t index, stk_item *out, stk_diag *diag)
{
    (void)params, (void)state, (void)cursor;
    stk_batch *b = in->batch;
    if (index >= (int64_t)stk_batch_size(b)) return STK_EEND;
    out->source = stk_batch_source(b, (size_t)index);
    out->id = stk_batch_id(b, (size_t)index);
    out->substituted = stk_batch_substituted(b, (size_t)index);
    out->index = 0;
    const stk_source_class *cls = stk_source_get_class(out->source);
    static const char *const image[] = {"image"};
    size_t n = 1;
    const char *const *names = cls->parts ? cls->parts(stk_source_params(out->source), &n) : image;
    stk_err err = stk_item_set_num_parts(out, n);
    for (size_t i = 0; i < n && !err; i++) {
        const int field = stk_batch_find(b, names[i]);
        if (field >= 0) err = share_field(b, (size_t)field, index, out, i);
    }
    return err ? stk_diag_set(diag, err, "sample %lld of a batch: %s", (long long)out->id,
                              stk_err_str(err))
               : STK_OK;
}

const stk_op_class unbatch_class = {
    .name = "unbatch",
    .in = STK_KIND_BATCH,
    .out = STK_KIND_ARRAY,
    .expand = unbatch_expand,
};
