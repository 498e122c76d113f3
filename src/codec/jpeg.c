/*
 * JPEG through libjpeg-turbo's libjpeg API (libjpeg.txt of its source; crop and skip are its own
 * extensions).  Rows and columns outside of the window are neither transformed nor converted, and
 * decoding ends with the last row that is wanted.
 */
#include "codec/codec.h"

#include <string.h>

#include "base/alloc.h"
#include "codec/exif.h"
#include "codec/jpeg_io.h"
#include "codec/jpeg_planes.h"
#include "codec/limits.h"
#include "codec/rowbuf.h"

enum {
    MAX_ROWS = 16,         /* taken from libjpeg at once */
    ROW_BYTES = 32 * 1024, /* the rows taken at once stay in the first cache */
    /* Smooth chroma upsampling looks one chroma sample aside, and libjpeg takes the edge of the
     * crop for the edge of the image. */
    CROP_MARGIN = 4,
};

typedef struct jpeg {
    struct jpeg_decompress_struct c;
    stk_jpeg_io io;
    bool created;
    JDIMENSION first_row, num_rows; /* of the window, in output rows */
    bool cmyk_gray;                 /* CMYK, and one channel is wanted */
    stk_jpeg_planes planes;         /* where the window has planes */
    stk_rowbuf rows;
} jpeg;

static bool jpeg_match(const uint8_t *data, size_t size)
{
    return size >= 3 && data[0] == 0xFF && data[1] == 0xD8 && data[2] == 0xFF;
}

static void jpeg_close(void *state)
{
    jpeg *s = state;
    if (!s) return;
    if (s->created) jpeg_destroy_decompress(&s->c);
    stk_rowbuf_fini(&s->rows);
    stk_free(s);
}

static stk_err jpeg_open(void **state, stk_diag *diag)
{
    jpeg *s = *state = stk_alloc_zero(1, sizeof(*s));
    if (!s) return stk_diag_set(diag, STK_ENOMEM, "JPEG: no memory for a decoder");
    stk_jpeg_io_init(&s->io, &s->c);
    if (setjmp(s->io.jump)) {
        const stk_err err = stk_jpeg_io_fail(&s->io, diag);
        jpeg_destroy_decompress(&s->c);
        jpeg_close(s);
        *state = NULL;
        return err;
    }
    jpeg_create_decompress(&s->c);
    s->created = true;
    return STK_OK;
}

static void describe(struct jpeg_decompress_struct *c, stk_image_info *out)
{
    static const struct {
        J_COLOR_SPACE space;
        const char *name;
    } spaces[] = {{JCS_GRAYSCALE, "gray"},
                  {JCS_RGB, "RGB"},
                  {JCS_YCbCr, "YCbCr"},
                  {JCS_CMYK, "CMYK"},
                  {JCS_YCCK, "YCCK"}};
    const char *name = "unknown colours";
    for (size_t i = 0; i < sizeof(spaces) / sizeof(spaces[0]); i++)
        if (spaces[i].space == c->jpeg_color_space) name = spaces[i].name;
    *out = (stk_image_info){
        .format = STK_IMAGE_JPEG,
        .width = (int32_t)c->image_width,
        .height = (int32_t)c->image_height,
        .channels = c->num_components,
        .bits = c->data_precision,
        .orientation = 1,
        .progressive = c->progressive_mode,
    };
    /* J:a:b of the second component against the first, where such a name exists. */
    int h = 1, v = 1;
    if (c->num_components >= 3) {
        h = c->comp_info[0].h_samp_factor / c->comp_info[1].h_samp_factor;
        v = c->comp_info[0].v_samp_factor / c->comp_info[1].v_samp_factor;
    }
    if (c->num_components < 3)
        snprintf(out->detail, sizeof(out->detail), "%s", name);
    else if ((h == 1 || h == 2 || h == 4) && (v == 1 || v == 2))
        snprintf(out->detail, sizeof(out->detail), "%s 4:%d:%d", name, 4 / h, v == 1 ? 4 / h : 0);
    else
        snprintf(out->detail, sizeof(out->detail), "%s %dx%d", name, h, v);
}

static stk_err jpeg_begin(void *state, const uint8_t *data, size_t size,
                          const stk_image_limits *limits, stk_image_info *info, stk_diag *diag)
{
    jpeg *s = state;
    if (setjmp(s->io.jump)) return stk_jpeg_io_fail(&s->io, diag);
    jpeg_abort_decompress(&s->c);
    stk_jpeg_io_start(&s->io, &s->c, data, size);
    jpeg_read_header(&s->c, TRUE);
    describe(&s->c, info);
    info->orientation = stk_exif_orientation_of_jpeg(data, size);
    return stk_image_limits_check(limits, "JPEG", info->width, info->height, diag);
}

