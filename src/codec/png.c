/* PNG through libspng, which gives the rows as they are stored; the conversion to 8-bit pixels is
 * ours, so that only the columns that are wanted are converted. */
#include "codec/codec.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <spng.h>

#include "base/alloc.h"
#include "codec/exif.h"
#include "codec/limits.h"
#include "codec/png_chunks.h"
#include "codec/rowbuf.h"

/* Of one chunk that is no part of the picture, and of all that libspng keeps of them: profiles and
 * texts are unpacked, and a few bytes can become many. */
#define MAX_CHUNK ((size_t)16 << 20)
#define MAX_CHUNKS ((size_t)32 << 20)

struct png {
    spng_ctx *ctx; /* one image's: libspng cannot use one again */
    struct spng_ihdr ihdr;
    uint8_t palette[256][3];
    uint8_t gray[256]; /* luma of palette entries, or levels of gray samples of few bits */

    stk_rect rect;
    bool to_gray;
    size_t raw_bytes;  /* of a row as stored */
    stk_rowbuf raw;    /* a row as stored; interlaced: those of rect, and a spare one */
    stk_rowbuf pixels; /* a row as delivered */
};

static bool png_match(const uint8_t *data, size_t size)
{
    return size >= 8 && !memcmp(data, STK_PNG_SIGNATURE, 8);
}

/* libspng tells a failed allocation inside zlib as a broken stream, and its allocator has no
 * context: so the calling thread remembers, from one call of libspng's to the next. */
static _Thread_local bool starved;

static void *remember(void *ptr)
{
    if (!ptr) starved = true;
    return ptr;
}

static void *heap_alloc(size_t size)
{
    return remember(stk_alloc(size));
}

static void *heap_resize(void *ptr, size_t size)
{
    return remember(stk_alloc_resize(ptr, size));
}

static void *heap_zero(size_t count, size_t size)
{
    return remember(stk_alloc_zero(count, size));
}

static stk_err fail(int code, stk_diag *diag)
{
    stk_err err = STK_ECORRUPT;
    if (starved || code == SPNG_EMEM) return stk_diag_set(diag, STK_ENOMEM, "PNG: out of memory");
    if (code == SPNG_ECHUNK_LIMITS)
        return stk_diag_set(diag, STK_ELIMIT, "PNG: texts and profiles of more than %zu MiB",
                            MAX_CHUNK >> 20);
    if (code == SPNG_ECHUNK_UNKNOWN_CRITICAL) err = STK_EUNSUPPORTED;
    return stk_diag_set(diag, err, "PNG: %s", spng_strerror(code));
}

/* A header whose image libspng cannot count the bytes of. */
static stk_err too_large(const uint8_t *data, stk_diag *diag)
{
    return stk_diag_set(diag, STK_ELIMIT,
                        "PNG of %" PRIu32 " x %" PRIu32 " pixels: over every limit",
                        stk_png_load32(data + 16), stk_png_load32(data + 20));
}

/* Gives *out a decoder that has read IHDR. */
static stk_err open_data(const uint8_t *data, size_t size, spng_ctx **out, struct spng_ihdr *ihdr,
                         stk_diag *diag)
{
    struct spng_alloc heap = {heap_alloc, heap_resize, heap_zero, stk_free};
    starved = false;
    spng_ctx *ctx = *out = spng_ctx_new2(&heap, 0);
    if (!ctx) return stk_diag_set(diag, STK_ENOMEM, "PNG: out of memory");

    int code = spng_set_chunk_limits(ctx, MAX_CHUNK, MAX_CHUNKS);
    /* The chunks that matter are checked by stk_png_chunks_scan. */
    if (!code) code = spng_set_crc_action(ctx, SPNG_CRC_USE, SPNG_CRC_DISCARD);
    if (!code) code = spng_set_png_buffer(ctx, data, size);
    if (!code) code = spng_get_ihdr(ctx, ihdr);
    if (!code) return STK_OK;
    spng_ctx_free(ctx);
    *out = NULL;
    return code == SPNG_EOVERFLOW ? too_large(data, diag) : fail(code, diag);
}

static int32_t num_channels(const struct spng_ihdr *ihdr)
{
    switch (ihdr->color_type) {
    case SPNG_COLOR_TYPE_GRAYSCALE_ALPHA: return 2;
    case SPNG_COLOR_TYPE_TRUECOLOR: return 3;
    case SPNG_COLOR_TYPE_TRUECOLOR_ALPHA: return 4;
    default: return 1; /* gray, or an index */
    }
}

static void describe(const struct spng_ihdr *ihdr, const stk_png_chunks *chunks,
                     stk_image_info *out)
{
    const bool indexed = ihdr->color_type == SPNG_COLOR_TYPE_INDEXED;
    static const char *const names[] = {"gray", "gray and alpha", "RGB", "RGBA"};
    const int32_t stored = num_channels(ihdr);
    *out = (stk_image_info){
        .format = STK_IMAGE_PNG,
        .width = (int32_t)ihdr->width,
        .height = (int32_t)ihdr->height,
        .channels = !indexed              ? stored
                    : chunks->transparent ? 4
                                          : 3,
        .bits = indexed ? 8 : ihdr->bit_depth,
        .orientation = chunks->exif ? stk_exif_orientation(chunks->exif, chunks->exif_size) : 1,
        .progressive = ihdr->interlace_method != 0,
        .animated = chunks->animated,
    };
    snprintf(out->detail, sizeof(out->detail), "%s", indexed ? "palette" : names[stored - 1]);
}

