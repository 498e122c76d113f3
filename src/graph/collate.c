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

/* "float32 3x4", "int64", "a string" */
static void say_label(const stk_spec *s, char *dst, size_t size)
{
    char shape[80];
    say_shape(s, shape, sizeof(shape));
    if (s->dtype == STK_DTYPE_NONE)
        snprintf(dst, size, "a string");
    else
        snprintf(dst, size, "%s%s%s", stk_dtype_str(s->dtype), *shape ? " " : "", shape);
}

static stk_err mismatch(const stk_item *item, const stk_spec *have, const stk_spec *want,
                        stk_diag *diag)
{
    char key[1024] = "", a[96], b[96];
    if (stk_item_key(item, 0, key, sizeof(key))) key[0] = 0;
    say_shape(have, a, sizeof(a));
    say_shape(want, b, sizeof(b));
    const stage *s = item->stage;
    const bool decoded = s && s->op && stk_op_get_class(s->op)->spec;
    return stk_diag_set(diag, STK_EINVAL,
                        "sample %lld%s%s is %s %s%s%s%s, but the batch holds %s %s: %s",
                        (long long)item->id, *key ? ", " : "", key, stk_dtype_str(have->dtype), a,
                        s ? " behind stage '" : "", s ? s->plan->name : "", s ? "'" : "",
                        stk_dtype_str(want->dtype), b,
                        decoded ? "tell the decoder the size that all should have"
                                : "its arrays must have one type and shape");
}

/* Samples of one batch have the same parts. */
static stk_err check_parts(const assembly *a, const stk_item *first, stk_diag *diag)
{
    for (size_t i = 0; i < a->planned; i++) {
        const stk_item *item = a->items[i];
        if (item->state == ITEM_VALUE && item->num_parts != first->num_parts)
            return stk_diag_set(diag, STK_EINVAL,
                                "sample %lld has %zu parts, but sample %lld has %zu",
                                (long long)item->id, (size_t)item->num_parts, (long long)first->id,
                                (size_t)first->num_parts);
    }
    return STK_OK;
}

/* Brings the samples of one part together in *mem: those made in their slots stay where they are
 * unless one before them is missing. */
static stk_err gather(const assembly *a, size_t i, const stk_spec *spec, stk_buffer **mem,
                      stk_diag *diag)
{
    size_t bytes, n = 0;
    stk_err err = stk_spec_bytes(spec, &bytes);
    if (err) return err;
    if (bytes > SIZE_MAX / 2 / a->values) err = STK_ELIMIT;
    if (!err && !*mem) err = stk_slab_take(a->node->run->slabs, bytes * a->values, mem);
    if (err) return stk_diag_set(diag, err, "no memory for a batch of %zu", a->values);
    uint8_t *base = (uint8_t *)(uintptr_t)stk_buffer_data(*mem); /* no reader has it yet */
    for (size_t k = 0; k < a->planned; k++) {
        const stk_item *item = a->items[k];
        if (item->state != ITEM_VALUE) continue;
        const stk_tensor *t = &item->parts[i].array;
        const stk_spec have = t->data ? stk_tensor_spec(t) : (stk_spec){0};
        if (!t->data || !stk_spec_equal(&have, spec)) return mismatch(item, &have, spec, diag);
        uint8_t *dst = base + n++ * bytes;
        if (!stk_tensor_contiguous(t))
            stk_tensor_pack(t, dst);
        else if (t->data != dst)
            memmove(dst, t->data, bytes);
    }
    return STK_OK;
}

static stk_err add_part(assembly *a, const stk_item *first, size_t i, stk_batch *b, stk_diag *diag)
{
    struct slots *s = &a->slots[i];
    if (!s->mem && !first->parts[i].array.data) return STK_OK; /* a batch of keys */
    const stk_spec spec = s->mem ? s->spec : stk_tensor_spec(&first->parts[i].array);
    const stk_spec all = many(&spec, a->values);
    const char *name = stage_part_name(&a->node->stages[0], first->source, i);
    if (!name)
        return stk_diag_set(diag, STK_EINVAL, "sample %lld has %zu parts, more than have names",
                            (long long)first->id, first->num_parts);
    stk_err err = gather(a, i, &spec, &s->mem, diag);
    return err ? err : stk_batch_add_array(b, name, &all, &s->mem, diag);
}

