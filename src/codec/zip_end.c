/* APPNOTE.TXT 6.3.10, sections 4.3.14 to 4.3.16. */
#include "codec/zip_end.h"

#include <string.h>

#include "base/alloc.h"
#include "codec/le.h"

enum {
    END_SIZE = 22,
    LOCATOR_SIZE = 20,
    END64_SIZE = 56,
    END64_UNCOUNTED = 12, /* its signature and its size */
    END_MAGIC = 0x06054b50,
    LOCATOR_MAGIC = 0x07064b50,
    END64_MAGIC = 0x06064b50,
};

/* What the records say of the directory. */
typedef struct claim {
    uint64_t disk, disk_of_directory, entries_here, entries, size, offset;
    uint64_t ends_at; /* the first record behind it */
    bool zip64;
} claim;

stk_err stk_zip_get_bytes(const stk_zip_input *in, uint64_t offset, void *dst, size_t size,
                          stk_diag *diag)
{
    if (!size) return STK_OK;
    if (!in->data) return in->read(in->ctx, offset, dst, size, diag);
    memcpy(dst, (const uint8_t *)in->data + offset, size);
    return STK_OK;
}

static stk_err corrupt(stk_diag *diag, const char *what)
{
    return stk_diag_set(diag, STK_ECORRUPT, "zip: %s", what);
}

/* The last end record in the tail whose comment ends inside it; -1: none.  What follows it belongs
 * to nobody. */
static int64_t find_end(const uint8_t *tail, size_t size)
{
    for (int64_t at = (int64_t)size - END_SIZE; at >= 0; at--) {
        if (tail[at] != 'P' || stk_le32(tail + at) != END_MAGIC) continue;
        if (stk_le16(tail + at + 20) <= size - (size_t)at - END_SIZE) return at;
    }
    return -1;
}

static claim claim_of_end(const uint8_t *p, uint64_t at)
{
    return (claim){
        .disk = stk_le16(p + 4),
        .disk_of_directory = stk_le16(p + 6),
        .entries_here = stk_le16(p + 8),
        .entries = stk_le16(p + 10),
        .size = stk_le32(p + 12),
        .offset = stk_le32(p + 16),
        .ends_at = at,
    };
}

/* Reads the zip64 end at `at`, which must reach up to the locator; *found: it is there. */
static stk_err read_end64(const stk_zip_input *in, uint64_t at, uint64_t locator, claim *out,
                          bool *found, stk_diag *diag)
{
    uint8_t p[END64_SIZE];
    *found = false;
    if (locator < END64_SIZE || at > locator - END64_SIZE) return STK_OK;
    stk_err err = stk_zip_get_bytes(in, at, p, sizeof(p), diag);
    if (err) return err;
    if (stk_le32(p) != END64_MAGIC || stk_le64(p + 4) != locator - at - END64_UNCOUNTED)
        return STK_OK;
    *found = true;
    *out = (claim){
        .disk = stk_le32(p + 16),
        .disk_of_directory = stk_le32(p + 20),
        .entries_here = stk_le64(p + 24),
        .entries = stk_le64(p + 32),
        .size = stk_le64(p + 40),
        .offset = stk_le64(p + 48),
        .ends_at = at,
        .zip64 = true,
    };
    return STK_OK;
}

/* Replaces the claim where a zip64 locator stands before the end. */
static stk_err apply_zip64(const stk_zip_input *in, claim *c, stk_diag *diag)
{
    uint8_t p[LOCATOR_SIZE];
    if (c->ends_at < LOCATOR_SIZE) return STK_OK;
    const uint64_t locator = c->ends_at - LOCATOR_SIZE;
    stk_err err = stk_zip_get_bytes(in, locator, p, sizeof(p), diag);
    if (err || stk_le32(p) != LOCATOR_MAGIC) return err;
    if (stk_le32(p + 4) != 0 || stk_le32(p + 16) > 1)
        return stk_diag_set(diag, STK_EUNSUPPORTED, "zip: an archive of several disks is not read");
    /* Right before the locator, as all write it; else, with data of its own, where the locator
     * says, which does not count a prefix. */
    bool found = false;
    if (locator >= END64_SIZE) err = read_end64(in, locator - END64_SIZE, locator, c, &found, diag);
    if (!err && !found) err = read_end64(in, stk_le64(p + 8), locator, c, &found, diag);
    if (!err && !found) return corrupt(diag, "no zip64 end of the central directory");
    return err;
}

static stk_err check_claim(const claim *c, stk_zip_end *out, stk_diag *diag)
{
    if (c->disk || c->disk_of_directory)
        return stk_diag_set(diag, STK_EUNSUPPORTED, "zip: an archive of several disks is not read");
    if (c->entries_here != c->entries) return corrupt(diag, "two numbers of entries differ");
    if (c->size > c->ends_at || c->offset > c->ends_at - c->size)
        return corrupt(diag, "the central directory lies outside of the archive");
    *out = (stk_zip_end){
        .at = c->ends_at - c->size,
        .size = c->size,
        .prefix = c->ends_at - c->size - c->offset,
        .entries = c->entries,
        .zip64 = c->zip64,
    };
    return STK_OK;
}

/* The end record; *found: there is one. */
static stk_err read_end(const stk_zip_input *in, claim *out, bool *found, stk_diag *diag)
{
    const size_t size = in->size < STK_ZIP_TAIL ? (size_t)in->size : STK_ZIP_TAIL;
    const uint64_t from = in->size - size;
    uint8_t *copy = in->data ? NULL : stk_alloc(size);
    if (!in->data && !copy) return STK_ENOMEM;
    stk_err err = copy ? stk_zip_get_bytes(in, from, copy, size, diag) : STK_OK;
    if (!err) {
        const uint8_t *tail = copy ? copy : (const uint8_t *)in->data + from;
        const int64_t at = find_end(tail, size);
        *found = at >= 0;
        if (*found) *out = claim_of_end(tail + at, from + (uint64_t)at);
    }
    stk_free(copy);
    return err;
}

stk_err stk_zip_end_find(const stk_zip_input *in, stk_zip_end *out, stk_diag *diag)
{
    *out = (stk_zip_end){0};
    if (in->size < END_SIZE)
        return stk_diag_set(diag, STK_ECORRUPT, "The data is not a valid zip file.");
    claim c = {0};
    bool found = false;
    stk_err err = read_end(in, &c, &found, diag);
    if (err) return err;
    if (!found)
        return stk_diag_set(diag, STK_ECORRUPT,
                            "Failed to locate the end of the central directory.");
    err = apply_zip64(in, &c, diag);
    return err ? err : check_claim(&c, out, diag);
}
