/*
 * Decoding for a plan: what it wants next, and what comes past.
 *
 * Which packet a picture is, times tell.  Packets are not always pictures, so what comes is
 * compared with what should: the pictures come in order, and none is missing but those that were
 * left out.  Never left out are the first and the one before each that is wanted.  If it is
 * something else, everything is decoded from the first packet on, and pictures are counted.
 */
#include "av/video_reader.h"

static size_t begin_of(const stk_video_reader *r, size_t frame)
{
    return r->whole ? 0 : av_index_begin(&r->index, &r->index.shown[frame]);
}

void av_reader_set_whole(stk_video_reader *r, bool whole)
{
    r->whole = whole;
    r->running = false;
    r->decoder->strict = whole && r->strict;
}

static void restart(stk_video_reader *r, size_t from)
{
    if (r->whole)
        stk_decoder_begin(r->decoder);
    else
        stk_decoder_restart(r->decoder);
    r->decoder->failed = r->decoder->worked = 0;
    r->decoder->why = (stk_diag){0};
    r->running = true;
    r->from = r->to = from;
    r->lead = r->next = from ? av_index_find(&r->index, r->index.list[from].pts) : 0;
}

/* Without going back, and without passing over a key frame that would be nearer. */
static bool can_go_on(const stk_video_reader *r, size_t frame)
{
    if (!r->running || frame < r->next) return false;
    const size_t begin = begin_of(r, frame);
    const size_t last = r->whole ? 0 : r->index.shown[frame].at;
    return begin >= r->from && begin <= r->to && (!r->decoder->draining || last < r->to);
}

/* --- packets --- */

/* The last picture from `first` on that the packets which come next give, up to the next key frame;
 * AV_NO_FRAME: not even the first. */
static size_t in_reach(const stk_video_reader *r, size_t first)
{
    size_t low = first, high = r->index.num_shown;
    if (first >= high || !can_go_on(r, first) || begin_of(r, first) >= r->to) return AV_NO_FRAME;
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        if (begin_of(r, middle) < r->to)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Nobody wants what would come after the target: the decoder need not be given more to give it. */
static bool may_drain(const av_run *run)
{
    const stk_video_reader *r = run->r;
    if (!run->several || r->whole) return false;
    for (size_t i = run->target + 1; i-- > r->next;) /* also those that are decoded after it */
        if (r->index.shown[i].at >= r->to) return false;
    const size_t last = in_reach(r, run->target);
    return last != AV_NO_FRAME &&
           av_plan_ahead(run->plan, run->target + 1, last, false) == AV_NO_FRAME;
}

/* Whether the packet's picture comes before the last that is wanted, and is not; but for the first,
 * which comes if nothing before it is needed. */
static bool may_leave_out(const av_run *run, const av_entry *e)
{
    const stk_video_reader *r = run->r;
    if (r->whole || !e->shown || e == &r->index.list[r->from]) return false;
    const size_t i = av_index_find(&r->index, e->pts);
    const size_t last = run->last > run->target ? run->last : run->target;
    return i < last && !av_plan_wants(run->plan, i) && !av_plan_wants(run->plan, i + 1);
}

static stk_err feed(av_run *run)
{
    stk_video_reader *r = run->r;
    stk_decoder *d = r->decoder;
    bool same = true;
    if (r->to >= r->index.n || may_drain(run)) return stk_decoder_send(d, NULL, run->call);
    stk_err err = av_reader_packet(r, r->to, &same, run->call);
    if (err == STK_EEND && r->whole) return stk_decoder_send(d, NULL, run->call);
    if (!r->whole && (err == STK_EEND || (!err && !same))) {
        run->bad = r->lost = true;
        return STK_OK;
    }
    if (err) return err;
    av_entry *e = &r->index.list[r->to++];
    return stk_decoder_send_some(d, r->demuxer->packet, may_leave_out(run, e), &e->left_out,
                                 run->call);
}

/* --- pictures --- */

/* Whether all pictures up to `i` came that should have. */
static bool complete(const stk_video_reader *r, size_t i)
{
    for (size_t k = r->next; k < i; k++) {
        const size_t at = r->index.shown[k].at;
        if (at < r->from || at >= r->to || !r->index.list[at].left_out) return false;
    }
    return true;
}

/* Which one it is; AV_NO_FRAME: none of those that must come. */
static size_t number_of(av_run *run, int64_t time)
{
    const stk_video_reader *r = run->r;
    const av_index *x = &r->index;
    if (r->whole && (x->untold || !r->decoder->failed)) return r->next;
    const size_t i = av_index_find(x, time);
    if (i < r->lead) return AV_NO_FRAME; /* it refers to what is before the key frame */
    if (i < x->num_shown && x->shown[i].time == time && i >= r->next) return i;
    run->bad = !r->whole;
    return AV_NO_FRAME;
}

static stk_err take(av_run *run)
{
    stk_video_reader *r = run->r;
    atomic_fetch_add_explicit(&r->decoded, 1, memory_order_relaxed);
    const size_t i = number_of(run, r->decoder->frame->pts);
    if (i == AV_NO_FRAME) return STK_OK;
    if (!r->whole && !r->decoder->failed && !complete(r, i)) run->bad = true;
    if (run->bad) return STK_OK;
    r->next = i + 1;
    return av_plan_put(run->plan, i, r->decoder->frame, run->call);
}

static stk_err step(av_run *run)
{
    stk_decoder *d = run->r->decoder;
    stk_err err = stk_decoder_receive(d, run->call);
    if (err == STK_EAGAIN) return feed(run);
    if (err == STK_EEND) {
        run->r->running = false;
        run->bad = !run->r->whole;
        return STK_OK;
    }
    if (err) return err;
    err = take(run);
    av_frame_unref(d->frame);
    return err;
}

static stk_err go_on(av_run *run, size_t frame)
{
    stk_video_reader *r = run->r;
    stk_err err = STK_OK;
    run->target = frame;
    while (!err && !run->bad && r->running && r->next <= frame) err = step(run);
    if (err) r->running = false;
    return err;
}

/* Before the decoder leaves a group of pictures it gives what other clips want of it. */
static stk_err finish_group(av_run *run)
{
    stk_video_reader *r = run->r;
    stk_err err = STK_OK;
    while (run->several && !err && !run->bad && r->running && !r->decoder->draining) {
        size_t last = in_reach(r, r->next);
        if (last != AV_NO_FRAME) last = av_plan_ahead(run->plan, r->next, last, true);
        if (last == AV_NO_FRAME) break;
        err = go_on(run, last);
    }
    return err;
}

stk_err av_run_to(av_run *run, size_t frame)
{
    stk_video_reader *r = run->r;
    stk_err err = STK_OK;
    if (!can_go_on(r, frame)) {
        err = finish_group(run);
        if (err || run->bad) return err;
        if (!can_go_on(r, frame)) restart(r, begin_of(r, frame));
    }
    return go_on(run, frame);
}

stk_err av_run_missing(const av_run *run, size_t frame)
{
    const stk_video_reader *r = run->r;
    const stk_decoder *d = r->decoder;
    if (d->failed && !r->index.untold)
        return stk_av_say(run->call, d->why.err, "frame %zu could not be decoded: %s", frame,
                          d->why.text);
    if (d->failed && !r->next)
        return stk_av_say(run->call, d->why.err, "none of %zu packets could be decoded: %s",
                          r->index.n, d->why.text);
    return stk_av_say(run->call, STK_ECORRUPT, "frame %zu did not come: %zu of %zu frames did",
                      frame, r->next, r->index.num_shown);
}
