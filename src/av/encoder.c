#include "av/encoder.h"

#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include <libavutil/pixdesc.h>

#include "av/module.h"
#include "av/packet_list.h"
#include "base/alloc.h"

enum { LIST = 700 }; /* bytes of a text that lists what an encoder takes */

static void list_add(char text[LIST], size_t *n, const char *name)
{
    if (!name) return;
    const int wrote = snprintf(text + *n, LIST - *n, "%s%s", *n ? ", " : "", name);
    if (wrote > 0) *n = *n + (size_t)wrote < LIST ? *n + (size_t)wrote : LIST - 1;
}

static stk_err takes_not(const AVCodec *codec, const char *what, const char *value,
                         const char *list, stk_av_call *call)
{
    return stk_av_say(call, STK_EUNSUPPORTED,
                      "the encoder '%s' does not take the %s '%s': it takes %s", codec->name, what,
                      value, list);
}

/* --- what it is asked for --- */

/* The number of a name; `known` (-1: no such name) and `what` are of the field. */
static stk_err color(const char *name, int known, const char *what, int *out, stk_av_call *call)
{
    if (!name) return STK_OK;
    if (known < 0) return stk_av_say(call, STK_EINVAL, "there is no %s '%s'", what, name);
    *out = known;
    return STK_OK;
}

static stk_err set_colors(AVCodecContext *c, const stk_encode_opts *o, stk_av_call *call)
{
    int space = c->colorspace, primaries = c->color_primaries, trc = c->color_trc;
    const char *s = o->colorspace, *p = o->color_primaries, *t = o->color_trc;
    stk_err err = color(s, s ? av_color_space_from_name(s) : -1, "colorspace", &space, call);
    if (!err)
        err =
            color(p, p ? av_color_primaries_from_name(p) : -1, "color_primaries", &primaries, call);
    if (!err) err = color(t, t ? av_color_transfer_from_name(t) : -1, "color_trc", &trc, call);
    c->colorspace = (enum AVColorSpace)space;
    c->color_primaries = (enum AVColorPrimaries)primaries;
    c->color_trc = (enum AVColorTransferCharacteristic)trc;
    return err;
}

/* FFmpeg's JPEG encoder lists formats of limited range, which JPEG does not have, and refuses them
 * when it is opened, unless it is told that they are of full range or may be written all the same.
 */
static bool refuses(const AVCodec *codec, enum AVPixelFormat format, const char *const *options)
{
    const char *name = av_get_pix_fmt_name(format);
    if (codec->id != AV_CODEC_ID_MJPEG || !name || !strncmp(name, "yuvj", 4)) return false;
    for (const char *const *o = options; o && *o; o += 2)
        if (!strcmp(o[0], "strict") || !strcmp(o[0], "color_range")) return false;
    return true;
}

static stk_err set_video(AVCodecContext *c, const stk_encode_opts *o, stk_av_call *call)
{
    const enum AVPixelFormat *takes = NULL;
    const enum AVPixelFormat format = o->format ? av_get_pix_fmt(o->format) : AV_PIX_FMT_NONE;
    const stk_ratio r = o->frame_rate;
    char list[LIST] = "";
    size_t n = 0;
    if (format == AV_PIX_FMT_NONE)
        return stk_av_say(call, STK_EINVAL, "there is no pixel format '%s'", o->format);
    if (o->width < 1 || o->height < 1 || r.num < 1 || r.den < 1 || r.num > INT_MAX ||
        r.den > INT_MAX)
        return stk_av_say(call, STK_EINVAL, "width, height and frame_rate must be above 0");
    bool found = !compat_takes(c->codec, PIX_FORMAT, pix_fmts, &takes) || !takes;
    for (; takes && *takes != AV_PIX_FMT_NONE; takes++) {
        if (refuses(c->codec, *takes, o->options)) continue;
        found |= *takes == format;
        list_add(list, &n, av_get_pix_fmt_name(*takes));
    }
    if (!found) return takes_not(c->codec, "pixel format", o->format, list, call);
    c->pix_fmt = format;
    c->width = o->width;
    c->height = o->height;
    c->framerate = (AVRational){(int)r.num, (int)r.den};
    c->time_base = av_inv_q(c->framerate);
    if (o->gop_size >= 0) c->gop_size = o->gop_size;
    if (o->max_b_frames >= 0) c->max_b_frames = o->max_b_frames;
    return set_colors(c, o, call);
}