static stk_err jpeg_probe(const uint8_t *data, size_t size, stk_image_info *out, stk_diag *diag)
{
    void *state;
    const stk_image_limits none = {.max_pixels = INT64_MAX, .max_side = INT32_MAX};
    stk_err err = jpeg_open(&state, diag);
    if (!err) err = jpeg_begin(state, data, size, &none, out, diag);
    jpeg_close(state);
    return err;
}

/* The colours that libjpeg is asked for; *pixels is what rows are after `rows` had them. */
static J_COLOR_SPACE choose_color(jpeg *s, const stk_window_request *req, stk_pixels *pixels)
{
    s->cmyk_gray = false;
    *pixels = req->gray ? STK_PIXELS_GRAY : STK_PIXELS_RGB;
    switch (s->c.jpeg_color_space) {
    case JCS_GRAYSCALE: *pixels = STK_PIXELS_GRAY; return JCS_GRAYSCALE;
    case JCS_YCbCr:
        if (req->gray) return JCS_GRAYSCALE;
        if (!req->fast) return JCS_RGB;
        *pixels = STK_PIXELS_YCC;
        return JCS_YCbCr;
    case JCS_RGB: return req->gray ? JCS_GRAYSCALE : JCS_RGB;
    case JCS_CMYK:
    case JCS_YCCK: s->cmyk_gray = req->gray; return JCS_CMYK;
    default: return JCS_UNKNOWN;
    }
}

/* 1, 2, 4 or 8: how much smaller the rect may be.  Other scales have no vector code in libjpeg, and
 * chroma of a quarter of the columns (4:1:1) would lose too much. */
static int32_t choose_reduction(const jpeg *s, const stk_window_request *req)
{
    if (req->min_width <= 0 || req->min_height <= 0 || s->c.max_h_samp_factor > 2) return 1;
    for (int32_t r = 8; r > 1; r /= 2)
        if (req->rect.width / r >= req->min_width && req->rect.height / r >= req->min_height)
            return r;
    return 1;
}

/* An image in several scans is complete when it has its end and each component was in one. */
static void check_scans(jpeg *s)
{
    if (!jpeg_has_multiple_scans(&s->c)) return;
    if (s->io.ended) stk_jpeg_io_raise(&s->io, STK_ECORRUPT, "the data ends before the last scan");
    for (int i = 0; i < s->c.num_components; i++)
        if (!s->c.comp_info[i].quant_table)
            stk_jpeg_io_raise(&s->io, STK_ECORRUPT, "a component is in no scan");
}

/* Restricts the output to the rect (and a little more); returns where rows begin. */
static JDIMENSION crop(jpeg *s, const stk_window_request *req, int32_t reduction,
                       stk_row_window *out)
{
    struct jpeg_decompress_struct *c = &s->c;
    const stk_rect *r = &req->rect;
    const JDIMENSION margin = req->fast ? 0 : CROP_MARGIN;
    const JDIMENSION full_width = c->output_width;
    JDIMENSION x = (JDIMENSION)(r->x / reduction);
    JDIMENSION end = (JDIMENSION)((r->x + r->width + reduction - 1) / reduction) + margin;
    x -= x < margin ? x : margin;
    if (end > full_width) end = full_width;
    JDIMENSION width = end - x;
    if (width < full_width) jpeg_crop_scanline(c, &x, &width);

    s->first_row = (JDIMENSION)(r->y / reduction);
    s->num_rows = (JDIMENSION)((r->y + r->height + reduction - 1) / reduction) - s->first_row;
    out->width = (int32_t)c->output_width;
    out->height = (int32_t)s->num_rows;
    const double scale = 1.0 / reduction;
    out->x0 = r->x * scale - x;
    out->x1 = (r->x + r->width) * scale - x;
    out->y0 = r->y * scale - s->first_row;
    out->y1 = (r->y + r->height) * scale - s->first_row;
    return x;
}

/* Memory for the rows taken at once. */
static stk_err reserve_rows(jpeg *s, stk_diag *diag)
{
    const size_t row_bytes = (size_t)s->c.output_width * (size_t)s->c.output_components;
    const bool large = row_bytes > ROW_BYTES / MAX_ROWS;
    const stk_err err = stk_rowbuf_reserve(&s->rows, large ? row_bytes * 4 + ROW_BYTES : ROW_BYTES);
    return err ? stk_diag_set(diag, err, "JPEG: no memory for rows of %zu bytes", row_bytes) : err;
}

