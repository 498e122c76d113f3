#include "ops/image_decoder.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "codec/rowbuf.h"
#include "transform/color.h"
#include "transform/resample.h"

/* How many times as many pixels as the sample has are kept by DCT scaling: what keeps the PSNR of
 * `fast` against `exact` above 38 dB.  With `box`, which hardly overlaps, it would be 33 dB. */
#define FAST_KEEP 1.5

/* One kind of rows on its way: pixels or luma, or both chroma planes. */
typedef struct stream {
    stk_resample *resample;
    int32_t top;         /* of the window, in the image scaled as the rows are */
    int32_t first, next; /* rows there: the first that is wanted, the one that comes */
    bool complete;
} stream;

struct stk_image_decoder {
    stream streams[2]; /* pixels or Y; Cb and Cr */
    stk_rowbuf scratch, planes;
    struct {
        const stk_codec *codec;
        void *state;
    } open[STK_MAX_CODECS]; /* made when first needed, in that order */

    /* Of the image that was begun. */
    const stk_codec *codec;
    void *state;
    stk_image_info info;
    int32_t orientation;

    stk_row_window window; /* of the rows that come */
};

stk_err stk_image_decoder_new(stk_image_decoder **out, stk_diag *diag)
{
    stk_image_decoder *d = *out = stk_alloc_zero(1, sizeof(*d));
    stk_err err = d ? STK_OK : STK_ENOMEM;
    for (int i = 0; i < 2 && !err; i++) err = stk_resample_new(&d->streams[i].resample);
    if (!err) return STK_OK;
    stk_image_decoder_free(out);
    return stk_diag_set(diag, err, "no memory for an image decoder");
}

void stk_image_decoder_free(stk_image_decoder **pd)
{
    stk_image_decoder *d = *pd;
    *pd = NULL;
    if (!d) return;
    for (int i = 0; i < STK_MAX_CODECS && d->open[i].codec; i++)
        d->open[i].codec->close(d->open[i].state);
    for (int i = 0; i < 2; i++) stk_resample_free(&d->streams[i].resample);
    stk_rowbuf_fini(&d->scratch);
    stk_rowbuf_fini(&d->planes);
    stk_free(d);
}

