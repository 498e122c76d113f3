/* APPNOTE.TXT 6.3.10, sections 4.3.7 (local headers), 4.3.12 (directory), 4.5.3 (zip64). */
#include "codec/zip.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "codec/le.h"
#include "codec/zip_end.h"

enum {
    CENTRAL_SIZE = 46,
    CENTRAL_MAGIC = 0x02014b50,
    EXTRA_ZIP64 = 1,
    FLAG_UTF8 = 1 << 11,
    MADE_ON_UNIX = 3,
    MADE_ON_MACOS = 19,
    MOST_SHOWN = 200, /* bytes of a name in a message */
};
#define DEFAULT_MAX_DIRECTORY ((uint64_t)1 << 30)

/* Takes the 8 bytes that stand for a field of 32 bits that is full. */
static bool widen(const uint8_t **p, const uint8_t *end, uint64_t *field)
{
    if (*field != UINT32_MAX) return true;
    if (end - *p < 8) return false;
    *field = stk_le64(*p);
    *p += 8;
    return true;
}

/* The fields that do not fit into 32 bits are in an extra field, in this order. */
static bool read_extra(const uint8_t *p, size_t size, stk_zip_entry *e, uint64_t *disk)
{
    const bool wide =
        e->size == UINT32_MAX || e->compressed == UINT32_MAX || e->offset == UINT32_MAX;
    const uint8_t *end = p + size;
    while (end - p >= 4) {
        const uint16_t id = stk_le16(p), n = stk_le16(p + 2);
        p += 4;
        if (n > end - p) return false;
        const uint8_t *field = p, *field_end = p + n;
        p += n;
        if (id != EXTRA_ZIP64) continue;
        if (!widen(&field, field_end, &e->size) || !widen(&field, field_end, &e->compressed) ||
            !widen(&field, field_end, &e->offset))
            return false;
        if (*disk == UINT16_MAX && field_end - field >= 4) *disk = stk_le32(field);
        return true;
    }
    return !wide;
}

static stk_zip_kind kind_of(const stk_zip_entry *e, uint8_t made_on, uint32_t attributes)
{
    if (e->name_size && e->name[e->name_size - 1] == '/') return STK_ZIP_FOLDER;
    if (made_on != MADE_ON_UNIX && made_on != MADE_ON_MACOS) return STK_ZIP_FILE;
    switch (attributes >> 16 & S_IFMT) {
    case 0:
    case S_IFREG: return STK_ZIP_FILE;
    case S_IFDIR: return STK_ZIP_FOLDER;
    case S_IFLNK: return STK_ZIP_LINK;
    default: return STK_ZIP_DEVICE;
    }
}

/* One header of the directory, of which `left` bytes are left; *size: how many it has. */
static stk_err read_header(const uint8_t *p, uint64_t left, const stk_zip_end *end,
                           stk_zip_entry *out, uint64_t *size, stk_diag *diag)
{
    if (left < CENTRAL_SIZE || stk_le32(p) != CENTRAL_MAGIC)
        return stk_diag_set(diag, STK_ECORRUPT, "zip: the central directory is broken");
    const uint16_t extra_size = stk_le16(p + 30);
    uint64_t disk = stk_le16(p + 34);
    *out = (stk_zip_entry){
        .name = (const char *)p + CENTRAL_SIZE,
        .name_size = stk_le16(p + 28),
        .utf8 = stk_le16(p + 8) & FLAG_UTF8,
        .flags = stk_le16(p + 8),
        .method = stk_le16(p + 10),
        .crc = stk_le32(p + 16),
        .compressed = stk_le32(p + 20),
        .size = stk_le32(p + 24),
        .offset = stk_le32(p + 42),
    };
    *size = CENTRAL_SIZE + (uint64_t)out->name_size + extra_size + stk_le16(p + 32);
    if (*size > left)
        return stk_diag_set(diag, STK_ECORRUPT, "zip: the central directory is broken");
    if (memchr(out->name, '\0', out->name_size))
        return stk_diag_set(diag, STK_ECORRUPT, "zip: a name holds a NUL: %s", out->name);
    if (!read_extra(p + CENTRAL_SIZE + out->name_size, extra_size, out, &disk))
        return stk_zip_fail(out, STK_ECORRUPT, diag, "a broken extra field");
    if (disk)
        return stk_zip_fail(out, STK_EUNSUPPORTED, diag, "an archive of several disks is not read");
    out->kind = kind_of(out, p[5], stk_le32(p + 38));
    const uint64_t room = end->at - end->prefix; /* of what the archive's own offsets count */
    if (out->offset > room || out->compressed > room - out->offset ||
        (uint64_t)STK_ZIP_LOCAL_SIZE + out->name_size > room - out->offset - out->compressed)
        return stk_zip_fail(out, STK_ECORRUPT, diag, "the entry lies outside of the archive");
    out->offset += end->prefix;
    return STK_OK;
}

