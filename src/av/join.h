/*
 * av_join: frames of sound that follow each other become one, in memory that becomes their array.
 *
 *     out    [head][next]  ──►  [head]
 *     block  [channel 0 ...    ][channel 1 ...    ]     packed: one row of all channels
 *
 * Samples are converted on their way, as FFmpeg's aformat does, where another format is asked for.
 * There is room for what the packets say that they last; where they are wrong, the block is made
 * anew, or the rows are moved together at the end.
 */
#ifndef STK_AV_JOIN_H
#define STK_AV_JOIN_H

#include <libswresample/swresample.h>

#include <stoker/buffer.h>

#include "av/call.h"
#include "av/frame_list.h"
#include "av/packet_list.h"

typedef struct av_join {
    stk_buffer *block;   /* NULL: there is no head */
    size_t rows, sample; /* bytes of a sample in each of them */
    size_t room, used;   /* bytes of a row */
    size_t expected;     /* of those that are decoded */
    SwrContext *convert; /* from the format `from`; NULL: not needed yet */
    enum AVSampleFormat from;
} av_join;

/* Whether `f` can be converted on its way.  What filters make of a layout that is not one of the
 * usual, they know. */
bool av_join_converts(const AVFrame *f);

/* The last frame of `out` goes to the one before it, or becomes a head if that is not like it: in
 * format, channels and rate.  `from`, what is decoded, or NULL, tells how much comes.  `format`:
 * what frames that can be converted become; AV_SAMPLE_FMT_NONE: they stay. */
STK_NODISCARD stk_err av_join_push(av_join *j, stk_frames *out, const stk_packets *from,
                                   enum AVSampleFormat format, stk_av_call *call);

/* No more come: the head, which is the last of `out`, has its samples. */
STK_NODISCARD stk_err av_join_end(av_join *j, stk_frames *out, stk_av_call *call);

/* Lets go of what no frame has; also of all zero. */
void av_join_fini(av_join *j);

#endif /* STK_AV_JOIN_H */
