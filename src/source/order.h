/*
 * stk_order_*: which sample is at which position of an epoch, by arithmetic alone.
 *
 *     positions of an epoch   0 1 2 3 4 5 6 | 7      count = 7, world_size = 4
 *     rank                    0 1 2 3 0 1 2   3      rank 3's second step is a gap
 *     step                    0 0 0 0 1 1 1   1
 *
 * A shuffled epoch maps each position through a permutation keyed by (seed, epoch).
 *
 * Threads: any; nothing has state.
 */
#ifndef STK_SOURCE_ORDER_H
#define STK_SOURCE_ORDER_H

#include <stoker/source.h>

#include "source/permute.h"

#define STK_ORDER_GAP INT64_C(-1)

/* Copies *in with its defaults filled in.  STK_EINVAL: out of range, *diag says what. */
STK_NODISCARD stk_err stk_order_check(const stk_order_opts *in, stk_order_opts *out,
                                      stk_diag *diag);

/* Positions of one epoch of one rank, gaps included; the same for every rank. */
int64_t stk_order_steps(const stk_order_opts *o, int64_t count);

/* The position of this rank's `step`, the same with and without a shuffle. */
int64_t stk_order_position(const stk_order_opts *o, int64_t step);

/* The shuffle of an epoch; left alone without one. */
void stk_order_epoch(const stk_order_opts *o, int64_t count, int64_t epoch, stk_permutation *p);

/* The sample at this rank's `step`, or STK_ORDER_GAP.  `p` as stk_order_epoch made it. */
int64_t stk_order_index(const stk_order_opts *o, int64_t count, const stk_permutation *p,
                        int64_t step);

/* Another sample of this rank's epoch than `id`, which must be one of them, or STK_ORDER_GAP:
 * attempts 0, 1, ... name each of the others once, in an order of (seed, epoch, id).
 * STK_EEND: there are no more.  STK_EINVAL: `id` is not this rank's. */
STK_NODISCARD stk_err stk_order_substitute(const stk_order_opts *o, int64_t count, int64_t id,
                                           int64_t epoch, int attempt, int64_t *out);

#endif /* STK_SOURCE_ORDER_H */
