/* Samples that are entries of zip archives. */
#include <stoker/zip.h>

#include <unistd.h>

#include "base/file.h"
#include "source/shards.h"

/* An open archive. */
struct archive {
    const char *path;
    int fd;
    stk_zip *zip;
};

static stk_err read_at(void *ctx, uint64_t offset, void *dst, size_t size, stk_diag *diag)
{
    const struct archive *a = ctx;
    return stk_file_read_at(a->fd, a->path, offset, dst, size, diag);
}

static stk_err read_entry(void *ctx, const stk_shard_member *m, void *dst, stk_diag *diag)
{
    const struct archive *a = ctx;
    return stk_zip_read(a->zip, m->index, dst, diag);
}

/* An entry that cannot be read, as it is encrypted say, fails alone. */
static stk_err add_entry(struct archive *a, size_t i, stk_shard *s, const stk_shard_spec *spec,
                         stk_diag *diag)
{
    const stk_zip_entry *e = stk_zip_get(a->zip, i);
    uint64_t at = 0;
    if (e->kind != STK_ZIP_FILE) return STK_OK;
    stk_err err = stk_zip_locate(a->zip, i, &at, diag);
    if (err == STK_ENOMEM) return err;
    const stk_shard_member member = {
        .name = e->name,
        .name_size = e->name_size,
        .at = {.offset = at,
               .size = e->compressed,
               .unpacked = e->size,
               .crc = e->crc,
               .form = e->method == STK_ZIP_STORED ? STK_PIECE_CHECKED : STK_PIECE_DEFLATED},
        .index = i,
        .flaw = err ? diag : NULL,
    };
    return stk_shard_add(s, spec, &member, read_entry, a);
}

static stk_err list(stk_shard *s, const stk_shard_spec *spec, const atomic_bool *stop,
                    stk_diag *diag)
{
    struct archive a = {.path = s->path};
    uint64_t size;
    stk_err err = stk_file_open(s->path, &a.fd, &size, diag);
    if (err) return err;
    const stk_zip_input in = {.size = size, .read = read_at, .ctx = &a};
    err = stk_zip_new(&in, NULL, &a.zip, diag);
    for (size_t i = 0; !err && i < stk_zip_count(a.zip); i++) {
        if (atomic_load_explicit(stop, memory_order_relaxed))
            err = STK_ECANCELLED;
        else
            err = add_entry(&a, i, s, spec, diag);
    }
    if (err) stk_shard_name(s, diag);
    stk_zip_free(&a.zip);
    close(a.fd);
    return err;
}

stk_source *stk_zip_source(const stk_shards_opts *opts, stk_diag *diag)
{
    return stk_shards_source("Zip", list, opts, diag);
}
