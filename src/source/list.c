#include <stoker/source.h>

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "data/batch.h"
#include "source/indexed.h"
#include "source/order.h"

/* n strings, one behind the other. */
struct strings {
    char *bytes;
    size_t *at;
    size_t size;
};

struct values {
    struct strings strings; /* a column of strings */
    char *data;             /* or of numbers: num * bytes */
    size_t bytes;           /* of one value */
};

struct list {
    stk_indexed indexed; /* first: params of an indexed source */
    size_t num, num_parts, num_columns, memory;
    struct strings parts[STK_MAX_PARTS];
    char *part_names[STK_MAX_PARTS];
    stk_column *columns;
    struct values *values;
};

static stk_err start(stk_indexed *x, stk_diag *diag)
{
    (void)x, (void)diag;
    return STK_OK;
}

static stk_err look(stk_indexed *x, int64_t wanted, stk_watcher *w, stk_look *out, stk_diag *diag)
{
    (void)wanted, (void)w, (void)diag;
    *out = (stk_look){.available = (int64_t)((struct list *)x)->num, .complete = true};
    return STK_OK;
}

static void forget(stk_indexed *x, stk_watcher *w)
{
    (void)x, (void)w; /* `look` never arms it */
}

static stk_err wait_for_all(stk_indexed *x, int64_t *count, stk_diag *diag)
{
    (void)diag;
    *count = (int64_t)((struct list *)x)->num;
    return STK_OK;
}

static size_t memory(stk_indexed *x)
{
    return ((struct list *)x)->memory;
}

static const stk_indexed_ops ops = {
    .start = start,
    .look = look,
    .forget = forget,
    .wait = wait_for_all,
    .memory = memory,
};

static const stk_column *columns(void *params, size_t *n)
{
    const struct list *l = params;
    *n = l->num_columns;
    return l->columns;
}

static stk_err column(void *params, size_t i, int64_t id, void *dst)
{
    const struct list *l = params;
    if (i >= l->num_columns) return STK_EINVAL;
    if (id < 0 || (size_t)id >= l->num) return STK_ENOTFOUND;
    const struct values *v = &l->values[i];
    if (v->data)
        memcpy(dst, v->data + (size_t)id * v->bytes, v->bytes);
    else
        *(const char **)dst = v->strings.bytes + v->strings.at[id];
    return STK_OK;
}

static stk_err key(void *params, int64_t id, size_t part, char *dst, size_t size)
{
    const struct list *l = params;
    if (part >= l->num_parts || id < 0 || (size_t)id >= l->num) return STK_ENOTFOUND;
    const char *path = l->parts[part].bytes + l->parts[part].at[id];
    const size_t len = strlen(path) + 1;
    if (len > size) return STK_ELIMIT;
    memcpy(dst, path, len);
    return STK_OK;
}

static const char *const *parts(void *params, size_t *n)
{
    const struct list *l = params;
    *n = l->num_parts;
    return (const char *const *)l->part_names;
}

static void print(void *params, char *dst, size_t size)
{
    const struct list *l = params;
    char order[128];
    stk_indexed_print(&l->indexed, order, sizeof(order));
    snprintf(dst, size, "List(%zu samples%s)", l->num, order);
}

static void fini(void *params)
{
    struct list *l = params;
    for (size_t p = 0; p < STK_MAX_PARTS; p++) {
        stk_free(l->parts[p].bytes);
        stk_free(l->parts[p].at);
        stk_free(l->part_names[p]);
    }
    for (size_t i = 0; l->values && i < l->num_columns; i++) {
        stk_free(l->values[i].data);
        stk_free(l->values[i].strings.bytes);
        stk_free(l->values[i].strings.at);
    }
    for (size_t i = 0; l->columns && i < l->num_columns; i++) stk_free((char *)l->columns[i].name);
    stk_free(l->values);
    stk_free(l->columns);
    stk_free(l);
}

