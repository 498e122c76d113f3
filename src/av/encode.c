#include <inttypes.h>
#include <stdint.h>

#include <libavutil/pixdesc.h>

#include "av/encoder.h"
#include "av/frame_list.h"
#include "av/module.h"
#include "av/packet_list.h"

enum { OVERREAD = 64, PAGE = 4096 }; /* bytes behind a row that SIMD may read; of memory */

static stk_err no_memory(stk_av_call *call)
{
    return stk_av_say(call, STK_ENOMEM, "no memory to encode");
}

static stk_err receive(stk_encoder *e, stk_packets *out, stk_av_call *call)
{
    for (;;) {
        const int rc = avcodec_receive_packet(e->context, e->packet);
        if (rc == AVERROR(EAGAIN) || rc == AVERROR_EOF) return STK_OK;
        if (rc < 0) return stk_av_fail(call, rc, "encoder '%s'", e->context->codec->name);
        if (e->media == STK_MEDIA_VIDEO && !e->packet->duration) e->packet->duration = 1;
        const stk_err err = stk_packets_add(out, e->packet);
        av_packet_unref(e->packet);
        if (err) return no_memory(call);
    }
}

static stk_err send(stk_encoder *e, AVFrame *frame, stk_packets *out, stk_av_call *call)
{
    const int rc = avcodec_send_frame(e->context, frame);
    if (rc < 0 && rc != AVERROR_EOF)
        return stk_av_fail(call, rc, "encoder '%s'", e->context->codec->name);
    return receive(e, out, call);
}

/* --- video --- */

/* Somebody's array may end where the memory does; what is read behind it must be there. */
static bool at_edge(const AVFrame *f)
{
    for (size_t i = 0; i < AV_NUM_DATA_POINTERS && f->buf[i]; i++) {
        const uintptr_t end = (uintptr_t)f->buf[i]->data + f->buf[i]->size;
        if ((end - 1) / PAGE != (end - 1 + OVERREAD) / PAGE) return true;
    }
    return false;
}

static stk_err check_picture(const stk_encoder *e, const AVFrame *f, stk_av_call *call)
{
    const AVCodecContext *c = e->context;
    if (f->format == c->pix_fmt && f->width == c->width && f->height == c->height) return STK_OK;
    const char *name = av_get_pix_fmt_name((enum AVPixelFormat)f->format);
    return stk_av_say(call, STK_EINVAL,
                      "the encoder was made for frames in %s, %dx%d, not in %s, %dx%d: the filters "
                      "scale and format convert them",
                      av_get_pix_fmt_name(c->pix_fmt), c->width, c->height, name ? name : "?",
                      f->width, f->height);
}

static stk_err set_time(stk_encoder *e, AVFrame *f, AVRational time_base, stk_av_call *call)
{
    const AVRational tb = e->context->time_base;
    const int64_t at = f->pts == AV_NOPTS_VALUE ? e->next : av_rescale_q(f->pts, time_base, tb);
    if (at == INT64_MAX || at == AV_NOPTS_VALUE || (e->begun && at < e->next))
        return stk_av_say(call, STK_EINVAL,
                          "a frame at %g s does not come after the one before, at frame_rate %d/%d",
                          (double)at * av_q2d(tb), tb.den, tb.num);
    f->pts = at;
    e->next = at + 1;
    e->begun = true;
    return STK_OK;
}

static stk_err send_picture(stk_encoder *e, const AVFrame *from, AVRational time_base,
                            stk_packets *out, stk_av_call *call)
{
    AVFrame *f = e->frame;
    if (av_frame_ref(f, from) < 0) return no_memory(call);
    stk_err err = set_time(e, f, time_base, call);
    if (!err && at_edge(f) && av_frame_make_writable(f) < 0) err = no_memory(call);
    f->pict_type = AV_PICTURE_TYPE_NONE; /* what its decoder saw is no wish */
    f->quality = e->context->global_quality;
    compat_duration(f) = 1;
    if (!err) err = send(e, f, out, call);
    av_frame_unref(f);
    return err;
}

/* --- audio --- */

static stk_err check_samples(const stk_encoder *e, const AVFrame *f, stk_av_call *call)
{
    const AVCodecContext *c = e->context;
    if (f->format == c->sample_fmt && f->sample_rate == c->sample_rate &&
        f->ch_layout.nb_channels == c->ch_layout.nb_channels)
        return STK_OK;
    const char *name = av_get_sample_fmt_name((enum AVSampleFormat)f->format);
    return stk_av_say(call, STK_EINVAL,
                      "the encoder was made for %d channels of %s at %d Hz, not %d of %s at %d Hz: "
                      "the filters aresample and aformat convert them",
                      c->ch_layout.nb_channels, av_get_sample_fmt_name(c->sample_fmt),
                      c->sample_rate, f->ch_layout.nb_channels, name ? name : "?", f->sample_rate);
}

