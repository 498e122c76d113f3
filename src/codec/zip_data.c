/* APPNOTE.TXT 6.3.10, sections 4.3.7 (local headers), 4.4.4 (flags), 4.4.5 (methods). */
#include "codec/zip.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <libdeflate.h>

#include "base/alloc.h"
#include "codec/le.h"
#include "codec/zip_end.h"

enum {
    LOCAL_MAGIC = 0x04034b50,
    FLAGS_ENCRYPTED = 1 << 0 | 1 << 6 | 1 << 13, /* weak, strong, and of the directory */
    FLAG_PATCH = 1 << 5,
    AT_ONCE = 512, /* of a local header: rarely is a name longer */
};

static const char *name_of(uint16_t method)
{
    switch (method) {
    case 1: return "shrink";
    case 6: return "implode";
    case 9: return "deflate64";
    case 12: return "bzip2";
    case 14: return "LZMA";
    case 93: return "Zstandard";
    case 95: return "XZ";
    case 98: return "PPMd";
    case 99: return "AES encryption";
    default: return "an unknown one";
    }
}

static bool over(const stk_zip_entry *e, uint64_t ratio)
{
    uint64_t most;
    return !__builtin_mul_overflow(e->compressed, ratio, &most) && e->size > most;
}

/* What the directory alone says against it. */
static stk_err check_entry(const stk_zip *zip, const stk_zip_entry *e, stk_diag *diag)
{
    if (e->flags & FLAGS_ENCRYPTED)
        return stk_zip_fail(e, STK_EUNSUPPORTED, diag, "an encrypted entry is not read");
    if (e->flags & FLAG_PATCH)
        return stk_zip_fail(e, STK_EUNSUPPORTED, diag, "patches are not read");
    if (e->method == STK_ZIP_STORED) {
        if (e->size == e->compressed) return STK_OK;
        return stk_zip_fail(e, STK_ECORRUPT, diag, "stored, but of two sizes");
    }
    char why[160];
    if (e->method != STK_ZIP_DEFLATED) {
        snprintf(why, sizeof(why), "compression method %u, %s, is not read", e->method,
                 name_of(e->method));
        return stk_zip_fail(e, STK_EUNSUPPORTED, diag, why);
    }
    if (over(e, STK_ZIP_MOST_RATIO) || e->size > PTRDIFF_MAX)
        return stk_zip_fail(e, STK_ECORRUPT, diag, "deflated data can't stand for so many bytes");
    if (over(e, zip->max_ratio)) {
        snprintf(why, sizeof(why),
                 "%" PRIu64 " bytes stand for %" PRIu64 ", the limit is %" PRIu64 " times as many",
                 e->compressed, e->size, zip->max_ratio);
        return stk_zip_fail(e, STK_ELIMIT, diag, why);
    }
    return STK_OK;
}

/* Whether the name at `at` is the entry's, of which `done` bytes were compared. */
static stk_err compare_name(const stk_zip *zip, const stk_zip_entry *e, size_t done, bool *same,
                            stk_diag *diag)
{
    *same = true;
    while (done < e->name_size && *same) {
        uint8_t part[AT_ONCE];
        const size_t left = e->name_size - done, n = left < AT_ONCE ? left : AT_ONCE;
        stk_err err =
            stk_zip_get_bytes(&zip->in, e->offset + STK_ZIP_LOCAL_SIZE + done, part, n, diag);
        if (err) return err;
        *same = !memcmp(part, e->name + done, n);
        done += n;
    }
    return STK_OK;
}

