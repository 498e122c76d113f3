#include <string.h>

#include <libavutil/dict.h>

#include "av/decoder.h"
#include "av/module.h"
#include "base/alloc.h"

#define DEFAULT_MAX_PIXELS ((int64_t)1 << 28)
#define DEFAULT_MAX_BYTES ((size_t)4 << 30) /* as of packets, and of stk_filter_graph_get */

enum { PART_BYTES = 16 << 20 }; /* that stk_decoder_next gives, where it is not told */

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
    stk_av_log_start(&d->log, d->context);
    stk_av_call_hears(call, &d->log);
    if (rc >= 0) rc = avcodec_open2(d->context, decoder, &options);
    if (d->context->thread_count == 1) stk_av_log_stop(&d->log);
    d->effort = d->context->skip_frame;
    d->flags = d->context->flags;
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

/* Of filters that ask for one, and for nothing else. */
static enum AVSampleFormat sample_format_of(const char *filters)
{
    static const char only[] = "aformat=sample_fmts=";
    const size_t n = sizeof(only) - 1;
    if (!filters || strncmp(filters, only, n) != 0) return AV_SAMPLE_FMT_NONE;
    return av_get_sample_fmt(filters + n);
}

static stk_err make(stk_decoder *d, const stk_av_codec *codec, const stk_decode_opts *opts,
                    stk_diag *diag)
{
    d->media = codec->media;
    d->time_base = codec->time_base;
    d->frame_rate = codec->frame_rate;
    d->strict = opts->strict;
    d->joins = opts->join && d->media == STK_MEDIA_AUDIO;
    d->max_frames = opts->max_frames;
    d->max_bytes = opts->max_bytes ? opts->max_bytes : DEFAULT_MAX_BYTES;
    atomic_init(&d->failed_ever, 0);
    atomic_flag_clear(&d->busy);
    if (opts->filter && *opts->filter) {
        const size_t n = strlen(opts->filter) + 1;
        if (!(d->filter_text = stk_alloc(n))) return stk_diag_set(diag, STK_ENOMEM, "no memory");
        memcpy(d->filter_text, opts->filter, n);
    }
    av_scale_init(&d->scale, d->media == STK_MEDIA_AUDIO ? NULL : d->filter_text);
    d->format = d->media == STK_MEDIA_AUDIO ? sample_format_of(d->filter_text) : AV_SAMPLE_FMT_NONE;
    d->packet = av_packet_alloc();
    d->frame = av_frame_alloc();
    if (!d->packet || !d->frame) return stk_diag_set(diag, STK_ENOMEM, "no memory");
    stk_av_call call;
    stk_av_enter(&call, diag);
    const stk_err err = open_codec(d, codec, opts, &call);
    if (!err) av_due_init(&d->due, d->context);
    if (!err) stk_decoder_begin(d);
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
    stk_decoder_pop_all(d);
    av_filter_fini(&d->filter);
    av_scale_fini(&d->scale);
    avcodec_free_context(&d->context);
    stk_av_log_stop(&d->log);
    av_packet_free(&d->packet);
    av_frame_free(&d->frame);
    stk_free(d->filter_text);
    stk_av_leave(&call);
    stk_free(d);
}

/* --- decoding --- */

static stk_err enter(stk_decoder *d, stk_diag *diag)
{
    if (!atomic_flag_test_and_set_explicit(&d->busy, memory_order_acquire)) return STK_OK;
    return stk_diag_set(diag, STK_EAGAIN,
                        "the decoder is in use by another thread: one thread at a time may use it");
}

static void leave(stk_decoder *d)
{
    atomic_flag_clear_explicit(&d->busy, memory_order_release);
}

/* `packets` NULL: an end, for which there is always room. */
static stk_err put(stk_decoder *d, stk_packets *packets, stk_diag *diag)
{
    const size_t n = d->num_waiting;
    if (packets && packets->media != d->media)
        return stk_diag_set(diag, STK_EINVAL, "these packets are of another kind than the decoder");
    if (packets && n >= STK_DECODER_WAITING)
        return stk_diag_set(diag, STK_ELIMIT,
                            "%zu parts wait to be decoded: take their frames before more come", n);
    if (!packets && n && !d->waiting[n - 1]) return STK_OK;
    d->waiting[d->num_waiting++] = packets ? mod_packets_ref(packets) : NULL;
    return STK_OK;
}

stk_err mod_decoder_put(stk_decoder *d, stk_packets *packets, stk_diag *diag)
{
    stk_err err = enter(d, diag);
    if (err) return err;
    err = put(d, packets, diag);
    leave(d);
    return err;
}

/* All before an end is decoded. */
static stk_err finish(stk_decoder *d, stk_diag *diag)
{
    if (!d->given && d->failed)
        return stk_diag_set(diag, d->why.err, "none of %zu packets could be decoded: %s",
                            d->failed + d->worked, d->why.text);
    stk_decoder_pop(d);
    stk_decoder_begin(d);
    return STK_OK;
}

typedef struct part {
    size_t max_frames, max_bytes;
    bool ends; /* at an end, and where it has as much; all that there is otherwise */
} part;

