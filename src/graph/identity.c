/* Who a sample is, and what is known of it: by its source, or as an op said. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "graph/steps.h"

int64_t stk_item_id(const stk_item *item)
{
    return item->id;
}

int64_t stk_item_epoch(const stk_item *item)
{
    return item->epoch;
}

int64_t stk_item_index(const stk_item *item)
{
    return item->index;
}

void stk_item_set_id(stk_item *item, int64_t id, int64_t epoch)
{
    item->id = id;
    item->epoch = epoch;
}

stk_source *stk_item_source(const stk_item *item)
{
    return item->source;
}

stk_err stk_item_become(stk_item *item, stk_source *source, int64_t id)
{
    const stk_run *run = item->run;
    bool known = source == item->source;
    for (size_t i = 0; i < run->num_nodes && !known; i++) known = run->nodes[i].source == source;
    if (!known || !source) return STK_ENOTFOUND;
    item_forget(item);
    item->source = source;
    item->id = id;
    return STK_OK;
}

void item_forget(stk_item *item)
{
    for (size_t i = 0; i < item->num_parts; i++) {
        stk_free(item->parts[i].key);
        item->parts[i].key = NULL;
    }
    stk_free(item->label.value);
    item->label.value = NULL;
}

stk_err item_inherit(stk_item *item, const stk_item *from)
{
    stk_err err = STK_OK;
    for (size_t i = 0; i < from->num_parts && i < item->num_parts && !err; i++)
        if (from->parts[i].key) err = stk_item_set_key(item, i, from->parts[i].key);
    if (!err && from->label.value)
        err = stk_item_set_label(item, &from->label.spec, from->label.value);
    return err;
}

stk_err stk_item_set_key(stk_item *item, size_t i, const char *key)
{
    if (i >= item->num_parts) return STK_EINVAL;
    const size_t size = strlen(key) + 1;
    char *copy = stk_alloc(size);
    if (!copy) return STK_ENOMEM;
    stk_free(item->parts[i].key);
    item->parts[i].key = memcpy(copy, key, size);
    return STK_OK;
}

stk_err stk_item_key(const stk_item *item, size_t i, char *dst, size_t size)
{
    const char *own = i < item->num_parts ? item->parts[i].key : NULL;
    if (own) return (size_t)snprintf(dst, size, "%s", own) < size ? STK_OK : STK_ELIMIT;
    const stk_source_class *cls = item->source ? stk_source_get_class(item->source) : NULL;
    if (!cls || !cls->key || item->is_batch) return STK_ENOTFOUND;
    return cls->key(stk_source_params(item->source), item->id, i, dst, size);
}

/* A key of its own is what the source calls the part, not another file. */
static bool is_sources_key(const stk_item *item, const stk_source_class *cls, size_t i)
{
    const char *own = item->parts[i].key;
    char key[PATH_MAX];
    return !own ||
           (cls->key && !cls->key(stk_source_params(item->source), item->id, i, key, sizeof(key)) &&
            !strcmp(own, key));
}

stk_err stk_item_piece(const stk_item *item, size_t i, stk_piece *out, stk_diag *diag)
{
    const stk_source_class *cls = item->source ? stk_source_get_class(item->source) : NULL;
    *out = (stk_piece){0};
    if (!cls || !cls->piece || item->is_batch || i >= item->num_parts) return STK_OK;
    if (!is_sources_key(item, cls, i)) return STK_OK; /* somebody has named another file */
    return cls->piece(stk_source_params(item->source), item->id, i, out, diag);
}

stk_err stk_item_set_label(stk_item *item, const stk_spec *spec, const void *value)
{
    size_t bytes;
    stk_err err = STK_OK;
    if (spec->dtype == STK_DTYPE_NONE)
        bytes = strlen(value) + 1;
    else
        err = stk_spec_bytes(spec, &bytes);
    if (err) return err;
    void *copy = stk_alloc(bytes ? bytes : 1);
    if (!copy) return STK_ENOMEM;
    if (bytes) memcpy(copy, value, bytes);
    stk_free(item->label.value);
    item->label = (label){.spec = *spec, .value = copy};
    return STK_OK;
}

/* The label that was given. */
static stk_err given_label(const label *l, stk_spec *spec, void *dst, size_t size, size_t *bytes)
{
    *spec = l->spec;
    *bytes = sizeof(const char *);
    stk_err err = spec->dtype == STK_DTYPE_NONE ? STK_OK : stk_spec_bytes(spec, bytes);
    if (!err && *bytes > size) err = STK_ELIMIT;
    if (err) return err;
    if (spec->dtype == STK_DTYPE_NONE)
        memcpy(dst, &l->value, sizeof(l->value));
    else if (*bytes)
        memcpy(dst, l->value, *bytes);
    return STK_OK;
}

stk_err stk_item_column(const stk_item *item, const char *name, stk_spec *spec, void *dst,
                        size_t size, size_t *bytes)
{
    if (item->label.value && !strcmp(name, "label"))
        return given_label(&item->label, spec, dst, size, bytes);
    const stk_source_class *cls = item->source ? stk_source_get_class(item->source) : NULL;
    if (!cls || !cls->columns || item->is_batch) return STK_ENOTFOUND;
    void *params = stk_source_params(item->source);
    size_t n = 0;
    const stk_column *columns = cls->columns(params, &n);
    for (size_t i = 0; i < n; i++) {
        if (strcmp(columns[i].name, name)) continue;
        *spec = columns[i].spec;
        *bytes = sizeof(const char *);
        stk_err err = spec->dtype == STK_DTYPE_NONE ? STK_OK : stk_spec_bytes(spec, bytes);
        if (!err && *bytes > size) err = STK_ELIMIT;
        return err ? err : cls->column(params, i, item->id, dst);
    }
    return STK_ENOTFOUND;
}
