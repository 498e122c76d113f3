/* TIFF: Adobe's "TIFF Revision 6.0": its first picture.
 *
 * FFmpeg gets the file with a directory of our own behind it, which has what the pixels need and
 * nothing else: it would take a tag that it does not know for damage, and so tell what is damaged.
 */
#include <stdio.h>
#include <string.h>

#include "codec/exif.h"
#include "codec/le.h"
#include "codec/still.h"

enum {
    WIDTH = 256,
    HEIGHT = 257,
    BITS = 258,
    COMPRESSION = 259,
    PHOTOMETRIC = 262,
    STRIP_OFFSETS = 273,
    SAMPLES = 277,
    STRIP_ROWS = 278,
    STRIP_BYTES = 279,
    PLANAR = 284,
    TILE_OFFSETS = 324,
    SAMPLE_FORMAT = 339,
};

enum { HEADER = 8, ENTRY = 12, BYTE = 1, SHORT = 3, LONG = 4, PALETTE = 3, YCBCR = 6, BT601 = 5 };
enum { OLD_JPEG = 6, JPEG = 7 };

/* What pixels depend on, ascending. */
static const uint16_t needed[] = {WIDTH,
                                  HEIGHT,
                                  BITS,
                                  COMPRESSION,
                                  PHOTOMETRIC,
                                  266 /* order of bits */,
                                  STRIP_OFFSETS,
                                  SAMPLES,
                                  STRIP_ROWS,
                                  STRIP_BYTES,
                                  PLANAR,
                                  292,
                                  293 /* of CCITT */,
                                  317 /* predictor */,
                                  320 /* palette */,
                                  SAMPLE_FORMAT,
                                  530 /* subsampling */};

/* The values of a tag, which lie in the file. */
typedef struct values {
    uint32_t count; /* 0: there is no such tag */
    uint16_t type;
    size_t at;
} values;

typedef struct reader {
    const uint8_t *data;
    size_t size;
    bool big_endian;
    size_t directory, entries;
} reader;

static uint32_t get16(const reader *r, size_t at)
{
    return stk_tiff16(r->data + at, r->big_endian);
}

static uint32_t get32(const reader *r, size_t at)
{
    return stk_tiff32(r->data + at, r->big_endian);
}

static bool tiff_match(const uint8_t *data, size_t size)
{
    return size >= 4 && (!memcmp(data, "II*\0", 4) || !memcmp(data, "MM\0*", 4) ||
                         !memcmp(data, "II+\0", 4) || !memcmp(data, "MM\0+", 4));
}

static stk_err ends_early(stk_diag *diag)
{
    return stk_diag_set(diag, STK_ECORRUPT, "TIFF: the data ends before the image");
}

static size_t size_of(unsigned type)
{
    return type == BYTE ? 1 : type == SHORT ? 2 : type == LONG ? 4 : 0;
}

/* False: the values of the tag are no numbers inside the file. */
static bool find(const reader *r, unsigned tag, values *out)
{
    *out = (values){0};
    for (size_t i = 0; i < r->entries; i++) {
        const size_t at = r->directory + i * ENTRY;
        if (get16(r, at) != tag) continue;
        const uint16_t type = (uint16_t)get16(r, at + 2);
        const uint32_t count = get32(r, at + 4);
        const uint64_t bytes = (uint64_t)count * size_of(type);
        const size_t where = bytes <= 4 ? at + 8 : get32(r, at + 8);
        if (!bytes || where > r->size || bytes > r->size - where) return false;
        *out = (values){count, type, where};
        return true;
    }
    return true;
}

static uint32_t value(const reader *r, const values *v, size_t i)
{
    const size_t at = v->at + i * size_of(v->type);
    return v->type == BYTE ? r->data[at] : v->type == SHORT ? get16(r, at) : get32(r, at);
}

/* The one number of a tag, or what it is without the tag. */
static uint32_t number(const reader *r, unsigned tag, uint32_t otherwise)
{
    values v;
    return find(r, tag, &v) && v.count ? value(r, &v, 0) : otherwise;
}

static stk_err open_directory(reader *r, stk_diag *diag)
{
    if (r->size < 8) return ends_early(diag);
    if (!tiff_match(r->data, r->size)) return stk_diag_set(diag, STK_ECORRUPT, "TIFF: no header");
    r->big_endian = r->data[0] == 'M';
    if (get16(r, 2) == '+') return stk_diag_set(diag, STK_EUNSUPPORTED, "TIFF: it is a BigTIFF");
    r->directory = get32(r, 4);
    if (r->directory > r->size || r->size - r->directory < 2) return ends_early(diag);
    r->entries = get16(r, r->directory);
    r->directory += 2;
    return r->entries * ENTRY > r->size - r->directory ? ends_early(diag) : STK_OK;
}

/* Whether the strips lie in the file; as many as there have to be. */
static stk_err check_strips(const reader *r, const stk_image_info *info, stk_diag *diag)
{
    values offsets, bytes, tiles;
    if (!find(r, STRIP_OFFSETS, &offsets) || !find(r, STRIP_BYTES, &bytes) ||
        !find(r, TILE_OFFSETS, &tiles))
        return ends_early(diag);
    if (tiles.count)
        return stk_diag_set(diag, STK_EUNSUPPORTED, "TIFF: an image in tiles is not decoded");
    const uint32_t rows = number(r, STRIP_ROWS, UINT32_MAX), height = (uint32_t)info->height;
    uint64_t least = rows && rows < height ? (height + (uint64_t)rows - 1) / rows : 1;
    if (number(r, PLANAR, 1) == 2) least *= number(r, SAMPLES, 1);
    if (!offsets.count) return stk_diag_set(diag, STK_ECORRUPT, "TIFF: there is no image");
    if (offsets.count < least || bytes.count < offsets.count)
        return stk_diag_set(diag, STK_ECORRUPT, "TIFF: a part of the image is missing");
    for (uint32_t i = 0; i < offsets.count; i++) {
        const uint32_t at = value(r, &offsets, i), n = value(r, &bytes, i);
        if (at > r->size || n > r->size - at) return ends_early(diag);
    }
    return STK_OK;
}

