/*
 * av_due: which pictures should come out of a decoder, by the times of the packets that went in.
 *
 * FFmpeg leaves out, and says nothing, pictures that refer to others which are not there.  Of
 * H.264, HEVC, MPEG-1, MPEG-2 and MPEG-4 each packet is known to be a picture, or not; of other
 * codecs packets may hold none, and nothing is due.
 *
 * A recording may begin between key frames: what is sent before the first one, or shown before it,
 * refers to what was never there, and is not due.  Without any key frame all is.
 *
 * Memory: a list of STK_AV_DUE times.  Threads: one at a time.
 */
#ifndef STK_AV_DUE_H
#define STK_AV_DUE_H

#include "av/refresh.h"

enum { STK_AV_DUE = 64 }; /* more than any decoder holds back */

typedef struct av_due_picture {
    int64_t time;
    int64_t before; /* of the packet before it, of which it may be the second field */
    bool optional;  /* it need not come, and is not counted */
} av_due_picture;

typedef struct av_due {
    enum AVCodecID codec; /* AV_CODEC_ID_NONE: nothing is ever due */
    av_refresh units;     /* how its packets are packed */

    int64_t first_key, last; /* the times of packets; AV_NOPTS_VALUE: there was none */
    size_t sent, came;       /* pictures */
    size_t overdue;          /* that did not come, and are not in the list any more */
    av_due_picture list[STK_AV_DUE];
    size_t n;
} av_due;

void av_due_init(av_due *due, const AVCodecContext *decoder);

/* Nothing was sent. */
void av_due_begin(av_due *due);

/* The decoder took a packet.  `wanted`: its picture is not left out. */
void av_due_sent(av_due *due, const AVPacket *packet, bool wanted);

/* A picture came that was wanted, with the time of its packet. */
void av_due_came(av_due *due, int64_t time, bool interlaced);

/* The decoder said that one is broken. */
void av_due_failed(av_due *due);

/* All is out: how many did not come, without a word.  Begins anew. */
size_t av_due_end(av_due *due);

#endif /* STK_AV_DUE_H */
