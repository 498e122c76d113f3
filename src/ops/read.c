#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <sys/uio.h>
#include <unistd.h>

#include <stoker/image.h>

#include "base/alloc.h"
#include "base/failpoint.h"
#include "base/file.h"
#include "data/slab.h"

enum {
    MAX_IDLE_BUFFERS = 128, /* as many as threads that read, and those that wait to be decoded */
};
#define DEFAULT_MAX_BYTES ((size_t)256 << 20)

typedef struct read_params {
    size_t max_bytes;
    stk_slab_pool *pool;
} read_params;

/* Opens a regular file and gives its size. */
static stk_err open_file(const char *path, size_t max_bytes, int *fd, size_t *size, stk_diag *diag)
{
    uint64_t bytes;
    const stk_err err = stk_file_open(path, fd, &bytes, diag);
    if (err) return err;
    if (bytes > max_bytes)
        return stk_diag_set(diag, STK_ELIMIT, "%s: %" PRIu64 " bytes, the limit is %zu", path,
                            bytes, max_bytes);
    *size = (size_t)bytes;
    return STK_OK;
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

/* `pool`: NULL for memory of its own. */
static stk_err read_whole(const char *path, size_t max_bytes, stk_slab_pool *pool, stk_buffer **out,
                          stk_diag *diag)
{
    stk_buffer *buf = NULL;
    int fd = -1;
    size_t size = 0;
    *out = NULL;
    stk_err err = open_file(path, max_bytes, &fd, &size, diag);
    if (err) goto done;
    err = pool ? stk_slab_take(pool, size, &buf) : stk_buffer_new(size, &buf);
    if (err) {
        stk_diag_set(diag, err, "%s: no memory for %zu bytes", path, size);
        goto done;
    }
    err = read_file(fd, path, stk_buffer_writable(buf), size, diag);
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
    return read_whole(path, max_bytes ? max_bytes : DEFAULT_MAX_BYTES, NULL, out, diag);
}

static stk_err read_run(const void *params, void *state, stk_item *item, stk_diag *diag)
{
    (void)state;
    const read_params *p = params;
    for (size_t part = 0; part < stk_item_num_parts(item); part++) {
        char path[PATH_MAX];
        stk_err err = stk_item_key(item, part, path, sizeof(path));
        if (err == STK_ELIMIT)
            return stk_diag_set(diag, err, "the path has %zu bytes or more", sizeof(path));
        if (err) return stk_diag_set(diag, err, "there is no path to read from");
        stk_buffer *bytes;
        err = read_whole(path, p->max_bytes, p->pool, &bytes, diag);
        if (err) {
            diag->part = (int)part;
            return err;
        }
        stk_item_set_bytes(item, part, &bytes);
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
