/* WebP through libwebp: the wanted rectangle is decoded as a whole, then handed out row by row,
 * because both of its formats need all of the data before the last row is right. */
#include "codec/codec.h"

#include <stdio.h>
#include <string.h>

#include <webp/decode.h>

#include "base/alloc.h"
#include "codec/exif.h"
#include "codec/le.h"
#include "codec/limits.h"
#include "codec/rowbuf.h"

/* Chroma of a lossy image is interpolated from its neighbours: that many pixels around the
 * rectangle are decoded as well, so that the rectangle's own do not depend on where it is cut.
 * Even, because libwebp moves odd corners. */
#define MARGIN 4

struct webp {
    const uint8_t *data; /* NULL: no image was begun */
    size_t size;
    WebPBitstreamFeatures features;
    stk_rect rect;
    bool to_gray;
    stk_rowbuf pixels; /* the rectangle and its margin, RGB */
};

static bool webp_match(const uint8_t *data, size_t size)
{
    return size >= 12 && !memcmp(data, "RIFF", 4) && !memcmp(data + 8, "WEBP", 4);
}

static stk_err fail(VP8StatusCode code, stk_diag *diag)
{
    switch (code) {
    case VP8_STATUS_OUT_OF_MEMORY: return stk_diag_set(diag, STK_ENOMEM, "WebP: out of memory");
    case VP8_STATUS_UNSUPPORTED_FEATURE:
        return stk_diag_set(diag, STK_EUNSUPPORTED,
                            "WebP: a feature that libwebp does not support");
    case VP8_STATUS_NOT_ENOUGH_DATA:
    case VP8_STATUS_SUSPENDED:
        return stk_diag_set(diag, STK_ECORRUPT, "WebP: the data ends before the image");
    default: return stk_diag_set(diag, STK_ECORRUPT, "WebP: broken bitstream");
    }
}

/* Walks the chunks of the RIFF container (Google's "WebP Container Specification") to EXIF. */
static int32_t orientation(const uint8_t *data, size_t size)
{
    size_t at = 12;
    while (size - at >= 8) {
        const uint8_t *chunk = data + at + 8;
        size_t left = size - at - 8;
        size_t length = stk_le32(data + at + 4);
        if (length > left) break;
        if (!memcmp(data + at, "EXIF", 4)) return stk_exif_orientation(chunk, length);
        length += length & 1; /* padded to even */
        if (length > left) break;
        at += 8 + length;
    }
    return 1;
}

static stk_err webp_probe(const uint8_t *data, size_t size, stk_image_info *out, stk_diag *diag)
{
    *out = (stk_image_info){0};
    if (!webp_match(data, size)) return stk_diag_set(diag, STK_ECORRUPT, "WebP: no RIFF header");
    WebPBitstreamFeatures f;
    const VP8StatusCode code = WebPGetFeatures(data, size, &f);
    if (code) return fail(code, diag);
    static const char *const formats[] = {"mixed", "lossy", "lossless"};
    *out = (stk_image_info){
        .format = STK_IMAGE_WEBP,
        .width = f.width,
        .height = f.height,
        .channels = f.has_alpha ? 4 : 3,
        .bits = 8,
        .orientation = orientation(data, size),
        .animated = f.has_animation,
    };
    snprintf(out->detail, sizeof(out->detail), "%s",
             formats[f.format == 1 || f.format == 2 ? f.format : 0]);
    return STK_OK;
}

static stk_err webp_open(void **state, stk_diag *diag)
{
    *state = stk_alloc_zero(1, sizeof(struct webp));
    return *state ? STK_OK : stk_diag_set(diag, STK_ENOMEM, "WebP: out of memory");
}

static void webp_close(void *state)
{
    struct webp *w = state;
    if (!w) return;
    stk_rowbuf_fini(&w->pixels);
    stk_free(w);
}

