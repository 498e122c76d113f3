/* Samples that are members of tar archives. */
#include <stoker/tar.h>

#include <string.h>
#include <unistd.h>

#include <stoker/stream.h>

#include "base/file.h"
#include "source/shards.h"

/* An open archive. */
struct archive {
    const char *path;
    int fd;
};

static stk_err read_at(void *ctx, uint64_t offset, void *dst, size_t size, stk_diag *diag)
{
    const struct archive *a = ctx;
    return stk_file_read_at(a->fd, a->path, offset, dst, size, diag);
}

static stk_err read_member(void *ctx, const stk_shard_member *m, void *dst, stk_diag *diag)
{
    return read_at(ctx, m->at.offset, dst, (size_t)m->at.size, diag);
}

#define MAGIC_SIZE 10

/* NULL: it is not compressed.  A name that a member could have is no magic. */
static const char *packing_of(const uint8_t *magic)
{
    const stk_packing packing = stk_packing_of(magic, MAGIC_SIZE);
    if (packing != STK_PACKING_NONE) return stk_packing_str(packing);
    if (!memcmp(magic, "\xfd\x37zXZ", 6)) return "xz";
    return !memcmp(magic, "BZh", 3) && !memcmp(magic + 4, "1AY&SY", 6) ? "bzip2" : NULL;
}

static stk_err refuse_packed(struct archive *a, uint64_t size, stk_diag *diag)
{
    uint8_t magic[MAGIC_SIZE];
    if (size < sizeof(magic)) return STK_OK;
    stk_err err = read_at(a, 0, magic, sizeof(magic), diag);
    if (err) return err;
    const char *packing = packing_of(magic);
    if (!packing) return STK_OK;
    return stk_diag_set(diag, STK_EUNSUPPORTED,
                        "%s: it is compressed with %s, so its members have no place of their own: "
                        "unpack it (the pictures in it are compressed anyway)",
                        a->path, packing);
}

static stk_err list_members(stk_tar *t, struct archive *a, stk_shard *s, const stk_shard_spec *spec,
                            const atomic_bool *stop, stk_diag *diag)
{
    stk_err err = STK_OK;
    while (!err) {
        stk_tar_member m;
        if (atomic_load_explicit(stop, memory_order_relaxed)) return STK_ECANCELLED;
        err = stk_tar_next(t, &m, diag);
        if (err == STK_EAGAIN) {
            err = stk_tar_fill(t, diag);
            continue;
        }
        if (err) break;
        const stk_shard_member member = {
            .name = m.name, .name_size = m.name_size, .at = {.offset = m.offset, .size = m.size}};
        err = stk_shard_add(s, spec, &member, read_member, a);
    }
    return err == STK_EEND ? STK_OK : err;
}

static stk_err list(stk_shard *s, const stk_shard_spec *spec, const atomic_bool *stop,
                    stk_diag *diag)
{
    struct archive a = {.path = s->path};
    stk_tar *t = NULL;
    uint64_t size;
    stk_err err = stk_file_open(s->path, &a.fd, &size, diag);
    if (err) return err;
    err = refuse_packed(&a, size, diag);
    if (!err) err = stk_tar_at(read_at, &a, size, NULL, &t);
    if (!err) err = list_members(t, &a, s, spec, stop, diag);
    if (err) stk_shard_name(s, diag);
    stk_tar_free(&t);
    close(a.fd);
    return err;
}

stk_source *stk_tar_source(const stk_shards_opts *opts, stk_diag *diag)
{
    return stk_shards_source("Tar", list, opts, diag);
}
