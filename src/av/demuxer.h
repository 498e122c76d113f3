/* A demuxer, and the reading of packets (demux_read.c). */
#ifndef STK_AV_DEMUXER_H
#define STK_AV_DEMUXER_H

#include "av/call.h"
#include "av/input.h"
#include "av/packet_list.h"

struct stk_demuxer {
    size_t max_bytes;

    atomic_flag busy; /* guards everything below; see the header */
    AVFormatContext *fc;
    av_input input;
    AVPacket *packet; /* the one that is being read */
    bool fresh;       /* nothing was read yet */
    bool held;        /* `packet` was read, and belongs to the next call */
};

/* What a call failed of: cancelling, the timeout, a nested input, the system, or `rc`. */
stk_err stk_demuxer_fail(stk_demuxer *d, stk_av_call *call, int rc, const char *what);

/* Reads what `packets`, empty as yet, wants of the one stream that is selected. */
STK_NODISCARD stk_err stk_demuxer_fill(stk_demuxer *d, int stream, stk_packets *packets,
                                       stk_av_call *call);

typedef struct stk_demuxer_part {
    const int *streams;
    size_t n;
    stk_ratio duration;
    size_t num_packets;
} stk_demuxer_part;

/* stk_demuxer_next. */
STK_NODISCARD stk_err stk_demuxer_stream(stk_demuxer *d, const stk_demuxer_part *part,
                                         stk_packets **out, stk_av_call *call);

#endif /* STK_AV_DEMUXER_H */
