#include "av/picture_rows.h"

#include <string.h>

#include <libavutil/opt.h>
#include <libavutil/pixdesc.h>
#include <libswscale/swscale.h>

#include "av/scale.h"
#include "base/alloc.h"

enum { ALIGN = 64 };

static void drop(av_picture_rows *r)
{
    stk_free(r->bytes);
    stk_free(r->wide);
    r->bytes = NULL;
    r->wide = NULL;
}

void av_picture_rows_fini(av_picture_rows *r)
{
    drop(r);
    sws_freeContext(r->sws);
    r->sws = NULL;
}

/* --- rows that are read as they are --- */

typedef struct reader {
    const AVFrame *frame;
    const AVPixFmtDescriptor *desc;
    int x, columns, channels; /* 3 or 4 that are wanted */
    int alpha;                /* the component that is alpha; -1: none */
    bool limited, plain;      /* gray from 16 to 235; whole bytes in one plane */
    uint8_t *out;
    uint16_t *wide;
} reader;

static void read_plain(const reader *r, int y)
{
    const AVComponentDescriptor *c = r->desc->comp;
    const bool gray = r->desc->nb_components < 3;
    const int step = c[0].step, first = c[0].offset;
    const int second = gray ? first : c[1].offset, third = gray ? first : c[2].offset;
    const int alpha = r->alpha < 0 ? -1 : c[r->alpha].offset;
    const uint8_t *in =
        r->frame->data[0] + (ptrdiff_t)y * r->frame->linesize[0] + (ptrdiff_t)r->x * step;
    uint8_t *out = r->out;
    for (int i = 0; i < r->columns; i++, in += step, out += r->channels) {
        out[0] = in[first];
        out[1] = in[second];
        out[2] = in[third];
        if (r->channels == 4) out[3] = alpha < 0 ? 255 : in[alpha];
    }
}

static void read_palette(const reader *r, int y)
{
    const uint32_t *palette = (const uint32_t *)(const void *)r->frame->data[1];
    const uint8_t *in = r->frame->data[0] + (ptrdiff_t)y * r->frame->linesize[0] + r->x;
    uint8_t *out = r->out;
    for (int i = 0; i < r->columns; i++, out += r->channels) {
        const uint32_t color = palette[in[i]];
        out[0] = (uint8_t)(color >> 16);
        out[1] = (uint8_t)(color >> 8);
        out[2] = (uint8_t)color;
        if (r->channels == 4) out[3] = (uint8_t)(color >> 24);
    }
}

/* 16 bits become the upper 8; fewer become what is as bright. */
static uint8_t to_byte(unsigned value, int depth, bool limited)
{
    const unsigned most = (1u << depth) - 1;
    if (limited && depth >= 8) {
        const unsigned black = 16u << (depth - 8), span = 219u << (depth - 8);
        const unsigned above = value < black ? 0 : value - black;
        return (uint8_t)(above >= span ? 255 : (above * 255 + span / 2) / span);
    }
    if (depth >= 16) return (uint8_t)(value >> (depth - 8));
    return (uint8_t)((value * 255 + (depth > 8 ? most / 2 : 0)) / most);
}

static void read_component(const reader *r, int y, int component, int channel)
{
    const int depth = r->desc->comp[component].depth;
    const bool inverse = r->frame->format == AV_PIX_FMT_MONOWHITE;
    av_read_image_line2(r->wide, (const uint8_t **)r->frame->data, r->frame->linesize, r->desc,
                        r->x, y, component, r->columns, 0, sizeof(*r->wide));
    uint8_t *out = r->out + channel;
    for (int i = 0; i < r->columns; i++, out += r->channels)
        *out = to_byte(inverse ? !r->wide[i] : r->wide[i], depth, r->limited && channel < 3);
}

static void read_any(const reader *r, int y)
{
    for (int channel = 0; channel < 3; channel++)
        read_component(r, y, r->desc->nb_components < 3 ? 0 : channel, channel);
    if (r->channels < 4) return;
    if (r->alpha >= 0)
        read_component(r, y, r->alpha, 3);
    else
        for (int i = 0; i < r->columns; i++) r->out[4 * i + 3] = 255;
}

static reader make_reader(const av_picture_rows *rows, const AVFrame *f,
                          const AVPixFmtDescriptor *desc, const stk_picture *p)
{
    const bool palette = desc->flags & AV_PIX_FMT_FLAG_PAL;
    reader r = {.frame = f,
                .desc = desc,
                .x = p->x,
                .columns = p->columns,
                .channels = p->alpha ? 4 : 3,
                .alpha = desc->flags & AV_PIX_FMT_FLAG_ALPHA ? desc->nb_components - 1 : -1,
                .limited = desc->nb_components < 3 && f->color_range == AVCOL_RANGE_MPEG,
                .out = rows->bytes,
                .wide = rows->wide};
    r.plain = !palette && !r.limited && !(desc->flags & AV_PIX_FMT_FLAG_BITSTREAM);
    for (int i = 0; i < desc->nb_components; i++)
        r.plain &= desc->comp[i].depth == 8 && !desc->comp[i].shift && !desc->comp[i].plane;
    return r;
}

