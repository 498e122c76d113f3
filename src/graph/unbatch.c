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

/* A batch that came from elsewhere may hold samples of sources that the run does not keep. */
static stk_err share_identity(const stk_batch *b, size_t index, stk_item *out)
{
    char path[4096];
    const char *key = stk_batch_own_key(b, index);
    if (stk_item_become(out, stk_batch_source(b, index), stk_batch_id(b, index))) {
        out->source = NULL;
        out->id = stk_batch_id(b, index);
        if (stk_batch_key(b, index, path, sizeof(path)) == STK_OK) key = path;
    }
    out->substituted = stk_batch_substituted(b, index);
    out->index = 0;
    return key ? stk_item_set_key(out, 0, key) : STK_OK;
}

/* It may be known from elsewhere than the source. */
static stk_err share_label(const stk_batch *b, size_t index, stk_item *out)
{
    stk_err err;
    const int field = stk_batch_find(b, "label");
    if (field < 0) return STK_OK;
    if (stk_batch_field_is_strings(b, (size_t)field))
        return stk_item_set_label(out, &(stk_spec){0}, stk_batch_string(b, (size_t)field, index));
    stk_tensor all;
    err = stk_batch_array(b, (size_t)field, &all, NULL);
    if (err) return err;
    stk_spec one = {.dtype = all.dtype, .ndim = all.ndim - 1};
    for (int32_t d = 0; d < one.ndim; d++) one.shape[d] = all.shape[d + 1];
    return stk_item_set_label(out, &one, (uint8_t *)all.data + (int64_t)index * all.strides[0]);
}

static stk_err unbatch_expand(const void *params, void *state, void **cursor, stk_item *in,
                              int64_t index, stk_item *out, stk_diag *diag)
{
    (void)params, (void)state, (void)cursor;
    stk_batch *b = in->batch;
    if (index >= (int64_t)stk_batch_size(b)) return STK_EEND;
    stk_source *source = stk_batch_source(b, (size_t)index);
    size_t n = 0;
    while (stage_part_name(out->stage, source, n)) n++;
    stk_err err = stk_item_set_num_parts(out, n);
    if (!err) err = share_identity(b, (size_t)index, out);
    if (!err) err = share_label(b, (size_t)index, out);
    for (size_t i = 0; i < n && !err; i++) {
        const int field = stk_batch_find(b, stage_part_name(out->stage, source, i));
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
