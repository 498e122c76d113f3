#include <string.h>

#include <libavutil/dict.h>

#include "av/call.h"
#include "av/filter.h"
#include "av/frame_list.h"
#include "av/module.h"
#include "av/packet_list.h"
#include "av/scale.h"
#include "base/alloc.h"

#define DEFAULT_MAX_PIXELS ((int64_t)1 << 28)

struct stk_decoder {
    stk_media media;
    AVRational time_base, frame_rate;
    char *filter_text; /* NULL: none */
    bool strict;
    int64_t max_frames;
    enum AVDiscard effort; /* what the options ask to leave out */

    atomic_flag busy; /* guards everything below */
    AVCodecContext *context;
    AVPacket *packet;
    AVFrame *frame;
    av_filter filter;
    av_scale scale;
    size_t room;           /* pictures that this call may give */
    int64_t first, end;    /* the window of the packets that are decoded, in time_base */
    int64_t next;          /* when the next frame begins, where the stream does not say */
    size_t given;          /* frames, since it began */
    size_t failed, worked; /* packets */
    stk_diag why;          /* of the first packet that failed */
};

/* --- making --- */

static stk_err open_codec(stk_decoder *d, const stk_av_codec *codec, const stk_decode_opts *opts,
                          stk_av_call *call)
{
    const AVCodecParameters *par = codec->par;
    const char *name = avcodec_get_name(par->codec_id);
    const AVCodec *decoder = opts->decoder ? avcodec_find_decoder_by_name(opts->decoder)
                                           : avcodec_find_decoder(par->codec_id);
    if (!decoder)
        return stk_av_say(call, STK_EUNSUPPORTED, "this FFmpeg has no decoder %s%s",
                          opts->decoder ? "of the name " : "for ",
                          opts->decoder ? opts->decoder : name);
    if (decoder->type != par->codec_type)
        return stk_av_say(call, STK_EINVAL, "the decoder '%s' is not for %s", decoder->name, name);
    if (!(d->context = avcodec_alloc_context3(decoder)))
        return stk_av_say(call, STK_ENOMEM, "no memory");
    int rc = avcodec_parameters_to_context(d->context, par);
    if (rc < 0) return stk_av_fail(call, rc, "decoder '%s'", decoder->name);
    d->context->codec_id = decoder->id;
    d->context->pkt_timebase = codec->time_base;
    d->context->thread_count = 1;
    d->context->max_pixels = opts->max_pixels ? opts->max_pixels : DEFAULT_MAX_PIXELS;

    AVDictionary *options = NULL;
    for (const char *const *o = opts->options; o && *o && rc >= 0; o += 2)
        rc = av_dict_set(&options, o[0], o[1], 0);
    if (rc >= 0) rc = avcodec_open2(d->context, decoder, &options);
    d->effort = d->context->skip_frame;
    const AVDictionaryEntry *unknown = av_dict_get(options, "", NULL, AV_DICT_IGNORE_SUFFIX);
    stk_err err = STK_OK;
    if (rc < 0)
        err = stk_av_fail(call, rc, "the decoder '%s' cannot be opened", decoder->name);
    else if (unknown)
        err = stk_av_say(call, STK_EINVAL, "the decoder '%s' has no option '%s'", decoder->name,
                         unknown->key);
    av_dict_free(&options);
    return err;
}

static void begin(stk_decoder *d)
{
    d->first = INT64_MIN;
    d->end = INT64_MAX;
    d->next = 0;
    d->given = d->failed = d->worked = 0;
    d->why = (stk_diag){0};
    av_filter_fini(&d->filter);
}

static stk_err make(stk_decoder *d, const stk_av_codec *codec, const stk_decode_opts *opts,
                    stk_diag *diag)
{
    d->media = codec->media;
    d->time_base = codec->time_base;
    d->frame_rate = codec->frame_rate;
    d->strict = opts->strict;
    d->max_frames = opts->max_frames;
    atomic_flag_clear(&d->busy);
    begin(d);
    if (opts->filter && *opts->filter) {
        const size_t n = strlen(opts->filter) + 1;
        if (!(d->filter_text = stk_alloc(n))) return stk_diag_set(diag, STK_ENOMEM, "no memory");
        memcpy(d->filter_text, opts->filter, n);
    }
    av_scale_init(&d->scale, d->media == STK_MEDIA_AUDIO ? NULL : d->filter_text);
    d->packet = av_packet_alloc();
    d->frame = av_frame_alloc();
    if (!d->packet || !d->frame) return stk_diag_set(diag, STK_ENOMEM, "no memory");
    stk_av_call call;
    stk_av_enter(&call, diag);
    const stk_err err = open_codec(d, codec, opts, &call);
    stk_av_leave(&call);
    return err;
}

