#include <inttypes.h>
#include <string.h>

#include "av/demuxer.h"
#include "av/module.h"
#include "av/refresh.h"
#include "av/video_index.h"

enum {
    MAX_TRIES = 24,      /* of seeking further back; each goes twice as far as the one before */
    AUDIO_PREROLL = 250, /* ms that decoders of audio need before what they decode is right */
    OUT_OF_ORDER = 300,  /* ms that pictures may be shown out of order, where only that is known */
    REORDERED = 16,      /* pictures that a codec may keep back, to show others first */
};

/* FFmpeg calls the last packet partial where WAV does not say where it ends. */
static void look_at_end(stk_demuxer *d)
{
    const bool wav = !strcmp(d->fc->iformat->name, "wav");
    if (wav && av_input_has_riff(&d->input) && !av_input_is_cut(&d->input, 0))
        d->packet->flags &= ~AV_PKT_FLAG_CORRUPT;
}

stk_err stk_demuxer_packet(stk_demuxer *d, stk_av_call *call)
{
    if (d->held) {
        d->held = false;
        return STK_OK;
    }
    if (d->later.err) {
        const stk_err err = d->later.err;
        if (call->diag) *call->diag = d->later;
        d->later = (stk_diag){0};
        return err;
    }
    av_packet_unref(d->packet);
    /* What was late stays late: FFmpeg may have given a part first, and says so when asked again.
     */
    if (!d->live && !d->input.stop.late) av_input_begin(&d->input);
    d->fresh = false;
    int rc;
    do rc = av_read_frame(d->fc, d->packet);
    while (rc == AVERROR(EAGAIN) && !av_input_interrupted(&d->input));
    if (rc >= 0 && d->packet->flags & AV_PKT_FLAG_CORRUPT) look_at_end(d);
    if (rc >= 0) {
        stk_demuxer_count(d);
        return STK_OK;
    }
    const AVIOContext *io = d->fc->pb;
    if (rc == AVERROR_EOF && io && io->error < 0 && io->error != AVERROR_EOF) rc = io->error;
    if (rc == AVERROR_EOF && !d->input.os_error && !av_input_interrupted(&d->input))
        return STK_EEND;
    const stk_err err = stk_demuxer_fail(d, call, rc, "cannot read");
    d->input.stop.late = false; /* said, and who asks again has time again */
    return err;
}

/* --- seeking --- */

static int64_t ms_in(AVRational tb, int64_t ms)
{
    return av_rescale_q(ms, (AVRational){1, 1000}, tb);
}

static bool seekable(const stk_demuxer *d)
{
    return !d->fc->pb || (d->fc->pb->seekable & AVIO_SEEKABLE_NORMAL);
}

stk_err stk_demuxer_rewind(stk_demuxer *d, int stream, stk_av_call *call)
{
    if (d->fresh) return STK_OK;
    d->held = false;
    d->later = (stk_diag){0};
    const AVStream *st = d->fc->streams[stream];
    int64_t start = st->start_time != AV_NOPTS_VALUE ? st->start_time : 0;
    const AVIndexEntry *first = avformat_index_get_entry(d->fc->streams[stream], 0);
    if (first && first->timestamp < start) start = first->timestamp;
    av_input_begin(&d->input);
    const bool again = d->fc->iformat->flags & AVFMT_TS_DISCONT; /* the first time may come twice */
    int rc = AVERROR(ESPIPE);
    if (seekable(d) && again) rc = av_seek_frame(d->fc, -1, 0, AVSEEK_FLAG_BYTE);
    if (rc < 0 && seekable(d)) rc = av_seek_frame(d->fc, stream, start, AVSEEK_FLAG_BACKWARD);
    if (rc < 0 && seekable(d) && !av_input_interrupted(&d->input))
        rc = av_seek_frame(d->fc, -1, 0, AVSEEK_FLAG_BYTE);
    if (rc >= 0) return stk_demuxer_count_from_start(d);
    if (av_input_interrupted(&d->input)) return stk_demuxer_fail(d, call, rc, "cannot seek");
    return stk_av_say(call, STK_EUNSUPPORTED,
                      "%s: cannot go back to its beginning: open it again for each use",
                      d->input.name);
}

