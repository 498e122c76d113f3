#include "av/video_index.h"

#include <stdlib.h>

#include "base/alloc.h"

/* RFC 6386, 9.1: bit 4 of a VP8 frame is show_frame. */
bool av_is_picture(const AVPacket *packet, enum AVCodecID codec)
{
    if (codec == AV_CODEC_ID_VP8 && packet->size && !(packet->data[0] & 0x10)) return false;
    return packet->size > 0;
}

stk_err av_index_add(av_index *x, const AVPacket *packet, enum AVCodecID codec, bool in)
{
    if (x->n == x->room) {
        const size_t room = x->room ? x->room * 2 : 64;
        av_entry *list = stk_alloc_resize(x->list, room * sizeof(*list));
        if (!list) return STK_ENOMEM;
        x->list = list;
        x->room = room;
    }
    if (!x->n) x->first_key = AV_NOPTS_VALUE;
    const bool marked = packet->flags & AV_PKT_FLAG_KEY && av_refresh_begin(&x->refresh, packet);
    const bool key = marked && packet->pts != AV_NOPTS_VALUE;
    if (marked && x->first_key == AV_NOPTS_VALUE) x->first_key = packet->pts;
    av_entry *e = &x->list[x->n];
    *e = (av_entry){.pts = packet->pts,
                    .dts = packet->dts,
                    .key = key || !x->n ? x->n : x->list[x->n - 1].key,
                    .size = packet->size,
                    .shown = in && av_is_picture(packet, codec)};
    x->n++;
    if (!e->shown) return STK_OK;
    x->num_shown++;
    /* What is shown before the first key frame refers to what is not there. */
    if (packet->pts == AV_NOPTS_VALUE || x->first_key == AV_NOPTS_VALUE ||
        packet->pts < x->first_key)
        x->untold = true;
    return STK_OK;
}

static int by_time(const void *a, const void *b)
{
    const av_picture *x = a, *y = b;
    if (x->time != y->time) return (x->time > y->time) - (x->time < y->time);
    return (x->at > y->at) - (x->at < y->at);
}

stk_err av_index_finish(av_index *x)
{
    size_t n = 0;
    if (x->n) { /* no more come */
        av_entry *list = stk_alloc_resize(x->list, x->n * sizeof(*list));
        if (!list) return STK_ENOMEM;
        x->list = list;
        x->room = x->n;
    }
    x->shown = stk_alloc_zero(x->num_shown ? x->num_shown : 1, sizeof(*x->shown));
    if (!x->shown) return STK_ENOMEM;
    for (size_t i = 0; i < x->n; i++)
        if (x->list[i].shown) x->shown[n++] = (av_picture){x->list[i].pts, i};
    qsort(x->shown, n, sizeof(*x->shown), by_time);
    for (size_t i = 1; i < n; i++)
        if (x->shown[i].time == x->shown[i - 1].time) x->untold = true;
    return STK_OK;
}

void av_index_fini(av_index *x)
{
    stk_free(x->list);
    stk_free(x->shown);
    *x = (av_index){0};
}

size_t av_index_begin(const av_index *x, const av_picture *is)
{
    size_t at = x->list[is->at].key;
    while (at && x->list[at].pts > is->time) at = x->list[at - 1].key;
    return at;
}

size_t av_index_find(const av_index *x, int64_t time)
{
    size_t low = 0, high = x->num_shown;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (x->shown[middle].time < time)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}
