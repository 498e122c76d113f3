#include "av/due.h"

#include <string.h>

enum { MAX_NOT_CODED = 19 }; /* bytes of an MPEG-4 picture that repeats another: FFmpeg's number */

void av_due_init(av_due *due, const AVCodecContext *decoder)
{
    const enum AVCodecID id = decoder->codec_id;
    const bool told = id == AV_CODEC_ID_H264 || id == AV_CODEC_ID_HEVC ||
                      id == AV_CODEC_ID_MPEG1VIDEO || id == AV_CODEC_ID_MPEG2VIDEO ||
                      id == AV_CODEC_ID_MPEG4;
    const bool own = !strcmp(decoder->codec->name, avcodec_get_name(id)); /* FFmpeg's */
    due->codec = told && own ? id : AV_CODEC_ID_NONE;
    due->units = av_refresh_of(id, decoder->extradata, decoder->extradata_size);
    av_due_begin(due);
}

void av_due_begin(av_due *due)
{
    due->first_key = due->last = AV_NOPTS_VALUE;
    due->sent = due->came = due->overdue = due->n = 0;
}

static bool is_picture(const av_due *due, const AVPacket *p)
{
    if (p->pts == AV_NOPTS_VALUE || p->flags & AV_PKT_FLAG_DISCARD) return false;
    if (due->codec == AV_CODEC_ID_H264 || due->codec == AV_CODEC_ID_HEVC)
        return av_has_slice(&due->units, p);
    return p->size > 0;
}

static void drop(av_due *due, size_t i)
{
    due->list[i] = due->list[--due->n];
}

static void add(av_due *due, av_due_picture picture)
{
    size_t oldest = 0;
    if (due->n == STK_AV_DUE) {
        for (size_t i = 1; i < due->n; i++)
            if (due->list[i].time < due->list[oldest].time) oldest = i;
        due->overdue += !due->list[oldest].optional;
        drop(due, oldest);
    }
    due->list[due->n++] = picture;
    due->sent += !picture.optional;
}

/* What was sent before the first key frame may come, and need not. */
static void begin_at_key(av_due *due, int64_t time)
{
    due->first_key = time;
    for (size_t i = 0; i < due->n; i++) due->list[i].optional = true;
    due->sent = due->came = due->overdue = 0;
}

void av_due_sent(av_due *due, const AVPacket *p, bool wanted)
{
    if (due->codec == AV_CODEC_ID_NONE) return;
    const bool keyed = due->first_key != AV_NOPTS_VALUE;
    if (!keyed && p->flags & AV_PKT_FLAG_KEY && p->pts != AV_NOPTS_VALUE) begin_at_key(due, p->pts);
    /* What follows the first key frame and is shown before it refers to what was before. */
    const bool leading = keyed && p->pts < due->first_key;
    const bool optional = due->codec == AV_CODEC_ID_MPEG4 && p->size <= MAX_NOT_CODED;
    if (wanted && !leading && is_picture(due, p))
        add(due, (av_due_picture){p->pts, due->last, optional});
    due->last = p->pts;
}

void av_due_came(av_due *due, int64_t time, bool interlaced)
{
    if (due->codec == AV_CODEC_ID_NONE) return;
    bool counts = true;
    for (size_t i = due->n; i-- > 0;) {
        const av_due_picture is = due->list[i];
        const bool second = interlaced && is.before == time && time != AV_NOPTS_VALUE;
        if (!second && is.time != time) continue;
        if (second)
            due->sent -= !is.optional;
        else
            counts &= !is.optional;
        drop(due, i);
    }
    due->came += counts;
}

void av_due_failed(av_due *due)
{
    due->sent -= due->sent > 0;
}

size_t av_due_end(av_due *due)
{
    size_t late = due->overdue;
    for (size_t i = 0; i < due->n; i++) late += !due->list[i].optional;
    const size_t fewer = due->sent > due->came ? due->sent - due->came : 0;
    av_due_begin(due);
    return late < fewer ? late : fewer;
}
