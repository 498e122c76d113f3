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
#include "base/alloc.h"

typedef struct picture {
    int64_t time;
    size_t at; /* its packet's place */
} picture;

typedef struct want {
    picture is;
    size_t from;                 /* the packet that decoding begins with */
    AVFrame *by_time, *by_count; /* NULL: not found yet */
} want;

typedef struct picking {
    stk_decoder *d;
    const stk_packets *packets;
    const size_t *indices;
    size_t *keys;   /* for each packet the last key frame up to it; itself if there is none */
    picture *shown; /* in the window, in the order of their times */
    size_t num_shown;
    want *wants; /* one for each index */
    size_t n;
} picking;

/* --- which packets --- */

static int by_time(const void *a, const void *b)
{
    const picture *x = a, *y = b;
    if (x->time != y->time) return (x->time > y->time) - (x->time < y->time);
    return (x->at > y->at) - (x->at < y->at);
}

/* RFC 6386, 9.1: bit 4 of a VP8 frame is show_frame. */
static bool is_shown(const picking *p, const AVPacket *packet)
{
    if (p->d->context->codec_id == AV_CODEC_ID_VP8 && packet->size && !(packet->data[0] & 0x10))
        return false;
    return packet->size && stk_packets_inside(p->packets, packet);
}

/* False: times do not tell which packet a picture is. */
static bool list_shown(picking *p)
{
    bool told = true;
    int64_t first_key = AV_NOPTS_VALUE;
    for (size_t i = 0; i < p->packets->n; i++) {
        const AVPacket *packet = p->packets->list[i];
        if (first_key == AV_NOPTS_VALUE && (packet->flags & AV_PKT_FLAG_KEY))
            first_key = packet->pts;
        if (!is_shown(p, packet)) continue;
        p->shown[p->num_shown++] = (picture){packet->pts, i};
        /* What is shown before the first key frame refers to what is not there. */
        if (packet->pts == AV_NOPTS_VALUE || first_key == AV_NOPTS_VALUE || packet->pts < first_key)
            told = false;
    }
    qsort(p->shown, p->num_shown, sizeof(*p->shown), by_time);
    for (size_t i = 1; i < p->num_shown; i++)
        if (p->shown[i].time == p->shown[i - 1].time) told = false;
    return told;
}

static void list_keys(picking *p)
{
    for (size_t i = 0; i < p->packets->n; i++) {
        const AVPacket *packet = p->packets->list[i];
        const bool key = (packet->flags & AV_PKT_FLAG_KEY) && packet->pts != AV_NOPTS_VALUE;
        p->keys[i] = key || !i ? i : p->keys[i - 1];
    }
}

/* A picture that is shown before the key frame in front of it may refer to what is before that. */
static size_t begins_at(const picking *p, const picture *is)
{
    size_t at = p->keys[is->at];
    while (at && p->packets->list[at]->pts > is->time) at = p->keys[at - 1];
    return at;
}

static stk_err prepare(picking *p, bool *told, stk_diag *diag)
{
    const size_t n = p->packets->n ? p->packets->n : 1;
    p->keys = stk_alloc_zero(n, sizeof(*p->keys));
    p->shown = stk_alloc_zero(n, sizeof(*p->shown));
    p->wants = stk_alloc_zero(p->n, sizeof(*p->wants));
    if (!p->keys || !p->shown || !p->wants)
        return stk_diag_set(diag, STK_ENOMEM, "no memory for frames");
    list_keys(p);
    *told = list_shown(p);
    for (size_t i = 0; i < p->n; i++) {
        if (i && p->indices[i] <= p->indices[i - 1])
            return stk_diag_set(diag, STK_EINVAL, "the numbers of frames must ascend");
        if (p->indices[i] >= p->num_shown)
            return stk_diag_set(diag, STK_ENOTFOUND, "there is no frame %zu, of %zu", p->indices[i],
                                p->num_shown);
        p->wants[i].is = p->shown[p->indices[i]];
        p->wants[i].from = begins_at(p, &p->wants[i].is);
    }
    return STK_OK;
}

