#include <stoker/stream.h>

#include <inttypes.h>
#include <string.h>

#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "base/alloc.h"

#define INPUT_BYTES ((size_t)256 << 10)
#define DEFAULT_MAX_BYTES ((uint64_t)64 << 30)
#define DEFAULT_MAX_RATIO 500           /* text packs 10:1, a mask 100:1; gzip cannot pass 1032:1 */
#define RATIO_FROM ((uint64_t)64 << 20) /* less than that is no bomb */
#define MAGIC_BYTES 4

struct stk_stream {
    stk_stream_opts opts;     /* complete */
    stk_stream_read_fn *read; /* NULL: all is in `next` */
    void *ctx;

    stk_packing packing;
    bool known; /* `packing` */
    bool ended; /* `read` has no more */
    uint8_t *input;
    const uint8_t *next; /* `left` bytes that were read and not used */
    size_t left;
    uint64_t packed, unpacked; /* bytes used and given */
    bool inside;               /* a member or frame that has not ended */

    z_stream gzip;
    bool gzip_made;
    ZSTD_DStream *zstd;
};

const char *stk_packing_str(stk_packing packing)
{
    static const char *const names[] = {"none", "gzip", "zstd"};
    return (unsigned)packing < 3 ? names[packing] : "unknown";
}

stk_packing stk_packing_of(const void *data, size_t size)
{
    const uint8_t *p = data;
    if (size >= 3 && p[0] == 0x1f && p[1] == 0x8b && p[2] == Z_DEFLATED) return STK_PACKING_GZIP;
    if (size < 4) return STK_PACKING_NONE;
    if (!memcmp(p, "\x28\xb5\x2f\xfd", 4)) return STK_PACKING_ZSTD;
    /* A frame to be skipped: parallel compressors put their own first. */
    const bool skippable = p[0] >> 4 == 5 && !memcmp(p + 1, "\x2a\x4d\x18", 3);
    return skippable ? STK_PACKING_ZSTD : STK_PACKING_NONE;
}

static stk_stream *make(const stk_stream_opts *opts)
{
    stk_stream *s = stk_alloc_zero(1, sizeof(*s));
    if (!s) return NULL;
    if (opts) s->opts = *opts;
    if (!s->opts.max_bytes) s->opts.max_bytes = DEFAULT_MAX_BYTES;
    if (!s->opts.max_ratio) s->opts.max_ratio = DEFAULT_MAX_RATIO;
    return s;
}

stk_err stk_stream_over(const void *data, size_t size, const stk_stream_opts *opts,
                        stk_stream **out)
{
    stk_stream *s = *out = make(opts);
    if (!s) return STK_ENOMEM;
    s->next = data;
    s->left = size;
    s->ended = true;
    return STK_OK;
}

stk_err stk_stream_from(stk_stream_read_fn *read, void *ctx, const stk_stream_opts *opts,
                        stk_stream **out)
{
    stk_stream *s = *out = make(opts);
    if (!s) return STK_ENOMEM;
    s->read = read;
    s->ctx = ctx;
    return STK_OK;
}

void stk_stream_free(stk_stream **ps)
{
    stk_stream *s = *ps;
    *ps = NULL;
    if (!s) return;
    if (s->gzip_made) (void)inflateEnd(&s->gzip);
    (void)ZSTD_freeDStream(s->zstd);
    stk_free(s->input);
    stk_free(s);
}

stk_packing stk_stream_packing(const stk_stream *s)
{
    return s->packing;
}

static stk_err read_some(stk_stream *s, void *dst, size_t size, size_t *got, stk_diag *diag)
{
    *got = 0;
    if (s->ended) return STK_OK;
    const stk_err err = s->read(s->ctx, dst, size, got, diag);
    if (!err && !*got) s->ended = true;
    return err;
}

/* Puts more into `next`, which was used up; none: the end. */
static stk_err refill(stk_stream *s, stk_diag *diag)
{
    const stk_err err = read_some(s, s->input, INPUT_BYTES, &s->left, diag);
    s->next = s->input;
    return err;
}

static void *z_alloc(void *unused, unsigned count, unsigned size)
{
    (void)unused;
    return stk_alloc_zero(count, size);
}

static void z_free(void *unused, void *ptr)
{
    (void)unused;
    stk_free(ptr);
}

static stk_err open_packed(stk_stream *s, stk_diag *diag)
{
    if (s->packing == STK_PACKING_GZIP) {
        s->gzip.zalloc = z_alloc;
        s->gzip.zfree = z_free;
        s->gzip_made = inflateInit2(&s->gzip, MAX_WBITS + 16) == Z_OK; /* gzip's header alone */
    }
    else if (s->packing == STK_PACKING_ZSTD && !stk_fault())
        s->zstd = ZSTD_createDStream();
    if (s->packing == STK_PACKING_NONE || s->gzip_made || s->zstd) return STK_OK;
    return stk_diag_set(diag, STK_ENOMEM, "%s: no memory for a decompressor",
                        stk_packing_str(s->packing));
}

static stk_err recognise(stk_stream *s, stk_diag *diag)
{
    if (s->known) return STK_OK;
    s->known = true;
    if (s->opts.as_is) return STK_OK;
    if (s->read && !(s->input = stk_alloc(INPUT_BYTES)))
        return stk_diag_set(diag, STK_ENOMEM, "no memory for %zu bytes", INPUT_BYTES);
    size_t got = s->read ? 1 : 0;
    while (got && s->left < MAGIC_BYTES) {
        const stk_err err = read_some(s, s->input + s->left, INPUT_BYTES - s->left, &got, diag);
        if (err) return err;
        s->next = s->input;
        s->left += got;
    }
    s->packing = stk_packing_of(s->next, s->left);
    return open_packed(s, diag);
}