static const stk_source_class list_class = {
    .name = "List",
    .seed = stk_indexed_seed,
    .batch_seed = stk_indexed_batch_seed,
    .open = stk_indexed_open,
    .close = stk_indexed_close,
    .next = stk_indexed_next,
    .substitute = stk_indexed_substitute,
    .length = stk_indexed_length,
    .epochs = stk_indexed_epochs,
    .columns = columns,
    .column = column,
    .key = key,
    .parts = parts,
    .fini = fini,
    .print = print,
    .reproducible = true,
};

static stk_err no_memory(stk_diag *diag)
{
    return stk_diag_set(diag, STK_ENOMEM, "List: no memory for the samples");
}

static stk_err copy_name(struct list *l, const char *name, char **out)
{
    const size_t size = strlen(name) + 1;
    *out = stk_alloc(size);
    if (!*out) return STK_ENOMEM;
    memcpy(*out, name, size);
    l->memory += size;
    return STK_OK;
}

/* `empty_is_bad`: as for paths. */
static stk_err copy_strings(struct list *l, const char *what, const char *const *from,
                            bool empty_is_bad, struct strings *s, stk_diag *diag)
{
    if (!from) return stk_diag_set(diag, STK_EINVAL, "List: %s: there is no data", what);
    for (size_t i = 0; i < l->num; i++) {
        if (!from[i] || (empty_is_bad && !from[i][0]))
            return stk_diag_set(diag, STK_EINVAL, "List: %s: sample %zu is %s", what, i,
                                from[i] ? "an empty path" : "missing (NULL)");
        s->size += strlen(from[i]) + 1;
    }
    s->bytes = stk_alloc(s->size);
    s->at = stk_alloc_zero(l->num, sizeof(*s->at));
    if (!s->bytes || !s->at) return no_memory(diag);
    for (size_t i = 0, at = 0; i < l->num; i++) {
        const size_t size = strlen(from[i]) + 1;
        memcpy(s->bytes + at, from[i], size);
        s->at[i] = at;
        at += size;
    }
    l->memory += s->size + l->num * sizeof(*s->at);
    return STK_OK;
}

static stk_err check_name(const char *what, const char *name, stk_diag *diag)
{
    if (!name || !name[0]) return stk_diag_set(diag, STK_EINVAL, "List: a %s has no name", what);
    if (!stk_batch_has_always(name)) return STK_OK;
    return stk_diag_set(diag, STK_EINVAL,
                        "List: a %s may not be called \"%s\": every batch has that", what, name);
}

static stk_err copy_parts(struct list *l, const stk_list_opts *o, stk_diag *diag)
{
    if (!o->paths) return stk_diag_set(diag, STK_EINVAL, "List: there are no paths");
    for (size_t p = 0; p < l->num_parts; p++) {
        const char *name = o->part_names ? o->part_names[p] : "image";
        stk_err err = check_name("part", name, diag);
        for (size_t k = 0; k < p && !err; k++)
            if (!strcmp(l->part_names[k], name))
                err = stk_diag_set(diag, STK_EINVAL, "List: two parts are called \"%s\"", name);
        if (!err && copy_name(l, name, &l->part_names[p])) err = no_memory(diag);
        if (!err) err = copy_strings(l, name, o->paths[p], true, &l->parts[p], diag);
        if (err) return err;
    }
    return STK_OK;
}

static stk_err check_column(const struct list *l, size_t i, const char *name, stk_diag *diag)
{
    stk_err err = check_name("column", name, diag);
    if (err) return err;
    for (size_t p = 0; p < l->num_parts; p++)
        if (!strcmp(l->part_names[p], name))
            return stk_diag_set(diag, STK_EINVAL,
                                "List: a part and a column are both called \"%s\"", name);
    for (size_t k = 0; k < i; k++)
        if (!strcmp(l->columns[k].name, name))
            return stk_diag_set(diag, STK_EINVAL, "List: two columns are called \"%s\"", name);
    return STK_OK;
}