static stk_err jpeg_window(void *state, const stk_window_request *req, stk_row_window *out,
                           stk_diag *diag)
{
    jpeg *s = state;
    struct jpeg_decompress_struct *c = &s->c;
    if (setjmp(s->io.jump)) return stk_jpeg_io_fail(&s->io, diag);

    *out = (stk_row_window){0};
    c->out_color_space = choose_color(s, req, &out->pixels);
    if (c->out_color_space == JCS_UNKNOWN)
        return stk_diag_set(diag, STK_EUNSUPPORTED, "JPEG: %d channels of unknown colours",
                            c->num_components);
    const int32_t reduction = choose_reduction(s, req);
    c->scale_num = 1;
    c->scale_denom = (unsigned)reduction;
    c->dct_method = JDCT_ISLOW;
    if (out->pixels == STK_PIXELS_YCC && req->planes && stk_jpeg_planes_fit(c, &s->planes))
        out->pixels = STK_PIXELS_PLANES;
    c->do_fancy_upsampling = out->pixels != STK_PIXELS_PLANES;
    c->do_block_smoothing = FALSE; /* only guesses at what a broken progressive file lacks */
    jpeg_start_decompress(c);
    check_scans(s);
    const JDIMENSION x = crop(s, req, reduction, out);
    if (out->pixels != STK_PIXELS_PLANES) return reserve_rows(s, diag);
    const stk_err err = stk_jpeg_planes_open(&s->planes, c, (int32_t)x, (int32_t)s->first_row,
                                             (int32_t)(s->first_row + s->num_rows), out, &s->rows);
    return err ? stk_diag_set(diag, err, "JPEG: no memory for a row of MCUs") : err;
}

/* Files hold 255 minus the ink, as Adobe's programs write them. */
static void cmyk_to_rgb(uint8_t *row, JDIMENSION width)
{
    const uint8_t *in = row;
    for (JDIMENSION i = 0; i < width; i++, in += 4, row += 3) {
        const unsigned k = in[3];
        for (int channel = 0; channel < 3; channel++) {
            const unsigned ink = (255u - in[channel]) * k + 128;
            row[channel] = (uint8_t)(k - ((ink + (ink >> 8)) >> 8));
        }
    }
}

static bool push_row(jpeg *s, uint8_t *row, stk_row_fn *push, void *ctx)
{
    if (s->c.out_color_space == JCS_CMYK) {
        cmyk_to_rgb(row, s->c.output_width);
        if (s->cmyk_gray) stk_gray_row(row, (int32_t)s->c.output_width, row);
    }
    return push(ctx, row);
}

static stk_err jpeg_rows(void *state, stk_row_fn *push, void *ctx, stk_diag *diag)
{
    jpeg *s = state;
    struct jpeg_decompress_struct *c = &s->c;
    if (setjmp(s->io.jump)) return stk_jpeg_io_fail(&s->io, diag);

    const size_t row_bytes = (size_t)c->output_width * (size_t)c->output_components;
    JSAMPROW rows[MAX_ROWS];
    JDIMENSION max = 0;
    while (max < MAX_ROWS && (max + 1) * row_bytes <= s->rows.size) {
        rows[max] = s->rows.data + max * row_bytes;
        max++;
    }
    if (s->first_row) (void)jpeg_skip_scanlines(c, s->first_row);

    bool more = true;
    for (JDIMENSION left = s->num_rows; left && more;) {
        const JDIMENSION n = jpeg_read_scanlines(c, rows, left < max ? left : max);
        if (!n) stk_jpeg_io_raise(&s->io, STK_ECORRUPT, "no more rows");
        for (JDIMENSION i = 0; i < n && more; i++) more = push_row(s, rows[i], push, ctx);
        left -= n;
    }
    jpeg_abort_decompress(c);
    stk_rowbuf_trim(&s->rows);
    return STK_OK;
}

static stk_err jpeg_planes(void *state, stk_planes_fn *push, void *ctx, stk_diag *diag)
{
    jpeg *s = state;
    if (setjmp(s->io.jump)) return stk_jpeg_io_fail(&s->io, diag);
    stk_jpeg_planes_rows(&s->planes, &s->c, &s->rows, push, ctx);
    jpeg_abort_decompress(&s->c);
    stk_rowbuf_trim(&s->rows);
    return STK_OK;
}

const stk_codec stk_codec_jpeg = {
    .format = STK_IMAGE_JPEG,
    .name = "JPEG",
    .match = jpeg_match,
    .probe = jpeg_probe,
    .open = jpeg_open,
    .close = jpeg_close,
    .begin = jpeg_begin,
    .window = jpeg_window,
    .rows = jpeg_rows,
    .planes = jpeg_planes,
};
