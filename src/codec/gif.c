/* GIF: CompuServe's "Graphics Interchange Format, Version 89a": its first image.
 *
 * FFmpeg gets that image alone, with its palette and without the extensions before it: pixels that
 * are transparent keep their colour then, as those of other formats do. */
#include <string.h>

#include "codec/le.h"
#include "codec/still.h"

enum {
    HEADER = 13, /* with the logical screen descriptor */
    DESCRIPTOR = 10,
    COLORS = 256,
    EXTENSION = 0x21,
    IMAGE = 0x2C,
    TRAILER = 0x3B,
    GRAPHIC_CONTROL = 0xF9,
    HAS_PALETTE = 0x80,
    INTERLACED = 0x40,
    MAX_CODE_BITS = 8,
};

typedef struct reader {
    const uint8_t *data;
    size_t size, at;
    uint8_t palette[COLORS][3];
    int transparent; /* -1: none */
} reader;

static bool gif_match(const uint8_t *data, size_t size)
{
    return size >= 6 && (!memcmp(data, "GIF87a", 6) || !memcmp(data, "GIF89a", 6));
}

static bool has(const reader *r, size_t n)
{
    return r->size - r->at >= n;
}

/* Blocks of a length and so many bytes, to the empty one. */
static bool skip_blocks(reader *r)
{
    while (has(r, 1)) {
        const size_t n = r->data[r->at++];
        if (!n) return true;
        if (!has(r, n)) return false;
        r->at += n;
    }
    return false;
}

static bool read_palette(reader *r, unsigned flags)
{
    if (!(flags & HAS_PALETTE)) return true;
    const size_t n = (size_t)3 << ((flags & 7) + 1);
    if (!has(r, n)) return false;
    memcpy(r->palette, r->data + r->at, n);
    r->at += n;
    return true;
}

static bool read_extension(reader *r)
{
    if (!has(r, 1)) return false;
    const unsigned label = r->data[r->at++];
    if (label == GRAPHIC_CONTROL && has(r, 5) && r->data[r->at] >= 4)
        r->transparent = r->data[r->at + 1] & 1 ? r->data[r->at + 4] : -1;
    return skip_blocks(r);
}

/* To behind the mark of the next image; false: there is none. */
static bool find_image(reader *r)
{
    while (has(r, 1)) {
        const unsigned mark = r->data[r->at++];
        if (mark == IMAGE) return true;
        if (mark != EXTENSION || !read_extension(r)) return false;
    }
    return false;
}

static void put16(uint8_t *p, int value)
{
    p[0] = (uint8_t)value;
    p[1] = (uint8_t)(value >> 8);
}

/* A file of one image with a palette of its own, as far as its data. */
static void make_head(const reader *r, const uint8_t *image, stk_still *out)
{
    uint8_t *p = out->own;
    memcpy(p, "GIF89a", 6);
    put16(p + 6, out->info.width);
    put16(p + 8, out->info.height);
    p += HEADER;
    *p = IMAGE;
    memcpy(p + 1, image, 8);
    p[9] = (uint8_t)(HAS_PALETTE | (image[8] & INTERLACED) | 7);
    memcpy(p + DESCRIPTOR, r->palette, sizeof(r->palette));
    out->head = HEADER + DESCRIPTOR + sizeof(r->palette);
}

static stk_err ends_early(stk_diag *diag)
{
    return stk_diag_set(diag, STK_ECORRUPT, "GIF: the data ends before the image");
}

/* The first image: its place, its palette, its data. */
static stk_err read_image(reader *r, stk_still *out, stk_diag *diag)
{
    if (!has(r, 9)) return ends_early(diag);
    const uint8_t *image = r->data + r->at;
    const int32_t width = out->info.width, height = out->info.height;
    stk_rect *d = &out->drawn;
    *d = (stk_rect){stk_le16(image), stk_le16(image + 2), stk_le16(image + 4), stk_le16(image + 6)};
    r->at += 9;
    if (!d->width || !d->height || d->x >= width || d->y >= height)
        return stk_diag_set(diag, STK_ECORRUPT, "GIF: an image of %d x %d pixels at %d, %d",
                            (int)d->width, (int)d->height, (int)d->x, (int)d->y);
    if (d->width > width - d->x) d->width = width - d->x;
    if (d->height > height - d->y) d->height = height - d->y;
    if (!read_palette(r, image[8]) || !has(r, 1)) return ends_early(diag);
    const size_t at = r->at++;
    if (r->data[at] < 1 || r->data[at] > MAX_CODE_BITS)
        return stk_diag_set(diag, STK_ECORRUPT, "GIF: codes of %d bits", (int)r->data[at]);
    if (!skip_blocks(r)) return ends_early(diag);
    make_head(r, image, out);
    memcpy(out->fill, r->palette[r->transparent < 0 ? 0 : r->transparent], 3);
    (void)stk_still_add(out, r->data, r->size, at, r->at - at); /* it is inside */
    out->info.progressive = image[8] & INTERLACED;
    return STK_OK;
}

static stk_err gif_parse(const uint8_t *data, size_t size, stk_still *out, stk_diag *diag)
{
    reader r = {.data = data, .size = size, .at = HEADER, .transparent = -1};
    if (size < HEADER) return ends_early(diag);
    if (!gif_match(data, size)) return stk_diag_set(diag, STK_ECORRUPT, "GIF: no header");
    out->info = (stk_image_info){.width = stk_le16(data + 6),
                                 .height = stk_le16(data + 8),
                                 .channels = 3,
                                 .bits = 8,
                                 .orientation = 1,
                                 .detail = "palette"};
    for (int i = 0; i < COLORS; i++) memset(r.palette[i], i, 3); /* without a palette: gray */
    if (!read_palette(&r, data[10])) return ends_early(diag);
    if (!find_image(&r)) {
        if (r.at < size) return stk_diag_set(diag, STK_ECORRUPT, "GIF: there is no image");
        return ends_early(diag);
    }
    if (r.transparent >= 0) out->info.channels = 4;
    const stk_err err = read_image(&r, out, diag);
    if (!err) out->info.animated = find_image(&r);
    return err;
}

static const stk_still_format gif = {
    .codec = &stk_codec_gif, .decoder = "gif", .strict = true, .drawn = true, .parse = gif_parse};

static stk_err gif_probe(const uint8_t *data, size_t size, stk_image_info *out, stk_diag *diag)
{
    return stk_still_probe(&gif, data, size, out, diag);
}

static stk_err gif_open(void **state, stk_diag *diag)
{
    return stk_still_open(&gif, state, diag);
}

const stk_codec stk_codec_gif = {
    .format = STK_IMAGE_GIF,
    .name = "GIF",
    .match = gif_match,
    .probe = gif_probe,
    .open = gif_open,
    .close = stk_still_close,
    .begin = stk_still_begin,
    .window = stk_still_window,
    .rows = stk_still_rows,
};
