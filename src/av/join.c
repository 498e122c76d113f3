#include "av/join.h"

#include <limits.h>
#include <string.h>

#include <libavutil/intreadwrite.h>
#include <libavutil/mem.h>

#include "base/alloc.h"

#define BELIEVED ((size_t)64 << 20) /* bytes that there is room for before any has come */
enum {
    UNKNOWN = 1 << 16, /* samples, where packets do not say how long they last */
    RESAMPLED = 1024,  /* that a resampler gives more, at its end */
    WASTE = 4,         /* a block of which this part was not needed is not kept */
};

/* --- how much comes --- */

/* Samples at the begin and the end of a packet that are no part of the sound, as FFmpeg has it in
 * AV_PKT_DATA_SKIP_SAMPLES. */
static int64_t left_out(const AVPacket *p)
{
    size_t size = 0;
    const uint8_t *data = av_packet_get_side_data(p, AV_PKT_DATA_SKIP_SAMPLES, &size);
    return data && size >= 8 ? (int64_t)AV_RL32(data) + AV_RL32(data + 4) : 0;
}

/* What times in other units than samples are wrong by, at most. */
static int64_t inexact(const stk_packets *p, int rate)
{
    return p->time_base.num == 1 && p->time_base.den % rate == 0 ? 0 : (int64_t)p->n;
}

/* Frames that are inside a window in part are whole before the filters. */
static int64_t in_window(const stk_packets *p, int64_t lasts)
{
    int64_t span;
    const int64_t one = p->n ? p->list[0]->duration : 0;
    if (!p->windowed || one < 0 || __builtin_sub_overflow(p->end, p->first, &span)) return lasts;
    if (__builtin_add_overflow(span, one, &span) || __builtin_add_overflow(span, one, &span))
        return lasts;
    return span < lasts ? span : lasts;
}

/* Samples of each channel; 0: not known. */
static int64_t expect(const stk_packets *p, int rate)
{
    int64_t lasts = 0, skipped = 0;
    const int own = p && p->codec ? p->codec->par->sample_rate : 0;
    if (own <= 0 || rate <= 0) return 0;
    for (size_t i = 0; i < p->n; i++) {
        const int64_t one = p->list[i]->duration;
        if (one <= 0 || __builtin_add_overflow(lasts, one, &lasts)) return 0;
        skipped += left_out(p->list[i]);
    }
    if (__builtin_add_overflow(in_window(p, lasts), inexact(p, own), &lasts)) return 0;
    const int64_t n = av_rescale_q_rnd(lasts, p->time_base, (AVRational){1, rate}, AV_ROUND_UP);
    const int64_t less = p->windowed ? 0 : av_rescale(skipped, rate, own);
    if (n <= 0 || n > INT_MAX || less < 0 || less >= n) return 0;
    return n - less + (rate == own ? 0 : RESAMPLED);
}

/* --- the block --- */

/* Rows of that many bytes. */
static stk_err set_room(av_join *j, size_t room)
{
    stk_buffer *block;
    if (stk_buffer_new(j->rows * room, &block)) return STK_ENOMEM;
    uint8_t *to = stk_buffer_writable(block);
    for (size_t r = 0; j->block && r < j->rows; r++)
        memcpy(to + r * room, stk_buffer_data(j->block) + r * j->room, j->used);
    stk_buffer_unref(&j->block);
    j->block = block;
    j->room = room;
    return STK_OK;
}

/* Where more is expected than there was room for at first, what came speaks for it. */
static stk_err make_room(av_join *j, size_t need)
{
    if (need <= j->room) return STK_OK;
    size_t room = j->room + j->room / 2;
    if (j->expected > j->room) room = j->expected / 4 < j->room ? j->expected : j->room * 4;
    if (room > INT_MAX) room = INT_MAX;
    return set_room(j, room < need ? need : room);
}

/* --- conversion --- */