static stk_err png_probe(const uint8_t *data, size_t size, stk_image_info *out, stk_diag *diag)
{
    *out = (stk_image_info){0};
    spng_ctx *ctx;
    struct spng_ihdr ihdr;
    stk_png_chunks chunks;
    stk_err err = open_data(data, size, &ctx, &ihdr, diag);
    spng_ctx_free(ctx);
    if (!err) err = stk_png_chunks_scan(data, size, false, &chunks, diag);
    if (!err) describe(&ihdr, &chunks, out);
    return err;
}

static stk_err png_open(void **state, stk_diag *diag)
{
    *state = stk_alloc_zero(1, sizeof(struct png));
    return *state ? STK_OK : stk_diag_set(diag, STK_ENOMEM, "PNG: out of memory");
}

static void drop_image(struct png *p)
{
    spng_ctx_free(p->ctx);
    p->ctx = NULL;
    stk_rowbuf_trim(&p->raw);
    stk_rowbuf_trim(&p->pixels);
}

static void png_close(void *state)
{
    struct png *p = state;
    if (!p) return;
    drop_image(p);
    stk_rowbuf_fini(&p->raw);
    stk_rowbuf_fini(&p->pixels);
    stk_free(p);
}

/* Deflate makes at most 1032 bytes of one (zlib's "Technical Details"), so that a header that
 * claims more than the data can hold is found out before memory is asked for. */
static stk_err check_plausible(const struct spng_ihdr *ihdr, const stk_png_chunks *chunks,
                               stk_diag *diag)
{
    const uint64_t bits = (uint64_t)num_channels(ihdr) * ihdr->bit_depth;
    const uint64_t bytes = (uint64_t)ihdr->width * ihdr->height * bits / 8;
    if (bytes / 1032 <= chunks->image_bytes) return STK_OK;
    return stk_diag_set(diag, STK_ECORRUPT, "PNG: too little data for %u x %u pixels", ihdr->width,
                        ihdr->height);
}

/* The tables that small samples are looked up in. */
static stk_err make_tables(struct png *p, stk_diag *diag)
{
    if (p->ihdr.color_type != SPNG_COLOR_TYPE_INDEXED) {
        const unsigned top = p->ihdr.bit_depth < 8 ? (1u << p->ihdr.bit_depth) - 1 : 255;
        for (unsigned i = 0; i <= top; i++) p->gray[i] = (uint8_t)(i * 255 / top);
        return STK_OK;
    }
    struct spng_plte plte;
    int code = spng_get_plte(p->ctx, &plte);
    if (code == SPNG_ECHUNKAVAIL) code = SPNG_ENOPLTE;
    if (code) return fail(code, diag);
    memset(p->palette, 0, sizeof(p->palette)); /* entries beyond the palette's end are black */
    for (uint32_t i = 0; i < plte.n_entries && i < 256; i++) {
        const struct spng_plte_entry *e = &plte.entries[i];
        memcpy(p->palette[i], (uint8_t[3]){e->red, e->green, e->blue}, 3);
    }
    for (int i = 0; i < 256; i++) p->gray[i] = stk_gray_of(p->palette[i]);
    return STK_OK;
}

static stk_err png_begin(void *state, const uint8_t *data, size_t size,
                         const stk_image_limits *limits, stk_image_info *info, stk_diag *diag)
{
    struct png *p = state;
    stk_png_chunks chunks;
    *info = (stk_image_info){0};
    drop_image(p);

    stk_err err = open_data(data, size, &p->ctx, &p->ihdr, diag);
    if (!err) err = stk_image_limits_check(limits, "PNG", p->ihdr.width, p->ihdr.height, diag);
    if (!err) err = stk_png_chunks_scan(data, size, true, &chunks, diag);
    if (!err) err = check_plausible(&p->ihdr, &chunks, diag);
    if (!err) err = make_tables(p, diag);
    if (!err) describe(&p->ihdr, &chunks, info);
    if (err) drop_image(p);
    return err;
}

static stk_err png_window(void *state, const stk_window_request *req, stk_row_window *out,
                          stk_diag *diag)
{
    struct png *p = state;
    const stk_rect *r = &p->rect;
    const bool gray = !(p->ihdr.color_type & SPNG_COLOR_TYPE_TRUECOLOR); /* the colour bit */
    p->rect = req->rect;
    p->to_gray = req->gray || gray;
    *out = (stk_row_window){
        .pixels = p->to_gray ? STK_PIXELS_GRAY : STK_PIXELS_RGB,
        .width = r->width,
        .height = r->height,
        .x1 = r->width,
        .y1 = r->height,
    };

    const size_t bits = (size_t)num_channels(&p->ihdr) * p->ihdr.bit_depth;
    p->raw_bytes = (p->ihdr.width * bits + 7) / 8;
    const size_t raw_rows = p->ihdr.interlace_method ? (size_t)r->height + 1 : 1;
    stk_err err = stk_rowbuf_reserve(&p->pixels, (size_t)r->width * 3);
    if (!err) err = stk_rowbuf_reserve(&p->raw, p->raw_bytes * raw_rows);
    return err ? stk_diag_set(diag, err, "PNG: out of memory") : STK_OK;
}