/* e->frame, as the encoder wants it, with the next time. */
static stk_err send_samples(stk_encoder *e, stk_packets *out, stk_av_call *call)
{
    AVFrame *f = e->frame;
    if (e->next > INT64_MAX - f->nb_samples)
        return stk_av_say(call, STK_EINVAL, "the times of the samples are too large");
    f->pts = e->next;
    e->next += f->nb_samples;
    const stk_err err = send(e, f, out, call);
    av_frame_unref(f);
    return err;
}

/* The first `n` samples that wait. */
static stk_err send_waiting(stk_encoder *e, int n, stk_packets *out, stk_av_call *call)
{
    const AVCodecContext *c = e->context;
    AVFrame *f = e->frame;
    f->nb_samples = n;
    f->format = c->sample_fmt;
    f->sample_rate = c->sample_rate;
    if (av_channel_layout_copy(&f->ch_layout, &c->ch_layout) < 0 || av_frame_get_buffer(f, 0) < 0 ||
        av_audio_fifo_read(e->fifo, (void **)f->extended_data, n) < n) {
        av_frame_unref(f);
        return no_memory(call);
    }
    return send_samples(e, out, call);
}

static stk_err send_audio(stk_encoder *e, const AVFrame *from, AVRational time_base,
                          stk_packets *out, stk_av_call *call)
{
    stk_err err = STK_OK;
    if (!e->begun && from->pts != AV_NOPTS_VALUE)
        e->next = av_rescale_q(from->pts, time_base, e->context->time_base);
    e->begun = true;
    if (!e->fifo) {
        if (av_frame_ref(e->frame, from) < 0) return no_memory(call);
        return send_samples(e, out, call);
    }
    const int n = from->nb_samples, whole = e->context->frame_size;
    if (av_audio_fifo_write(e->fifo, (void **)from->extended_data, n) < n) return no_memory(call);
    while (!err && av_audio_fifo_size(e->fifo) >= whole) err = send_waiting(e, whole, out, call);
    return err;
}

/* --- both --- */

static stk_err end(stk_encoder *e, stk_packets *out, stk_av_call *call)
{
    stk_err err = STK_OK;
    const int waiting = e->fifo ? av_audio_fifo_size(e->fifo) : 0;
    e->ended = true;
    if (waiting) err = send_waiting(e, waiting, out, call);
    return err ? err : send(e, NULL, out, call);
}

static stk_err check(const stk_encoder *e, const stk_frames *frames, stk_av_call *call)
{
    stk_err err = STK_OK;
    if (e->broken)
        return stk_av_say(call, STK_EINVAL, "an earlier call failed: the encoder cannot go on");
    if (e->ended && frames)
        return stk_av_say(call, STK_EINVAL, "the encoder was flushed: it takes no more frames");
    for (size_t i = 0; frames && i < frames->n && !err; i++)
        err = e->media == STK_MEDIA_AUDIO ? check_samples(e, frames->list[i], call)
                                          : check_picture(e, frames->list[i], call);
    return err;
}

static stk_err encode(stk_encoder *e, const stk_frames *frames, bool flush, stk_packets **out,
                      stk_av_call *call)
{
    const bool audio = e->media == STK_MEDIA_AUDIO;
    stk_err err = check(e, frames, call);
    if (err) return err;
    stk_av_call_hears(call, &e->log);
    err = stk_packets_make(e->media, e->codec, e->context->time_base, NULL, e->context->codec->name,
                           out);
    if (err) return no_memory(call);
    for (size_t i = 0; frames && i < frames->n && !err; i++)
        err = audio ? send_audio(e, frames->list[i], frames->time_base, *out, call)
                    : send_picture(e, frames->list[i], frames->time_base, *out, call);
    if (!err && flush && !e->ended) err = end(e, *out, call);
    e->broken = err != STK_OK; /* packets are lost */
    if (err) mod_packets_unref(out);
    return err;
}

static bool is_audio(stk_media media)
{
    return media == STK_MEDIA_AUDIO;
}

stk_err mod_encoder_encode(stk_encoder *e, const stk_frames *frames, bool flush, stk_packets **out,
                           stk_diag *diag)
{
    *out = NULL;
    if (frames && is_audio(frames->media) != is_audio(e->media))
        return stk_diag_set(diag, STK_EINVAL, "these frames are of another kind than the encoder");
    if (atomic_flag_test_and_set_explicit(&e->busy, memory_order_acquire))
        return stk_diag_set(diag, STK_EAGAIN,
                            "the encoder is in use by another thread: one thread at a time may "
                            "use it");
    stk_av_call call;
    stk_av_enter(&call, diag);
    const stk_err err = encode(e, frames, flush, out, &call);
    stk_av_leave(&call);
    atomic_flag_clear_explicit(&e->busy, memory_order_release);
    return err;
}