/* In some formats FFmpeg finds a time by bytes a second, of which their header has no more than an
 * average: that is right where samples are whole bytes.  Codecs with a parser it looks for. */
static bool finds_times(const stk_demuxer *d, const AVStream *st)
{
    static const char *const by_bytes[] = {"wav", "w64", "aiff", "au", "rso"};
    const enum AVCodecID id = st->codecpar->codec_id;
    bool average = false;
    for (size_t i = 0; i < sizeof(by_bytes) / sizeof(*by_bytes); i++)
        average |= !strcmp(d->fc->iformat->name, by_bytes[i]);
    if (!average || id == AV_CODEC_ID_MP3 || id == AV_CODEC_ID_MP2) return true;
    const int bits = av_get_exact_bits_per_sample(id);
    return bits > 0 && bits % 8 == 0;
}

stk_err stk_demuxer_seek(stk_demuxer *d, int stream, int64_t at, bool *at_start, stk_av_call *call)
{
    const AVStream *st = d->fc->streams[stream];
    *at_start = (st->start_time != AV_NOPTS_VALUE && at <= st->start_time) || !seekable(d) ||
                !finds_times(d, st);
    if (!*at_start) {
        av_input_begin(&d->input);
        d->fresh = d->held = false;
        d->later = (stk_diag){0};
        for (unsigned i = 0; i < d->fc->nb_streams; i++) stk_demuxer_count_part(d, i);
        const int rc = av_seek_frame(d->fc, stream, at, AVSEEK_FLAG_BACKWARD);
        if (rc >= 0) return STK_OK;
        if (av_input_interrupted(&d->input)) return stk_demuxer_fail(d, call, rc, "cannot seek");
        *at_start = true;
    }
    return stk_demuxer_rewind(d, stream, call);
}

/* --- reading what a window needs --- */

typedef struct scan {
    int stream;
    stk_packets *packets;
    bool at_start; /* there is nothing before it */
    bool has_key;
    bool again;    /* the window starts before what can be decoded from here */
    bool disorder; /* times that are not in the order they should be in: read further */
    int64_t seen;  /* when the first packet is decoded */
    bool gradual;  /* pictures are not complete yet */
    av_refresh refresh;
    bool untimed;    /* a packet does not say when it is shown */
    size_t pictures; /* that were read */
} scan;

static scan begin_scan(int stream, stk_packets *packets)
{
    const AVCodecParameters *par = packets->codec->par;
    return (scan){
        .stream = stream,
        .packets = packets,
        .seen = AV_NOPTS_VALUE,
        .refresh = av_refresh_of(par->codec_id, par->extradata, par->extradata_size),
    };
}

/* Nothing is wanted of what came. */
static void drop(stk_packets *packets)
{
    while (packets->n) av_packet_free(&packets->list[--packets->n]);
    packets->bytes = 0;
}

static int64_t after(int64_t at, int64_t by)
{
    return at > INT64_MAX - by ? INT64_MAX : at + by;
}

/* Everything that comes now is behind the window. */
static bool is_past(scan *s, const AVPacket *p)
{
    const stk_packets *w = s->packets;
    if (!w->windowed) return false;
    if (p->pts != AV_NOPTS_VALUE && p->dts != AV_NOPTS_VALUE && p->pts < p->dts) s->disorder = true;
    /* What is shown before the end is decoded before the end, and so is all it refers to. */
    const bool exact = p->dts != AV_NOPTS_VALUE && p->pts != AV_NOPTS_VALUE && !s->disorder;
    const int64_t at = p->dts != AV_NOPTS_VALUE ? p->dts : p->pts;
    const int64_t margin = exact ? 0 : ms_in(w->time_base, OUT_OF_ORDER);
    return at != AV_NOPTS_VALUE && w->end <= INT64_MAX - margin && at >= w->end + margin;
}

/* Whether pictures are complete only behind the window's start. */
static bool completes_late(scan *s, const AVPacket *p)
{
    const int64_t first = s->packets->first;
    if (!av_refresh_next(&s->refresh, p))
        return (p->dts != AV_NOPTS_VALUE ? p->dts : p->pts) > first;
    s->gradual = false;
    return stk_packet_time(p) > first;
}

