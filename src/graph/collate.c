/* From collected samples to an stk_batch: close the gaps, gather labels and columns. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "graph/steps.h"

static stk_item *first_value(const assembly *a)
{
    for (size_t i = 0; i < a->planned; i++)
        if (a->items[i]->state == ITEM_VALUE) return a->items[i];
    return NULL;
}

static const char *part_name(const stk_item *item, size_t i)
{
    const stk_source_class *cls = item->source ? stk_source_get_class(item->source) : NULL;
    size_t n = 0;
    const char *const *names =
        cls && cls->parts ? cls->parts(stk_source_params(item->source), &n) : NULL;
    return names && i < n ? names[i] : "image";
}

static stk_spec many(const stk_spec *one, size_t n)
{
    stk_spec s = {.dtype = one->dtype, .ndim = one->ndim + 1};
    s.shape[0] = (int64_t)n;
    for (int32_t d = 0; d < one->ndim; d++) s.shape[d + 1] = one->shape[d];
    return s;
}

static void say_shape(const stk_spec *s, char *dst, size_t size)
{
    size_t used = 0;
    dst[0] = 0;
    for (int32_t d = 0; d < s->ndim && used < size; d++)
        used += (size_t)snprintf(dst + used, size - used, "%s%lld", d ? "x" : "",
                                 (long long)s->shape[d]);
}

static stk_err mismatch(const stk_item *item, const stk_spec *have, const stk_spec *want,
                        stk_diag *diag)
{
    char key[1024] = "", a[96], b[96];
    if (stk_item_key(item, 0, key, sizeof(key))) key[0] = 0;
    say_shape(have, a, sizeof(a));
    say_shape(want, b, sizeof(b));
    return stk_diag_set(diag, STK_EINVAL,
                        "sample %lld%s%s is %s %s, but the batch holds %s %s: give the "
                        "decoder a width and height",
                        (long long)item->id, *key ? ", " : "", key, stk_dtype_str(have->dtype), a,
                        stk_dtype_str(want->dtype), b);
}

/* Brings the samples of one part together in *mem: those made in their slots stay where they are
 * unless one before them is missing. */
static stk_err gather(const assembly *a, size_t i, const stk_spec *spec, stk_buffer **mem,
                      stk_diag *diag)
{
    size_t bytes, n = 0;
    stk_err err = stk_spec_bytes(spec, &bytes);
    if (err) return err;
    if (!*mem) err = stk_slab_take(a->node->run->slabs, bytes * a->values, mem);
    if (err) return stk_diag_set(diag, err, "no memory for a batch of %zu", a->values);
    uint8_t *base = (uint8_t *)(uintptr_t)stk_buffer_data(*mem); /* no reader has it yet */
    for (size_t k = 0; k < a->planned; k++) {
        const stk_item *item = a->items[k];
        if (item->state != ITEM_VALUE) continue;
        const stk_tensor *t = &item->parts[i].array;
        const stk_spec have = stk_tensor_spec(t);
        if (i >= item->num_parts || !t->data || !stk_spec_equal(&have, spec))
            return mismatch(item, &have, spec, diag);
        if (!stk_tensor_contiguous(t))
            return stk_diag_set(diag, STK_EINVAL, "sample %lld: its array is not contiguous",
                                (long long)item->id);
        uint8_t *dst = base + n++ * bytes;
        if (t->data != dst) memmove(dst, t->data, bytes);
    }
    return STK_OK;
}

static stk_err add_part(assembly *a, const stk_item *first, size_t i, stk_batch *b, stk_diag *diag)
{
    struct slots *s = &a->slots[i];
    if (!s->mem && !first->parts[i].array.data) return STK_OK; /* a batch of keys */
    const stk_spec spec = s->mem ? s->spec : stk_tensor_spec(&first->parts[i].array);
    const stk_spec all = many(&spec, a->values);
    stk_err err = gather(a, i, &spec, &s->mem, diag);
    return err ? err : stk_batch_add_array(b, part_name(first, i), &all, &s->mem);
}

/* An empty batch still has its fields, where the decoder said what they will be. */
static stk_err add_empty_parts(const assembly *a, stk_batch *b)
{
    const stk_item *any = a->items[0];
    const node *n = a->node;
    for (size_t i = 0; n->binder && i < any->num_parts; i++) {
        stk_spec spec = {0};
        stk_op_get_class(n->binder->op)->spec(stk_op_params(n->binder->op), i, &spec);
        if (spec.dtype == STK_DTYPE_NONE) continue;
        const stk_spec all = many(&spec, 0);
        stk_buffer *mem = NULL;
        stk_err err = stk_buffer_new(0, &mem);
        if (!err) err = stk_batch_add_array(b, part_name(any, i), &all, &mem);
        stk_buffer_unref(&mem);
        if (err) return err;
    }
    return STK_OK;
}

