#include <stoker/image.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <spng.h>

#include "base/alloc.h"
#include "base/failpoint.h"

#define MAX_ATTEMPTS 100 /* names for the temporary file */

struct writer {
    const char *path;
    char *temporary; /* beside the target, so that rename works */
    int fd;          /* -1: none */
    int os_error;    /* of the first write that failed */
};

static int write_all(spng_ctx *ctx, void *user, void *src, size_t length)
{
    struct writer *w = user;
    const uint8_t *at = src;
    (void)ctx;
    while (length > 0) {
        const ssize_t n = stk_failpoint("png.write") ? -1 : write(w->fd, at, length);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) {
            w->os_error = errno;
            return SPNG_IO_ERROR;
        }
        at += n;
        length -= (size_t)n;
    }
    return 0;
}

static stk_err check_image(const stk_tensor *t, stk_diag *diag)
{
    if (t->dtype != STK_UINT8 || t->ndim != 3 || (t->shape[2] != 1 && t->shape[2] != 3))
        return stk_diag_set(diag, STK_EINVAL, "an image must be uint8 of (h, w, 1) or (h, w, 3)");
    for (int i = 0; i < 2; i++)
        if (t->shape[i] < 1 || t->shape[i] > INT32_MAX)
            return stk_diag_set(diag, STK_EINVAL, "an image cannot be %lld x %lld",
                                (long long)t->shape[0], (long long)t->shape[1]);
    return STK_OK;
}

/* Not mkstemp: it makes files that only the owner may read. */
static stk_err open_temporary(struct writer *w, stk_diag *diag)
{
    const size_t size = strlen(w->path) + 48; /* two numbers, and what is around them */
    w->temporary = stk_alloc(size);
    if (!w->temporary) return stk_diag_set(diag, STK_ENOMEM, "write %s: out of memory", w->path);

    for (int i = 0; i < MAX_ATTEMPTS; i++) {
        snprintf(w->temporary, size, "%s.%ld-%d.tmp", w->path, (long)getpid(), i);
        w->fd = open(w->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (w->fd >= 0) return STK_OK;
        if (errno != EEXIST) break;
    }
    return stk_diag_errno(diag, errno, "write %s", w->path);
}

/* One row after another, through `row` where the tensor's are not packed. */
static int encode_rows(spng_ctx *ctx, const stk_tensor *t, uint8_t *row)
{
    const int64_t width = t->shape[1], channels = t->shape[2];
    const bool packed = (channels == 1 || t->strides[2] == 1) && t->strides[1] == channels;
    int code = 0;
    for (int64_t y = 0; !code && y < t->shape[0]; y++) {
        const uint8_t *src = (const uint8_t *)t->data + y * t->strides[0];
        for (int64_t i = 0; !packed && i < width * channels; i++)
            row[i] = src[i / channels * t->strides[1] + i % channels * t->strides[2]];
        code = spng_encode_row(ctx, packed ? src : row, (size_t)(width * channels));
    }
    return code == SPNG_EOI ? 0 : code ? code : SPNG_ENOTFINAL;
}

static int encode(struct writer *w, const stk_tensor *t)
{
    struct spng_alloc heap = {stk_alloc, stk_alloc_resize, stk_alloc_zero, stk_free};
    struct spng_ihdr ihdr = {
        .width = (uint32_t)t->shape[1],
        .height = (uint32_t)t->shape[0],
        .bit_depth = 8,
        .color_type = t->shape[2] == 1 ? SPNG_COLOR_TYPE_GRAYSCALE : SPNG_COLOR_TYPE_TRUECOLOR,
    };
    uint8_t *row = stk_alloc((size_t)(t->shape[1] * t->shape[2]));
    spng_ctx *ctx = row ? spng_ctx_new2(&heap, SPNG_CTX_ENCODER) : NULL;
    int code = ctx ? spng_set_ihdr(ctx, &ihdr) : SPNG_EMEM;
    if (!code) code = spng_set_png_stream(ctx, write_all, w);
    if (!code)
        code = spng_encode_image(ctx, NULL, 0, SPNG_FMT_PNG,
                                 SPNG_ENCODE_PROGRESSIVE | SPNG_ENCODE_FINALIZE);
    if (!code) code = encode_rows(ctx, t, row);
    spng_ctx_free(ctx);
    stk_free(row);
    return code;
}

static stk_err fail(const struct writer *w, int code, stk_diag *diag)
{
    if (w->os_error) return stk_diag_errno(diag, w->os_error, "write %s", w->path);
    /* The image was checked, so that nothing but memory can be missing: zlib's failed allocations
     * come under several names. */
    return stk_diag_set(diag, STK_ENOMEM, "write %s: %s", w->path, spng_strerror(code));
}

stk_err stk_image_write_png(const char *path, const stk_tensor *image, stk_diag *diag)
{
    struct writer w = {.path = path, .fd = -1};
    stk_err err = check_image(image, diag);
    if (err) stk_diag_prefix(diag, "write %s", path);
    if (!err) err = open_temporary(&w, diag);
    if (err) goto done;

    const int code = encode(&w, image);
    if (code) err = fail(&w, code, diag);
    /* Some file systems tell only at the end that there was no room. */
    if (close(w.fd) && !err) err = stk_diag_errno(diag, errno, "write %s", path);
    if (!err && rename(w.temporary, path)) err = stk_diag_errno(diag, errno, "write %s", path);
    if (err) (void)unlink(w.temporary);
done:
    stk_free(w.temporary);
    return err;
}