/* Whether the packet is wanted; s->again: all of it must be read from further back. */
static bool wanted(scan *s, const AVPacket *p)
{
    const stk_packets *w = s->packets;
    if (s->seen == AV_NOPTS_VALUE) s->seen = p->dts != AV_NOPTS_VALUE ? p->dts : p->pts;
    if (!w->windowed || s->at_start) return true;
    if (s->has_key) {
        s->again = s->gradual && completes_late(s, p);
        return true;
    }
    int64_t at = stk_packet_time(p);
    if (p->pts == AV_NOPTS_VALUE) /* shown later than that */
        at = after(at, ms_in(w->time_base, OUT_OF_ORDER));
    s->has_key = p->flags & AV_PKT_FLAG_KEY;
    /* A picture that is shown before its key frame needs the key frame before that one. */
    s->again = at > w->first;
    s->gradual = s->has_key && !av_refresh_begin(&s->refresh, p);
    return s->has_key;
}

/* Pictures that are asked for are there, and none that follows this key frame is shown before them:
 * those that are decoded behind it and shown before it come after all that are decoded before it.
 */
static bool is_enough(const stk_demuxer *d, scan *s, const AVPacket *p)
{
    const stk_packets *w = s->packets;
    if (!d->frames || w->windowed || w->media != STK_MEDIA_VIDEO) return false;
    if (p->pts == AV_NOPTS_VALUE) s->untimed = true;
    if (p->flags & AV_PKT_FLAG_KEY && !s->untimed && s->pictures > REORDERED &&
        s->pictures - REORDERED >= d->frames)
        return true;
    s->pictures += !(p->flags & AV_PKT_FLAG_DISCARD) &&
                   av_is_picture(p, d->fc->streams[s->stream]->codecpar->codec_id);
    return false;
}

static stk_err no_times(stk_demuxer *d, stk_av_call *call)
{
    return stk_av_say(call, STK_EUNSUPPORTED,
                      "%s: the stream has no times, so no window can be cut out of it",
                      d->input.name);
}

static stk_err read_on(stk_demuxer *d, scan *s, stk_av_call *call)
{
    stk_packets *w = s->packets;
    stk_err err;
    while (!(err = stk_demuxer_packet(d, call))) {
        AVPacket *p = d->packet;
        if (p->stream_index != s->stream) continue;
        if (w->windowed && stk_packet_time(p) == AV_NOPTS_VALUE) return no_times(d, call);
        const bool want = wanted(s, p);
        if (s->again) return STK_OK;
        if (is_past(s, p) || is_enough(d, s, p)) return STK_OK;
        if (!want) continue;
        if (w->bytes + (size_t)p->size > d->max_bytes)
            return stk_av_say(call, STK_ELIMIT,
                              "%s: more than %zu bytes of packets; the limit is "
                              "max_bytes",
                              d->input.name, d->max_bytes);
        if (stk_packets_add(w, p)) return stk_av_say(call, STK_ENOMEM, "no memory for packets");
        if (w->media == STK_MEDIA_IMAGE) return STK_OK;
    }
    if (s->gradual) {
        s->again = true;
        return err == STK_EEND ? STK_OK : err;
    }
    /* An end that FFmpeg complains about is no end: decoding counts what is not there. */
    const bool all = !w->windowed && w->media != STK_MEDIA_IMAGE;
    if (err == STK_EEND && w->n &&
        (call->used || (all && stk_demuxer_is_short(d, s->stream, true))))
        w->list[w->n - 1]->flags |= AV_PKT_FLAG_CORRUPT;
    return err == STK_EEND ? STK_OK : err;
}

static int64_t before(int64_t at, int64_t by)
{
    return at < INT64_MIN + 1 + by ? INT64_MIN + 1 : at - by;
}

