/*
 * stk_axis: which source pixels make each destination pixel along one side, and their weights.
 *
 *     destination i  =  sum of coef[i * taps + k] * source[first[i] + k], k < size[i],  >>
 * precision
 *
 * Weights are integers whose sum is exactly 1 << precision, so that a flat area stays flat.  They
 * fit 16 bits unless a precision is asked for.
 * Windows never step back: first[i] <= first[i + 1] and first[i] + size[i] likewise, so that a
 * stream of source pixels finishes destinations in order.
 *
 * Threads: plain values.  Memory: the caller's.
 */
#ifndef STK_TRANSFORM_RESAMPLE_AXIS_H
#define STK_TRANSFORM_RESAMPLE_AXIS_H

#include <stoker/ops.h>

typedef struct stk_axis_params {
    int32_t src;         /* pixels there are */
    double begin, end;   /* the box along this side */
    int32_t full;        /* pixels the box becomes */
    int32_t from, count; /* the part of them that is wanted */
    stk_filter filter;
    bool outside;  /* pixels beyond the box may be used */
    bool reversed; /* made for the mirrored source, then mirrored itself: ties fall the other way */
    bool twice;    /* as in stk_resample_params */
    int32_t max_precision;
    bool wide; /* max_precision is what it gets, also where weights need more than 16 bits */
} stk_axis_params;

typedef struct stk_axis {
    int32_t count;
    int32_t taps;    /* from one destination's coefficients to the next's */
    int32_t longest; /* the most that one destination has, at most taps */
    int32_t precision;
    bool copies; /* every destination is one source pixel, unchanged */
    int32_t *first, *size;
    int32_t *coef;
} stk_axis;

/* The most taps that a window can have, before stk_axis_build knows them. */
int32_t stk_axis_max_taps(const stk_axis_params *p);

/* Fills *a, whose three arrays have room for n, n and n * taps: n is count rounded up to a multiple
 * of four, and taps is set to stk_axis_max_taps; `weights` is scratch for that many. */
void stk_axis_build(const stk_axis_params *p, double *weights, stk_axis *a);

/* Sources [*first, *end) are all that any destination uses. */
void stk_axis_range(const stk_axis *a, int32_t *first, int32_t *end);

#endif /* STK_TRANSFORM_RESAMPLE_AXIS_H */