/* An empty batch still has its fields, where the decoder said what they will be. */
static stk_err add_empty_parts(const assembly *a, stk_batch *b, stk_diag *diag)
{
    const node *n = a->node;
    stk_source *source = a->items[0]->source;
    const char *name;
    for (size_t i = 0; (name = stage_part_name(&n->stages[0], source, i)); i++) {
        stk_spec spec;
        stage_part_spec(&n->stages[0], n->binder, source, i, &spec);
        if (spec.dtype == STK_DTYPE_NONE) continue;
        const stk_spec all = many(&spec, 0);
        stk_buffer *mem = NULL;
        stk_err err = stk_buffer_new(0, &mem);
        if (!err) err = stk_batch_add_array(b, name, &all, &mem, diag);
        stk_buffer_unref(&mem);
        if (err) return err;
    }
    return STK_OK;
}

static const stk_column *columns_of(stk_source *source, size_t *n)
{
    const stk_source_class *cls = source ? stk_source_get_class(source) : NULL;
    *n = 0;
    return cls && cls->columns ? cls->columns(stk_source_params(source), n) : NULL;
}

/* Where a source has a column like `c`; SIZE_MAX: nowhere. */
static size_t find_column(stk_source *source, const stk_column *c)
{
    size_t n;
    const stk_column *columns = columns_of(source, &n);
    for (size_t i = 0; i < n; i++)
        if (!strcmp(columns[i].name, c->name) && stk_spec_equal(&columns[i].spec, &c->spec))
            return i;
    return SIZE_MAX;
}

/* That of sample i. */
static stk_err read_column(stk_batch *b, size_t i, const stk_column *c, void *dst)
{
    stk_source *s = stk_batch_source(b, i);
    return stk_source_get_class(s)->column(stk_source_params(s), find_column(s, c),
                                           stk_batch_id(b, i), dst);
}

static stk_err add_strings(stk_batch *b, const stk_column *c, stk_diag *diag)
{
    const size_t n = stk_batch_size(b);
    const char **strings = stk_alloc_zero(n, sizeof(*strings));
    stk_err err = strings ? STK_OK : STK_ENOMEM;
    for (size_t i = 0; i < n && !err; i++) err = read_column(b, i, c, &strings[i]);
    if (!err) err = stk_batch_add_strings(b, c->name, strings, diag);
    stk_free(strings);
    return err;
}

static stk_err add_column(stk_batch *b, const stk_column *c, stk_diag *diag)
{
    if (c->spec.dtype == STK_DTYPE_NONE) return add_strings(b, c, diag);
    const size_t n = stk_batch_size(b);
    size_t bytes;
    stk_buffer *mem = NULL;
    stk_err err = stk_spec_bytes(&c->spec, &bytes);
    if (!err) err = stk_buffer_new(bytes * n, &mem);
    for (size_t i = 0; i < n && !err; i++)
        err = read_column(b, i, c, stk_buffer_writable(mem) + i * bytes);
    const stk_spec all = many(&c->spec, n);
    if (!err) err = stk_batch_add_array(b, c->name, &all, &mem, diag);
    stk_buffer_unref(&mem);
    return err;
}

static stk_err add_identity(stk_batch *b, stk_diag *diag)
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
    if (!err) err = stk_batch_add_array(b, "id", &ids, &id, diag);
    if (!err) err = stk_batch_add_array(b, "substituted", &flags, &flag, diag);
    stk_buffer_unref(&id);
    stk_buffer_unref(&flag);
    return err;
}

/* Whether an op has said what a label is: then the source need not have any, or other ones. */
static bool has_labels(const assembly *a)
{
    for (size_t i = 0; i < a->planned; i++)
        if (a->items[i]->state == ITEM_VALUE && a->items[i]->label.value) return true;
    return false;
}

static stk_err label_mismatch(const stk_item *item, const stk_spec *have, const stk_spec *want,
                              stk_diag *diag)
{
    char x[96], y[96];
    if (!have)
        return stk_diag_set(diag, STK_EINVAL,
                            "sample %lld has no label, but others of its batch do",
                            (long long)item->id);
    say_label(have, x, sizeof(x));
    say_label(want, y, sizeof(y));
    return stk_diag_set(diag, STK_EINVAL, "the label of sample %lld is %s, but the batch holds %s",
                        (long long)item->id, x, y);
}

/* The labels of all samples, one after the other: `bytes` each, or pointers to texts. */
static stk_err gather_labels(const assembly *a, const stk_spec *want, size_t bytes, uint8_t *dst,
                             stk_diag *diag)
{
    for (size_t i = 0; i < a->planned; i++) {
        const stk_item *item = a->items[i];
        stk_spec have;
        size_t size;
        if (item->state != ITEM_VALUE) continue;
        stk_err err = stk_item_column(item, "label", &have, dst, bytes, &size);
        if (err == STK_ENOTFOUND) return label_mismatch(item, NULL, want, diag);
        if (!stk_spec_equal(&have, want)) return label_mismatch(item, &have, want, diag);
        if (err) return err;
        dst += bytes;
    }
    return STK_OK;
}

