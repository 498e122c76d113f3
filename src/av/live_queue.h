/*
 * av_live_queue: decoded frames between the thread that makes them and those who take them.
 *
 *     put ──► [oldest][ ][ ][newest] ──► take          received == delivered + dropped + n
 *
 * When it is full, a new frame takes the place of the oldest one, or with `keep` waits for a place.
 *
 * Threads: all functions but init and fini, any thread.
 */
#ifndef STK_AV_LIVE_QUEUE_H
#define STK_AV_LIVE_QUEUE_H

#include <stoker/av_live.h>

#include "base/thread.h"

enum { AV_LIVE_LATENCIES = 1024 }; /* the last ones, of which there are percentiles */

typedef struct av_live_entry {
    stk_frames *frames;
    int64_t arrived; /* stk_clock_ns */
} av_live_entry;

typedef struct av_live_queue {
    size_t size; /* never changes, nor does the next one */
    bool keep;

    stk_mutex lock;            /* guards everything below */
    stk_cond news, room, over; /* one each: a signal must not go to who waits for another */
    av_live_entry *ring;       /* [size] */
    size_t head, n;
    bool closed, ended;
    stk_err end; /* why it ended */
    stk_diag why;
    uint64_t received, delivered, dropped;
    int64_t came;                         /* when the last frame did, or the queue was made */
    int64_t latencies[AV_LIVE_LATENCIES]; /* number i is that of frame i modulo their number */
} av_live_queue;

/* `q` is all zero. */
STK_NODISCARD stk_err av_live_queue_init(av_live_queue *q, size_t size, bool keep);
void av_live_queue_fini(av_live_queue *q);

/* Takes *frames, also if it fails.  STK_ECANCELLED: it was closed. */
STK_NODISCARD stk_err av_live_queue_put(av_live_queue *q, stk_frames **frames, int64_t arrived);

/* The oldest one.  STK_EAGAIN: none came before the timeout.  STK_ECANCELLED: it was closed. Behind
 * the last frame: why it ended. */
STK_NODISCARD stk_err av_live_queue_take(av_live_queue *q, int64_t timeout, stk_frames **out,
                                         stk_diag *diag);

/* Nobody puts any more, because of `why`, which has a text unless it is STK_EEND. */
void av_live_queue_end(av_live_queue *q, stk_err end, const stk_diag *why);

/* What waits is dropped, and everybody who waits is told. */
void av_live_queue_close(av_live_queue *q);

/* False: it has not ended before the timeout. */
bool av_live_queue_wait_end(av_live_queue *q, int64_t timeout);

/* All but `failed`. */
void av_live_queue_stats(av_live_queue *q, stk_live_stats *out);

#endif /* STK_AV_LIVE_QUEUE_H */