static stk_err cut(const stk_stream *s, stk_diag *diag)
{
    return stk_diag_set(diag, STK_ECORRUPT,
                        "%s: the compressed data ends too early, after %" PRIu64 " bytes",
                        stk_packing_str(s->packing), s->packed);
}

/* Between members there may be zeros, as tapes need them. */
static bool at_padding(stk_stream *s)
{
    if (s->inside || !s->packed) return false;
    while (s->left && *s->next == 0) s->next++, s->left--, s->packed++;
    return !s->left;
}

static stk_err gunzip(stk_stream *s, uint8_t *dst, size_t size, size_t *got, stk_diag *diag)
{
    while (!*got) {
        if (!s->left) {
            const stk_err err = refill(s, diag);
            if (err) return err;
            if (!s->left) return s->inside ? cut(s, diag) : STK_OK;
        }
        if (at_padding(s)) continue;
        z_stream *z = &s->gzip;
        z->next_in = (uint8_t *)s->next; /* which it only reads */
        z->avail_in = (unsigned)(s->left < UINT32_MAX ? s->left : UINT32_MAX);
        z->next_out = dst;
        z->avail_out = (unsigned)(size < UINT32_MAX ? size : UINT32_MAX);
        s->inside = true;
        const int code = inflate(z, Z_NO_FLUSH);
        const size_t used = (size_t)(z->next_in - s->next);
        s->next += used, s->left -= used, s->packed += used;
        *got = (size_t)(z->next_out - dst);
        if (code == Z_STREAM_END) {
            s->inside = false;
            (void)inflateReset(z);
        }
        else if (code == Z_MEM_ERROR)
            return stk_diag_set(diag, STK_ENOMEM, "gzip: no memory");
        else if (code != Z_OK && code != Z_BUF_ERROR)
            return stk_diag_set(diag, STK_ECORRUPT, "gzip: %s near byte %" PRIu64,
                                z->msg ? z->msg : "broken data", s->packed);
    }
    return STK_OK;
}

static stk_err of_zstd(const stk_stream *s, size_t code, stk_diag *diag)
{
    const ZSTD_ErrorCode what = ZSTD_getErrorCode(code);
    const stk_err err = what == ZSTD_error_memory_allocation               ? STK_ENOMEM
                        : what == ZSTD_error_frameParameter_windowTooLarge ? STK_ELIMIT
                                                                           : STK_ECORRUPT;
    return stk_diag_set(diag, err, "zstd: %s near byte %" PRIu64, ZSTD_getErrorName(code),
                        s->packed);
}

static stk_err unzstd(stk_stream *s, uint8_t *dst, size_t size, size_t *got, stk_diag *diag)
{
    ZSTD_outBuffer out = {dst, size, 0};
    while (!out.pos) {
        if (!s->left && !s->inside) {
            const stk_err err = refill(s, diag);
            if (err) return err;
            if (!s->left) break;
        }
        ZSTD_inBuffer in = {s->next, s->left, 0};
        const size_t code = ZSTD_decompressStream(s->zstd, &out, &in);
        s->next += in.pos, s->left -= in.pos, s->packed += in.pos;
        if (ZSTD_isError(code)) return of_zstd(s, code, diag);
        s->inside = code != 0;
        if (out.pos || s->left || !s->inside) continue;
        const stk_err err = refill(s, diag); /* what was inside of it is out, too */
        if (err) return err;
        if (!s->left) return cut(s, diag);
    }
    *got = out.pos;
    return STK_OK;
}

static stk_err check_limits(stk_stream *s, size_t got, stk_diag *diag)
{
    s->unpacked += got;
    if (s->unpacked > s->opts.max_bytes)
        return stk_diag_set(diag, STK_ELIMIT,
                            "%s: more than %" PRIu64 " bytes unpacked (max_uncompressed_bytes)",
                            stk_packing_str(s->packing), s->opts.max_bytes);
    if (s->unpacked > RATIO_FROM && s->unpacked / s->opts.max_ratio > s->packed)
        return stk_diag_set(
            diag, STK_ELIMIT,
            "%s: %" PRIu64 " bytes unpacked to %" PRIu64 ", more than %u times as many (max_ratio)",
            stk_packing_str(s->packing), s->packed, s->unpacked, (unsigned)s->opts.max_ratio);
    return STK_OK;
}

stk_err stk_stream_read(stk_stream *s, void *dst, size_t size, size_t *got, stk_diag *diag)
{
    *got = 0;
    stk_err err = recognise(s, diag);
    if (err) return err;
    if (s->packing == STK_PACKING_NONE && !s->left) return read_some(s, dst, size, got, diag);
    if (s->packing == STK_PACKING_NONE) {
        *got = size < s->left ? size : s->left;
        memcpy(dst, s->next, *got);
        s->next += *got, s->left -= *got;
        return STK_OK;
    }
    err = s->packing == STK_PACKING_GZIP ? gunzip(s, dst, size, got, diag)
                                         : unzstd(s, dst, size, got, diag);
    if (!err) err = check_limits(s, *got, diag);
    if (err) *got = 0;
    return err;
}
