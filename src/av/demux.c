#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <libavutil/dict.h>

#include "av/bitstream.h"
#include "av/call.h"
#include "av/demuxer.h"
#include "av/module.h"
#include "base/alloc.h"

#define DEFAULT_MAX_BYTES ((size_t)4 << 30)

static bool enter(stk_demuxer *d, stk_diag *diag)
{
    if (!atomic_flag_test_and_set_explicit(&d->busy, memory_order_acquire)) return true;
    stk_diag_set(diag, STK_EAGAIN,
                 "the demuxer is in use by another thread: one thread at a time may use it");
    return false;
}

/* Reading may add streams, and find out more of those that there are. */
static void publish(stk_demuxer *d)
{
    const AVFormatContext *fc = d->fc;
    const int audio = av_find_best_stream(d->fc, AVMEDIA_TYPE_AUDIO, -1, -1, NULL, 0);
    const int video = av_find_best_stream(d->fc, AVMEDIA_TYPE_VIDEO, -1, -1, NULL, 0);
    atomic_store_explicit(&d->known.num_streams, (int)fc->nb_streams, memory_order_relaxed);
    atomic_store_explicit(&d->known.audio, audio < 0 ? -1 : audio, memory_order_relaxed);
    atomic_store_explicit(&d->known.video, video < 0 ? -1 : video, memory_order_relaxed);
    atomic_store_explicit(&d->known.bit_rate, fc->bit_rate, memory_order_relaxed);
    atomic_store_explicit(&d->known.duration, fc->duration, memory_order_relaxed);
}

static void leave(stk_demuxer *d)
{
    publish(d);
    atomic_flag_clear_explicit(&d->busy, memory_order_release);
}

stk_err stk_demuxer_fail(stk_demuxer *d, stk_av_call *call, int rc, const char *what)
{
    const av_input *in = &d->input;
    const bool cancelled = in->stop.unwanted || av_stop_is_cancelled(&in->stop);
    if (in->stop.late && d->live && !cancelled)
        return stk_av_say(call, STK_ETIMEOUT,
                          "%s: %s: nothing came for %g s, the timeout: see whether its sender runs "
                          "and can be reached, or wait longer",
                          what, in->name, (double)in->stop.timeout / 1e9);
    const stk_err stopped = av_stop_say(&in->stop, call, what, in->name);
    if (stopped) return stopped;
    if (in->refused[0])
        return stk_av_say(call, STK_EUNSUPPORTED,
                          "%s: %s refers to '%s', which was not opened: an input may only name "
                          "others with protocols=[...]",
                          what, in->name, in->refused);
    if (in->os_error) {
        stk_diag_errno(call->diag, in->os_error, "%s: %s", what, in->name);
        return STK_EIO;
    }
    return stk_av_fail(call, rc, "%s: %s", what, in->name);
}

/* --- opening --- */

/* User's options, and what must not be opened.  A name that FFmpeg does not know is found out
 * afterwards: it leaves it in the dictionary. */
static stk_err make_options(const stk_demux_opts *opts, AVDictionary **out, stk_diag *diag)
{
    int rc = 0;
    for (const char *const *o = opts->options; o && *o && rc >= 0; o += 2)
        rc = av_dict_set(out, o[0], o[1], 0);
    /* Where io_open is not asked, as by the concat demuxer, this is: no protocol has that name. */
    if (rc >= 0)
        rc = av_dict_set(out, "protocol_whitelist", opts->protocols ? opts->protocols : "none", 0);
    return rc < 0 ? stk_diag_set(diag, STK_ENOMEM, "no memory for options") : STK_OK;
}

/* The address alone: what comes from it names nothing that is opened. */
static stk_err open_address(stk_demuxer *d, stk_av_call *call)
{
    const AVIOInterruptCB interrupt = {av_input_interrupted, &d->input};
    int rc = av_dict_set(&d->options, "protocol_whitelist", d->by, 0);
    if (rc >= 0)
        rc = avio_open2(&d->input.address, d->input.url, AVIO_FLAG_READ, &interrupt, &d->options);
    if (rc >= 0) rc = av_dict_set(&d->options, "protocol_whitelist", "none", 0);
    return rc < 0 ? stk_demuxer_fail(d, call, rc, "Failed to open the input") : STK_OK;
}

/* Demuxers of these open their connections themselves. */
static bool connects(const char *url)
{
    return !strncmp(url, "rtsp", 4) || !strncmp(url, "rtp:", 4);
}