static stk_err set_audio(AVCodecContext *c, const stk_encode_opts *o, stk_av_call *call)
{
    const enum AVSampleFormat *takes = NULL;
    const int *rates = NULL;
    const enum AVSampleFormat format =
        o->format ? av_get_sample_fmt(o->format) : AV_SAMPLE_FMT_NONE;
    char list[LIST] = "", number[16];
    size_t n = 0;
    if (format == AV_SAMPLE_FMT_NONE)
        return stk_av_say(call, STK_EINVAL, "there is no sample format '%s'", o->format);
    if (o->sample_rate < 1 || o->num_channels < 1)
        return stk_av_say(call, STK_EINVAL, "sample_rate and num_channels must be above 0");
    bool found = !compat_takes(c->codec, SAMPLE_FORMAT, sample_fmts, &takes) || !takes;
    for (; takes && *takes != AV_SAMPLE_FMT_NONE; takes++) {
        found |= *takes == format;
        list_add(list, &n, av_get_sample_fmt_name(*takes));
    }
    if (!found) return takes_not(c->codec, "sample format", o->format, list, call);
    list[n = 0] = '\0';
    found = !compat_takes(c->codec, SAMPLE_RATE, supported_samplerates, &rates) || !rates;
    for (; rates && *rates; rates++) {
        found |= *rates == o->sample_rate;
        snprintf(number, sizeof(number), "%d", *rates);
        list_add(list, &n, number);
    }
    snprintf(number, sizeof(number), "%d", o->sample_rate);
    if (!found) return takes_not(c->codec, "sample rate", number, list, call);
    c->sample_fmt = format;
    c->sample_rate = o->sample_rate;
    c->time_base = (AVRational){1, o->sample_rate};
    av_channel_layout_default(&c->ch_layout, o->num_channels);
    return STK_OK;
}

static stk_err set_quality(AVCodecContext *c, const stk_encode_opts *o, stk_av_call *call)
{
    if (o->bit_rate > INT_MAX || o->qscale > INT_MAX / FF_QP2LAMBDA)
        return stk_av_say(call, STK_EINVAL, "bit_rate or qscale is too large");
    if (o->bit_rate >= 0) c->bit_rate = o->bit_rate;
    if (o->compression_level >= 0) c->compression_level = o->compression_level;
    if (o->qscale >= 0) {
        c->flags |= AV_CODEC_FLAG_QSCALE;
        c->global_quality = FF_QP2LAMBDA * o->qscale;
    }
    return STK_OK;
}

/* --- making --- */

int stk_av_options(const char *const *options, AVDictionary **out)
{
    int rc = 0;
    for (const char *const *o = options; o && *o && rc >= 0; o += 2)
        rc = av_dict_set(out, o[0], o[1], 0);
    return rc;
}

static stk_err find(const stk_encode_opts *o, const AVOutputFormat *format, enum AVCodecID guess,
                    const AVCodec **out, stk_av_call *call)
{
    const bool audio = o->media == STK_MEDIA_AUDIO;
    *out = o->encoder ? avcodec_find_encoder_by_name(o->encoder) : avcodec_find_encoder(guess);
    if (!*out && o->encoder)
        return stk_av_say(call, STK_EUNSUPPORTED, "this FFmpeg has no encoder of the name '%s'",
                          o->encoder);
    if (!*out && guess == AV_CODEC_ID_NONE)
        return stk_av_say(call, STK_EUNSUPPORTED, "the format '%s' has no %s", format->name,
                          audio ? "audio" : "video");
    if (!*out)
        return stk_av_say(call, STK_EUNSUPPORTED, "this FFmpeg has no encoder for %s",
                          avcodec_get_name(guess));
    if ((*out)->type != (audio ? AVMEDIA_TYPE_AUDIO : AVMEDIA_TYPE_VIDEO))
        return stk_av_say(call, STK_EINVAL, "the encoder '%s' is not for %s", (*out)->name,
                          audio ? "audio" : "video");
    if (avformat_query_codec(format, (*out)->id, FF_COMPLIANCE_EXPERIMENTAL) == 0)
        return stk_av_say(call, STK_EUNSUPPORTED, "the format '%s' cannot hold %s", format->name,
                          avcodec_get_name((*out)->id));
    return STK_OK;
}

/* Where root runs it, SVT-AV1 makes the thread that opens it one of real time (SCHED_FIFO), as
 * would be all that this thread makes from then on: that is undone. */
static int open_at_same_priority(AVCodecContext *context, AVDictionary **options)
{
    struct sched_param before;
    const int policy = sched_getscheduler(0);
    const bool known = policy >= 0 && !sched_getparam(0, &before);
    const int rc = avcodec_open2(context, NULL, options);
    if (known && sched_getscheduler(0) != policy) (void)sched_setscheduler(0, policy, &before);
    return rc;
}

