#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include <stoker/image.h>

#include "base/alloc.h"
#include "base/failpoint.h"
#include "base/file.h"
#include "codec/zip.h"
#include "data/slab.h"

enum {
    MAX_IDLE_BUFFERS = 128, /* as many as threads that read, and those that wait to be decoded */
};
#define DEFAULT_MAX_BYTES ((size_t)256 << 20)

typedef struct read_params {
    size_t max_bytes;
    stk_slab_pool *pool;
} read_params;

static stk_err check_size(const char *path, uint64_t size, size_t max_bytes, stk_diag *diag)
{
    if (size <= max_bytes) return STK_OK;
    return stk_diag_set(diag, STK_ELIMIT, "%s: %" PRIu64 " bytes, the limit is %zu", path, size,
                        max_bytes);
}

/* Reads the `size` bytes that the file had when it was opened; any other number is an error: half
 * of one version and half of another is no sample. */
static stk_err read_file(int fd, const char *path, uint8_t *dst, size_t size, stk_diag *diag)
{
    /* Advice: that it is refused does not matter. */
    (void)posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    uint8_t beyond; /* is only filled when the file has grown */
    for (size_t got = 0; got <= size;) {
        struct iovec v[2] = {{dst + got, size - got}, {&beyond, 1}};
        if (v[0].iov_len > INT_MAX) v[0].iov_len = INT_MAX; /* as much as the kernel takes */
        const int parts = v[0].iov_len == size - got ? 2 : 1;
        const ssize_t n = stk_failpoint("read.pread") ? -1 : preadv(fd, v, parts, (off_t)got);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return stk_diag_errno(diag, errno, "read %s", path);
        got += (size_t)n;
        if (got > size)
            return stk_diag_set(diag, STK_EIO, "%s: grew beyond %zu bytes while it was read", path,
                                size);
        if (n == 0 && got < size)
            return stk_diag_set(diag, STK_EIO, "%s: shrank from %zu to %zu bytes while it was read",
                                path, size, got);
        if (got == size) return STK_OK;
    }
    return STK_OK;
}

/* What to read: a whole file, or a piece of one. */
typedef struct target {
    const char *path; /* of the file, or what to call the piece */
    const stk_piece *piece;
    size_t max_bytes;
    stk_slab_pool *pool; /* NULL: memory of its own */
} target;

static stk_err take_memory(const target *t, uint64_t size, stk_buffer **out, stk_diag *diag)
{
    stk_err err = check_size(t->path, size, t->max_bytes, diag);
    if (err) return err;
    err = t->pool ? stk_slab_take(t->pool, (size_t)size, out) : stk_buffer_new((size_t)size, out);
    if (err) stk_diag_set(diag, err, "%s: no memory for %zu bytes", t->path, (size_t)size);
    return err;
}

/* Turns what was read of a piece into what it stands for. */
static stk_err unpack(const target *t, stk_buffer **buf, stk_diag *diag)
{
    const stk_piece *piece = t->piece;
    const bool deflated = piece->form == STK_PIECE_DEFLATED;
    const size_t name = strlen(t->path);
    const stk_zip_entry e = {
        .name = t->path,
        .name_size = name < UINT16_MAX ? (uint16_t)name : UINT16_MAX,
        .method = deflated ? STK_ZIP_DEFLATED : STK_ZIP_STORED,
        .crc = piece->crc,
        .compressed = piece->size,
        .size = deflated ? piece->unpacked : piece->size,
    };
    stk_buffer *whole = NULL;
    stk_err err = deflated ? take_memory(t, piece->unpacked, &whole, diag) : STK_OK;
    if (!err)
        err = stk_zip_entry_unpack(&e, stk_buffer_data(*buf),
                                   whole ? stk_buffer_writable(whole) : NULL, diag);
    if (!err && whole) {
        stk_buffer_unref(buf);
        *buf = whole;
        return STK_OK;
    }
    stk_buffer_unref(&whole);
    return err;
}

static stk_err read_target(const target *t, stk_buffer **out, stk_diag *diag)
{
    stk_buffer *buf = NULL;
    int fd = -1;
    uint64_t in_file = 0;
    *out = NULL;
    stk_err err = stk_file_open(t->piece ? t->piece->path : t->path, &fd, &in_file, diag);
    const uint64_t size = t->piece ? t->piece->size : in_file;
    if (!err) err = take_memory(t, size, &buf, diag);
    if (err) goto done;
    err = t->piece ? stk_file_read_at(fd, t->piece->path, t->piece->offset,
                                      stk_buffer_writable(buf), (size_t)size, diag)
                   : read_file(fd, t->path, stk_buffer_writable(buf), (size_t)size, diag);
    if (!err && t->piece && t->piece->form != STK_PIECE_PLAIN) err = unpack(t, &buf, diag);
    if (err) goto done;
    *out = buf;
    buf = NULL;

done:
    stk_buffer_unref(&buf);
    if (fd >= 0) close(fd);
    return err;
}

stk_err stk_file_read(const char *path, size_t max_bytes, stk_buffer **out, stk_diag *diag)
{
    const target t = {.path = path, .max_bytes = max_bytes ? max_bytes : DEFAULT_MAX_BYTES};
    return read_target(&t, out, diag);
}

static stk_err read_part(const read_params *p, stk_item *item, size_t part, stk_diag *diag)
{
    char path[PATH_MAX];
    stk_piece piece;
    stk_err err = stk_item_key(item, part, path, sizeof(path));
    if (err == STK_ELIMIT)
        return stk_diag_set(diag, err, "the path has %zu bytes or more", sizeof(path));
    if (err) return stk_diag_set(diag, err, "there is no path to read from");
    err = stk_item_piece(item, part, &piece, diag);
    if (err) return err;
    const target t = {
        .path = path,
        .piece = piece.path ? &piece : NULL,
        .max_bytes = p->max_bytes,
        .pool = p->pool,
    };
    stk_buffer *bytes;
    err = read_target(&t, &bytes, diag);
    if (!err) stk_item_set_bytes(item, part, &bytes);
    return err;
}

static stk_err read_run(const void *params, void *state, stk_item *item, stk_diag *diag)
{
    (void)state;
    for (size_t part = 0; part < stk_item_num_parts(item); part++) {
        stk_err err = read_part(params, item, part, diag);
        if (!err) continue;
        diag->part = (int)part;
        return err;
    }
    return STK_OK;
}

static void read_fini(void *params)
{
    read_params *p = params;
    stk_slab_pool_unref(&p->pool);
    stk_free(p);
}

static void read_print(const void *params, char *dst, size_t size)
{
    snprintf(dst, size, "read(max_bytes=%zu)", ((const read_params *)params)->max_bytes);
}

stk_op *stk_op_read(const stk_read_opts *opts, stk_diag *diag)
{
    static const stk_op_class cls = {
        .name = "read",
        .flags = STK_OP_BLOCKING | STK_OP_ALONE,
        .in = STK_KIND_KEY,
        .out = STK_KIND_BYTES,
        .run = read_run,
        .fini = read_fini,
        .print = read_print,
    };
    stk_op *op = NULL;
    read_params *p = stk_alloc_zero(1, sizeof(*p));
    if (p) {
        p->max_bytes = opts && opts->max_bytes ? opts->max_bytes : DEFAULT_MAX_BYTES;
        if (stk_slab_pool_new(MAX_IDLE_BUFFERS, &p->pool))
            stk_free(p);
        else
            op = stk_op_new(&cls, p);
    }
    if (!op) stk_diag_set(diag, STK_ENOMEM, "read: no memory");
    return op;
}
