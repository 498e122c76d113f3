/* Histograms of durations: their bounds are a quarter of an octave apart. */
#include "graph/times.h"

#include <string.h>

#include "base/alloc.h"

#define FIRST_OCTAVE 7 /* everything below 128 ns counts as one */

static size_t slot_of(int64_t ns)
{
    if (ns < INT64_C(1) << FIRST_OCTAVE) return 0;
    const int octave = 63 - __builtin_clzll((unsigned long long)ns);
    const size_t quarter = (size_t)(ns >> (octave - 2)) & 3;
    const size_t slot = (size_t)(octave - FIRST_OCTAVE) * 4 + quarter + 1;
    return slot < STK_TIMES_SIZE ? slot : STK_TIMES_SIZE - 1;
}

static double begin_of(size_t slot)
{
    if (slot == 0) return 0;
    const size_t octave = FIRST_OCTAVE + (slot - 1) / 4;
    return (double)(UINT64_C(4) + (slot - 1) % 4) * (double)(UINT64_C(1) << (octave - 2));
}

void times_add(stk_times *t, int64_t ns, uint64_t num)
{
    t->num[slot_of(ns)] += num;
    t->sum_ns += (double)ns * (double)num;
}

static uint64_t count(const stk_times *t)
{
    uint64_t all = 0;
    for (size_t i = 0; i < STK_TIMES_SIZE; i++) all += t->num[i];
    return all;
}

double stk_times_quantile(const stk_times *t, uint64_t zeros, double q)
{
    const uint64_t all = zeros + count(t);
    double left = q * (double)all - (double)zeros;
    if (all == 0 || left <= 0) return 0;
    size_t last = 0;
    for (size_t i = 0; i < STK_TIMES_SIZE; i++) {
        if (t->num[i] == 0) continue;
        last = i;
        if (left <= (double)t->num[i]) {
            const double begin = begin_of(i);
            return begin + (begin_of(i + 1) - begin) * left / (double)t->num[i];
        }
        left -= (double)t->num[i];
    }
    return begin_of(last + 1); /* rounding */
}

double stk_times_mean(const stk_times *t)
{
    const uint64_t all = count(t);
    return all > 0 ? t->sum_ns / (double)all : 0;
}

static void subtract(stk_times *t, const stk_times *before)
{
    for (size_t i = 0; i < STK_TIMES_SIZE; i++) t->num[i] -= before->num[i];
    t->sum_ns -= before->sum_ns;
}

static double share_since(double now, int64_t elapsed, double then, int64_t before)
{
    const double dt = (double)(elapsed - before);
    const double share = dt > 0 ? (now * (double)elapsed - then * (double)before) / dt : 0;
    return share < 0 ? 0 : share > 1 ? 1 : share;
}

static void stage_since(stk_stage_stats *s, const stk_stage_stats *before)
{
    s->items -= before->items;
    s->failed -= before->failed;
    s->substituted -= before->substituted;
    s->bytes -= before->bytes;
    s->busy_ns -= before->busy_ns;
    s->wait_in_ns -= before->wait_in_ns;
    s->wait_out_ns -= before->wait_out_ns;
    subtract(&s->times, &before->times);
}

static void queue_since(stk_queue_stats *q, int64_t elapsed, const stk_queue_stats *b,
                        int64_t before)
{
    q->occupancy = share_since(q->occupancy, elapsed, b->occupancy, before);
    q->full = share_since(q->full, elapsed, b->full, before);
    q->empty = share_since(q->empty, elapsed, b->empty, before);
    q->puts -= b->puts;
    q->gets -= b->gets;
    q->put_wait_ns -= b->put_wait_ns;
    q->get_wait_ns -= b->get_wait_ns;
    subtract(&q->put_waits, &b->put_waits);
    subtract(&q->get_waits, &b->get_waits);
}

static stk_stats *copy(const stk_stats *from)
{
    stk_stats *s = stk_alloc(sizeof(*s));
    if (!s) return NULL;
    *s = *from;
    s->stages = stk_alloc_zero(s->num_stages, sizeof(*s->stages));
    s->queues = stk_alloc_zero(s->num_queues, sizeof(*s->queues));
    if (!s->stages || !s->queues) {
        stk_stats_free(&s);
        return NULL;
    }
    memcpy(s->stages, from->stages, s->num_stages * sizeof(*s->stages));
    memcpy(s->queues, from->queues, s->num_queues * sizeof(*s->queues));
    return s;
}

stk_err stk_stats_since(const stk_stats *now, const stk_stats *before, stk_stats **out)
{
    *out = NULL;
    if (now->num_stages != before->num_stages || now->num_queues != before->num_queues)
        return STK_EINVAL;
    stk_stats *s = copy(now);
    if (!s) return STK_ENOMEM;
    for (size_t i = 0; i < s->num_stages; i++) stage_since(&s->stages[i], &before->stages[i]);
    for (size_t i = 0; i < s->num_queues; i++)
        queue_since(&s->queues[i], now->elapsed_ns, &before->queues[i], before->elapsed_ns);
    s->results -= before->results;
    s->elapsed_ns -= before->elapsed_ns;
    *out = s;
    return STK_OK;
}