static stk_err decode(stk_decoder *d, const part *p, stk_frames *out, stk_av_call *call)
{
    size_t before = 0; /* failed, before ends that are in `out` */
    for (;;) {
        stk_err err = stk_decoder_run(d, p->max_frames, p->max_bytes, out, call);
        out->num_failed = before + d->failed;
        if (err == STK_EAGAIN) return STK_OK;
        if (!err && !p->ends) return stk_decoder_too_much(d, call);
        if (err != STK_EEND) return err;
        if (p->ends && out->n) return STK_OK; /* the next call goes on behind it */
        if (!p->ends) before = out->num_failed;
        err = finish(d, call->diag);
        if (err) return err;
    }
}

stk_err stk_decoder_too_much(const stk_decoder *d, stk_av_call *call)
{
    return stk_av_say(call, STK_ELIMIT,
                      "too many frames at once: the limit is %zu bytes, max_bytes", d->max_bytes);
}

/* With `busy`: what was decoded before an error comes first if it comes in parts. */
static stk_err decode_part(stk_decoder *d, const part *p, stk_frames **out, stk_diag *diag)
{
    stk_err err = d->late;
    if (err) {
        if (diag) *diag = d->late_diag;
        d->late = STK_OK;
        return err;
    }
    err = stk_frames_make(d->media, out);
    if (err) return stk_diag_set(diag, err, "no memory for frames");
    stk_av_call call;
    stk_av_enter(&call, &d->late_diag);
    stk_av_call_hears(&call, &d->log);
    err = decode(d, p, *out, &call);
    const stk_err joined = av_join_end(&d->join, *out, &call); /* what came before an error, too */
    if (!err) err = joined;
    av_join_fini(&d->join);
    av_scale_end(&d->scale);
    if (err) {
        stk_decoder_pop_all(d);
        stk_decoder_begin(d);
    }
    stk_av_leave(&call);
    if (err && p->ends && (*out)->n) {
        d->late = err;
        return STK_OK;
    }
    if (err && diag) *diag = d->late_diag;
    if (err) mod_frames_unref(out);
    return err;
}

stk_err mod_decoder_next(stk_decoder *d, size_t max_frames, size_t max_bytes, stk_frames **out,
                         stk_diag *diag)
{
    *out = NULL;
    stk_err err = enter(d, diag);
    if (err) return err;
    const part p = {max_frames ? max_frames : SIZE_MAX, max_bytes ? max_bytes : PART_BYTES, true};
    err = decode_part(d, &p, out, diag);
    leave(d);
    return err;
}

/* RIFF, its size, WEBP, VP8X, the size of that chunk, and its flags. */
static bool is_animated_webp(const stk_packets *packets)
{
    enum { KIND = 8, FLAGS = 20, ANIMATION = 2 };
    const AVPacket *p = packets && packets->n ? packets->list[0] : NULL;
    return p && p->size > FLAGS && !memcmp(p->data + KIND, "WEBPVP8X", 8) &&
           p->data[FLAGS] & ANIMATION;
}

stk_err mod_decoder_decode(stk_decoder *d, stk_packets *packets, bool flush, stk_frames **out,
                           stk_diag *diag)
{
    *out = NULL;
    stk_err err = enter(d, diag);
    if (err) return err;
    if (packets) err = put(d, packets, diag);
    if (!err && flush) err = put(d, NULL, diag);
    const size_t stop = d->max_bytes < SIZE_MAX ? d->max_bytes + 1 : SIZE_MAX;
    if (!err) err = decode_part(d, &(part){SIZE_MAX, stop, false}, out, diag);
    if (err == STK_ECORRUPT && is_animated_webp(packets)) /* up to FFmpeg 8 at least */
        err = stk_diag_set(diag, STK_EUNSUPPORTED,
                           "animated WebP is not read: FFmpeg's decoder knows still images");
    leave(d);
    return err;
}

stk_err mod_decoder_pick(stk_decoder *d, const stk_packets *packets, const size_t *indices,
                         size_t n, stk_frames **out, stk_diag *diag)
{
    *out = NULL;
    if (packets->media != d->media || d->media == STK_MEDIA_AUDIO || !n)
        return stk_diag_set(diag, STK_EINVAL, "frames are picked by number, of packets of video");
    stk_err err = enter(d, diag);
    if (err) return err;
    err = stk_frames_make(d->media, out);
    if (err) stk_diag_set(diag, err, "no memory for frames");
    if (!err) {
        stk_av_call call;
        stk_av_enter(&call, diag);
        stk_av_call_hears(&call, &d->log);
        d->late = STK_OK;
        stk_decoder_pop_all(d);
        err = stk_decoder_collect(d, packets, indices, n, *out, &call);
        av_scale_end(&d->scale);
        stk_decoder_begin(d);
        stk_av_leave(&call);
    }
    if (err) mod_frames_unref(out);
    leave(d);
    return err;
}

stk_err mod_decoder_fill(stk_decoder *d, const stk_packets *packets,
                         const stk_frames_wanted *wanted, void *dst, size_t size, stk_diag *diag)
{
    stk_err err = enter(d, diag);
    if (err) return err;
    stk_av_call call;
    stk_av_enter(&call, diag);
    stk_av_call_hears(&call, &d->log);
    d->late = STK_OK;
    stk_decoder_pop_all(d);
    err = stk_decoder_write(d, packets, wanted, dst, size, &call);
    stk_decoder_begin(d);
    stk_av_leave(&call);
    leave(d);
    return err;
}

size_t mod_decoder_failed(const stk_decoder *d)
{
    return atomic_load_explicit(&d->failed_ever, memory_order_relaxed);
}