static stk_err webp_begin(void *state, const uint8_t *data, size_t size,
                          const stk_image_limits *limits, stk_image_info *info, stk_diag *diag)
{
    struct webp *w = state;
    w->data = NULL;
    stk_err err = webp_probe(data, size, info, diag);
    if (!err) err = stk_image_limits_check(limits, "WebP", info->width, info->height, diag);
    if (err) return err;
    if (info->animated)
        return stk_diag_set(diag, STK_EUNSUPPORTED, "WebP: animations are not supported");
    /* Checked here, so that a file cut short fails whatever part of it is wanted. */
    if (stk_le32(data + 4) > size - 8) return fail(VP8_STATUS_NOT_ENOUGH_DATA, diag);
    w->data = data;
    w->size = size;
    w->features.width = info->width;
    w->features.height = info->height;
    return STK_OK;
}

static stk_err webp_window(void *state, const stk_window_request *req, stk_row_window *out,
                           stk_diag *diag)
{
    struct webp *w = state;
    (void)diag;
    w->rect = req->rect;
    w->to_gray = req->gray;
    *out = (stk_row_window){
        .pixels = req->gray ? STK_PIXELS_GRAY : STK_PIXELS_RGB,
        .width = req->rect.width,
        .height = req->rect.height,
        .x1 = req->rect.width,
        .y1 = req->rect.height,
    };
    return STK_OK;
}

/* The rectangle and what surrounds it, as far as the image goes. */
static stk_rect with_margin(const struct webp *w)
{
    const stk_rect *r = &w->rect;
    int32_t x0 = r->x - MARGIN, x1 = r->x + r->width + MARGIN;
    int32_t y0 = r->y - MARGIN, y1 = r->y + r->height + MARGIN;
    x0 = x0 < 0 ? 0 : x0 & ~1;
    y0 = y0 < 0 ? 0 : y0 & ~1;
    if (x1 > w->features.width) x1 = w->features.width;
    if (y1 > w->features.height) y1 = w->features.height;
    return (stk_rect){x0, y0, x1 - x0, y1 - y0};
}

static stk_err decode(struct webp *w, const stk_rect *area, stk_diag *diag)
{
    const size_t stride = (size_t)area->width * 3, bytes = stride * (size_t)area->height;
    WebPDecoderConfig config;
    if (!WebPInitDecoderConfig(&config))
        return stk_diag_set(diag, STK_EUNSUPPORTED, "WebP: libwebp of another version");
    if (stk_rowbuf_reserve(&w->pixels, bytes)) return fail(VP8_STATUS_OUT_OF_MEMORY, diag);

    config.output.colorspace = MODE_RGB; /* alpha is dropped */
    config.output.is_external_memory = 1;
    config.output.u.RGBA = (WebPRGBABuffer){w->pixels.data, (int)stride, bytes};
    config.options.use_cropping = 1;
    config.options.crop_left = area->x;
    config.options.crop_top = area->y;
    config.options.crop_width = area->width;
    config.options.crop_height = area->height;
    const VP8StatusCode code = WebPDecode(w->data, w->size, &config);
    WebPFreeDecBuffer(&config.output);
    return code ? fail(code, diag) : STK_OK;
}

static stk_err webp_rows(void *state, stk_row_fn *push, void *push_ctx, stk_diag *diag)
{
    struct webp *w = state;
    if (!w->data) return stk_diag_set(diag, STK_EINVAL, "WebP: no image was begun");
    const stk_rect area = with_margin(w);
    stk_err err = decode(w, &area, diag);
    w->data = NULL;
    for (int32_t y = 0; !err && y < w->rect.height; y++) {
        const size_t skipped = (size_t)(w->rect.y - area.y + y) * (size_t)area.width;
        uint8_t *row = w->pixels.data + (skipped + (size_t)(w->rect.x - area.x)) * 3;
        if (w->to_gray) stk_gray_row(row, w->rect.width, row);
        if (!push(push_ctx, row)) break;
    }
    stk_rowbuf_trim(&w->pixels);
    return err;
}

const stk_codec stk_codec_webp = {
    .format = STK_IMAGE_WEBP,
    .name = "WebP",
    .match = webp_match,
    .probe = webp_probe,
    .open = webp_open,
    .close = webp_close,
    .begin = webp_begin,
    .window = webp_window,
    .rows = webp_rows,
};
