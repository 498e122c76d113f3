/*
 * A decoder's state: packets wait, go through FFmpeg's decoder and the filters, and become frames.
 *
 *     waiting ──► context ──► frame ──► filter or scale ──► out
 *
 * Frames are asked for at the right end; each part asks the one to its left only when it has
 * nothing itself.  So nothing is decoded before it is wanted.
 */
#ifndef STK_AV_DECODER_H
#define STK_AV_DECODER_H

#include "av/due.h"
#include "av/filter.h"
#include "av/join.h"
#include "av/packet_list.h"
#include "av/scale.h"

struct stk_decoder {
    stk_media media;
    AVRational time_base, frame_rate;
    char *filter_text;          /* NULL: none */
    enum AVSampleFormat format; /* to which the filters convert, and do nothing else */
    bool strict, joins;
    int64_t max_frames;
    size_t max_bytes;      /* of what stk_decoder_decode and _pick give, or keep, at once */
    enum AVDiscard effort; /* what the options ask to leave out */
    int flags;             /* of the codec, as the options have them */

    atomic_size_t failed_ever; /* packets; written by who has `busy` */
    atomic_flag busy;          /* guards everything below */
    stk_av_log log;            /* of the context's threads */
    AVCodecContext *context;
    AVPacket *packet;
    AVFrame *frame;
    bool held; /* `frame` waits for the filters to begin anew */
    av_filter filter;
    av_scale scale; /* instead of the filters where it can */
    av_room room;   /* of what is asked for */
    av_join join;   /* if it joins, of what one call gives */

    stk_packets *waiting[STK_DECODER_WAITING + 1]; /* NULL: an end */
    size_t num_waiting;
    size_t at;                /* packets of the first that were sent */
    bool windowed;            /* those that were sent last are */
    bool sent;                /* a packet, since FFmpeg's decoder began */
    bool draining;            /* no more packets, until it says that it is empty */
    bool leave_out, left_out; /* stk_decoder_send_some */
    int drain_errors;

    int64_t first, end;    /* the window of the packets that are decoded, in time_base */
    stk_ratio start;       /* the same as `first`, where it is not INT64_MIN */
    int64_t next;          /* when the next frame begins, where the stream does not say */
    av_due due;            /* pictures of the packets that waited */
    int64_t time;          /* of the packet of `frame`; AV_NOPTS_VALUE: not known */
    size_t given;          /* frames, since it began */
    size_t failed, worked; /* packets */
    stk_diag why;          /* of the first packet that failed */
    stk_err late;          /* comes after the frames that were decoded before it */
    stk_diag late_diag;
};

/* Frames to `out`, until it has `max_frames` or `max_bytes`.  STK_EAGAIN: all that waited is
 * decoded.  STK_EEND: so is all before an end, which still waits.  After another error the decoder
 * must begin anew. */
STK_NODISCARD stk_err stk_decoder_run(stk_decoder *decoder, size_t max_frames, size_t max_bytes,
                                      stk_frames *out, stk_av_call *call);

/* The next frame of what waits into decoder->frame, in the window, before the filters.  STK_EAGAIN,
 * STK_EEND, and errors: as above. */
STK_NODISCARD stk_err stk_decoder_frame(stk_decoder *decoder, stk_av_call *call);

/* Lets go of the first that waits, or of all of them. */
void stk_decoder_pop(stk_decoder *decoder);
void stk_decoder_pop_all(stk_decoder *decoder);

/* As if nothing had been decoded; what waits stays. */
void stk_decoder_begin(stk_decoder *decoder);

/* Who takes pictures, each before the next is decoded. */
typedef struct stk_decoder_taker {
    void (*begin)(void *ctx); /* those that came, if any did, come again */
    stk_err (*take)(void *ctx, AVFrame *frame, stk_av_call *call); /* may take what it holds */
    void *ctx;
} stk_decoder_taker;

/* The frames of these numbers, in their order, whatever waits; `begin` afterwards.  Errors of the
 * taker's end it. */
STK_NODISCARD stk_err stk_decoder_visit(stk_decoder *decoder, const stk_packets *packets,
                                        const size_t *indices, size_t n,
                                        const stk_decoder_taker *to, stk_av_call *call);

/* The same through the filters to `out`. */
STK_NODISCARD stk_err stk_decoder_collect(stk_decoder *decoder, const stk_packets *packets,
                                          const size_t *indices, size_t n, stk_frames *out,
                                          stk_av_call *call);

/* STK_ELIMIT, for what is over max_bytes. */
STK_NODISCARD stk_err stk_decoder_too_much(const stk_decoder *decoder, stk_av_call *call);

/* What stk_decoder_fill does; `begin` afterwards. */
STK_NODISCARD stk_err stk_decoder_write(stk_decoder *decoder, const stk_packets *packets,
                                        const stk_frames_wanted *wanted, uint8_t *dst, size_t size,
                                        stk_av_call *call);

/* --- for those who go on by themselves --- */

/* FFmpeg's decoder begins anew, at any packet. */
void stk_decoder_restart(stk_decoder *decoder);

/* From now on frames are cut to the window of such packets. */
void stk_decoder_set_window(stk_decoder *decoder, const stk_packets *packets);

/* `packet` NULL: no more until it was restarted. */
STK_NODISCARD stk_err stk_decoder_send(stk_decoder *decoder, const AVPacket *packet,
                                       stk_av_call *call);

/* The same for a packet whose frame need not be given if no other refers to it; *left_out: where
 * that can be told, it is not. */
STK_NODISCARD stk_err stk_decoder_send_some(stk_decoder *decoder, const AVPacket *packet,
                                            bool leave_out, bool *left_out, stk_av_call *call);

/* The next frame into decoder->frame, in the window, before the filters.  STK_EAGAIN: it wants a
 * packet.  STK_EEND: it is empty, after the last packet. */
STK_NODISCARD stk_err stk_decoder_receive(stk_decoder *decoder, stk_av_call *call);

av_filter_input stk_decoder_filter_input(const stk_decoder *decoder);

#endif /* STK_AV_DECODER_H */
