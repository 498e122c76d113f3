#include <stoker/source.h>

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "source/listing.h"
#include "source/order.h"

struct dir {
    stk_indexed indexed; /* first: params of an indexed source */
    stk_listing *listing;
    stk_labels labels;
};

static const stk_column label_column = {.name = "label", .spec = {.dtype = STK_INT64}};

static stk_err start(stk_indexed *x, stk_diag *diag)
{
    return stk_listing_start(((struct dir *)x)->listing, diag);
}

static stk_err look(stk_indexed *x, int64_t wanted, stk_watcher *w, stk_look *out, stk_diag *diag)
{
    return stk_listing_look(((struct dir *)x)->listing, wanted, w, out, diag);
}

static void forget(stk_indexed *x, stk_watcher *w)
{
    stk_listing_forget(((struct dir *)x)->listing, w);
}

static stk_err wait_for_all(stk_indexed *x, int64_t *count, stk_diag *diag)
{
    return stk_listing_wait(((struct dir *)x)->listing, count, diag);
}

static size_t memory(stk_indexed *x)
{
    return sizeof(struct dir) + stk_listing_memory(((struct dir *)x)->listing);
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
    const struct dir *d = params;
    *n = d->labels == STK_LABELS_DIR;
    return *n ? &label_column : NULL;
}

static stk_err column(void *params, size_t i, int64_t id, void *dst)
{
    const struct dir *d = params;
    size_t file;
    const stk_folder *f = stk_listing_find(d->listing, id, &file);
    if (i > 0 || d->labels != STK_LABELS_DIR) return STK_EINVAL;
    if (!f) return STK_ENOTFOUND;
    memcpy(dst, &f->label, sizeof(f->label));
    return STK_OK;
}

static stk_err key(void *params, int64_t id, size_t part, char *dst, size_t size)
{
    const struct dir *d = params;
    size_t file;
    const stk_folder *f = stk_listing_find(d->listing, id, &file);
    if (!f || part > 0) return STK_ENOTFOUND;
    return stk_folder_path(f, stk_names_get(&f->files, file), dst, size);
}

static void print(void *params, char *dst, size_t size)
{
    const struct dir *d = params;
    char order[128], count[64] = "not listed yet";
    stk_indexed_print(&d->indexed, order, sizeof(order));
    stk_look found;
    const stk_err err = stk_listing_look(d->listing, INT64_MAX, NULL, &found, NULL);
    if (!err)
        snprintf(count, sizeof(count), "%lld samples", (long long)found.available);
    else if (err != STK_EAGAIN)
        snprintf(count, sizeof(count), "cannot be listed");
    else if (found.available)
        snprintf(count, sizeof(count), "%lld samples so far", (long long)found.available);
    snprintf(dst, size, "Directory(%s, %s%s%s)", stk_listing_path(d->listing), count,
             d->labels == STK_LABELS_DIR ? ", labels from folders" : "", order);
}

static void fini(void *params)
{
    struct dir *d = params;
    stk_listing_free(&d->listing);
    stk_free(d);
}

static const stk_source_class dir_class = {
    .name = "Directory",
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
    .fini = fini,
    .print = print,
    .reproducible = true,
};

static stk_err check(const char *path, const stk_dir_opts *opts, stk_diag *diag)
{
    if (!path || !path[0]) return stk_diag_set(diag, STK_EINVAL, "Directory: the path is empty");
    if (strlen(path) >= STK_MAX_PATH)
        return stk_diag_set(diag, STK_EINVAL, "Directory: the path is longer than %d bytes",
                            STK_MAX_PATH - 1);
    if (opts->labels != STK_LABELS_NONE && opts->labels != STK_LABELS_DIR)
        return stk_diag_set(diag, STK_EINVAL, "Directory(%s): labels is %d: there is no such kind",
                            path, (int)opts->labels);
    if (opts->labels == STK_LABELS_DIR && opts->flat)
        return stk_diag_set(
            diag, STK_EINVAL,
            "Directory(%s): labels come from folders, and only files of the top folder "
            "were asked for: choose one of the two",
            path);
    return STK_OK;
}

stk_source *stk_dir_source(const char *path, const stk_dir_opts *opts, stk_diag *diag)
{
    const stk_dir_opts o = opts ? *opts : (stk_dir_opts){0};
    stk_order_opts order;
    if (check(path, &o, diag) || stk_order_check(&o.order, &order, diag)) return NULL;

    struct dir *d = stk_alloc_zero(1, sizeof(*d));
    if (!d) {
        stk_diag_set(diag, STK_ENOMEM, "no memory for a source");
        return NULL;
    }
    d->indexed = (stk_indexed){.ops = &ops, .order = order};
    d->labels = o.labels;
    const stk_listing_opts how = {
        .path = path,
        .pattern = o.pattern,
        .labels = o.labels == STK_LABELS_DIR,
        .flat = o.flat,
        .no_follow = o.no_follow,
        .in_order = !order.shuffle,
    };
    if (stk_listing_new(&how, &d->listing, diag)) {
        fini(d);
        return NULL;
    }
    stk_source *s = stk_source_new(&dir_class, d);
    if (!s) stk_diag_set(diag, STK_ENOMEM, "no memory for a source");
    return s;
}

/* NULL: not a directory source with labels. */
static struct dir *with_labels(const stk_source *s)
{
    struct dir *d = stk_source_get_class(s) == &dir_class ? stk_source_params(s) : NULL;
    return d && d->labels == STK_LABELS_DIR ? d : NULL;
}

stk_err stk_dir_source_classes(stk_source *s, size_t *n, stk_diag *diag)
{
    *n = 0;
    struct dir *d = with_labels(s);
    if (!d)
        return stk_diag_set(diag, STK_EINVAL,
                            "%s: only a Directory with labels from its folders has classes",
                            stk_source_get_class(s)->name);
    const stk_folder *root;
    stk_err err = stk_listing_start(d->listing, diag);
    if (!err) err = stk_listing_wait_root(d->listing, &root, diag);
    if (!err) *n = root->num_kids;
    return err;
}

const char *stk_dir_source_class(stk_source *s, size_t i)
{
    const struct dir *d = with_labels(s);
    const stk_folder *root;
    if (!d || stk_listing_start(d->listing, NULL) || stk_listing_wait_root(d->listing, &root, NULL))
        return NULL;
    return i < root->num_kids ? root->kids[i].name : NULL;
}