stk_err mod_decoder_new(const stk_av_codec *codec, const stk_decode_opts *opts, stk_decoder **out,
                        stk_diag *diag)
{
    static const stk_decode_opts none;
    *out = NULL;
    if (!opts) opts = &none;
    if (opts->max_frames < 0 || opts->max_pixels < 0)
        return stk_diag_set(diag, STK_EINVAL, "a limit of frames or pixels is negative");
    stk_decoder *d = *out = stk_alloc_zero(1, sizeof(*d));
    if (!d) return stk_diag_set(diag, STK_ENOMEM, "no memory for a decoder");
    const stk_err err = make(d, codec, opts, diag);
    if (err) mod_decoder_free(out);
    return err;
}

void mod_decoder_free(stk_decoder **pd)
{
    stk_decoder *d = *pd;
    *pd = NULL;
    if (!d) return;
    stk_av_call call;
    stk_av_enter(&call, NULL);
    av_filter_fini(&d->filter);
    av_scale_fini(&d->scale);
    avcodec_free_context(&d->context);
    av_packet_free(&d->packet);
    av_frame_free(&d->frame);
    stk_free(d->filter_text);
    stk_av_leave(&call);
    stk_free(d);
}

/* --- decoding --- */

static bool enough(const stk_decoder *d, const stk_frames *out)
{
    return d->max_frames && d->given + out->n >= (size_t)d->max_frames;
}

/* Whether the frame in d->frame is in the window; sets its time. */
static bool inside(stk_decoder *d)
{
    AVFrame *f = d->frame;
    const bool audio = d->media == STK_MEDIA_AUDIO;
    if (f->best_effort_timestamp != AV_NOPTS_VALUE) f->pts = f->best_effort_timestamp;
    if (f->pts == AV_NOPTS_VALUE) f->pts = d->next;
    int64_t lasts = compat_duration(f);
    if (audio && f->sample_rate > 0)
        lasts = av_rescale_q_rnd(f->nb_samples, (AVRational){1, f->sample_rate}, d->time_base,
                                 AV_ROUND_UP);
    if (lasts <= 0) lasts = 1;
    if (audio) stk_av_layout_guess(&f->ch_layout);
    const bool fits = f->pts <= INT64_MAX - lasts;
    d->next = fits ? f->pts + lasts : f->pts;
    if (audio) return fits && d->next > d->first && f->pts < d->end;
    return f->pts >= d->first && f->pts < d->end;
}

static stk_err give(stk_decoder *d, stk_frames *out, stk_av_call *call)
{
    stk_err err;
    if (!d->filter.graph && av_scale_fits(&d->scale, d->frame)) {
        out->time_base = d->time_base;
        out->frame_rate = d->frame_rate;
        return av_scale_push(&d->scale, d->frame, d->room, out, call);
    }
    if (d->filter_text) {
        const av_filter_input input = {d->filter_text, d->media == STK_MEDIA_AUDIO, d->time_base,
                                       d->frame_rate};
        return av_filter_push(&d->filter, &input, d->frame, out, call);
    }
    out->time_base = d->time_base;
    out->frame_rate = d->frame_rate;
    err = stk_frames_add(out, d->frame);
    return err ? stk_av_say(call, err, "no memory for frames") : STK_OK;
}

/* A packet that cannot be decoded; an error only if strict, or if there is no memory. */
static stk_err note(stk_decoder *d, int rc, stk_av_call *call)
{
    stk_diag *told = call->diag;
    stk_diag here = {0};
    call->diag = &here;
    const stk_err err =
        stk_av_fail(call, rc, "packet %zu cannot be decoded", d->failed + d->worked);
    call->diag = told;
    if (err == STK_ENOMEM || d->strict) {
        stk_diag_set(told, err, "%s", here.text);
        return err;
    }
    if (!d->failed++) d->why = here;
    return STK_OK;
}

static stk_err receive(stk_decoder *d, stk_frames *out, stk_av_call *call)
{
    while (!enough(d, out)) {
        const int rc = avcodec_receive_frame(d->context, d->frame);
        if (rc == AVERROR(EAGAIN) || rc == AVERROR_EOF) return STK_OK;
        stk_err err = STK_OK;
        if (rc < 0)
            err = note(d, rc, call);
        else if (inside(d))
            err = give(d, out, call);
        av_frame_unref(d->frame);
        if (err || rc < 0) return err;
    }
    return STK_OK;
}

/* Whether frames that no other refers to can be told from their headers: of HEVC only those of the
 * highest layer are, which is not known here. */
