/*
 * stk_draws: the random numbers of one sample and stage, one after the other.
 *
 * The same in every run (stk_item_random), so what an op draws depends on no other sample and on no
 * thread.
 *
 * Threads: one.
 */
#ifndef STK_OPS_DRAWS_H
#define STK_OPS_DRAWS_H

#include <stoker/item.h>

typedef struct stk_draws {
    const stk_item *item; /* set this one; the rest is zero */
    uint64_t count;
    uint32_t word[4];
} stk_draws;

uint32_t stk_draws_word(stk_draws *d);

/* In [0, 1). */
double stk_draws_unit(stk_draws *d);

/* From range[0] to range[1]. */
double stk_draws_between(stk_draws *d, const double range[2]);

/* 0 to n - 1; n is at least 1, and at most 2^31. */
int64_t stk_draws_below(stk_draws *d, int64_t n);

/* Of the distribution Beta(a, a), a > 0: in [0, 1]. */
double stk_draws_beta(stk_draws *d, double a);

#endif /* STK_OPS_DRAWS_H */
