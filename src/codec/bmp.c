/* BMP: Microsoft's "Bitmap Storage": BITMAPFILEHEADER, and the DIB header behind it. */
#include <stdio.h>
#include <string.h>

#include "codec/le.h"
#include "codec/still.h"

enum { FILE_HEADER = 14, CORE = 12, INFO = 40 };
enum { RGB = 0, RLE8 = 1, RLE4 = 2, BITFIELDS = 3, ALPHA_BITFIELDS = 6 };

typedef struct header {
    size_t size; /* of the DIB header */
    int64_t width, height;
    unsigned bits;
    uint32_t compression, pixels; /* where they begin */
} header;

static bool bmp_match(const uint8_t *data, size_t size)
{
    if (size < FILE_HEADER + 4 || memcmp(data, "BM", 2) != 0) return false;
    const uint32_t dib = stk_le32(data + FILE_HEADER);
    return dib == CORE || dib == INFO || dib == 52 || dib == 56 || dib == 64 || dib == 108 ||
           dib == 124;
}

static stk_err ends_early(stk_diag *diag)
{
    return stk_diag_set(diag, STK_ECORRUPT, "BMP: the data ends before the image");
}

static stk_err read_header(const uint8_t *data, size_t size, header *h, stk_diag *diag)
{
    if (!bmp_match(data, size)) return stk_diag_set(diag, STK_ECORRUPT, "BMP: no header");
    const uint8_t *dib = data + FILE_HEADER;
    *h = (header){.size = stk_le32(dib), .pixels = stk_le32(data + 10)};
    if (size - FILE_HEADER < h->size) return ends_early(diag);
    if (h->size == CORE) {
        h->width = stk_le16(dib + 4);
        h->height = stk_le16(dib + 6);
        h->bits = stk_le16(dib + 10);
    }
    else {
        h->width = (int32_t)stk_le32(dib + 4);
        h->height = (int32_t)stk_le32(dib + 8);
        h->bits = stk_le16(dib + 14);
        h->compression = stk_le32(dib + 16);
    }
    if (h->height < 0) h->height = -h->height; /* the first row comes first */
    if (h->width <= 0 || h->height <= 0 || h->height > INT32_MAX)
        return stk_diag_set(diag, STK_ECORRUPT, "BMP: no pixels");
    const unsigned b = h->bits;
    if (b != 1 && b != 4 && b != 8 && b != 16 && b != 24 && b != 32)
        return stk_diag_set(diag, STK_EUNSUPPORTED, "BMP: %u bits a pixel", b);
    if (h->compression > BITFIELDS && h->compression != ALPHA_BITFIELDS)
        return stk_diag_set(diag, STK_EUNSUPPORTED, "BMP: compression %u", h->compression);
    return STK_OK;
}

/* Whether run-length codes go on to their end: FFmpeg takes what is missing for black. */
static bool runs_end(const uint8_t *p, size_t size, unsigned bits)
{
    for (size_t at = 0; size - at >= 2;) {
        const unsigned count = p[at], code = p[at + 1];
        size_t more = 0;
        if (!count && code == 1) return true; /* the end of the bitmap */
        if (!count && code == 2) more = 2;    /* a step to the right and up */
        if (!count && code > 2) more = (((size_t)code * bits + 7) / 8 + 1) & ~(size_t)1;
        if (size - at - 2 < more) return false;
        at += 2 + more;
    }
    return false;
}

static bool complete(const uint8_t *data, size_t size, const header *h)
{
    if (h->pixels < FILE_HEADER + h->size || h->pixels > size) return false;
    const size_t left = size - h->pixels;
    if (h->compression == RLE8 || h->compression == RLE4)
        return runs_end(data + h->pixels, left, h->bits);
    const uint64_t row = ((uint64_t)h->width * h->bits + 7) / 8;
    const uint64_t before = ((row + 3) & ~UINT64_C(3)) * (uint64_t)(h->height - 1);
    return left >= row && left - row >= before;
}

static stk_err bmp_parse(const uint8_t *data, size_t size, stk_still *out, stk_diag *diag)
{
    static const char *const kinds[] = {"", ", RLE8", ", RLE4"};
    header h = {0};
    const stk_err err = read_header(data, size, &h, diag);
    if (err) return err;
    if (!complete(data, size, &h)) return ends_early(diag);
    const uint8_t *dib = data + FILE_HEADER;
    const bool alpha = h.bits >= 16 && h.compression >= BITFIELDS && h.size >= 56 &&
                       stk_le32(dib + 52); /* the mask of alpha */
    out->info = (stk_image_info){
        .width = (int32_t)h.width,
        .height = (int32_t)h.height,
        .channels = alpha ? 4 : 3,
        .bits = 8,
        .orientation = 1,
    };
    snprintf(out->info.detail, sizeof(out->info.detail), "%u bits a pixel%s", h.bits,
             h.compression < 3 ? kinds[h.compression] : "");
    (void)stk_still_add(out, data, size, 0, size); /* it is inside */
    return STK_OK;
}

static const stk_still_format bmp = {
    .codec = &stk_codec_bmp, .decoder = "bmp", .strict = true, .parse = bmp_parse};

static stk_err bmp_probe(const uint8_t *data, size_t size, stk_image_info *out, stk_diag *diag)
{
    return stk_still_probe(&bmp, data, size, out, diag);
}

static stk_err bmp_open(void **state, stk_diag *diag)
{
    return stk_still_open(&bmp, state, diag);
}

const stk_codec stk_codec_bmp = {
    .format = STK_IMAGE_BMP,
    .name = "BMP",
    .match = bmp_match,
    .probe = bmp_probe,
    .open = bmp_open,
    .close = stk_still_close,
    .begin = stk_still_begin,
    .window = stk_still_window,
    .rows = stk_still_rows,
};