bool av_join_converts(const AVFrame *f)
{
    return f->nb_samples > 0 && f->sample_rate > 0 &&
           f->ch_layout.order == AV_CHANNEL_ORDER_NATIVE &&
           f->ch_layout.nb_channels <= AV_NUM_DATA_POINTERS;
}

static int open_converter(av_join *j, const AVFrame *f, enum AVSampleFormat to)
{
    if (j->convert && j->from == (enum AVSampleFormat)f->format) return 0;
    j->from = (enum AVSampleFormat)f->format;
    AVChannelLayout *layout = (AVChannelLayout *)(uintptr_t)&f->ch_layout; /* it is only read */
    const int rc = stk_fault() ? AVERROR(ENOMEM)
                               : swr_alloc_set_opts2(&j->convert, layout, to, f->sample_rate,
                                                     layout, j->from, f->sample_rate, 0, NULL);
    return rc < 0 ? rc : swr_init(j->convert);
}

static stk_err convert(av_join *j, const AVFrame *f, enum AVSampleFormat to, uint8_t *at)
{
    uint8_t *rows[AV_NUM_DATA_POINTERS];
    for (size_t r = 0; r < j->rows; r++) rows[r] = at + r * j->room;
    int rc = open_converter(j, f, to);
    if (rc >= 0)
        rc = swr_convert(j->convert, rows, f->nb_samples, (const uint8_t **)f->extended_data,
                         f->nb_samples);
    return rc == f->nb_samples ? STK_OK : STK_ENOMEM; /* it has no other reason to fail */
}

/* --- samples --- */

static stk_err add(av_join *j, const AVFrame *head, const AVFrame *f)
{
    const size_t n = (size_t)f->nb_samples * j->sample;
    stk_err err = make_room(j, j->used + n);
    if (err) return err;
    uint8_t *to = stk_buffer_writable(j->block) + j->used;
    if (f->format != head->format)
        err = convert(j, f, (enum AVSampleFormat)head->format, to);
    else
        for (size_t r = 0; r < j->rows; r++) memcpy(to + r * j->room, f->extended_data[r], n);
    if (!err) j->used += n;
    return err;
}

/* --- heads --- */

/* The same without samples. */
static AVFrame *head_of(const AVFrame *f)
{
    AVFrame *head = stk_fault() ? NULL : av_frame_alloc();
    if (!head) return NULL;
    head->format = f->format;
    if (av_frame_copy_props(head, f) < 0 ||
        av_channel_layout_copy(&head->ch_layout, &f->ch_layout) < 0)
        av_frame_free(&head);
    return head;
}

/* The last of `out` becomes a head. */
static stk_err begin(av_join *j, stk_frames *out, const stk_packets *from,
                     enum AVSampleFormat format)
{
    AVFrame **at = &out->list[out->n - 1], *first = *at;
    const size_t bytes = (size_t)av_get_bytes_per_sample(format);
    const size_t channels = (size_t)first->ch_layout.nb_channels;
    const bool planar = av_sample_fmt_is_planar(format);
    AVFrame *head = head_of(first);
    if (!head) return STK_ENOMEM;
    head->format = format;
    *j = (av_join){.rows = planar ? channels : 1, .sample = bytes * (planar ? 1 : channels)};

    const int64_t samples = expect(from, first->sample_rate);
    j->expected = (size_t)samples * j->sample;
    size_t room = samples ? j->expected : UNKNOWN * j->sample;
    if (room > BELIEVED / j->rows) room = BELIEVED / j->rows;
    if (room < (size_t)first->nb_samples * j->sample) room = (size_t)first->nb_samples * j->sample;
    if (room > INT_MAX) room = INT_MAX; /* what comes is less, or another head */
    stk_err err = set_room(j, room);
    if (!err) err = add(j, head, first);
    *at = head;
    av_frame_free(&first);
    return err;
}

static void free_block(void *opaque, uint8_t *data)
{
    stk_buffer *block = opaque;
    (void)data;
    stk_buffer_unref(&block);
}