stk_err stk_zip_locate(const stk_zip *zip, size_t i, uint64_t *offset, stk_diag *diag)
{
    const stk_zip_entry *e = &zip->entries[i];
    *offset = 0;
    stk_err err = check_entry(zip, e, diag);
    if (err) return err;
    uint8_t head[AT_ONCE];
    const size_t whole = (size_t)STK_ZIP_LOCAL_SIZE + e->name_size;
    const size_t n = whole < sizeof(head) ? whole : sizeof(head);
    err = stk_zip_get_bytes(&zip->in, e->offset, head, n, diag);
    if (err) return err;
    if (stk_le32(head) != LOCAL_MAGIC)
        return stk_zip_fail(e, STK_ECORRUPT, diag, "no local header");
    bool same = stk_le16(head + 26) == e->name_size &&
                !memcmp(head + STK_ZIP_LOCAL_SIZE, e->name, n - STK_ZIP_LOCAL_SIZE);
    if (same) err = compare_name(zip, e, n - STK_ZIP_LOCAL_SIZE, &same, diag);
    if (err) return err;
    if (!same) return stk_zip_fail(e, STK_ECORRUPT, diag, "the local header has another name");
    const uint64_t at = e->offset + whole + stk_le16(head + 28);
    if (at > zip->ends[i] || e->compressed > zip->ends[i] - at)
        return stk_zip_fail(e, STK_ECORRUPT, diag, "the entry overlaps another one");
    *offset = at;
    return STK_OK;
}

static stk_err inflate(const stk_zip_entry *e, const void *data, void *dst, stk_diag *diag)
{
    struct libdeflate_decompressor *d = stk_fault() ? NULL : libdeflate_alloc_decompressor();
    if (!d) return STK_ENOMEM;
    size_t used = 0;
    const enum libdeflate_result result = libdeflate_deflate_decompress_ex(
        d, data, (size_t)e->compressed, dst, (size_t)e->size, &used, NULL);
    libdeflate_free_decompressor(d);
    switch (result) {
    case LIBDEFLATE_SUCCESS:
        if (used == e->compressed) return STK_OK;
        return stk_zip_fail(e, STK_ECORRUPT, diag, "the deflated data ends early");
    case LIBDEFLATE_SHORT_OUTPUT:
        return stk_zip_fail(e, STK_ECORRUPT, diag, "the data is shorter than declared");
    case LIBDEFLATE_INSUFFICIENT_SPACE:
        return stk_zip_fail(e, STK_ECORRUPT, diag, "the data is longer than declared");
    default: return stk_zip_fail(e, STK_ECORRUPT, diag, "the deflated data is broken");
    }
}

static stk_err check_crc(const stk_zip_entry *e, const void *data, stk_diag *diag)
{
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
    (void)e, (void)data, (void)diag; /* else a fuzzer sees nothing but wrong checksums */
    return STK_OK;
#else
    if (libdeflate_crc32(0, data, (size_t)e->size) == e->crc) return STK_OK;
    return stk_zip_fail(e, STK_ECORRUPT, diag, "wrong CRC-32");
#endif
}

stk_err stk_zip_unpack(const stk_zip *zip, size_t i, const void *data, void *dst, stk_diag *diag)
{
    stk_err err = check_entry(zip, &zip->entries[i], diag);
    return err ? err : stk_zip_entry_unpack(&zip->entries[i], data, dst, diag);
}

stk_err stk_zip_entry_unpack(const stk_zip_entry *e, const void *data, void *dst, stk_diag *diag)
{
    if (e->method == STK_ZIP_STORED) {
        if (dst && dst != data && e->size) memcpy(dst, data, (size_t)e->size);
        return check_crc(e, dst ? dst : data, diag);
    }
    if (!dst) return stk_diag_set(diag, STK_EINVAL, "zip: a deflated entry needs memory");
    stk_err err = inflate(e, data, dst, diag);
    return err ? err : check_crc(e, dst, diag);
}

stk_err stk_zip_read(const stk_zip *zip, size_t i, void *dst, stk_diag *diag)
{
    const stk_zip_entry *e = &zip->entries[i];
    uint64_t at;
    stk_err err = stk_zip_locate(zip, i, &at, diag);
    if (err) return err;
    if (zip->in.data) return stk_zip_unpack(zip, i, (const uint8_t *)zip->in.data + at, dst, diag);
    const bool stored = e->method == STK_ZIP_STORED;
    void *raw = stored ? dst : stk_alloc((size_t)e->compressed);
    if (!raw && !stored) return STK_ENOMEM;
    if (e->compressed) err = stk_zip_get_bytes(&zip->in, at, raw, (size_t)e->compressed, diag);
    if (!err) err = stk_zip_unpack(zip, i, raw, dst, diag);
    if (!stored) stk_free(raw);
    return err;
}
