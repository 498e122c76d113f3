#include "ops/image_decoder.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "codec/rowbuf.h"
#include "transform/resample.h"

/* How many times as many pixels as the sample has are kept by DCT scaling: what keeps the PSNR of
 * `fast` against `exact` above 38 dB. */
#define FAST_KEEP 1.5

enum { MAX_CODECS = 8 };

struct stk_image_decoder {
    stk_resample *resample;
    stk_rowbuf scratch;
    struct {
        const stk_codec *codec;
        void *state;
    } open[MAX_CODECS]; /* made when first needed, in that order */

    /* Of the image that was begun. */
    const stk_codec *codec;
    void *state;
    stk_image_info info;
    int32_t orientation;

    /* Of the rows that come. */
    stk_window window;
    int32_t top;                 /* of the window, in the image scaled as the rows are */
    int32_t first_row, next_row; /* there: wanted first; comes next */
};

stk_err stk_image_decoder_new(stk_image_decoder **out, stk_diag *diag)
{
    stk_image_decoder *d = *out = stk_alloc_zero(1, sizeof(*d));
    stk_err err = d ? stk_resample_new(&d->resample) : STK_ENOMEM;
    if (!err) return STK_OK;
    stk_image_decoder_free(out);
    return stk_diag_set(diag, err, "no memory for an image decoder");
}

void stk_image_decoder_free(stk_image_decoder **pd)
{
    stk_image_decoder *d = *pd;
    *pd = NULL;
    if (!d) return;
    for (int i = 0; i < MAX_CODECS && d->open[i].codec; i++)
        d->open[i].codec->close(d->open[i].state);
    stk_resample_free(&d->resample);
    stk_rowbuf_fini(&d->scratch);
    stk_free(d);
}

/* The decoder of this thread for that format. */
static stk_err use_codec(stk_image_decoder *d, const stk_codec *codec, stk_diag *diag)
{
    int i = 0;
    while (d->open[i].codec && d->open[i].codec != codec) i++;
    assert(i < MAX_CODECS);
    if (!d->open[i].codec) {
        const stk_err err = codec->open(&d->open[i].state, diag);
        if (err) return err;
        d->open[i].codec = codec;
    }
    d->codec = codec;
    d->state = d->open[i].state;
    return STK_OK;
}

stk_err stk_image_decoder_begin(stk_image_decoder *d, const stk_image_opts *opts, const void *data,
                                size_t size, int32_t *width, int32_t *height, stk_diag *diag)
{
    const stk_codec *codec = stk_codec_find(data, size);
    if (!codec) return stk_image_probe(data, size, &d->info, diag); /* says why */
    stk_err err = use_codec(d, codec, diag);
    if (err) return err;

    const stk_image_limits limits = {.max_pixels = opts->max_pixels, .max_side = opts->max_side};
    err = codec->begin(d->state, data, size, &limits, &d->info, diag);
    if (err) return err;
    d->orientation = opts->ignore_orientation ? 1 : d->info.orientation;
    *width = d->orientation >= 5 ? d->info.height : d->info.width;
    *height = d->orientation >= 5 ? d->info.width : d->info.height;
    return STK_OK;
}

static bool part_bit(uint32_t bits, size_t part)
{
    return part < 32 && bits >> part & 1;
}

static int32_t part_channels(const stk_image_opts *opts, size_t part)
{
    return opts->color == STK_COLOR_GRAY || part_bit(opts->gray_parts, part) ? 1 : 3;
}

stk_spec stk_image_spec(const stk_image_opts *opts, size_t part, int32_t width, int32_t height)
{
    return (stk_spec){
        .dtype = STK_UINT8, .ndim = 3, .shape = {height, width, part_channels(opts, part)}};
}

/* How far a filter reaches, in pixels of the sample. */
static double filter_support(stk_filter filter)
{
    switch (filter) {
    case STK_FILTER_BILINEAR: return 1;
    case STK_FILTER_BICUBIC: return 2;
    case STK_FILTER_LANCZOS: return 3;
    case STK_FILTER_BOX: return 0.5;
    case STK_FILTER_NEAREST: break;
    }
    return 0;
}

/* The fewest pixels that a side of the rect may keep, when `box` pixels become `full` ones. */
static int32_t fewest(int32_t rect, int32_t box, int32_t full)
{
    const double n = ceil(FAST_KEEP * full * rect / box);
    return n < INT32_MAX ? (int32_t)n : INT32_MAX;
}

