/* From packets to frames. */
#include <string.h>

#include "av/decoder.h"
#include "av/module.h"
#include "av/refresh.h"

/* Errors that FFmpeg's decoder may give while it is emptied: its own number is 20 and one for each
 * thread. */
enum { MAX_DRAIN_ERRORS = 100 };

void stk_decoder_pop(stk_decoder *d)
{
    mod_packets_unref(&d->waiting[0]);
    d->num_waiting--;
    memmove(d->waiting, d->waiting + 1, d->num_waiting * sizeof(*d->waiting));
    d->at = 0;
}

void stk_decoder_pop_all(stk_decoder *d)
{
    while (d->num_waiting) stk_decoder_pop(d);
}

/* The HEVC decoder of FFmpeg 7.1 hands out, after a flush, pictures that were ready before it. */
static void drop_stale(stk_decoder *d)
{
    while (d->sent && !avcodec_receive_frame(d->context, d->frame)) continue;
    av_frame_unref(d->frame);
}

void stk_decoder_restart(stk_decoder *d)
{
    avcodec_flush_buffers(d->context);
    drop_stale(d);
    d->sent = d->draining = false;
    d->drain_errors = 0;
    av_due_begin(&d->due);
}

void stk_decoder_begin(stk_decoder *d)
{
    stk_decoder_restart(d);
    av_frame_unref(d->frame);
    d->held = d->windowed = false;
    d->first = INT64_MIN;
    d->end = INT64_MAX;
    d->next = 0;
    d->given = d->failed = d->worked = 0;
    d->why = (stk_diag){0};
    av_filter_fini(&d->filter);
}

/* --- packets --- */

/* A packet that cannot be decoded; an error only if strict, or if there is no memory. */
static stk_err note(stk_decoder *d, int rc, const char *why, stk_av_call *call)
{
    stk_diag *told = call->diag;
    stk_diag here = {0};
    call->diag = &here;
    const stk_err err =
        stk_av_fail(call, rc, "packet %zu cannot be decoded%s", d->failed + d->worked, why);
    call->diag = told;
    if (err == STK_ENOMEM || d->strict) {
        stk_diag_set(told, err, "%s", here.text);
        return err;
    }
    if (!d->failed++) d->why = here;
    atomic_fetch_add_explicit(&d->failed_ever, 1, memory_order_relaxed);
    return STK_OK;
}

/* Pictures that did not come, when all that was sent is out. */
static stk_err note_missing(stk_decoder *d, stk_av_call *call)
{
    static const char why[] =
        "gave no picture: they refer to others that are not there, as after a "
        "key frame that was lost, or are damaged";
    const size_t n = av_due_end(&d->due), all = d->failed + d->worked;
    if (!n) return STK_OK;
    if (d->strict) return stk_av_say(call, STK_ECORRUPT, "%zu of %zu packets %s", n, all, why);
    if (!d->failed) stk_diag_set(&d->why, STK_ECORRUPT, "%zu of %zu packets %s", n, all, why);
    d->failed += n;
    d->worked -= n < d->worked ? n : d->worked;
    atomic_fetch_add_explicit(&d->failed_ever, n, memory_order_relaxed);
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
    d->left_out = false;
    if (d->effort >= AVDISCARD_NONREF || !tells_references(d->context->codec_id)) return;
    int64_t end;
    const bool early = p && d->first > INT64_MIN && p->pts != AV_NOPTS_VALUE && p->duration > 0 &&
                       !__builtin_add_overflow(p->pts, p->duration, &end) && end < d->first;
    d->left_out = early || d->leave_out;
    d->context->skip_frame = d->left_out ? AVDISCARD_NONREF : d->effort;
}

stk_err stk_decoder_send(stk_decoder *d, const AVPacket *packet, stk_av_call *call)
{
    /* Without data it carries a note for muxers, and FFmpeg may take it for the last. */
    if (packet && !packet->size) return STK_OK;
    const bool partial = packet && (packet->flags & AV_PKT_FLAG_CORRUPT); /* it was cut, say */
    if (partial) {
        const stk_err err =
            note(d, AVERROR_INVALIDDATA, ": it is damaged, or the input ends too early", call);
        if (err) return err;
    }
    choose_effort(d, packet);
    d->sent = true;
    d->draining = !packet;
    const int rc = avcodec_send_packet(d->context, packet);
    if (rc == AVERROR(EAGAIN)) return stk_av_say(call, STK_ECORRUPT, "the decoder takes no packet");
    if (rc < 0 && rc != AVERROR_EOF) return partial ? STK_OK : note(d, rc, "", call);
    if (packet && !partial) d->worked++;
    return STK_OK;
}