static void clear(want *w)
{
    av_frame_free(&w->by_time);
    av_frame_free(&w->by_count);
}

/* --- decoding --- */

/* Some packets, and the pictures that are wanted of them. */
typedef struct section {
    size_t from, to;    /* packets; `to` is the last */
    size_t first, last; /* wants; `last` is behind them */
    bool counts;        /* it begins with the first packet: pictures are counted, too */
    size_t missing, came;
    size_t next; /* the want whose number comes next */
} section;

static stk_err keep(AVFrame **place, const AVFrame *frame)
{
    if (*place) return STK_OK;
    *place = stk_fault() ? NULL : av_frame_clone(frame);
    return *place ? STK_OK : STK_ENOMEM;
}

static int compare_time(const void *key, const void *element)
{
    const int64_t time = *(const int64_t *)key, of = ((const want *)element)->is.time;
    return (time > of) - (time < of);
}

static stk_err look(picking *p, section *s, const AVFrame *frame)
{
    want *wants = p->wants;
    stk_err err = STK_OK;
    const size_t number = s->came++;
    while (s->next < s->last && p->indices[s->next] < number) s->next++;
    if (s->counts && s->next < s->last && p->indices[s->next] == number)
        err = keep(&wants[s->next].by_count, frame);
    want *w = bsearch(&frame->pts, wants + s->first, s->last - s->first, sizeof(*w), compare_time);
    if (!w || err) return err;
    s->missing -= !w->by_time;
    return keep(&w->by_time, frame);
}

static bool found_all(const picking *p, const section *s)
{
    if (s->counts) return !p->d->failed && s->came > p->indices[p->n - 1];
    return !s->missing;
}

/* All that the decoder can give; STK_EAGAIN, STK_EEND as stk_decoder_frame. */
static stk_err receive_all(picking *p, section *s, stk_av_call *call)
{
    stk_err err;
    while (!(err = stk_decoder_receive(p->d, call))) {
        err = look(p, s, p->d->frame);
        av_frame_unref(p->d->frame);
        if (err) return stk_av_say(call, err, "no memory for frames");
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
        err = stk_decoder_send(p->d, p->packets->list[i], call);
        if (!err) err = receive_all(p, s, call);
    }
    if (err == STK_EAGAIN) err = stk_decoder_send(p->d, NULL, call);
    if (!err) err = receive_all(p, s, call);
    return err == STK_EEND || err == STK_EAGAIN ? STK_OK : err;
}