static stk_err open_format(stk_demuxer *d, stk_av_call *call)
{
    const char *url = d->input.url ? d->input.url : d->input.name;
    if (!(d->fc = avformat_alloc_context())) return stk_av_say(call, STK_ENOMEM, "no memory");
    if (d->by && connects(url)) {
        if (av_dict_set(&d->options, "protocol_whitelist", d->by, 0) < 0)
            return stk_av_say(call, STK_ENOMEM, "no memory for options");
    }
    else if (d->by) {
        const stk_err err = open_address(d, call);
        if (err) return err;
    }
    d->fc->pb = d->input.address ? d->input.address : d->input.io;
    d->fc->interrupt_callback = (AVIOInterruptCB){av_input_interrupted, &d->input};
    if (!d->nested) d->fc->io_open = av_input_refuse;
    /* Frees d->fc when it fails. */
    const int rc = avformat_open_input(&d->fc, url, d->format, &d->options);
    if (rc < 0) return stk_demuxer_fail(d, call, rc, "Failed to open the input");
    const AVDictionaryEntry *unknown = av_dict_get(d->options, "", NULL, AV_DICT_IGNORE_SUFFIX);
    if (unknown)
        return stk_av_say(call, STK_EINVAL, "%s: the demuxer '%s' has no option '%s'",
                          d->input.name, d->fc->iformat->name, unknown->key);
    return STK_OK;
}

stk_err stk_demuxer_start(stk_demuxer *d, stk_diag *diag)
{
    stk_av_call call;
    stk_av_enter(&call, diag);
    av_input_begin(&d->input);
    stk_err err = open_format(d, &call);
    if (!err) {
        const int rc = avformat_find_stream_info(d->fc, NULL);
        if (rc < 0) err = stk_demuxer_fail(d, &call, rc, "Failed to open the input");
    }
    if (!err && stk_demuxer_count_from_start(d)) err = stk_av_say(&call, STK_ENOMEM, "no memory");
    if (!err) publish(d);
    stk_av_leave(&call);
    av_dict_free(&d->options);
    return err;
}

static stk_err make(stk_demuxer *d, const stk_av_input *input, const stk_demux_opts *opts,
                    stk_diag *diag)
{
    stk_err err = STK_OK;
    d->max_bytes = opts->max_bytes ? opts->max_bytes : DEFAULT_MAX_BYTES;
    d->frames = opts->frames;
    d->fresh = true;
    d->nested = opts->protocols;
    atomic_flag_clear(&d->busy);
    if (d->live && input->url && !opts->protocols) err = av_input_protocols(input, &d->by, diag);
    if (err) {
        if (input->reader && input->reader->close) input->reader->close(input->reader->ctx);
        return err;
    }
    err = av_input_init(&d->input, input, opts, d->by, diag);
    if (err && err != STK_EINVAL) stk_diag_prefix(diag, "Failed to open the input");
    if (!err) err = make_options(opts, &d->options, diag);
    if (!err && opts->format && !(d->format = av_find_input_format(opts->format)))
        err = stk_diag_set(diag, STK_EUNSUPPORTED, "this FFmpeg has no demuxer '%s'", opts->format);
    if (!err && !(d->packet = av_packet_alloc())) err = stk_diag_set(diag, STK_ENOMEM, "no memory");
    return err;
}

stk_err stk_demuxer_make(const stk_av_input *input, const stk_demux_opts *opts, bool live,
                         stk_demuxer **out, stk_diag *diag)
{
    static const stk_demux_opts none;
    stk_demuxer *d = *out = stk_alloc_zero(1, sizeof(*d));
    if (!d) {
        if (input->reader && input->reader->close) input->reader->close(input->reader->ctx);
        return stk_diag_set(diag, STK_ENOMEM, "no memory for a demuxer");
    }
    d->live = live;
    const stk_err err = make(d, input, opts ? opts : &none, diag);
    if (err) mod_demuxer_free(out);
    return err;
}

stk_err mod_demuxer_open(const stk_av_input *input, const stk_demux_opts *opts, stk_demuxer **out,
                         stk_diag *diag)
{
    stk_err err = stk_demuxer_make(input, opts, false, out, diag);
    if (!err) err = stk_demuxer_start(*out, diag);
    if (err) mod_demuxer_free(out);
    return err;
}

void mod_demuxer_free(stk_demuxer **pd)
{
    stk_demuxer *d = *pd;
    *pd = NULL;
    if (!d) return;
    stk_av_call call;
    d->input.stop.interrupt.wanted = NULL;
    stk_av_enter(&call, NULL);
    avformat_close_input(&d->fc);
    av_packet_free(&d->packet);
    av_dict_free(&d->options);
    av_input_fini(&d->input);
    stk_av_leave(&call);
    stk_free(d->tallies);
    stk_free(d);
}

void mod_demuxer_cancel(stk_demuxer *d)
{
    av_input_cancel(&d->input);
}