static stk_err push_read(av_picture_rows *rows, const AVFrame *f, const AVPixFmtDescriptor *desc,
                         const stk_picture *p, stk_picture_row_fn *push, void *ctx,
                         stk_av_call *call)
{
    const size_t columns = (size_t)p->columns;
    rows->bytes = stk_alloc(columns * 4);
    rows->wide = stk_alloc(columns * sizeof(*rows->wide));
    if (!rows->bytes || !rows->wide)
        return stk_av_say(call, STK_ENOMEM, "no memory for a row of %zu pixels", columns);
    const reader r = make_reader(rows, f, desc, p);
    const bool as_is = f->format == AV_PIX_FMT_RGB24 && !p->alpha;
    for (int y = p->y; y < p->y + p->rows; y++) {
        const uint8_t *row = r.out;
        if (as_is)
            row = f->data[0] + (ptrdiff_t)y * f->linesize[0] + (ptrdiff_t)3 * p->x;
        else if (desc->flags & AV_PIX_FMT_FLAG_PAL)
            read_palette(&r, y);
        else if (r.plain)
            read_plain(&r, y);
        else
            read_any(&r, y);
        if (!push(ctx, row)) break;
    }
    return STK_OK;
}

/* --- YCbCr --- */

static int open_sws(av_picture_rows *rows, const AVFrame *f, const stk_picture *p)
{
    const av_picture_like like = {.width = f->width,
                                  .height = f->height,
                                  .format = f->format,
                                  .matrix = (int)f->colorspace,
                                  .range = (int)f->color_range,
                                  .alpha = p->alpha,
                                  .exact = p->exact};
    const struct {
        const char *name;
        int64_t value;
    } opts[] = {
        {"srcw", f->width},
        {"srch", f->height},
        {"src_format", f->format},
        {"dstw", f->width},
        {"dsth", f->height},
        {"dst_format", p->alpha ? AV_PIX_FMT_RGBA : AV_PIX_FMT_RGB24},
        {"sws_flags", SWS_BILINEAR | (p->exact ? SWS_ACCURATE_RND | SWS_FULL_CHR_H_INT : 0)}};
    int rc = 0;
    if (rows->sws && !memcmp(&rows->like, &like, sizeof(like))) return 0;
    sws_freeContext(rows->sws);
    if (!(rows->sws = sws_alloc_context())) return AVERROR(ENOMEM);
    for (size_t i = 0; i < sizeof(opts) / sizeof(*opts) && rc >= 0; i++)
        rc = av_opt_set_int(rows->sws, opts[i].name, opts[i].value, 0);
    if (rc >= 0) rc = sws_init_context(rows->sws, NULL, NULL);
    if (rc >= 0) av_scale_set_colors(rows->sws, f);
    rows->like = rc >= 0 ? like : (av_picture_like){0};
    return rc;
}

/* All of the picture, whatever the rectangle is: where chroma lies depends on the size. */
static stk_err push_scaled(av_picture_rows *rows, const AVFrame *f, const stk_picture *p,
                           stk_picture_row_fn *push, void *ctx, stk_av_call *call)
{
    const int channels = p->alpha ? 4 : 3, row = (f->width * channels + ALIGN - 1) / ALIGN * ALIGN;
    rows->bytes = stk_alloc_aligned(ALIGN, (size_t)row * (size_t)f->height + ALIGN);
    if (!rows->bytes)
        return stk_av_say(call, STK_ENOMEM, "no memory for %d x %d pixels", f->width, f->height);
    int rc = open_sws(rows, f, p);
    if (rc >= 0)
        rc = sws_scale(rows->sws, (const uint8_t *const *)f->data, f->linesize, 0, f->height,
                       (uint8_t *[4]){rows->bytes}, (int[4]){row});
    if (rc < 0) return stk_av_fail(call, rc, "the pixels cannot be converted");
    const uint8_t *at = rows->bytes + (ptrdiff_t)p->y * row + (ptrdiff_t)p->x * channels;
    for (int y = 0; y < p->rows && push(ctx, at); y++) at += row;
    return STK_OK;
}

stk_err av_picture_rows_push(av_picture_rows *rows, const AVFrame *frame, const stk_picture *p,
                             stk_picture_row_fn *push, void *ctx, stk_av_call *call)
{
    const AVPixFmtDescriptor *desc = av_pix_fmt_desc_get((enum AVPixelFormat)frame->format);
    const uint64_t no = AV_PIX_FMT_FLAG_HWACCEL | AV_PIX_FMT_FLAG_BAYER | AV_PIX_FMT_FLAG_FLOAT;
    if (!desc || desc->flags & no || !desc->nb_components || desc->comp[0].depth > 16)
        return stk_av_say(call, STK_EUNSUPPORTED, "pixels of the format %s are not converted",
                          desc ? desc->name : "that it has");
    const bool rgb = desc->flags & (AV_PIX_FMT_FLAG_RGB | AV_PIX_FMT_FLAG_PAL);
    stk_err err;
    if (rgb || desc->nb_components < 3)
        err = push_read(rows, frame, desc, p, push, ctx, call);
    else
        err = push_scaled(rows, frame, p, push, ctx, call);
    drop(rows);
    return err;
}