static stk_err add_labels(const assembly *a, stk_batch *b, stk_diag *diag)
{
    const stk_item *first = a->items[0];
    for (size_t i = 0; !first->label.value; i++) first = a->items[i];
    const stk_spec *spec = &first->label.spec;
    const bool strings = spec->dtype == STK_DTYPE_NONE;
    size_t bytes = sizeof(const char *);
    stk_buffer *mem = NULL;
    stk_err err = strings ? STK_OK : stk_spec_bytes(spec, &bytes);
    if (!err && bytes > SIZE_MAX / 2 / a->values) err = STK_ELIMIT;
    if (!err) err = stk_buffer_new(bytes * a->values, &mem);
    if (!err) err = gather_labels(a, spec, bytes, stk_buffer_writable(mem), diag);
    const stk_spec all = many(spec, a->values);
    if (!err && strings)
        err = stk_batch_copy_strings(b, "label", (const char **)(void *)stk_buffer_writable(mem),
                                     diag);
    else if (!err)
        err = stk_batch_add_array(b, "label", &all, &mem, diag);
    stk_buffer_unref(&mem);
    return err;
}

/* Whether the batch takes it from the source; labels: ops have given labels. */
static bool is_known(const stk_column *c, bool labels)
{
    return !labels || strcmp(c->name, "label") != 0;
}

static bool same_columns(stk_source *a, stk_source *b, bool labels)
{
    size_t na, nb, rest = 0;
    const stk_column *x = columns_of(a, &na), *y = columns_of(b, &nb);
    for (size_t i = 0; i < nb; i++) rest += is_known(&y[i], labels);
    for (size_t i = 0; i < na; i++) {
        if (!is_known(&x[i], labels)) continue;
        if (find_column(b, &x[i]) == SIZE_MAX) return false;
        rest--;
    }
    return rest == 0;
}

/* Samples of different sources may meet behind stages of another runtime. */
static stk_err check_sources(const assembly *a, const stk_item *first, bool labels, stk_diag *diag)
{
    for (size_t i = 0; i < a->planned; i++) {
        const stk_item *item = a->items[i];
        if (item->state != ITEM_VALUE || item->source == first->source) continue;
        if (!same_columns(first->source, item->source, labels))
            return stk_diag_set(diag, STK_EINVAL,
                                "sample %lld is of a source with other columns or labels than that "
                                "of sample %lld: batches need the same",
                                (long long)item->id, (long long)first->id);
    }
    return STK_OK;
}

static stk_err add_known(const assembly *a, stk_batch *b, stk_diag *diag)
{
    const stk_item *value = first_value(a), *first = value ? value : a->items[0];
    size_t n;
    const stk_column *columns = columns_of(first->source, &n);
    const bool labels = has_labels(a);
    stk_err err = check_sources(a, first, labels, diag);
    if (!err && labels) err = add_labels(a, b, diag);
    for (size_t i = 0; i < n && !err; i++)
        if (is_known(&columns[i], labels)) err = add_column(b, &columns[i], diag);
    return err ? err : add_identity(b, diag);
}

static stk_err add_sample(stk_batch *b, const stk_item *item)
{
    const char *key = item->parts[0].key;
    const size_t i = stk_batch_size(b);
    stk_err err = stk_batch_add_sample(b, item->source, item->id, item->substituted);
    return err || !key ? err : stk_batch_set_key(b, i, key);
}

static stk_err collate(assembly *a, stk_batch **out, stk_diag *diag)
{
    const stk_item *first = first_value(a);
    const stk_batch_params params = {
        .capacity = a->planned, .epoch = a->epoch, .index = a->index, .pool = a->node->run->slabs};
    stk_err err = stk_batch_new(&params, out);
    for (size_t i = 0; !err && i < a->planned; i++) {
        const stk_item *item = a->items[i];
        if (item->state == ITEM_VALUE) err = add_sample(*out, item);
    }
    if (!err && !first) err = add_empty_parts(a, *out, diag);
    if (!err && first) err = check_parts(a, first, diag);
    for (size_t i = 0; !err && first && i < first->num_parts; i++)
        err = add_part(a, first, i, *out, diag);
    if (!err) err = add_known(a, *out, diag);
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
