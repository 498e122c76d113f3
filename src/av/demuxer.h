/* A demuxer, the reading of packets (demux_read.c), and how an input ends (demux_end.c). */
#ifndef STK_AV_DEMUXER_H
#define STK_AV_DEMUXER_H

#include <stdatomic.h>

#include "av/call.h"
#include "av/input.h"
#include "av/packet_list.h"

/* What is known of the input, for threads that ask while another one reads: as the last call left
 * it. */
typedef struct stk_demuxer_known {
    atomic_int num_streams, audio, video; /* the best ones; -1: none */
    _Atomic int64_t bit_rate, duration;   /* as FFmpeg has them */
} stk_demuxer_known;

typedef struct stk_tally stk_tally; /* what was read of a stream: demux_end.c */

struct stk_demuxer {
    size_t max_bytes; /* never changes, as all down to the next comment */
    size_t frames;    /* that suffice; 0: all */
    bool live;        /* the timeout is that of a call, whatever comes of other streams */
    bool nested;      /* the input may name others */
    const char *by;   /* protocols that open an address, and nothing else; NULL: none */
    const AVInputFormat *format;

    stk_demuxer_known known;

    atomic_flag busy; /* guards everything below; see the header */
    AVFormatContext *fc;
    AVDictionary *options; /* until it is open */
    av_input input;
    AVPacket *packet;   /* the one that is being read */
    bool fresh;         /* nothing was read yet */
    bool held;          /* `packet` was read, and belongs to the next call */
    stk_diag later;     /* of a packet that was looked for ahead: the next call fails of it */
    stk_tally *tallies; /* one for each stream that there was when it was opened */
    unsigned num_tallies;
};

/* In two steps: the first one checks, and opens what has a path; the second one may wait for the
 * input.  `live`: an address is opened by its own protocol, and nothing but it, where the options
 * name none. */
STK_NODISCARD stk_err stk_demuxer_make(const stk_av_input *input, const stk_demux_opts *opts,
                                       bool live, stk_demuxer **out, stk_diag *diag);
STK_NODISCARD stk_err stk_demuxer_start(stk_demuxer *d, stk_diag *diag);

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

/* --- how it ends --- */

/* All streams are read from their first packets on.  Fails the first time only, with STK_ENOMEM. */
STK_NODISCARD stk_err stk_demuxer_count_from_start(stk_demuxer *d);

/* d->packet was read. */
void stk_demuxer_count(stk_demuxer *d);

/* Some of this stream were passed over: whether it is short is not known any more. */
void stk_demuxer_count_part(stk_demuxer *d, unsigned stream);

/* Whether all that was read of the stream, up to the end, is less than the header says, for formats
 * that say it exactly.  Not `surely`: it may be, which is found out quickly. */
bool stk_demuxer_is_short(const stk_demuxer *d, int stream, bool surely);

/* Behind a part that is full.  STK_EEND: nothing is left. */
STK_NODISCARD stk_err stk_demuxer_look_ahead(stk_demuxer *d, const stk_demuxer_part *part,
                                             stk_av_call *call);

/* Of the last part: where the input ends early, the last packets count as damaged, so that whoever
 * decodes them is told.  `complained`: FFmpeg said so. */
void stk_demuxer_mark_end(const stk_demuxer *d, const stk_demuxer_part *part, stk_packets **out,
                          bool complained);

/* --- for those who read by themselves --- */

/* Only these streams are read. */
void stk_demuxer_select(stk_demuxer *d, const int *streams, size_t n);

/* One packet into d->packet.  STK_EEND: no more. */
STK_NODISCARD stk_err stk_demuxer_packet(stk_demuxer *d, stk_av_call *call);

/* To the first packet.  STK_EUNSUPPORTED: the input cannot. */
STK_NODISCARD stk_err stk_demuxer_rewind(stk_demuxer *d, int stream, stk_av_call *call);

/* To a key frame at `at` or before; *at_start: it is the first one, by all that is known. */
STK_NODISCARD stk_err stk_demuxer_seek(stk_demuxer *d, int stream, int64_t at, bool *at_start,
                                       stk_av_call *call);

#endif /* STK_AV_DEMUXER_H */
