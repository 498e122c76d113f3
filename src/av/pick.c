/*
 * Single pictures of a video: only what they need is decoded, from the key frame before each.
 *
 * Which packet the n-th picture is, times tell.  Packets are not always pictures (fields, pictures
 * that are dropped as what they refer to is not there), so what comes out of the decoder is
 * compared with what should; if that is something else, all is decoded, and pictures are counted.
 */
#include <stdlib.h>
#include <string.h>

#include "av/decoder.h"
#include "av/module.h"
#include "av/video_index.h"
#include "base/alloc.h"

typedef struct want {
    av_picture is;
    size_t from;                 /* the packet that decoding begins with */
    bool came;                   /* it was by_time */
    AVFrame *by_time, *by_count; /* NULL: not found yet, or given */
} want;

typedef struct picking {
    stk_decoder *d;
    const stk_packets *packets;
    const size_t *indices;
    av_index index; /* of the pictures in the window */
    want *wants;    /* one for each of `indices` */
    const stk_decoder_taker *to;
    size_t given; /* wants that were taken */
    size_t kept;  /* bytes of the pictures that wants hold */
    bool counted; /* the picture that is looked at, in `kept` */
    size_t n;
} picking;

/* --- which packets --- */

static stk_err list_packets(picking *p)
{
    const AVCodecContext *c = p->d->context;
    stk_err err = STK_OK;
    p->index.refresh = av_refresh_of(c->codec_id, c->extradata, c->extradata_size);
    for (size_t i = 0; i < p->packets->n && !err; i++) {
        const AVPacket *packet = p->packets->list[i];
        const bool in = stk_packets_inside(p->packets, packet);
        err = av_index_add(&p->index, packet, c->codec_id, in);
    }
    return err ? err : av_index_finish(&p->index);
}

static stk_err prepare(picking *p, stk_diag *diag)
{
    const av_index *x = &p->index;
    p->wants = stk_alloc_zero(p->n, sizeof(*p->wants));
    if (!p->wants || list_packets(p)) return stk_diag_set(diag, STK_ENOMEM, "no memory for frames");
    for (size_t i = 0; i < p->n; i++) {
        if (i && p->indices[i] <= p->indices[i - 1])
            return stk_diag_set(diag, STK_EINVAL, "the numbers of frames must ascend");
        if (p->indices[i] >= x->num_shown)
            return stk_diag_set(diag, STK_ENOTFOUND, "there is no frame %zu, of %zu", p->indices[i],
                                x->num_shown);
        p->wants[i].is = x->shown[p->indices[i]];
        p->wants[i].from = av_index_begin(x, &p->wants[i].is);
    }
    return STK_OK;
}

static void clear(want *w)
{
    av_frame_free(&w->by_time);
    av_frame_free(&w->by_count);
}

/* The pictures that have come, up to the first that has not: those in front of it are done with, so
 * that their memory is used again. */
static stk_err give(picking *p, size_t to, stk_av_call *call)
{
    stk_err err = STK_OK;
    for (; p->given < to && p->wants[p->given].by_time && !err; p->given++) {
        want *w = &p->wants[p->given];
        const size_t bytes = stk_frame_bytes(w->by_time);
        p->kept -= bytes < p->kept ? bytes : p->kept; /* by_count may be another */
        err = p->to->take(p->to->ctx, w->by_time, call);
        clear(w);
    }
    return err;
}

/* All is decoded anew. */
static void begin_anew(picking *p)
{
    for (size_t i = 0; i < p->n; i++) {
        clear(&p->wants[i]);
        p->wants[i].came = false;
    }
    p->given = p->kept = 0;
    stk_decoder_begin(p->d);
    stk_decoder_set_window(p->d, p->packets);
    p->to->begin(p->to->ctx);
}

/* --- decoding --- */

/* Some packets, and the pictures that are wanted of them. */
typedef struct section {
    size_t from, to;    /* packets; `to` is the last */
    size_t first, last; /* wants; `last` is behind them */
    bool counts;        /* it begins with the first packet: pictures are counted, too */
    bool by_count;      /* and nothing else tells them */
    size_t missing, came;
    size_t next; /* the want whose number comes next */
} section;