static bool tells_references(enum AVCodecID id)
{
    return id == AV_CODEC_ID_H264 || id == AV_CODEC_ID_MPEG1VIDEO || id == AV_CODEC_ID_MPEG2VIDEO ||
           id == AV_CODEC_ID_MPEG4;
}

/* Frames before the window are decoded for those that refer to them, and the others not at all. */
static void choose_effort(stk_decoder *d, const AVPacket *p)
{
    if (d->effort >= AVDISCARD_NONREF || !tells_references(d->context->codec_id)) return;
    const bool early = p && d->first > INT64_MIN && p->pts != AV_NOPTS_VALUE && p->duration > 0 &&
                       p->pts < d->first - p->duration;
    d->context->skip_frame = early ? AVDISCARD_NONREF : d->effort;
}

static stk_err send(stk_decoder *d, const AVPacket *packet, stk_frames *out, stk_av_call *call)
{
    const bool partial = packet && (packet->flags & AV_PKT_FLAG_CORRUPT); /* it was cut, say */
    if (partial) {
        const stk_err err = note(d, AVERROR_INVALIDDATA, call);
        if (err) return err;
    }
    choose_effort(d, packet);
    const int rc = avcodec_send_packet(d->context, packet);
    if (rc == AVERROR(EAGAIN)) return stk_av_say(call, STK_ECORRUPT, "the decoder takes no packet");
    if (rc < 0 && rc != AVERROR_EOF) {
        const stk_err err = partial ? STK_OK : note(d, rc, call);
        if (err) return err;
    }
    else if (packet && !partial) {
        d->worked++;
    }
    return receive(d, out, call);
}

static void set_window(stk_decoder *d, const stk_packets *packets)
{
    if (!packets->windowed) return;
    d->first = stk_ticks(packets->window.start, d->time_base);
    d->end = stk_ticks(packets->window.end, d->time_base);
}

static stk_err drain(stk_decoder *d, stk_frames *out, stk_av_call *call)
{
    stk_err err = enough(d, out) ? STK_OK : send(d, NULL, out, call);
    const av_filter_input input = {d->filter_text, d->media == STK_MEDIA_AUDIO, d->time_base,
                                   d->frame_rate};
    if (!err && d->filter_text) err = av_filter_push(&d->filter, &input, NULL, out, call);
    return err;
}

static void cut(stk_decoder *d, stk_frames *out)
{
    if (!d->max_frames) return;
    while (out->n && d->given + out->n > (size_t)d->max_frames) av_frame_free(&out->list[--out->n]);
}

static stk_err decode(stk_decoder *d, const stk_packets *packets, bool flush, stk_frames *out,
                      stk_av_call *call)
{
    stk_err err = STK_OK;
    d->room = (packets ? packets->n : 0) + (size_t)d->context->has_b_frames + 1;
    if (d->max_frames && d->room > (size_t)d->max_frames) d->room = (size_t)d->max_frames;
    if (packets) set_window(d, packets);
    for (size_t i = 0; packets && i < packets->n && !err && !enough(d, out); i++)
        if (packets->list[i]->size) /* without, it carries a note for muxers */
            err = send(d, packets->list[i], out, call);
    if (flush && !err) err = drain(d, out, call);
    av_scale_end(&d->scale);
    cut(d, out);
    d->given += out->n;
    out->num_failed = d->failed;
    if (!err && flush && !d->given && d->failed) {
        stk_diag_set(call->diag, d->why.err, "none of %zu packets could be decoded: %s",
                     d->failed + d->worked, d->why.text);
        err = d->why.err;
    }
    if (flush || err) {
        avcodec_flush_buffers(d->context);
        begin(d);
    }
    return err;
}

stk_err mod_decoder_decode(stk_decoder *d, const stk_packets *packets, bool flush, stk_frames **out,
                           stk_diag *diag)
{
    *out = NULL;
    if (packets && packets->media != d->media)
        return stk_diag_set(diag, STK_EINVAL, "these packets are of another kind than the decoder");
    if (atomic_flag_test_and_set_explicit(&d->busy, memory_order_acquire))
        return stk_diag_set(diag, STK_EAGAIN,
                            "the decoder is in use by another thread: one thread at a time may "
                            "use it");
    stk_err err = stk_frames_make(d->media, out);
    if (err) {
        stk_diag_set(diag, err, "no memory for frames");
    }
    else {
        stk_av_call call;
        stk_av_enter(&call, diag);
        err = decode(d, packets, flush, *out, &call);
        stk_av_leave(&call);
    }
    if (err) mod_frames_unref(out);
    atomic_flag_clear_explicit(&d->busy, memory_order_release);
    return err;
}
