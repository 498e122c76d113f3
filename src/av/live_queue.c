#include "av/live_queue.h"

#include <stdlib.h>
#include <string.h>

#include "av/module.h"
#include "base/alloc.h"

stk_err av_live_queue_init(av_live_queue *q, size_t size, bool keep)
{
    q->size = size;
    q->keep = keep;
    q->came = stk_clock_ns();
    q->ring = stk_alloc_zero(size, sizeof(*q->ring));
    if (!q->ring) return STK_ENOMEM;
    stk_err err = stk_mutex_init(&q->lock);
    if (!err) err = stk_cond_init(&q->news);
    if (!err) err = stk_cond_init(&q->room);
    if (!err) err = stk_cond_init(&q->over);
    return err;
}

/* The oldest frame, out of the queue. */
static av_live_entry pop_locked(av_live_queue *q) STK_REQUIRES(q->lock)
{
    const av_live_entry e = q->ring[q->head];
    q->head = (q->head + 1) % q->size;
    q->n--;
    return e;
}

void av_live_queue_fini(av_live_queue *q)
{
    for (; q->n; q->n--) {
        mod_frames_unref(&q->ring[q->head].frames);
        q->head = (q->head + 1) % q->size;
    }
    stk_free(q->ring);
    q->ring = NULL;
    stk_cond_fini(&q->over);
    stk_cond_fini(&q->room);
    stk_cond_fini(&q->news);
    stk_mutex_fini(&q->lock);
}

stk_err av_live_queue_put(av_live_queue *q, stk_frames **frames, int64_t arrived)
{
    stk_frames *spare = NULL; /* let go of without the lock */
    stk_mutex_lock(&q->lock);
    while (q->keep && q->n == q->size && !q->closed)
        (void)stk_cond_wait(&q->room, &q->lock, STK_NEVER);
    const bool closed = q->closed;
    if (closed) {
        spare = *frames;
    }
    else {
        if (q->n == q->size) {
            spare = pop_locked(q).frames;
            q->dropped++;
        }
        q->ring[(q->head + q->n++) % q->size] = (av_live_entry){*frames, arrived};
        q->received++;
        q->came = stk_clock_ns();
        stk_cond_signal(&q->news);
    }
    stk_mutex_unlock(&q->lock);
    *frames = NULL;
    if (spare) mod_frames_unref(&spare);
    return closed ? STK_ECANCELLED : STK_OK;
}

stk_err av_live_queue_take(av_live_queue *q, int64_t timeout, stk_frames **out, stk_diag *diag)
{
    const int64_t deadline = stk_deadline_ns(timeout);
    stk_err err = STK_OK;
    *out = NULL;
    stk_mutex_lock(&q->lock);
    while (!q->n && !q->ended && !q->closed &&
           (timeout == STK_FOREVER || stk_clock_ns() < deadline))
        (void)stk_cond_wait(&q->news, &q->lock, deadline);
    if (q->closed) {
        err = stk_diag_set(diag, STK_ECANCELLED, "it was closed");
    }
    else if (q->n) {
        const av_live_entry e = pop_locked(q);
        *out = e.frames;
        q->latencies[q->delivered++ % AV_LIVE_LATENCIES] = stk_clock_ns() - e.arrived;
        stk_cond_signal(&q->room);
    }
    else if (q->ended) {
        err = q->end;
        if (diag) *diag = q->why;
    }
    else {
        err = STK_EAGAIN;
    }
    stk_mutex_unlock(&q->lock);
    return err;
}

void av_live_queue_end(av_live_queue *q, stk_err end, const stk_diag *why)
{
    stk_mutex_lock(&q->lock);
    q->ended = true;
    q->end = end;
    q->why = *why;
    stk_cond_broadcast(&q->news);
    stk_cond_broadcast(&q->over);
    stk_mutex_unlock(&q->lock);
}

void av_live_queue_close(av_live_queue *q)
{
    bool more = true;
    while (more) { /* frames are let go of without the lock */
        stk_frames *spare = NULL;
        stk_mutex_lock(&q->lock);
        q->closed = true;
        if (q->n) {
            spare = pop_locked(q).frames;
            q->dropped++;
        }
        more = q->n > 0;
        stk_cond_broadcast(&q->news);
        stk_cond_broadcast(&q->room);
        stk_mutex_unlock(&q->lock);
        if (spare) mod_frames_unref(&spare);
    }
}

bool av_live_queue_wait_end(av_live_queue *q, int64_t timeout)
{
    const int64_t deadline = stk_deadline_ns(timeout);
    stk_mutex_lock(&q->lock);
    while (!q->ended && stk_cond_wait(&q->over, &q->lock, deadline)) continue;
    const bool ended = q->ended;
    stk_mutex_unlock(&q->lock);
    return ended;
}

static int compare(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* The smallest one that so many percent are not above. */
static int64_t percentile(const int64_t *sorted, size_t n, size_t percent)
{
    return n ? sorted[(n * percent + 99) / 100 - 1] : -1;
}

void av_live_queue_stats(av_live_queue *q, stk_live_stats *out)
{
    int64_t latencies[AV_LIVE_LATENCIES];
    stk_mutex_lock(&q->lock);
    *out = (stk_live_stats){.received = q->received,
                            .delivered = q->delivered,
                            .dropped = q->dropped,
                            .waiting = q->n,
                            .silence = stk_clock_ns() - q->came};
    const size_t n =
        q->delivered < AV_LIVE_LATENCIES ? (size_t)q->delivered : (size_t)AV_LIVE_LATENCIES;
    memcpy(latencies, q->latencies, n * sizeof(*latencies));
    stk_mutex_unlock(&q->lock);
    qsort(latencies, n, sizeof(*latencies), compare);
    out->p50 = percentile(latencies, n, 50);
    out->p90 = percentile(latencies, n, 90);
    out->p99 = percentile(latencies, n, 99);
    out->max = percentile(latencies, n, 100);
}