static stk_err keep(picking *p, AVFrame **place, const AVFrame *frame, stk_av_call *call)
{
    if (*place) return STK_OK;
    *place = stk_fault() ? NULL : av_frame_clone(frame);
    if (!*place) return stk_av_say(call, STK_ENOMEM, "no memory for frames");
    if (!p->counted) p->kept += stk_frame_bytes(frame);
    p->counted = true;
    return STK_OK;
}

static int compare_time(const void *key, const void *element)
{
    const int64_t time = *(const int64_t *)key, of = ((const want *)element)->is.time;
    return (time > of) - (time < of);
}

static bool is_wanted(const picking *p, const section *s, size_t picture)
{
    const av_index *x = &p->index;
    return picture < x->num_shown && bsearch(&x->shown[picture].time, p->wants + s->first,
                                             s->last - s->first, sizeof(want), compare_time);
}

/* Pictures that nobody wants need not come; but for the first, which does if nothing before it is
 * needed, and the one before each that is wanted, which does if packets are pictures. */
static bool may_leave_out(const picking *p, const section *s, const av_entry *e)
{
    if (s->counts || !e->shown || e == &p->index.list[s->from]) return false;
    const size_t i = av_index_find(&p->index, e->pts);
    return i < p->indices[s->last - 1] && !is_wanted(p, s, i) && !is_wanted(p, s, i + 1);
}

static bool was_left_out(const picking *p, int64_t time)
{
    const av_index *x = &p->index;
    const size_t i = av_index_find(x, time);
    return i < x->num_shown && x->shown[i].time == time && x->list[x->shown[i].at].left_out;
}

static stk_err look_by_time(picking *p, section *s, const AVFrame *frame, stk_av_call *call)
{
    want *wants = p->wants + s->first;
    want *w = bsearch(&frame->pts, wants, s->last - s->first, sizeof(*w), compare_time);
    if (!w || w->came) return STK_OK;
    const stk_err err = keep(p, &w->by_time, frame, call);
    if (err) return err;
    w->came = true;
    s->missing--;
    return s->counts ? STK_OK : give(p, s->last, call);
}

static stk_err look(picking *p, section *s, const AVFrame *frame, stk_av_call *call)
{
    stk_err err = STK_OK;
    p->counted = false;
    if (!s->counts && was_left_out(p, frame->pts)) return STK_OK;
    const size_t number = s->came++;
    while (s->next < s->last && p->indices[s->next] < number) s->next++;
    if (s->counts && s->next < s->last && p->indices[s->next] == number) {
        want *w = &p->wants[s->next];
        err = keep(p, s->by_count ? &w->by_time : &w->by_count, frame, call);
        if (!err && s->by_count) err = give(p, s->last, call);
    }
    if (!err && !s->by_count) err = look_by_time(p, s, frame, call);
    if (!err && p->kept > p->d->max_bytes) err = stk_decoder_too_much(p->d, call);
    return err;
}

static bool found_all(const picking *p, const section *s)
{
    if (s->counts) return !p->d->failed && s->came > p->indices[p->n - 1];
    return !s->missing;
}

/* All that the decoder can give; STK_EAGAIN, STK_EEND as stk_decoder_receive. */
static stk_err receive_all(picking *p, section *s, stk_av_call *call)
{
    stk_err err;
    while (!(err = stk_decoder_receive(p->d, call))) {
        err = look(p, s, p->d->frame, call);
        av_frame_unref(p->d->frame);
        if (err) return err;
        if (found_all(p, s)) return STK_EEND;
    }
    return err;
}

static stk_err decode_section(picking *p, section *s, stk_av_call *call)
{
    stk_err err = STK_EAGAIN;
    s->missing = s->last - s->first;
    stk_decoder_restart(p->d);
    for (size_t i = s->from; i <= s->to && err == STK_EAGAIN; i++) {
        av_entry *e = &p->index.list[i];
        err = stk_decoder_send_some(p->d, p->packets->list[i], may_leave_out(p, s, e), &e->left_out,
                                    call);
        if (!err) err = receive_all(p, s, call);
    }
    if (err == STK_EAGAIN) err = stk_decoder_send(p->d, NULL, call);
    if (!err) err = receive_all(p, s, call);
    return err == STK_EEND || err == STK_EAGAIN ? STK_OK : err;
}