static const char *compression_name(uint32_t compression)
{
    switch (compression) {
    case 1: return "uncompressed";
    case 2:
    case 3:
    case 4: return "CCITT";
    case 5: return "LZW";
    case 8:
    case 32946: return "deflate";
    case 32773: return "PackBits";
    case 34925: return "LZMA";
    case 50000: return "Zstandard";
    default: return "another compression";
    }
}

static stk_err read_info(const reader *r, stk_still *out, stk_diag *diag)
{
    const uint32_t width = number(r, WIDTH, 0), height = number(r, HEIGHT, 0);
    const uint32_t samples = number(r, SAMPLES, 1), bits = number(r, BITS, 1);
    const uint32_t photometric = number(r, PHOTOMETRIC, 0);
    if (!width || !height || width > INT32_MAX || height > INT32_MAX)
        return stk_diag_set(diag, STK_ECORRUPT, "TIFF: no pixels");
    const uint32_t compression = number(r, COMPRESSION, 1);
    if (compression == OLD_JPEG || compression == JPEG)
        return stk_diag_set(diag, STK_EUNSUPPORTED, "TIFF: JPEG in TIFF is not decoded");
    if (!samples || samples > 4)
        return stk_diag_set(diag, STK_EUNSUPPORTED, "TIFF: %u samples a pixel", samples);
    if (!bits || bits > 16 || number(r, SAMPLE_FORMAT, 1) != 1)
        return stk_diag_set(diag, STK_EUNSUPPORTED,
                            "TIFF: samples of %u bits, or no unsigned integers", bits);
    out->info = (stk_image_info){
        .width = (int32_t)width,
        .height = (int32_t)height,
        .channels = photometric == PALETTE ? 3 : (int32_t)samples,
        .bits = photometric == PALETTE ? 8 : (int32_t)bits,
        .orientation = stk_exif_orientation(r->data, r->size),
    };
    snprintf(out->info.detail, sizeof(out->info.detail), "%s%s",
             photometric == PALETTE ? "palette, " : "", compression_name(compression));
    if (photometric == YCBCR) {
        out->matrix = BT601;
        out->range = STK_PICTURE_RANGE_FULL;
    }
    return STK_OK;
}

static void put(const reader *r, uint8_t *p, size_t bytes, uint64_t number)
{
    for (size_t i = 0; i < bytes; i++)
        p[r->big_endian ? bytes - 1 - i : i] = (uint8_t)(number >> (8 * i));
}

static void make_directory(const reader *r, stk_still *out)
{
    uint8_t *first = out->own + HEADER, *at = first + 2;
    memcpy(out->own, r->data, 4);
    put(r, out->own + 4, 4, r->size);            /* it begins where the file ends */
    const bool one = number(r, SAMPLES, 1) == 1; /* FFmpeg refuses planes then */
    for (size_t k = 0; k < sizeof(needed) / sizeof(*needed); k++)
        for (size_t i = 0; i < r->entries; i++) {
            const uint8_t *entry = r->data + r->directory + i * ENTRY;
            if (get16(r, (size_t)(entry - r->data)) != needed[k]) continue;
            if (one && needed[k] == PLANAR) break;
            memcpy(at, entry, ENTRY);
            at += ENTRY;
            break; /* the first counts */
        }
    put(r, first, 2, (uint64_t)(at - first - 2) / ENTRY);
    put(r, at, 4, 0); /* there is no other directory */
    out->head = HEADER;
    out->tail = (size_t)(at + 4 - first);
}

static stk_err tiff_parse(const uint8_t *data, size_t size, stk_still *out, stk_diag *diag)
{
    reader r = {.data = data, .size = size};
    stk_err err = open_directory(&r, diag);
    if (!err) err = read_info(&r, out, diag);
    if (!err) err = check_strips(&r, &out->info, diag);
    if (err) return err;
    if (size > UINT32_MAX)
        return stk_diag_set(diag, STK_EUNSUPPORTED, "TIFF: %zu bytes, which is too large", size);
    make_directory(&r, out);
    (void)stk_still_add(out, data, size, HEADER, size - HEADER); /* it is inside */
    return STK_OK;
}

static const stk_still_format tiff = {
    .codec = &stk_codec_tiff, .decoder = "tiff", .parse = tiff_parse};

static stk_err tiff_probe(const uint8_t *data, size_t size, stk_image_info *out, stk_diag *diag)
{
    return stk_still_probe(&tiff, data, size, out, diag);
}

static stk_err tiff_open(void **state, stk_diag *diag)
{
    return stk_still_open(&tiff, state, diag);
}

const stk_codec stk_codec_tiff = {
    .format = STK_IMAGE_TIFF,
    .name = "TIFF",
    .match = tiff_match,
    .probe = tiff_probe,
    .open = tiff_open,
    .close = stk_still_close,
    .begin = stk_still_begin,
    .window = stk_still_window,
    .rows = stk_still_rows,
};
