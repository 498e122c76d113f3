/* What of all packets of a stream a window needs, without reading them again. */
#include <stdlib.h>

#include <libavutil/intreadwrite.h>

#include "av/call.h"
#include "av/module.h"
#include "av/packet_list.h"
#include "av/refresh.h"
#include "av/video_index.h"

enum { AUDIO_PREROLL = 250 }; /* ms: as in demux_read.c */

/* When it is shown; INT64_MIN: not known.  Sound is shown when it is decoded. */
static int64_t shown_at(const stk_packets *p, const AVPacket *packet)
{
    return p->media == STK_MEDIA_AUDIO ? stk_packet_time(packet) : packet->pts;
}

static bool all_known(const stk_packets *p)
{
    for (size_t i = 0; i < p->n; i++)
        if (shown_at(p, p->list[i]) == AV_NOPTS_VALUE) return false;
    return true;
}

/* Whether decoding it gives anything. */
static bool gives(const stk_packets *p, const AVPacket *packet)
{
    if (packet->flags & AV_PKT_FLAG_DISCARD) return false;
    if (p->media == STK_MEDIA_AUDIO) return true;
    return av_is_picture(packet, p->codec ? p->codec->par->codec_id : AV_CODEC_ID_NONE);
}

static int compare(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Samples at the begin of a packet that decoders leave out, and at its end. */
typedef struct left_out {
    int64_t before, behind; /* in the unit of the packets' times */
} left_out;

static left_out left_out_of(const stk_packets *p, const AVPacket *packet)
{
    size_t size = 0;
    const int rate = p->codec ? p->codec->par->sample_rate : 0;
    const uint8_t *data = av_packet_get_side_data(packet, AV_PKT_DATA_SKIP_SAMPLES, &size);
    if (!data || size < 8 || rate <= 0 || p->media != STK_MEDIA_AUDIO) return (left_out){0};
    const AVRational unit = {1, rate};
    return (left_out){av_rescale_q_rnd(AV_RL32(data), unit, p->time_base, AV_ROUND_UP),
                      av_rescale_q_rnd(AV_RL32(data + 4), unit, p->time_base, AV_ROUND_UP)};
}

/* The end of what is heard or seen of a packet. */
static int64_t end_of_packet(const AVPacket *packet, int64_t at, const left_out *l)
{
    int64_t ends = packet->duration > l->behind ? packet->duration - l->behind : 0;
    return __builtin_add_overflow(at, ends, &ends) ? at : ends;
}

size_t mod_packets_shown(const stk_packets *p, stk_ratio *time_base, int64_t *end, int64_t *out,
                         size_t n)
{
    size_t found = 0;
    int64_t begin = INT64_MIN;
    *time_base = stk_ratio_of(p->time_base);
    *end = INT64_MIN;
    if (!all_known(p)) return 0;
    for (size_t i = 0; i < p->n; i++) {
        const AVPacket *packet = p->list[i];
        int64_t at = shown_at(p, packet);
        if (!gives(p, packet)) continue;
        const left_out l = left_out_of(p, packet);
        const int64_t ends = end_of_packet(packet, at, &l);
        if (!found && l.before && __builtin_add_overflow(at, l.before, &begin)) begin = INT64_MIN;
        if (at < begin) at = begin; /* nothing is heard of what encoders put in front */
        if (ends > *end) *end = ends;
        if (found < n) out[found] = at;
        found++;
    }
    if (n) qsort(out, found < n ? found : n, sizeof(*out), compare);
    return found;
}

/* Whether what is shown from `first` on is complete where decoding begins with the key frame `i`.
 */
static bool is_complete(const stk_packets *p, size_t i, int64_t first, av_refresh_looks *looks)
{
    const AVCodecParameters *par = p->codec ? p->codec->par : NULL;
    if (!par) return true;
    av_refresh r = av_refresh_of(par->codec_id, par->extradata, par->extradata_size);
    if (av_refresh_begin(&r, p->list[i])) return true;
    if (!av_refresh_look(looks, i)) return false;
    size_t at = i;
    while (++at < p->n && p->list[at]->dts <= first)
        if (av_refresh_next(&r, p->list[at])) break;
    const bool told = at < p->n && p->list[at]->dts <= first;
    if (told && shown_at(p, p->list[at]) <= first) return true;
    av_refresh_looked(looks, i, at - i);
    return false;
}

/* Where decoding begins for what is shown from `first` on: at the last key frame that is not shown
 * later, or so much before it that a decoder of sound has settled. */
static size_t begin_of(const stk_packets *p, int64_t first)
{
    const bool audio = p->media == STK_MEDIA_AUDIO;
    const int64_t preroll = av_rescale_q(AUDIO_PREROLL, (AVRational){1, 1000}, p->time_base);
    av_refresh_looks looks = {0};
    if (audio) first = first < INT64_MIN + preroll ? INT64_MIN : first - preroll;
    for (size_t i = p->n; i-- > 0;) {
        if (shown_at(p, p->list[i]) > first) continue;
        if (audio) return i;
        if (p->list[i]->flags & AV_PKT_FLAG_KEY && is_complete(p, i, first, &looks)) return i;
    }
    return 0;
}

/* Behind the last one that is shown before `end`; what that refers to is decoded before it. */
static size_t end_of(const stk_packets *p, size_t begin, int64_t end)
{
    size_t behind = begin;
    for (size_t i = begin; i < p->n; i++)
        if (shown_at(p, p->list[i]) < end) behind = i + 1;
    return behind;
}

static stk_err share(const stk_packets *p, size_t begin, size_t end, stk_packets *to)
{
    AVPacket *shared = av_packet_alloc();
    stk_err err = shared ? STK_OK : STK_ENOMEM;
    for (size_t i = begin; i < end && !err; i++) {
        err = av_packet_ref(shared, p->list[i]) < 0 ? STK_ENOMEM : stk_packets_add(to, shared);
        av_packet_unref(shared);
    }
    av_packet_free(&shared);
    return err;
}

stk_err mod_packets_cut(const stk_packets *p, const stk_window *window, stk_packets **out,
                        stk_diag *diag)
{
    *out = NULL;
    stk_err err = stk_window_check(window, diag);
    if (err) return err;
    if (p->windowed)
        return stk_diag_set(diag, STK_EINVAL, "these packets were cut to a window already");
    if (!all_known(p))
        return stk_diag_set(diag, STK_EUNSUPPORTED,
                            "%s: the stream has no times, so no window can be cut out of it",
                            p->source);
    err = stk_packets_make(p->media, p->codec, p->time_base, window, p->source, out);
    if (!err) {
        const size_t begin = begin_of(p, (*out)->first);
        err = share(p, begin, end_of(p, begin, (*out)->end), *out);
    }
    if (!err) return STK_OK;
    mod_packets_unref(out);
    return stk_diag_set(diag, err, "no memory for packets");
}