static stk_err open_codec(stk_encoder *e, const stk_encode_opts *o, stk_av_call *call)
{
    AVDictionary *options = NULL;
    const char *name = e->context->codec->name; /* which a failure takes from the context */
    int rc = stk_av_options(o->options, &options);
    stk_av_log_start(&e->log, e->context);
    stk_av_call_hears(call, &e->log);
    if (rc >= 0) rc = open_at_same_priority(e->context, &options);
    const AVDictionaryEntry *unknown = av_dict_get(options, "", NULL, AV_DICT_IGNORE_SUFFIX);
    stk_err err = STK_OK;
    if (rc < 0)
        err = stk_av_wrong(call, rc, "the encoder '%s' cannot be opened", name);
    else if (unknown)
        err =
            stk_av_say(call, STK_EINVAL, "the encoder '%s' has no option '%s'", name, unknown->key);
    av_dict_free(&options);
    return err;
}

/* What is known once the codec is open. */
static stk_err finish(stk_encoder *e, stk_av_call *call)
{
    const AVCodecContext *c = e->context;
    AVCodecParameters *par = avcodec_parameters_alloc();
    stk_err err = par && avcodec_parameters_from_context(par, c) >= 0 ? STK_OK : STK_ENOMEM;
    if (!err) err = stk_av_codec_make(e->media, par, c->time_base, c->framerate, &e->codec);
    avcodec_parameters_free(&par);
    e->packet = av_packet_alloc();
    e->frame = av_frame_alloc();
    const bool whole = e->media == STK_MEDIA_AUDIO && c->frame_size > 0 &&
                       !(c->codec->capabilities & AV_CODEC_CAP_VARIABLE_FRAME_SIZE);
    if (whole)
        e->fifo = av_audio_fifo_alloc(c->sample_fmt, c->ch_layout.nb_channels, c->frame_size);
    if (err || !e->packet || !e->frame || (whole && !e->fifo))
        return stk_av_say(call, STK_ENOMEM, "no memory for an encoder");
    return STK_OK;
}

static stk_err make(stk_encoder *e, const stk_encode_opts *o, const AVOutputFormat *format,
                    enum AVCodecID guess, stk_av_call *call)
{
    const AVCodec *codec;
    stk_err err = find(o, format, guess, &codec, call);
    if (err) return err;
    AVCodecContext *c = e->context = avcodec_alloc_context3(codec);
    if (!c) return stk_av_say(call, STK_ENOMEM, "no memory for an encoder");
    c->thread_count = 1;
    if (format->flags & AVFMT_GLOBALHEADER) c->flags |= AV_CODEC_FLAG_GLOBAL_HEADER;
    err = e->media == STK_MEDIA_AUDIO ? set_audio(c, o, call) : set_video(c, o, call);
    if (!err) err = set_quality(c, o, call);
    if (!err) err = open_codec(e, o, call);
    return err ? err : finish(e, call);
}

stk_err stk_encoder_make(const stk_encode_opts *opts, const AVOutputFormat *format,
                         enum AVCodecID guess, stk_encoder **out, stk_av_call *call)
{
    *out = NULL;
    if (opts->media != STK_MEDIA_AUDIO && opts->media != STK_MEDIA_VIDEO)
        return stk_av_say(call, STK_EINVAL, "an encoder is for audio or video");
    stk_encoder *e = *out = stk_alloc_zero(1, sizeof(*e));
    if (!e) return stk_av_say(call, STK_ENOMEM, "no memory for an encoder");
    e->media = opts->media;
    atomic_flag_clear(&e->busy);
    const stk_err err = make(e, opts, format, guess, call);
    if (err) mod_encoder_free(out);
    return err;
}

void mod_encoder_free(stk_encoder **pe)
{
    stk_encoder *e = *pe;
    *pe = NULL;
    if (!e) return;
    stk_av_call call;
    stk_av_enter(&call, NULL);
    avcodec_free_context(&e->context);
    stk_av_log_stop(&e->log);
    av_packet_free(&e->packet);
    av_frame_free(&e->frame);
    av_audio_fifo_free(e->fifo);
    mod_av_codec_unref(&e->codec);
    stk_av_leave(&call);
    stk_free(e);
}

int mod_encoder_frame_size(const stk_encoder *e)
{
    return e->media == STK_MEDIA_AUDIO && e->fifo ? e->context->frame_size : 0;
}

stk_av_codec *mod_encoder_codec(const stk_encoder *e)
{
    return mod_av_codec_ref(e->codec);
}