/* --- streams --- */

static enum AVMediaType type_of(stk_media media)
{
    return media == STK_MEDIA_AUDIO ? AVMEDIA_TYPE_AUDIO : AVMEDIA_TYPE_VIDEO;
}

static stk_media media_of(enum AVMediaType type)
{
    switch (type) {
    case AVMEDIA_TYPE_AUDIO: return STK_MEDIA_AUDIO;
    case AVMEDIA_TYPE_VIDEO: return STK_MEDIA_VIDEO;
    default: return STK_MEDIA_NONE;
    }
}

int mod_demuxer_best(const stk_demuxer *d, stk_media media)
{
    const atomic_int *best = media == STK_MEDIA_AUDIO ? &d->known.audio : &d->known.video;
    return atomic_load_explicit(best, memory_order_relaxed);
}

int mod_demuxer_num_streams(const stk_demuxer *d)
{
    return atomic_load_explicit(&d->known.num_streams, memory_order_relaxed);
}

static stk_err no_stream(const stk_demuxer *d, int stream, stk_diag *diag)
{
    return stk_diag_set(diag, STK_ENOTFOUND, "%s: there is no stream %d, of %u", d->input.name,
                        stream, d->fc->nb_streams);
}

void mod_demuxer_get_info(const stk_demuxer *d, stk_demuxer_info *out)
{
    const int64_t duration = atomic_load_explicit(&d->known.duration, memory_order_relaxed);
    *out = (stk_demuxer_info){.bit_rate =
                                  atomic_load_explicit(&d->known.bit_rate, memory_order_relaxed)};
    snprintf(out->format, sizeof(out->format), "%s", d->fc->iformat->name); /* never changes */
    if (duration > 0) out->duration = (stk_ratio){duration, AV_TIME_BASE};
}

/* A time of a stream in seconds; not known where it is none, or no number that fits. */
static stk_ratio seconds(int64_t ticks, AVRational tb)
{
    stk_ratio t = {0, tb.den};
    if (ticks == AV_NOPTS_VALUE || tb.den <= 0) return (stk_ratio){0, 0};
    return __builtin_mul_overflow(ticks, (int64_t)tb.num, &t.num) ? (stk_ratio){0, 0} : t;
}

stk_err mod_demuxer_stream_info(stk_demuxer *d, int stream, stk_stream_info *out, stk_diag *diag)
{
    *out = (stk_stream_info){0};
    if (!enter(d, diag)) return STK_EAGAIN;
    stk_err err = STK_OK;
    if (stream < 0 || stream >= (int)d->fc->nb_streams)
        err = no_stream(d, stream, diag);
    else {
        const AVStream *st = d->fc->streams[stream];
        const enum AVMediaType type = st->codecpar->codec_type;
        const char *kind = av_get_media_type_string(type);
        const AVDictionaryEntry *language = av_dict_get(st->metadata, "language", NULL, 0);
        out->media = media_of(type);
        snprintf(out->kind, sizeof(out->kind), "%s", kind ? kind : "unknown");
        snprintf(out->codec, sizeof(out->codec), "%s", avcodec_get_name(st->codecpar->codec_id));
        snprintf(out->language, sizeof(out->language), "%s", language ? language->value : "");
        out->start = seconds(st->start_time, st->time_base);
        if (st->duration > 0) out->duration = seconds(st->duration, st->time_base);
    }
    leave(d);
    return err;
}

static stk_err codec_of(stk_demuxer *d, int stream, stk_media media, stk_av_codec **out,
                        stk_diag *diag)
{
    *out = NULL;
    if (stream < 0 || stream >= (int)d->fc->nb_streams) return no_stream(d, stream, diag);
    AVStream *st = d->fc->streams[stream];
    const enum AVMediaType type = st->codecpar->codec_type;
    if (media == STK_MEDIA_NONE) media = media_of(type);
    if (media == STK_MEDIA_NONE || type_of(media) != type)
        return stk_diag_set(diag, STK_ENOTFOUND,
                            "%s: stream %d is neither audio nor video, or not "
                            "what was asked for",
                            d->input.name, stream);
    const AVRational rate = av_guess_frame_rate(d->fc, st, NULL);
    const stk_err err = stk_av_codec_make(media, st->codecpar, st->time_base, rate, out);
    if (err) return stk_diag_set(diag, err, "no memory for a codec");
    for (int i = 0; i < compat_num_side_data(st); i++)
        stk_av_codec_note(*out, &compat_side_data_of(st)[i]);
    return STK_OK;
}