stk_err stk_decoder_send_some(stk_decoder *d, const AVPacket *packet, bool leave_out,
                              bool *left_out, stk_av_call *call)
{
    d->leave_out = leave_out;
    d->left_out = false;
    const stk_err err = stk_decoder_send(d, packet, call);
    *left_out = d->left_out;
    d->leave_out = false;
    return err;
}

/* Packets of a window follow no others, nor others them: they begin at a key frame of their own. */
static bool follows(const stk_decoder *d, const stk_packets *packets)
{
    return !d->sent || !(d->windowed || packets->windowed);
}

/* H.264 keeps frames back that follow the key frame of an open GOP, as if they could lack what they
 * refer to: what does comes before the window, whose packets begin with a key frame.  After a part
 * of a gradual refresh it is right to. */
static void show_all(stk_decoder *d, const stk_packets *packets)
{
    AVCodecContext *c = d->context;
    c->flags = d->flags;
    if (!packets->windowed || !packets->n || c->codec_id != AV_CODEC_ID_H264) return;
    const AVPacket *first = packets->list[0];
    av_refresh r = av_refresh_of(c->codec_id, c->extradata, c->extradata_size);
    if (first->flags & AV_PKT_FLAG_KEY && av_refresh_begin(&r, first))
        c->flags |= AV_CODEC_FLAG_OUTPUT_CORRUPT;
}

void stk_decoder_set_window(stk_decoder *d, const stk_packets *packets)
{
    show_all(d, packets);
    d->windowed = packets->windowed;
    d->first = INT64_MIN;
    d->end = INT64_MAX;
    if (!packets->windowed) return;
    d->start = packets->window.start;
    d->first = stk_ticks(d->start, d->time_base);
    d->end = stk_ticks(packets->window.end, d->time_base);
}

static stk_err send_waiting(stk_decoder *d, const AVPacket *p, stk_av_call *call)
{
    const size_t failed = d->failed;
    const bool wanted = p->pts >= d->first && p->pts < d->end && d->effort <= AVDISCARD_DEFAULT;
    const stk_err err = stk_decoder_send(d, p, call);
    if (!err && d->failed == failed) av_due_sent(&d->due, p, wanted);
    return err;
}

/* STK_EAGAIN: none waits. */
static stk_err send_next(stk_decoder *d, stk_av_call *call)
{
    while (d->num_waiting) {
        const stk_packets *packets = d->waiting[0];
        if (!packets || (d->at == 0 && !follows(d, packets)))
            return stk_decoder_send(d, NULL, call);
        if (d->at == 0) stk_decoder_set_window(d, packets);
        if (d->at < packets->n) return send_waiting(d, packets->list[d->at++], call);
        stk_decoder_pop(d);
    }
    return STK_EAGAIN;
}

/* --- frames --- */

/* Whether some of the sound is behind the window's start.  A sample is shorter than the unit that
 * times have in some containers, as AVI's is a whole frame. */
static bool sounds_inside(const stk_decoder *d)
{
    const AVFrame *f = d->frame;
    if (d->first == INT64_MIN || f->sample_rate <= 0) return d->next > d->first;
    const AVRational sample = {1, f->sample_rate};
    int64_t ends = av_rescale_q(f->pts, d->time_base, sample);
    if (__builtin_add_overflow(ends, f->nb_samples, &ends)) return false;
    return ends > stk_ticks(d->start, sample);
}

/* Whether the frame in d->frame is in the window; sets its time. */
static bool inside(stk_decoder *d)
{
    AVFrame *f = d->frame;
    const bool audio = d->media == STK_MEDIA_AUDIO;
    d->time = f->pts;
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
    if (audio) return fits && sounds_inside(d) && f->pts < d->end;
    return f->pts >= d->first && f->pts < d->end;
}

stk_err stk_decoder_receive(stk_decoder *d, stk_av_call *call)
{
    for (;;) {
        const int rc = avcodec_receive_frame(d->context, d->frame);
        if (rc == AVERROR_EOF) return STK_EEND;
        if (rc == AVERROR(EAGAIN)) return d->draining ? STK_EEND : STK_EAGAIN;
        if (rc < 0) {
            const stk_err err = note(d, rc, "", call);
            if (err) return err;
            av_due_failed(&d->due);
            if (!d->draining) return STK_EAGAIN;
            if (d->drain_errors++ >= MAX_DRAIN_ERRORS) return STK_EEND;
        }
        else if (inside(d)) {
            return STK_OK;
        }
        av_frame_unref(d->frame);
    }
}