/* The decoder of this thread for that format. */
static stk_err use_codec(stk_image_decoder *d, const stk_codec *codec, stk_diag *diag)
{
    int i = 0;
    while (d->open[i].codec && d->open[i].codec != codec) i++;
    assert(i < STK_MAX_CODECS);
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

/* Asks the codec for what the placement needs. */
static stk_err open_window(stk_image_decoder *d, const stk_image_opts *opts, stk_filter filter,
                           bool gray, const stk_placement *p, stk_rect *rect, stk_diag *diag)
{
    const bool fast = opts->quality == STK_QUALITY_FAST;
    stk_window_request req = {
        .rect = stk_placement_rect(p, filter_support(filter), fast), .gray = gray, .fast = fast};
    if (fast && filter != STK_FILTER_NEAREST && filter != STK_FILTER_BOX) {
        req.min_width = fewest(req.rect.width, p->box_width, p->full_width);
        req.min_height = fewest(req.rect.height, p->box_height, p->full_height);
        req.planes = d->codec->planes && filter == STK_FILTER_BILINEAR;
    }
    *rect = req.rect;
    const stk_err err = d->codec->window(d->state, &req, &d->window, diag);
    assert(err || !gray || d->window.pixels == STK_PIXELS_GRAY);
    return err;
}

/* Plans the resampling of rows whose extent is *e, the rect being what was asked for.  Everything
 * is in the coordinates of the whole image, scaled as the rows are. */
static stk_err plan(stk_image_decoder *d, stream *s, const stk_extent *e, const stk_rect *rect,
                    const stk_placement *p, stk_filter filter, stk_diag *diag)
{
    const stk_row_window *w = &d->window;
    const double sx = (e->x1 - e->x0) / rect->width, sy = (e->y1 - e->y0) / rect->height;
    s->top = (int32_t)lrint(rect->y * sy - e->y0);
    const bool chroma = s == &d->streams[1];
    const stk_resample_params params = {
        .src_width = (int32_t)ceil(d->info.width * sx),
        .src_height = (int32_t)ceil(d->info.height * sy),
        .x0 = p->x * sx,
        .x1 = (p->x + p->box_width) * sx,
        .y0 = p->y * sy,
        .y1 = (p->y + p->box_height) * sy,
        .row_x = (int32_t)lrint(rect->x * sx - e->x0),
        .row_width = e->width,
        .dst_width = p->width,
        .dst_height = p->height,
        .full_width = p->full_width,
        .full_height = p->full_height,
        .dst_x = p->left,
        .dst_y = p->top,
        .channels = w->pixels == STK_PIXELS_RGB || w->pixels == STK_PIXELS_YCC ? 3 : 1,
        .pair = chroma,
        .coarse = w->pixels == STK_PIXELS_PLANES,
        .twice_x = chroma && e->x1 - e->x0 < w->x1 - w->x0,
        .twice_y = chroma && e->y1 - e->y0 < w->y1 - w->y0,
        .filter = filter,
        .mirror = p->mirror,
        .upside_down = p->upside_down,
        .from_right = p->from_right,
        .from_bottom = p->from_bottom,
        .transposed = p->transposed,
        .ycc_to_rgb = w->pixels == STK_PIXELS_YCC,
    };
    const stk_err err = stk_resample_plan(s->resample, &params);
    return err ? stk_diag_set(diag, err == STK_EINVAL ? STK_EUNSUPPORTED : err,
                              "cannot resize %d x %d pixels to %d x %d", (int)p->box_width,
                              (int)p->box_height, (int)p->full_width, (int)p->full_height)
               : STK_OK;
}

static void start(stream *s, uint8_t *pixels, size_t row_bytes)
{
    int32_t end;
    stk_resample_rows(s->resample, &s->first, &end);
    stk_resample_start(s->resample, pixels, (ptrdiff_t)row_bytes, s->first);
    s->next = s->top;
    s->complete = false;
}

/* Says whether the row that comes is wanted. */
static bool wants(stream *s)
{
    return s->next++ >= s->first && !s->complete;
}

static bool push_row(void *ctx, const uint8_t *row)
{
    stk_image_decoder *d = ctx;
    stream *s = &d->streams[0];
    if (wants(s)) s->complete = !stk_resample_row(s->resample, row);
    return !s->complete;
}

static bool push_planes(void *ctx, const uint8_t *y, const uint8_t *cb, const uint8_t *cr)
{
    stk_image_decoder *d = ctx;
    stream *s = &d->streams[y ? 0 : 1];
    if (wants(s))
        s->complete =
            !(y ? stk_resample_row(s->resample, y) : stk_resample_row_pair(s->resample, cb, cr));
    return !d->streams[0].complete || !d->streams[1].complete;
}

static stk_err ends_early(const stk_image_decoder *d, stk_diag *diag)
{
    return stk_diag_set(diag, STK_ECORRUPT, "%s: the image ends early", d->codec->name);
}

/* Rows from the codec, through the resampler, to `pixels`. */
static stk_err stream_rows(stk_image_decoder *d, uint8_t *pixels, size_t row_bytes, stk_diag *diag)
{
    start(&d->streams[0], pixels, row_bytes);
    const stk_err err = d->codec->rows(d->state, push_row, d, diag);
    if (err) return err;
    return stk_resample_done(d->streams[0].resample) ? STK_OK : ends_early(d, diag);
}

/* The same by way of planes, to RGB. */
static stk_err stream_planes(stk_image_decoder *d, const stk_placement *p, uint8_t *pixels,
                             stk_diag *diag)
{
    const size_t count = (size_t)p->width * (size_t)p->height;
    stk_err err = stk_rowbuf_reserve(&d->planes, 3 * count);
    if (err) return stk_diag_set(diag, err, "no memory for %d rows", (int)p->height);
    const size_t width = (size_t)p->width;
    uint8_t *luma = d->planes.data, *chroma = luma + count;
    start(&d->streams[0], luma, width);
    start(&d->streams[1], chroma, 2 * width);
    err = d->codec->planes(d->state, push_planes, d, diag);
    for (int i = 0; i < 2 && !err; i++)
        if (!stk_resample_done(d->streams[i].resample)) err = ends_early(d, diag);
    for (size_t y = 0; y < (size_t)p->height && !err; y++, luma += width, chroma += 2 * width) {
        const uint8_t *const planes[3] = {luma, chroma, chroma + width};
        stk_color_planes_to_rgb(planes, pixels + y * width * 3, p->width);
    }
    stk_rowbuf_trim(&d->planes);
    return err;
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
    stk_rect rect;
    stk_err err = open_window(d, opts, filter, channels == 1, &p, &rect, diag);
    if (err) return err;
    const stk_row_window *w = &d->window;
    const stk_extent e = {w->width, w->height, w->x0, w->y0, w->x1, w->y1};
    const bool planes = w->pixels == STK_PIXELS_PLANES;
    err = plan(d, &d->streams[0], &e, &rect, &p, filter, diag);
    if (!err && planes) err = plan(d, &d->streams[1], &w->chroma, &rect, &p, filter, diag);
    if (err) return err;

    const int32_t src_channels = w->pixels == STK_PIXELS_GRAY ? 1 : 3;
    const bool direct = !p.transposed && src_channels == channels;
    const size_t row_bytes = (size_t)p.width * (size_t)src_channels;
    if (!direct) err = stk_rowbuf_reserve(&d->scratch, row_bytes * (size_t)p.height);
    if (err) return stk_diag_set(diag, err, "no memory for %d rows", (int)p.height);
    uint8_t *pixels = direct ? dst->data : d->scratch.data;
    err = planes ? stream_planes(d, &p, pixels, diag) : stream_rows(d, pixels, row_bytes, diag);
    if (!err && !direct) finish(&p, pixels, src_channels, dst->data, channels);
    stk_rowbuf_trim(&d->scratch);
    return err;
}
