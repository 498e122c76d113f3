#include <limits.h>

#include "av/call.h"
#include "av/compat.h"
#include "av/module.h"
#include "av/picture_rows.h"
#include "base/alloc.h"

#define LEAST_PIXELS (INT64_C(1) << 16) /* a decoder is made for that many, or more */

struct stk_picture_decoder {
    const AVCodec *codec;
    AVCodecContext *context; /* NULL: not made yet */
    int64_t max_pixels;      /* that it was made for: libdav1d is told but once */
    AVPacket *packet;
    AVFrame *frame;
    av_picture_rows rows;
};

stk_err mod_picture_decoder_new(const char *codec, stk_picture_decoder **out, stk_diag *diag)
{
    *out = NULL;
    const AVCodecDescriptor *known = avcodec_descriptor_get_by_name(codec);
    const AVCodec *found = known ? avcodec_find_decoder(known->id) : NULL;
    if (!found || found->type != AVMEDIA_TYPE_VIDEO)
        return stk_diag_set(diag, STK_EUNSUPPORTED, "this FFmpeg has no decoder for %s", codec);
    stk_picture_decoder *d = *out = stk_alloc_zero(1, sizeof(*d));
    if (!d) return stk_diag_set(diag, STK_ENOMEM, "no memory for a decoder");
    d->codec = found;
    d->packet = av_packet_alloc();
    d->frame = av_frame_alloc();
    if (d->packet && d->frame) return STK_OK;
    mod_picture_decoder_free(out);
    return stk_diag_set(diag, STK_ENOMEM, "no memory for a decoder");
}

void mod_picture_decoder_free(stk_picture_decoder **pd)
{
    stk_picture_decoder *d = *pd;
    *pd = NULL;
    if (!d) return;
    stk_av_call call;
    stk_av_enter(&call, NULL);
    av_picture_rows_fini(&d->rows);
    avcodec_free_context(&d->context);
    av_packet_free(&d->packet);
    av_frame_free(&d->frame);
    stk_av_leave(&call);
    stk_free(d);
}

/* A context that takes pictures of so many pixels, and none of more than twice as many. */
static stk_err prepare(stk_picture_decoder *d, int64_t pixels, stk_av_call *call)
{
    int64_t most = LEAST_PIXELS;
    while (most < pixels) most *= 2;
    if (d->context && d->max_pixels == most) {
        avcodec_flush_buffers(d->context);
        return STK_OK;
    }
    avcodec_free_context(&d->context);
    if (!(d->context = avcodec_alloc_context3(d->codec)))
        return stk_av_say(call, STK_ENOMEM, "no memory for a decoder");
    d->context->thread_count = 1;
    d->context->max_pixels = d->max_pixels = most;
    d->context->err_recognition = AV_EF_EXPLODE;
    const int rc = avcodec_open2(d->context, d->codec, NULL);
    if (rc >= 0) return STK_OK;
    avcodec_free_context(&d->context);
    return stk_av_fail(call, rc, "the decoder '%s' cannot be opened", d->codec->name);
}

/* The first picture of the data to d->frame. */
static stk_err decode(stk_picture_decoder *d, const stk_picture *p, stk_av_call *call)
{
    d->packet->data = (uint8_t *)p->data;
    d->packet->size = (int)p->size;
    int rc = avcodec_send_packet(d->context, d->packet); /* copies what nobody counts */
    if (rc >= 0) rc = avcodec_send_packet(d->context, NULL);
    if (rc >= 0) rc = avcodec_receive_frame(d->context, d->frame);
    if (rc == AVERROR_EOF || rc == AVERROR(EAGAIN))
        return stk_av_say(call, STK_ECORRUPT, "there is no picture in the data");
    if (rc < 0) return stk_av_fail(call, rc, "the data cannot be decoded");
    const AVFrame *f = d->frame;
    if (f->width != p->width || f->height != p->height)
        return stk_av_say(call, STK_ECORRUPT,
                          "the data is of %d x %d pixels, the header says %d x %d", f->width,
                          f->height, (int)p->width, (int)p->height);
    if (p->matrix) d->frame->colorspace = (enum AVColorSpace)p->matrix; /* has the same numbers */
    if (p->range)
        d->frame->color_range =
            p->range == STK_PICTURE_RANGE_FULL ? AVCOL_RANGE_JPEG : AVCOL_RANGE_MPEG;
    if (p->strict && call->used) return stk_av_say(call, STK_ECORRUPT, "the data is damaged");
    return STK_OK;
}

static bool inside(const stk_picture *p)
{
    return p->width > 0 && p->height > 0 && p->x >= 0 && p->y >= 0 && p->columns > 0 &&
           p->rows > 0 && p->x <= p->width - p->columns && p->y <= p->height - p->rows;
}

stk_err mod_picture_decode(stk_picture_decoder *d, const stk_picture *p, stk_picture_row_fn *push,
                           void *ctx, stk_diag *diag)
{
    if (!inside(p)) return stk_diag_set(diag, STK_EINVAL, "the rectangle is not in the picture");
    if (!p->size || p->size > INT_MAX - AV_INPUT_BUFFER_PADDING_SIZE)
        return stk_diag_set(diag, STK_ELIMIT, "a picture of %zu bytes: FFmpeg takes at most %d",
                            p->size, INT_MAX - AV_INPUT_BUFFER_PADDING_SIZE);
    stk_av_call call;
    stk_av_enter(&call, diag);
    stk_err err = prepare(d, (int64_t)p->width * p->height, &call);
    if (!err) err = decode(d, p, &call);
    if (!err) err = av_picture_rows_push(&d->rows, d->frame, p, push, ctx, &call);
    av_frame_unref(d->frame);
    stk_av_leave(&call);
    return err;
}