/* Samples of less than a byte, and indices. */
static void convert_small(const struct png *p, const uint8_t *raw, uint8_t *out)
{
    const unsigned depth = p->ihdr.bit_depth, mask = (1u << depth) - 1;
    for (int32_t i = 0; i < p->rect.width; i++) {
        const size_t bit = (size_t)(p->rect.x + i) * depth;
        const unsigned v = (raw[bit / 8] >> (8 - depth - bit % 8)) & mask;
        if (p->to_gray)
            out[i] = p->gray[v];
        else
            memcpy(out + (size_t)i * 3, p->palette[v], 3);
    }
}

/* The wanted columns of one stored row, as 8-bit gray or RGB.  Of 16 bits the upper 8 count, and
 * alpha does not: as Pillow's convert("RGB"). */
static const uint8_t *convert(const struct png *p, const uint8_t *raw)
{
    uint8_t *out = p->pixels.data;
    const bool color = p->ihdr.color_type & SPNG_COLOR_TYPE_TRUECOLOR;
    if (p->ihdr.bit_depth < 8 || p->ihdr.color_type == SPNG_COLOR_TYPE_INDEXED) {
        convert_small(p, raw, out);
        return out;
    }
    const size_t sample = p->ihdr.bit_depth / 8;
    const size_t pixel = sample * (size_t)num_channels(&p->ihdr);
    const uint8_t *in = raw + (size_t)p->rect.x * pixel;
    if (pixel == 1 || (pixel == 3 && !p->to_gray)) return in;
    for (int32_t i = 0; i < p->rect.width; i++, in += pixel) {
        const uint8_t rgb[3] = {in[0], color ? in[sample] : 0, color ? in[2 * sample] : 0};
        if (!color)
            out[i] = in[0];
        else if (p->to_gray)
            out[i] = stk_gray_of(rgb);
        else
            memcpy(out + (size_t)i * 3, rgb, 3);
    }
    return out;
}

static stk_err rows_plain(struct png *p, stk_row_fn *push, void *push_ctx, stk_diag *diag)
{
    const uint32_t top = (uint32_t)p->rect.y, end = top + (uint32_t)p->rect.height;
    for (uint32_t y = 0; y < end; y++) {
        const int code = spng_decode_row(p->ctx, p->raw.data, p->raw_bytes);
        const bool last = y + 1 == p->ihdr.height;
        if (code != (last ? SPNG_EOI : 0)) return fail(code ? code : SPNG_EIDAT_STREAM, diag);
        if (y >= top && !push(push_ctx, convert(p, p->raw.data))) break;
    }
    return STK_OK;
}

/* All passes first; rows outside of the window go to the spare row. */
static stk_err rows_interlaced(struct png *p, stk_row_fn *push, void *push_ctx, stk_diag *diag)
{
    const uint32_t top = (uint32_t)p->rect.y, height = (uint32_t)p->rect.height;
    memset(p->raw.data, 0, p->raw_bytes * ((size_t)height + 1)); /* libspng ors small samples in */
    int code;
    do {
        struct spng_row_info info;
        code = spng_get_row_info(p->ctx, &info);
        if (code) break;
        const bool wanted = info.row_num >= top && info.row_num - top < height;
        const size_t row = wanted ? info.row_num - top : height;
        code = spng_decode_row(p->ctx, p->raw.data + row * p->raw_bytes, p->raw_bytes);
    } while (!code);
    if (code != SPNG_EOI) return fail(code, diag);

    for (size_t row = 0; row < height; row++)
        if (!push(push_ctx, convert(p, p->raw.data + row * p->raw_bytes))) break;
    return STK_OK;
}

static stk_err png_rows(void *state, stk_row_fn *push, void *push_ctx, stk_diag *diag)
{
    struct png *p = state;
    if (!p->ctx) return stk_diag_set(diag, STK_EINVAL, "PNG: no image was begun");
    stk_err err;
    starved = false;
    const int code = spng_decode_image(p->ctx, NULL, 0, SPNG_FMT_RAW, SPNG_DECODE_PROGRESSIVE);
    if (code)
        err = fail(code, diag);
    else if (p->ihdr.interlace_method)
        err = rows_interlaced(p, push, push_ctx, diag);
    else
        err = rows_plain(p, push, push_ctx, diag);
    drop_image(p);
    return err;
}

const stk_codec stk_codec_png = {
    .format = STK_IMAGE_PNG,
    .name = "PNG",
    .match = png_match,
    .probe = png_probe,
    .open = png_open,
    .close = png_close,
    .begin = png_begin,
    .window = png_window,
    .rows = png_rows,
};