static stk_err copy_numbers(struct list *l, const stk_list_column *from, struct values *v,
                            stk_diag *diag)
{
    if (stk_spec_bytes(&from->spec, &v->bytes))
        return stk_diag_set(diag, STK_EINVAL, "List: column \"%s\" has a bad type or shape",
                            from->name);
    if (!v->bytes)
        return stk_diag_set(diag, STK_EINVAL, "List: column \"%s\" has values without elements",
                            from->name);
    if (!from->data)
        return stk_diag_set(diag, STK_EINVAL, "List: %s: there is no data", from->name);
    if (v->bytes > SIZE_MAX / l->num) return no_memory(diag);
    v->data = stk_alloc(l->num * v->bytes);
    if (!v->data) return no_memory(diag);
    memcpy(v->data, from->data, l->num * v->bytes);
    l->memory += l->num * v->bytes;
    return STK_OK;
}

static stk_err copy_columns(struct list *l, const stk_list_opts *o, stk_diag *diag)
{
    if (!o->num_columns) return STK_OK;
    if (!o->columns) return stk_diag_set(diag, STK_EINVAL, "List: columns is NULL");
    l->columns = stk_alloc_zero(o->num_columns, sizeof(*l->columns));
    l->values = stk_alloc_zero(o->num_columns, sizeof(*l->values));
    if (!l->columns || !l->values) return no_memory(diag);
    l->num_columns = o->num_columns;
    l->memory += o->num_columns * (sizeof(*l->columns) + sizeof(*l->values));
    for (size_t i = 0; i < o->num_columns; i++) {
        const stk_list_column *from = &o->columns[i];
        stk_err err = check_column(l, i, from->name, diag);
        char *name = NULL;
        if (!err && copy_name(l, from->name, &name)) err = no_memory(diag);
        l->columns[i] = (stk_column){.name = name, .spec = from->spec};
        if (!err && from->spec.dtype == STK_DTYPE_NONE)
            err = copy_strings(l, from->name, from->data, false, &l->values[i].strings, diag);
        else if (!err)
            err = copy_numbers(l, from, &l->values[i], diag);
        if (err) return err;
    }
    return STK_OK;
}

static stk_err check(const stk_list_opts *o, stk_diag *diag)
{
    if (!o || !o->num_samples) return stk_diag_set(diag, STK_EINVAL, "List: there are no samples");
    if (o->num_samples > (size_t)STK_PERMUTE_MAX)
        return stk_diag_set(diag, STK_EINVAL, "List: %zu samples are too many", o->num_samples);
    if (o->num_parts > STK_MAX_PARTS)
        return stk_diag_set(diag, STK_EINVAL, "List: %zu parts: a sample has %d at most",
                            o->num_parts, STK_MAX_PARTS);
    const size_t room = STK_MAX_FIELDS - 2 - (o->num_parts ? o->num_parts : 1);
    if (o->num_columns > room)
        return stk_diag_set(diag, STK_EINVAL,
                            "List: %zu columns, labels included: a batch has room for %zu beside "
                            "id, substituted and the parts",
                            o->num_columns, room);
    if (o->num_parts > 1 && !o->part_names)
        return stk_diag_set(diag, STK_EINVAL, "List: several parts need names");
    return STK_OK;
}

stk_source *stk_list_source(const stk_list_opts *opts, stk_diag *diag)
{
    stk_order_opts order;
    if (check(opts, diag) || stk_order_check(&opts->order, &order, diag)) return NULL;
    struct list *l = stk_alloc_zero(1, sizeof(*l));
    if (!l) {
        (void)no_memory(diag);
        return NULL;
    }
    l->indexed = (stk_indexed){.ops = &ops, .order = order};
    l->num = opts->num_samples;
    l->indexed.num_parts = l->num_parts = opts->num_parts ? opts->num_parts : 1;
    l->memory = sizeof(*l);
    if (copy_parts(l, opts, diag) || copy_columns(l, opts, diag)) {
        fini(l);
        return NULL;
    }
    stk_source *s = stk_source_new(&list_class, l);
    if (!s) (void)no_memory(diag);
    return s;
}