/* How many headers there are, by their lengths alone; no fewer than read_header takes. */
static size_t count_headers(const uint8_t *p, uint64_t left)
{
    size_t n = 0;
    while (left >= CENTRAL_SIZE) {
        const uint64_t size =
            CENTRAL_SIZE + (uint64_t)stk_le16(p + 28) + stk_le16(p + 30) + stk_le16(p + 32);
        n++;
        if (size > left) break;
        p += size;
        left -= size;
    }
    return n;
}

static stk_err read_headers(stk_zip *zip, const stk_zip_end *end, stk_diag *diag)
{
    const uint8_t *p = zip->directory;
    for (uint64_t left = end->size; left;) {
        uint64_t size = 0;
        stk_err err = read_header(p, left, end, &zip->entries[zip->n], &size, diag);
        if (err) return err;
        zip->n++;
        p += size;
        left -= size;
    }
    /* Writers without zip64 let the number overflow. */
    if (zip->n != end->entries && (end->zip64 || (zip->n & UINT16_MAX) != end->entries))
        return stk_diag_set(diag, STK_ECORRUPT,
                            "zip: the central directory has %zu entries, not %" PRIu64, zip->n,
                            end->entries);
    return STK_OK;
}

typedef struct place {
    uint64_t offset;
    size_t entry;
} place;

static int by_offset(const void *a, const void *b)
{
    const uint64_t x = ((const place *)a)->offset, y = ((const place *)b)->offset;
    return (x > y) - (x < y);
}

/* Each entry reaches at most to the next one: in the directory's order that is mostly sorted. */
static stk_err set_ends(stk_zip *zip, uint64_t directory, stk_diag *diag)
{
    place *places = stk_alloc(zip->n * sizeof(*places)); /* no more than `entries` has */
    if (!places) return STK_ENOMEM;
    bool sorted = true;
    for (size_t i = 0; i < zip->n; i++) {
        places[i] = (place){zip->entries[i].offset, i};
        sorted = sorted && (!i || places[i - 1].offset <= places[i].offset);
    }
    if (!sorted) qsort(places, zip->n, sizeof(*places), by_offset);

    stk_err err = STK_OK;
    for (size_t i = 0; i < zip->n && !err; i++) {
        const stk_zip_entry *e = &zip->entries[places[i].entry];
        const uint64_t end = i + 1 < zip->n ? places[i + 1].offset : directory;
        zip->ends[places[i].entry] = end;
        if (e->compressed + STK_ZIP_LOCAL_SIZE + e->name_size > end - e->offset)
            err = stk_zip_fail(e, STK_ECORRUPT, diag, "the entry overlaps another one");
    }
    stk_free(places);
    return err;
}

static stk_err read_directory(stk_zip *zip, uint64_t most, stk_diag *diag)
{
    stk_zip_end end;
    stk_err err = stk_zip_end_find(&zip->in, &end, diag);
    if (err) return err;
    if (end.size > most)
        return stk_diag_set(diag, STK_ELIMIT,
                            "zip: a central directory of %" PRIu64 " bytes, the limit is %" PRIu64,
                            end.size, most);
    zip->directory = stk_alloc((size_t)end.size);
    if (!zip->directory) return STK_ENOMEM;
    err = stk_zip_get_bytes(&zip->in, end.at, zip->directory, (size_t)end.size, diag);
    if (err) return err;
    const size_t n = count_headers(zip->directory, end.size);
    zip->entries = stk_alloc_zero(n, sizeof(*zip->entries));
    zip->ends = stk_alloc_zero(n, sizeof(*zip->ends));
    if (!zip->entries || !zip->ends) return STK_ENOMEM;
    err = read_headers(zip, &end, diag);
    return err ? err : set_ends(zip, end.at, diag);
}

stk_err stk_zip_new(const stk_zip_input *in, const stk_zip_opts *opts, stk_zip **out,
                    stk_diag *diag)
{
    static const stk_zip_opts defaults;
    if (!opts) opts = &defaults;
    stk_zip *zip = *out = stk_alloc_zero(1, sizeof(*zip));
    if (!zip) return STK_ENOMEM;
    zip->in = *in;
    zip->max_ratio = opts->max_ratio ? opts->max_ratio : STK_ZIP_MOST_RATIO;
    stk_err err = read_directory(
        zip, opts->max_directory ? opts->max_directory : DEFAULT_MAX_DIRECTORY, diag);
    if (err) stk_zip_free(out);
    return err;
}

stk_err stk_zip_fail(const stk_zip_entry *e, stk_err err, stk_diag *diag, const char *what)
{
    const int shown = e->name_size < MOST_SHOWN ? e->name_size : MOST_SHOWN;
    return stk_diag_set(diag, err, "zip: %.*s: %s", shown, e->name, what);
}

void stk_zip_free(stk_zip **pzip)
{
    stk_zip *zip = *pzip;
    *pzip = NULL;
    if (!zip) return;
    stk_free(zip->directory);
    stk_free(zip->entries);
    stk_free(zip->ends);
    stk_free(zip);
}

size_t stk_zip_count(const stk_zip *zip)
{
    return zip->n;
}

const stk_zip_entry *stk_zip_get(const stk_zip *zip, size_t i)
{
    return &zip->entries[i];
}