/* Opens the window and plans the resampling of its rows. */
static stk_err plan(stk_image_decoder *d, const stk_image_opts *opts, stk_filter filter,
                    int32_t channels, const stk_placement *p, stk_diag *diag)
{
    stk_window_request req = {
        .rect = stk_placement_rect(p, filter_support(filter)),
        .gray = channels == 1,
        .fast = opts->quality == STK_QUALITY_FAST,
    };
    if (req.fast && filter != STK_FILTER_NEAREST) {
        req.min_width = fewest(req.rect.width, p->box_width, p->full_width);
        req.min_height = fewest(req.rect.height, p->box_height, p->full_height);
    }
    stk_window *w = &d->window;
    stk_err err = d->codec->window(d->state, &req, w, diag);
    if (err) return err;
    assert(!req.gray || w->pixels == STK_PIXELS_GRAY);

    /* Everything in the coordinates of the whole image, scaled as the rows are. */
    const double sx = (w->x1 - w->x0) / req.rect.width, sy = (w->y1 - w->y0) / req.rect.height;
    d->top = (int32_t)lrint(req.rect.y * sy - w->y0);
    const stk_resample_params params = {
        .src_width = (int32_t)ceil(d->info.width * sx),
        .src_height = (int32_t)ceil(d->info.height * sy),
        .x0 = p->x * sx,
        .x1 = (p->x + p->box_width) * sx,
        .y0 = p->y * sy,
        .y1 = (p->y + p->box_height) * sy,
        .row_x = (int32_t)lrint(req.rect.x * sx - w->x0),
        .row_width = w->width,
        .dst_width = p->width,
        .dst_height = p->height,
        .full_width = p->full_width,
        .full_height = p->full_height,
        .dst_x = p->left,
        .dst_y = p->top,
        .channels = w->pixels == STK_PIXELS_GRAY ? 1 : 3,
        .filter = filter,
        .mirror = p->mirror,
        .upside_down = p->upside_down,
        .ycc_to_rgb = w->pixels == STK_PIXELS_YCC,
    };
    err = stk_resample_plan(d->resample, &params);
    return err ? stk_diag_set(diag, err == STK_EINVAL ? STK_EUNSUPPORTED : err,
                              "cannot resize %d x %d pixels to %d x %d", (int)p->box_width,
                              (int)p->box_height, (int)p->full_width, (int)p->full_height)
               : STK_OK;
}

static bool push_row(void *ctx, const uint8_t *row)
{
    stk_image_decoder *d = ctx;
    if (d->next_row++ < d->first_row) return true;
    return stk_resample_row(d->resample, row);
}

/* Rows from the codec, through the resampler, to `pixels`. */
static stk_err stream(stk_image_decoder *d, uint8_t *pixels, size_t row_bytes, stk_diag *diag)
{
    int32_t end;
    stk_resample_rows(d->resample, &d->first_row, &end);
    stk_resample_start(d->resample, pixels, (ptrdiff_t)row_bytes, d->first_row);
    d->next_row = d->top;
    const stk_err err = d->codec->rows(d->state, push_row, d, diag);
    if (err) return err;
    if (!stk_resample_done(d->resample))
        return stk_diag_set(diag, STK_ECORRUPT, "%s: the image ends early", d->codec->name);
    return STK_OK;
}

/* Copies `src`, p->height rows of p->width pixels, to `dst`: transposed, gray to RGB. */
static void finish(const stk_placement *p, const uint8_t *src, int32_t src_channels, uint8_t *dst,
                   int32_t dst_channels)
{
    const size_t width = (size_t)p->width, height = (size_t)p->height;
    const size_t in = (size_t)src_channels, out = (size_t)dst_channels;
    /* Bytes from one pixel of the source's row to the next, and from row to row, in dst. */
    const size_t right = p->transposed ? height * out : out;
    const size_t down = p->transposed ? out : width * out;
    const size_t second = in == 3 ? 1 : 0, third = in == 3 ? 2 : 0;
    for (size_t y = 0; y < height; y++) {
        uint8_t *to = dst + y * down;
        for (size_t x = 0; x < width; x++, to += right, src += in) {
            to[0] = src[0];
            if (out == 1) continue;
            to[1] = src[second];
            to[2] = src[third];
        }
    }
}

stk_err stk_image_decoder_run(stk_image_decoder *d, const stk_image_opts *opts, size_t part,
                              const stk_geometry *geometry, const stk_tensor *dst, stk_diag *diag)
{
    const int32_t channels = part_channels(opts, part);
    const stk_filter filter =
        part_bit(opts->nearest_parts, part) ? STK_FILTER_NEAREST : opts->filter;
    stk_placement p;
    stk_geometry_place(geometry, d->orientation, d->info.width, d->info.height, &p);
    stk_err err = plan(d, opts, filter, channels, &p, diag);
    if (err) return err;

    const int32_t src_channels = d->window.pixels == STK_PIXELS_GRAY ? 1 : 3;
    const size_t row_bytes = (size_t)p.width * (size_t)src_channels;
    if (!p.transposed && src_channels == channels) return stream(d, dst->data, row_bytes, diag);

    err = stk_rowbuf_reserve(&d->scratch, row_bytes * (size_t)p.height);
    if (err) return stk_diag_set(diag, err, "no memory for %d rows", (int)p.height);
    err = stream(d, d->scratch.data, row_bytes, diag);
    if (!err) finish(&p, d->scratch.data, src_channels, dst->data, channels);
    stk_rowbuf_trim(&d->scratch);
    return err;
}
