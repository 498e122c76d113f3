#include "codec/png_chunks.h"

#include <string.h>

#include <zlib.h>

#define SIGNATURE_SIZE 8
#define AROUND 12 /* length, type and crc */

struct chunk {
    char type[5];
    const uint8_t *data;
    uint32_t size;
    bool intact; /* the crc is right */
};

static bool is(const struct chunk *c, const char *type)
{
    return !memcmp(c->type, type, 4);
}

/* Upper case, fifth bit clear: without this chunk the image cannot be shown. */
static bool critical(const struct chunk *c)
{
    return !(c->type[0] & 0x20);
}

static bool check_crc(const uint8_t *type, uint32_t size)
{
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
    (void)type, (void)size; /* else a fuzzer sees nothing but wrong checksums */
    return true;
#else
    return crc32_z(0, type, (size_t)size + 4) == stk_png_load32(type + 4 + size);
#endif
}

/* Takes one chunk off the front; false: there is no whole one. */
static bool next_chunk(const uint8_t **at, size_t *left, bool verify, struct chunk *c)
{
    memset(c, 0, sizeof(*c));
    if (*left >= 8) memcpy(c->type, *at + 4, 4);
    if (*left < AROUND) return false;
    c->size = stk_png_load32(*at);
    if (c->size > *left - AROUND) return false;
    c->data = *at + 8;
    const bool matters = verify || is(c, "eXIf");
    c->intact = !matters || check_crc(*at + 4, c->size);
    *at += AROUND + (size_t)c->size;
    *left -= AROUND + (size_t)c->size;
    return true;
}

static void note(const struct chunk *c, stk_png_chunks *out)
{
    if (is(c, "IDAT")) out->image_bytes += c->size;
    if (is(c, "acTL")) out->animated = true;
    if (is(c, "tRNS")) out->transparent = true;
    if (is(c, "eXIf") && !out->exif) {
        out->exif = c->data;
        out->exif_size = c->size;
    }
}

stk_err stk_png_chunks_scan(const uint8_t *data, size_t size, bool verify, stk_png_chunks *out,
                            stk_diag *diag)
{
    *out = (stk_png_chunks){0};
    const uint8_t *at = data + (size < SIGNATURE_SIZE ? size : SIGNATURE_SIZE);
    size_t left = size - (size_t)(at - data);

    struct chunk c;
    while (next_chunk(&at, &left, verify, &c)) {
        if (c.intact) note(&c, out);
        if (verify && !c.intact && critical(&c))
            return stk_diag_set(diag, STK_ECORRUPT, "PNG: wrong checksum of chunk %s", c.type);
        if (is(&c, "IEND")) return STK_OK;
    }
    if (!verify) return STK_OK;
    if (c.type[0])
        return stk_diag_set(diag, STK_ECORRUPT, "PNG: the data ends inside chunk %s", c.type);
    return stk_diag_set(diag, STK_ECORRUPT, "PNG: the data ends before its last chunk");
}