static stk_err add_strings(stk_batch *b, const stk_column *c, size_t column)
{
    const size_t n = stk_batch_size(b);
    const char **strings = stk_alloc_zero(n, sizeof(*strings));
    stk_err err = strings ? STK_OK : STK_ENOMEM;
    for (size_t i = 0; i < n && !err; i++) {
        stk_source *s = stk_batch_source(b, i);
        err = stk_source_get_class(s)->column(stk_source_params(s), column, stk_batch_id(b, i),
                                              &strings[i]);
    }
    if (!err) err = stk_batch_add_strings(b, c->name, strings);
    stk_free(strings);
    return err;
}

static stk_err add_column(stk_batch *b, const stk_column *c, size_t column)
{
    if (c->spec.dtype == STK_DTYPE_NONE) return add_strings(b, c, column);
    const size_t n = stk_batch_size(b);
    size_t bytes;
    stk_buffer *mem = NULL;
    stk_err err = stk_spec_bytes(&c->spec, &bytes);
    if (!err) err = stk_buffer_new(bytes * n, &mem);
    for (size_t i = 0; i < n && !err; i++) {
        stk_source *s = stk_batch_source(b, i);
        err = stk_source_get_class(s)->column(stk_source_params(s), column, stk_batch_id(b, i),
                                              stk_buffer_writable(mem) + i * bytes);
    }
    const stk_spec all = many(&c->spec, n);
    if (!err) err = stk_batch_add_array(b, c->name, &all, &mem);
    stk_buffer_unref(&mem);
    return err;
}

static stk_err add_identity(stk_batch *b)
{
    const stk_spec ids = {.dtype = STK_INT64, .ndim = 1, .shape = {(int64_t)stk_batch_size(b)}};
    const stk_spec flags = {.dtype = STK_BOOL, .ndim = 1, .shape = {ids.shape[0]}};
    stk_buffer *id = NULL, *flag = NULL;
    stk_err err = stk_buffer_new(sizeof(int64_t) * stk_batch_size(b), &id);
    if (!err) err = stk_buffer_new(stk_batch_size(b), &flag);
    for (size_t i = 0; !err && i < stk_batch_size(b); i++) {
        const int64_t value = stk_batch_id(b, i);
        memcpy(stk_buffer_writable(id) + i * sizeof(value), &value, sizeof(value));
        stk_buffer_writable(flag)[i] = stk_batch_substituted(b, i);
    }
    if (!err) err = stk_batch_add_array(b, "id", &ids, &id);
    if (!err) err = stk_batch_add_array(b, "substituted", &flags, &flag);
    stk_buffer_unref(&id);
    stk_buffer_unref(&flag);
    return err;
}

static stk_err add_known(stk_batch *b, stk_source *source)
{
    const stk_source_class *cls = source ? stk_source_get_class(source) : NULL;
    size_t n = 0;
    const stk_column *columns =
        cls && cls->columns ? cls->columns(stk_source_params(source), &n) : NULL;
    stk_err err = STK_OK;
    for (size_t i = 0; i < n && !err; i++) err = add_column(b, &columns[i], i);
    return err ? err : add_identity(b);
}

static stk_err collate(assembly *a, stk_batch **out, stk_diag *diag)
{
    const stk_item *first = first_value(a);
    const stk_batch_params params = {
        .capacity = a->planned, .epoch = a->epoch, .index = a->index, .pool = a->node->run->slabs};
    stk_err err = stk_batch_new(&params, out);
    for (size_t i = 0; !err && i < a->planned; i++) {
        const stk_item *item = a->items[i];
        if (item->state == ITEM_VALUE)
            err = stk_batch_add_sample(*out, item->source, item->id, item->substituted);
    }
    if (!err && !first) err = add_empty_parts(a, *out);
    for (size_t i = 0; !err && first && i < first->num_parts; i++)
        err = add_part(a, first, i, *out, diag);
    if (!err) err = add_known(*out, a->items[0]->source);
    if (err) stk_batch_unref(out);
    return err;
}

void batch_finalize(task *t)
{
    t->diag.err = STK_OK;
    t->batch = NULL;
    t->end = collate(t->assembly, &t->batch, &t->diag);
    if (t->end && t->diag.err != t->end) stk_diag_set(&t->diag, t->end, "%s", stk_err_str(t->end));
}