/* How many pictures come out of the section until all that are wanted have. */
static size_t expected(const picking *p, const section *s)
{
    const int64_t begin = p->packets->list[s->from]->pts;
    size_t n = 0;
    for (size_t i = p->indices[s->last - 1] + 1; i-- > 0 && p->shown[i].time >= begin;)
        n += p->shown[i].at >= s->from && p->shown[i].at <= s->to;
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

static stk_err decode_whole(picking *p, bool told, stk_av_call *call)
{
    stk_decoder *d = p->d;
    section s = {.to = p->packets->n - 1, .last = p->n, .counts = true};
    for (size_t i = 0; i < p->n; i++) clear(&p->wants[i]);
    stk_err err = decode_section(p, &s, call);
    for (size_t i = 0; i < p->n && !err; i++) {
        want *w = &p->wants[i];
        if (told && d->failed) {
            if (!w->by_time)
                err = stk_av_say(call, d->why.err, "frame %zu could not be decoded: %s",
                                 p->indices[i], d->why.text);
            continue;
        }
        av_frame_free(&w->by_time);
        w->by_time = w->by_count;
        w->by_count = NULL;
        if (w->by_time) continue;
        if (d->failed && !s.came)
            err = stk_av_say(call, d->why.err, "none of %zu packets could be decoded: %s",
                             p->packets->n, d->why.text);
        else
            err = stk_av_say(call, STK_ENOTFOUND, "there is no frame %zu, of %zu", p->indices[i],
                             s.came);
    }
    return err;
}

static stk_err decode(picking *p, bool told, stk_av_call *call)
{
    stk_decoder *d = p->d;
    const bool strict = d->strict;
    bool good = false;
    stk_err err = STK_OK;
    stk_decoder_begin(d);
    stk_decoder_set_window(d, p->packets);
    if (told) {
        d->strict = false;
        err = decode_sections(p, &good, call);
        d->strict = strict;
    }
    if (err || (good && !(strict && d->failed))) return err;
    stk_decoder_begin(d);
    stk_decoder_set_window(d, p->packets);
    return decode_whole(p, told, call);
}

/* --- filters --- */

static stk_err filter_all(stk_decoder *d, const av_filter_input *input, stk_frames *out,
                          stk_av_call *call)
{
    stk_err err;
    while (!(err = av_filter_get(&d->filter, input, out, call))) continue;
    return err == STK_EAGAIN ? STK_OK : err;
}

static stk_err end_filter(stk_decoder *d, const av_filter_input *input, stk_frames *out,
                          stk_av_call *call)
{
    if (!av_filter_open(&d->filter)) return STK_OK;
    const stk_err err = av_filter_end(&d->filter, input, call);
    return err ? err : filter_all(d, input, out, call);
}

static stk_err filter(picking *p, stk_frames *out, stk_av_call *call)
{
    stk_decoder *d = p->d;
    const av_filter_input input = stk_decoder_filter_input(d);
    const av_room one = {1, SIZE_MAX}; /* each picture in memory of its own */
    stk_err err = STK_OK;
    for (size_t i = 0; i < p->n && !err; i++) {
        AVFrame *frame = p->wants[i].by_time;
        if (!d->filter.graph && av_scale_fits(&d->scale, frame)) {
            if (!out->n) out->time_base = d->time_base;
            err = av_scale_push(&d->scale, frame, &one, out, call);
            clear(&p->wants[i]);
            continue;
        }
        if (!av_filter_fits(&d->filter, &input, frame)) err = end_filter(d, &input, out, call);
        if (!err) err = av_filter_put(&d->filter, &input, frame, call);
        if (!err) err = filter_all(d, &input, out, call);
        clear(&p->wants[i]);
    }
    if (!err) err = end_filter(d, &input, out, call);
    if (!err && out->n != p->n)
        err = stk_av_say(call, STK_EINVAL,
                         "filters '%s' made %zu frames of %zu: single frames go through filters "
                         "that make one of one",
                         input.text, out->n, p->n);
    return err;
}

static stk_err collect(picking *p, stk_frames *out, stk_av_call *call)
{
    stk_err err = STK_OK;
    if (p->d->filter_text) return filter(p, out, call);
    out->time_base = p->d->time_base;
    out->frame_rate = p->d->frame_rate;
    for (size_t i = 0; i < p->n && !err; i++) err = stk_frames_add(out, p->wants[i].by_time);
    return err ? stk_av_say(call, err, "no memory for frames") : STK_OK;
}

stk_err stk_decoder_collect(stk_decoder *d, const stk_packets *packets, const size_t *indices,
                            size_t n, stk_frames *out, stk_av_call *call)
{
    picking p = {.d = d, .packets = packets, .indices = indices, .n = n};
    bool told = false;
    stk_err err = prepare(&p, &told, call->diag);
    if (!err) err = decode(&p, told, call);
    if (!err) err = collect(&p, out, call);
    out->num_failed = d->failed;
    for (size_t i = 0; p.wants && i < n; i++) clear(&p.wants[i]);
    stk_free(p.wants);
    stk_free(p.shown);
    stk_free(p.keys);
    return err;
}
