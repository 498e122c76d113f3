/* Where the demuxer is among the packets of the index. */
#include "av/video_reader.h"

enum {
    MAX_TRIES = 24, /* of seeking further back; each goes twice as far as the one before */
    NEAR = 64,      /* packets that are read and dropped rather than sought over */
};

/* The next one of the stream. */
static stk_err read_packet(stk_video_reader *r, stk_av_call *call)
{
    stk_err err;
    do err = stk_demuxer_packet(r->demuxer, call);
    while (!err && r->demuxer->packet->stream_index != r->stream);
    return err;
}

static bool is_entry(const av_entry *e, const AVPacket *packet)
{
    return e->pts == packet->pts && e->size == packet->size;
}

/* The place of a packet that was read after a seek; false: not known. */
static bool find(const av_index *x, const AVPacket *packet, size_t *at)
{
    const size_t i = av_index_find(x, packet->pts);
    if (i == x->num_shown || !is_entry(&x->list[x->shown[i].at], packet)) return false;
    *at = x->shown[i].at;
    return true;
}

static stk_err go_to_start(stk_video_reader *r, stk_av_call *call)
{
    r->lost = true;
    const stk_err err = stk_demuxer_rewind(r->demuxer, r->stream, call);
    if (err) return err;
    r->lost = false;
    r->at = 0;
    return STK_OK;
}

/* Seeks, and reads on to a packet that is known; r->lost: there was none. */
static stk_err seek(stk_video_reader *r, int64_t time, stk_av_call *call)
{
    bool at_start;
    r->lost = true;
    stk_err err = stk_demuxer_seek(r->demuxer, r->stream, time, &at_start, call);
    if (err) return err;
    if (at_start) {
        r->lost = false;
        r->at = 0;
        return STK_OK;
    }
    while (!(err = read_packet(r, call)))
        if (find(&r->index, r->demuxer->packet, &r->at)) {
            r->lost = false;
            r->demuxer->held = true; /* it is read again */
            return STK_OK;
        }
    return err == STK_EEND ? STK_OK : err;
}

static int64_t before(int64_t at, int64_t by)
{
    return at < INT64_MIN + 1 + by ? INT64_MIN + 1 : at - by;
}

/* To the packet `i`, or one before it. */
static stk_err seek_before(stk_video_reader *r, size_t i, stk_av_call *call)
{
    const av_entry *e = &r->index.list[i];
    int64_t time = e->pts;
    int64_t step = av_rescale_q(1, (AVRational){1, 1}, r->time_base);
    if (step < 1) step = 1;
    atomic_fetch_add_explicit(&r->seeks, 1, memory_order_relaxed);
    if (!i || r->index.untold || time == AV_NOPTS_VALUE) return go_to_start(r, call);
    for (int tries = 0; tries < MAX_TRIES; tries++) {
        const stk_err err = seek(r, time, call);
        if (err || (!r->lost && r->at <= i)) return err;
        /* Files are sorted by when packets are decoded, and some indices, too. */
        if (!tries && e->dts != AV_NOPTS_VALUE && e->dts < time)
            time = e->dts;
        else
            time = before(time, step);
        if (tries) step = step > INT64_MAX / 2 ? step : step * 2;
    }
    return go_to_start(r, call);
}

stk_err av_reader_packet(stk_video_reader *r, size_t i, bool *same, stk_av_call *call)
{
    stk_err err = STK_OK;
    *same = false;
    if (av_stop_is_cancelled(&r->demuxer->input.stop))
        return stk_demuxer_fail(r->demuxer, call, AVERROR_EXIT, "cannot read");
    if (r->lost || i < r->at || i - r->at > NEAR) err = seek_before(r, i, call);
    for (; !err && r->at <= i; r->at++) err = read_packet(r, call);
    if (err) {
        r->lost = true;
        return err;
    }
    const av_entry *e = &r->index.list[i];
    *same = is_entry(e, r->demuxer->packet);
    if (r->whole && e->size != r->demuxer->packet->size)
        return stk_av_say(call, STK_EUNSUPPORTED,
                          "%s: packet %zu is not what it was at first: the file cannot be read "
                          "twice, or was changed",
                          r->demuxer->input.name, i);
    if (r->cut && i + 1 == r->index.n) r->demuxer->packet->flags |= AV_PKT_FLAG_CORRUPT;
    return STK_OK;
}