/* How many pictures come out of the section until all that are wanted have, without those that were
 * left out. */
static size_t expected(const picking *p, const section *s)
{
    const av_picture *shown = p->index.shown;
    const int64_t begin = p->index.list[s->from].pts;
    size_t n = 0;
    for (size_t i = p->indices[s->last - 1] + 1; i-- > 0 && shown[i].time >= begin;)
        n += shown[i].at >= s->from && shown[i].at <= s->to && !p->index.list[shown[i].at].left_out;
    return n;
}

/* *good: each section gave what it should.  Packets that fail here may do so as what they need is
 * further back. */
static stk_err decode_sections(picking *p, bool *good, stk_av_call *call)
{
    stk_err err = STK_OK;
    *good = true;
    for (size_t i = 0; i < p->n && *good && !err;) {
        section s = {.from = p->wants[i].from, .to = p->wants[i].is.at, .first = i};
        for (i++; i < p->n && p->wants[i].from <= s.to + 1; i++) {
            if (p->wants[i].is.at > s.to) s.to = p->wants[i].is.at;
            if (p->wants[i].from < s.from) s.from = p->wants[i].from;
        }
        s.last = i;
        const size_t failed = p->d->failed;
        err = decode_section(p, &s, call);
        *good = !s.missing && (p->d->failed > failed || s.came == expected(p, &s));
    }
    return err;
}

static stk_err say_missing(const picking *p, const section *s, size_t i, stk_av_call *call)
{
    const stk_decoder *d = p->d;
    if (d->failed && !s->came)
        return stk_av_say(call, d->why.err, "none of %zu packets could be decoded: %s",
                          p->packets->n, d->why.text);
    return stk_av_say(call, STK_ECORRUPT, "frame %zu did not come: %zu of %zu frames did",
                      p->indices[i], s->came, p->index.num_shown);
}

/* A picture keeps its number where packets are missing only if times tell which it is: that is
 * known in the end. */
static stk_err decode_whole(picking *p, bool told, stk_av_call *call)
{
    stk_decoder *d = p->d;
    section s = {
        .to = p->packets->n - 1, .last = p->n, .counts = true, .by_count = !told || d->strict};
    stk_err err = decode_section(p, &s, call);
    for (size_t i = p->given; i < p->n && !err; i++) {
        want *w = &p->wants[i];
        if (told && d->failed) {
            if (!w->by_time)
                err = stk_av_say(call, d->why.err, "frame %zu could not be decoded: %s",
                                 p->indices[i], d->why.text);
            continue;
        }
        if (!s.by_count) {
            av_frame_free(&w->by_time);
            w->by_time = w->by_count;
            w->by_count = NULL;
        }
        if (!w->by_time) err = say_missing(p, &s, i, call);
    }
    return err ? err : give(p, p->n, call);
}

static stk_err decode(picking *p, bool told, stk_av_call *call)
{
    stk_decoder *d = p->d;
    const bool strict = d->strict;
    bool good = false;
    stk_err err = STK_OK;
    begin_anew(p);
    if (told) {
        d->strict = false;
        err = decode_sections(p, &good, call);
        d->strict = strict;
        if (strict && p->kept > d->max_bytes) { /* they are given as they are counted, below */
            err = STK_OK;
            good = false;
        }
    }
    if (err || (good && !(strict && d->failed))) return err;
    begin_anew(p);
    return decode_whole(p, told, call);
}

stk_err stk_decoder_visit(stk_decoder *d, const stk_packets *packets, const size_t *indices,
                          size_t n, const stk_decoder_taker *to, stk_av_call *call)
{
    picking p = {.d = d, .packets = packets, .indices = indices, .n = n, .to = to};
    stk_err err = prepare(&p, call->diag);
    if (!err) err = decode(&p, !p.index.untold, call);
    for (size_t i = 0; p.wants && i < n; i++) clear(&p.wants[i]);
    stk_free(p.wants);
    av_index_fini(&p.index);
    return err;
}