stk_err stk_demuxer_fill(stk_demuxer *d, int stream, stk_packets *packets, stk_av_call *call)
{
    scan s = begin_scan(stream, packets);
    if (!packets->windowed) {
        stk_err err = stk_demuxer_rewind(d, stream, call);
        s.at_start = true;
        if (!err) err = read_on(d, &s, call);
        if (!err && !packets->n)
            err = stk_av_say(call, STK_ECORRUPT, "%s: the stream holds no packet", d->input.name);
        return err;
    }
    int64_t at = packets->first;
    int64_t step = ms_in(packets->time_base, 1000);
    if (step < 1) step = 1;
    if (packets->media == STK_MEDIA_AUDIO)
        at = before(at, ms_in(packets->time_base, AUDIO_PREROLL));
    for (int tries = 0;; tries++) {
        stk_err err = tries < MAX_TRIES ? stk_demuxer_seek(d, stream, at, &s.at_start, call)
                                        : stk_demuxer_rewind(d, stream, call);
        if (tries == MAX_TRIES) s.at_start = true;
        if (!err) err = read_on(d, &s, call);
        /* It went behind the last key frame before the window's end: there may be one before. */
        const bool nothing = !s.has_key && !s.at_start;
        if (err || (!s.again && !nothing)) return err;
        /* Where there is an index, one before the key frame is the key frame before. */
        at = before(tries || nothing || s.seen > at ? at : s.seen, tries ? step : 1);
        if (tries) step = step > INT64_MAX / 2 ? step : step * 2;
        drop(packets);
        s = begin_scan(stream, packets);
    }
}

/* --- going on --- */

static bool complete(const stk_demuxer_part *part, stk_packets *const *out)
{
    size_t have = 0;
    for (size_t i = 0; i < part->n; i++) have += out[i] ? out[i]->n : 0;
    return part->num_packets && have >= part->num_packets;
}

/* The packet goes to its stream's packets, which are made when the first one comes. */
static stk_err file(stk_demuxer *d, const stk_demuxer_part *part, stk_packets **out,
                    stk_av_call *call)
{
    for (size_t i = 0; i < part->n; i++) {
        if (part->streams[i] != d->packet->stream_index) continue;
        const AVStream *st = d->fc->streams[part->streams[i]];
        const stk_media media =
            st->codecpar->codec_type == AVMEDIA_TYPE_AUDIO ? STK_MEDIA_AUDIO : STK_MEDIA_VIDEO;
        stk_err err = STK_OK;
        if (!out[i])
            err = stk_packets_make(media, NULL, st->time_base, NULL, d->input.name, &out[i]);
        if (!err && out[i]->bytes + (size_t)d->packet->size > d->max_bytes)
            return stk_av_say(call, STK_ELIMIT,
                              "%s: more than %zu bytes of packets; the limit is "
                              "max_bytes",
                              d->input.name, d->max_bytes);
        if (!err) err = stk_packets_add(out[i], d->packet);
        return err ? stk_av_say(call, err, "no memory for packets") : STK_OK;
    }
    return STK_OK;
}

/* Times may be whatever the data says: the difference is cut to what fits. */
static int64_t since(int64_t at, int64_t begin)
{
    int64_t gone;
    if (!__builtin_sub_overflow(at, begin, &gone)) return gone;
    return at > begin ? INT64_MAX : INT64_MIN;
}

stk_err stk_demuxer_stream(stk_demuxer *d, const stk_demuxer_part *part, stk_packets **out,
                           stk_av_call *call)
{
    int64_t begin = AV_NOPTS_VALUE; /* of the first packet, in `tb` */
    AVRational tb = {0, 1};
    size_t used = 0; /* of the call's lines, before the packet */
    stk_err err = STK_OK;
    while (!complete(part, out)) {
        used = call->used;
        err = stk_demuxer_packet(d, call);
        if (err) break;
        const AVRational own = d->fc->streams[d->packet->stream_index]->time_base;
        const int64_t at = d->packet->dts != AV_NOPTS_VALUE ? d->packet->dts : d->packet->pts;
        if (begin == AV_NOPTS_VALUE) {
            begin = at;
            tb = own;
        }
        if (part->duration.den && at != AV_NOPTS_VALUE && begin != AV_NOPTS_VALUE) {
            const int64_t gone = since(at, av_rescale_q(begin, tb, own));
            if (gone >= stk_ticks(part->duration, own) && gone > 0) {
                d->held = true;
                return STK_OK;
            }
        }
        err = file(d, part, out, call);
        if (err) return err;
    }
    bool any = false;
    for (size_t i = 0; i < part->n; i++) any |= out[i] != NULL;
    if (!err) {
        used = call->used;
        err = stk_demuxer_look_ahead(d, part, call);
    }
    if (err != STK_EEND || !any) return err;
    stk_demuxer_mark_end(d, part, out, call->used > used);
    return STK_OK;
}
