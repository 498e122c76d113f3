/*
 * stk_live: audio or video that goes on by itself, of a camera say, read and decoded by a thread.
 *
 *     address, pipe ──► [demux, decode, filter] ──► queue ──► stk_live_next
 *
 * The queue has a fixed number of places.  When all are taken, the oldest frame gives its place to
 * the new one and is counted, so who is slow gets the newest; with `keep_all` the thread waits, and
 * so does whoever sends, as far as its protocol lets it.
 *
 * Threads: all functions, any thread; stk_live_free must be the last call.
 */
#ifndef STK_AV_LIVE_H
#define STK_AV_LIVE_H

#include <stoker/av_demux.h>
#include <stoker/av_frames.h>

STK_BEGIN

typedef struct stk_live stk_live;

typedef struct stk_live_opts {
    stk_media media;              /* audio or video; STK_MEDIA_NONE: video */
    const stk_demux_opts *demux;  /* NULL: the defaults; its timeout is that of silence, 0: 10 s */
    const stk_decode_opts *codec; /* NULL: the defaults */
    size_t queue;                 /* places, at most 65,536; 0: 8 */
    bool keep_all;                /* nothing is dropped */
} stk_live_opts;

/*
 * Begins to open the input, which may be an address without the protocols of the options: then it
 * alone is opened, by its own.  Where they do not say otherwise, not more than half a second of the
 * stream, and 256 KiB, is looked at before the first frame is decoded, and decoders of H.264, HEVC
 * and AV1 give frames as soon as they can be shown (low_delay); with `keep_all` FFmpeg's defaults
 * hold.
 * Everything of the options is copied; a reader's functions are called on the thread.
 * What can be known at once is an error of this call: options, a file that is not there.
 */
STK_API STK_NODISCARD stk_err stk_live_open(const stk_av_input *input, const stk_live_opts *opts,
                                            stk_live **out, stk_diag *diag);

/* Closes it.  What still waits for the system, a name to be resolved say, is given five seconds,
 * and ends by itself later. */
STK_API void stk_live_free(stk_live **live);

/* The oldest frame that waits: one picture, or one block of samples.
 * STK_EAGAIN: none came within `timeout`.  STK_EEND: there are no more.  STK_ETIMEOUT: no frame
 * came for as long as the option says.  STK_ECANCELLED: it was closed.  Others: what reading failed
 * of. An end and a failure come behind the frames before them, and again with each further call. */
STK_API STK_NODISCARD stk_err stk_live_next(stk_live *live, int64_t timeout, stk_frames **out,
                                            stk_diag *diag);

/* Ends all that goes on, stk_live_next in other threads too, and lets go of the input. */
STK_API void stk_live_close(stk_live *live);

/* The same, but does not wait until the input was let go of. */
STK_API void stk_live_cancel(stk_live *live);

typedef struct stk_live_stats {
    uint64_t received, delivered, dropped; /* frames: received == delivered + dropped + waiting */
    uint64_t waiting;
    uint64_t failed; /* packets that could not be decoded */
    int64_t silence; /* ns since the last frame came, or if there was none, since it was made */
    int64_t p50, p90, p99, max; /* ns from the arrival of a packet until its frame was handed out,
                                 * of the last 1024 frames; -1: there was none yet */
} stk_live_stats;

STK_API void stk_live_get_stats(stk_live *live, stk_live_stats *out);

STK_END

#endif /* STK_AV_LIVE_H */