static stk_err point(av_join *j, AVFrame *head)
{
    uint8_t *at = stk_buffer_writable(j->block);
    if (j->rows > AV_NUM_DATA_POINTERS) {
        uint8_t **rows = stk_fault() ? NULL : av_malloc_array(j->rows, sizeof(*rows));
        if (!rows) return STK_ENOMEM;
        head->extended_data = rows;
    }
    if (!stk_fault())
        head->buf[0] = av_buffer_create(at, j->rows * j->used, free_block, j->block, 0);
    if (!head->buf[0]) return STK_ENOMEM;
    j->block = NULL;
    for (size_t r = 0; r < j->rows; r++) {
        head->extended_data[r] = at + r * j->used;
        if (r < AV_NUM_DATA_POINTERS) head->data[r] = head->extended_data[r];
    }
    head->linesize[0] = (int)j->used;
    head->nb_samples = (int)(j->used / j->sample);
    return STK_OK;
}

static stk_err finish(av_join *j, AVFrame *head)
{
    stk_err err = STK_OK;
    if (j->room - j->used > j->room / WASTE) err = set_room(j, j->used);
    if (!err && j->used < j->room) {
        uint8_t *at = stk_buffer_writable(j->block);
        for (size_t r = 1; r < j->rows; r++) memmove(at + r * j->used, at + r * j->room, j->used);
    }
    if (!err) err = point(j, head);
    av_join_fini(j);
    return err;
}

/* --- frames --- */

static bool can_join(const AVFrame *f)
{
    return av_get_bytes_per_sample((enum AVSampleFormat)f->format) > 0 &&
           f->ch_layout.nb_channels > 0 && f->nb_samples >= 0;
}

static bool goes_on(const av_join *j, const AVFrame *head, const AVFrame *f,
                    enum AVSampleFormat format)
{
    const size_t n = (size_t)f->nb_samples * j->sample;
    return head->format == (int)format && head->sample_rate == f->sample_rate &&
           head->ch_layout.nb_channels == f->ch_layout.nb_channels && n <= INT_MAX - j->used;
}

static size_t bytes_as(const AVFrame *f, enum AVSampleFormat format)
{
    return (size_t)f->nb_samples * (size_t)f->ch_layout.nb_channels *
           (size_t)av_get_bytes_per_sample(format);
}

static stk_err push(av_join *j, stk_frames *out, const stk_packets *from, enum AVSampleFormat to)
{
    AVFrame *f = out->list[out->n - 1];
    const bool can = can_join(f);
    const bool converts = to != AV_SAMPLE_FMT_NONE && av_join_converts(f);
    const enum AVSampleFormat format = converts ? to : (enum AVSampleFormat)f->format;
    if (f->format != (int)format) out->bytes += bytes_as(f, format) - stk_frame_bytes(f);
    stk_err err = STK_OK;
    if (j->block) {
        AVFrame *head = out->list[out->n - 2];
        if (can && goes_on(j, head, f, format)) {
            out->n--;
            err = add(j, head, f);
            av_frame_free(&f);
            return err;
        }
        err = finish(j, head);
    }
    return !err && can ? begin(j, out, from, format) : err;
}

stk_err av_join_push(av_join *j, stk_frames *out, const stk_packets *from,
                     enum AVSampleFormat format, stk_av_call *call)
{
    const stk_err err = push(j, out, from, format);
    return err ? stk_av_say(call, err, "no memory for frames") : STK_OK;
}

stk_err av_join_end(av_join *j, stk_frames *out, stk_av_call *call)
{
    if (!j->block) return STK_OK;
    const stk_err err = finish(j, out->list[out->n - 1]);
    if (err) return stk_av_say(call, err, "no memory for frames");
    out->joined = out->n == 1;
    return STK_OK;
}

void av_join_fini(av_join *j)
{
    stk_buffer_unref(&j->block);
    swr_free(&j->convert);
    *j = (av_join){0};
}