stk_err mod_demuxer_codec(stk_demuxer *d, int stream, stk_media media, stk_av_codec **out,
                          stk_diag *diag)
{
    *out = NULL;
    if (!enter(d, diag)) return STK_EAGAIN;
    const stk_err err = codec_of(d, stream, media, out, diag);
    leave(d);
    return err;
}

void stk_demuxer_select(stk_demuxer *d, const int *streams, size_t n)
{
    for (unsigned i = 0; i < d->fc->nb_streams; i++) {
        bool wanted = false;
        for (size_t k = 0; k < n; k++) wanted |= streams[k] == (int)i;
        if (wanted && !d->fresh && d->fc->streams[i]->discard == AVDISCARD_ALL)
            stk_demuxer_count_part(d, i);
        d->fc->streams[i]->discard = wanted ? AVDISCARD_DEFAULT : AVDISCARD_ALL;
    }
}

static stk_err read_best(stk_demuxer *d, stk_media media, const stk_window *window,
                         stk_packets **out, stk_diag *diag)
{
    static const char *const kinds[] = {"", "audio", "video", "video or image"};
    const int stream = mod_demuxer_best(d, media);
    if (stream < 0)
        return stk_diag_set(diag, STK_ENOTFOUND, "%s: there is no %s stream", d->input.name,
                            kinds[media]);
    stk_av_codec *codec = NULL;
    stk_err err = codec_of(d, stream, media, &codec, diag);
    if (err) return err;
    stk_demuxer_select(d, &stream, 1);
    err = stk_packets_make(media, codec, codec->time_base, window, d->input.name, out);
    if (err) stk_diag_set(diag, err, "no memory for packets");
    mod_av_codec_unref(&codec);
    if (err) return err;

    stk_av_call call;
    stk_av_enter(&call, diag);
    err = stk_demuxer_fill(d, stream, *out, &call);
    stk_av_leave(&call);
    if (err) mod_packets_unref(out);
    return err;
}

/* The packets as the bitstream filters make them. */
static stk_err through(const char *filters, stk_packets **packets, stk_diag *diag)
{
    stk_bsf *bsf = NULL;
    stk_packets *made = NULL;
    stk_err err = mod_bsf_new((*packets)->codec, filters, &bsf, diag);
    if (!err) err = mod_bsf_filter(bsf, *packets, true, &made, diag);
    mod_bsf_free(&bsf);
    mod_packets_unref(packets);
    *packets = made;
    return err;
}

stk_err mod_demuxer_read(stk_demuxer *d, stk_media media, const stk_window *window, const char *bsf,
                         stk_packets **out, stk_diag *diag)
{
    *out = NULL;
    if (media < STK_MEDIA_AUDIO || media > STK_MEDIA_IMAGE)
        return stk_diag_set(diag, STK_EINVAL, "what to read is audio, video or an image");
    stk_err err = window ? stk_window_check(window, diag) : STK_OK;
    if (err) return err;
    if (!enter(d, diag)) return STK_EAGAIN;
    err = read_best(d, media, window, out, diag);
    leave(d);
    if (!err && bsf && *bsf) err = through(bsf, out, diag);
    return err;
}

static stk_err check_streams(const stk_demuxer *d, const int *streams, size_t n, stk_diag *diag)
{
    if (!n) return stk_diag_set(diag, STK_EINVAL, "streaming needs at least one stream");
    for (size_t i = 0; i < n; i++) {
        if (streams[i] < 0 || streams[i] >= (int)d->fc->nb_streams)
            return no_stream(d, streams[i], diag);
        if (media_of(d->fc->streams[streams[i]]->codecpar->codec_type) == STK_MEDIA_NONE)
            return stk_diag_set(diag, STK_ENOTFOUND, "%s: stream %d is neither audio nor video",
                                d->input.name, streams[i]);
    }
    return STK_OK;
}

stk_err mod_demuxer_next(stk_demuxer *d, const int *streams, size_t n, stk_ratio duration,
                         size_t num_packets, stk_packets **out, stk_diag *diag)
{
    for (size_t i = 0; i < n; i++) out[i] = NULL;
    if (!enter(d, diag)) return STK_EAGAIN;
    stk_err err = check_streams(d, streams, n, diag);
    if (!err) {
        stk_av_call call;
        /* After what was late FFmpeg may have given a part, and says so only when asked again. */
        if (d->live && !d->input.stop.late) av_input_begin(&d->input);
        stk_demuxer_select(d, streams, n);
        stk_av_enter(&call, diag);
        err = stk_demuxer_stream(d, &(stk_demuxer_part){streams, n, duration, num_packets}, out,
                                 &call);
        stk_av_leave(&call);
    }
    for (size_t i = 0; err && i < n; i++) mod_packets_unref(&out[i]);
    leave(d);
    return err;
}