stk_err stk_decoder_frame(stk_decoder *d, stk_av_call *call)
{
    for (;;) {
        stk_err err = stk_decoder_receive(d, call);
        if (!err) av_due_came(&d->due, d->time, compat_interlaced(d->frame));
        if (err == STK_EEND) {
            err = note_missing(d, call);
            if (err) return err;
            err = STK_EEND;
            if (!d->num_waiting) return STK_EAGAIN;
            if (!d->waiting[0]) return STK_EEND;
            stk_decoder_restart(d); /* for packets of another window */
        }
        else if (err != STK_EAGAIN) {
            return err;
        }
        err = send_next(d, call);
        if (err) return err;
    }
}

/* --- filters --- */

static stk_err give(stk_decoder *d, stk_frames *out, stk_av_call *call)
{
    out->time_base = d->time_base;
    out->frame_rate = d->frame_rate;
    const stk_err err = stk_frames_add(out, d->frame);
    d->held = false;
    return err ? stk_av_say(call, err, "no memory for frames") : STK_OK;
}

static stk_err scale(stk_decoder *d, stk_frames *out, stk_av_call *call)
{
    if (!out->n) {
        out->time_base = d->time_base;
        out->frame_rate = d->frame_rate;
    }
    const stk_err err = av_scale_push(&d->scale, d->frame, &d->room, out, call);
    av_frame_unref(d->frame);
    d->held = false;
    return err;
}

av_filter_input stk_decoder_filter_input(const stk_decoder *d)
{
    return (av_filter_input){d->filter_text, d->media == STK_MEDIA_AUDIO, d->time_base,
                             d->frame_rate};
}

/* Whether the filters would give the frame as it is, or what av_join makes of it. */
static bool stays(const stk_decoder *d)
{
    return d->format != AV_SAMPLE_FMT_NONE && (d->joins || d->frame->format == (int)d->format) &&
           !d->filter.graph && av_join_converts(d->frame);
}

/* One more frame to `out`. */
static stk_err produce(stk_decoder *d, stk_frames *out, stk_av_call *call)
{
    const av_filter_input input = stk_decoder_filter_input(d);
    for (;;) {
        stk_err err = d->filter_text ? av_filter_get(&d->filter, &input, out, call) : STK_EAGAIN;
        if (err != STK_EAGAIN) return err;
        if (!d->held) {
            err = stk_decoder_frame(d, call);
            if (err == STK_EEND && av_filter_open(&d->filter)) {
                if ((err = av_filter_end(&d->filter, &input, call))) return err;
                continue;
            }
            if (err) return err;
        }
        if (!d->filter_text || stays(d)) return give(d, out, call);
        if (!d->filter.graph && av_scale_fits(&d->scale, d->frame)) return scale(d, out, call);
        d->held = !av_filter_fits(&d->filter, &input, d->frame);
        err = d->held ? av_filter_end(&d->filter, &input, call)
                      : av_filter_put(&d->filter, &input, d->frame, call);
        if (!d->held) av_frame_unref(d->frame);
        if (err) return err;
    }
}

/* As many as all of its calls may give. */
static bool enough(const stk_decoder *d)
{
    return d->max_frames && d->given >= (size_t)d->max_frames;
}

static stk_err skip_to_end(stk_decoder *d)
{
    while (d->num_waiting && d->waiting[0]) stk_decoder_pop(d);
    return d->num_waiting ? STK_EEND : STK_EAGAIN;
}

/* More pictures than packets there are not, but for those that FFmpeg held back. */
static void set_room(stk_decoder *d, size_t max_frames, size_t max_bytes)
{
    size_t n = (size_t)d->context->has_b_frames + 1;
    for (size_t i = 0; i < d->num_waiting; i++)
        if (d->waiting[i]) n += d->waiting[i]->n - (i ? 0 : d->at);
    if (d->max_frames && n > (size_t)d->max_frames) n = (size_t)d->max_frames;
    d->room = (av_room){n < max_frames ? n : max_frames, max_bytes};
}

stk_err stk_decoder_run(stk_decoder *d, size_t max_frames, size_t max_bytes, stk_frames *out,
                        stk_av_call *call)
{
    stk_err err = STK_OK;
    set_room(d, max_frames, max_bytes);
    while (!err && out->n < max_frames && out->bytes < max_bytes) {
        err = enough(d) ? skip_to_end(d) : produce(d, out, call);
        if (!err) d->given++;
        if (!err && d->joins)
            err =
                av_join_push(&d->join, out, d->num_waiting ? d->waiting[0] : NULL, d->format, call);
    }
    return err;
}
