/*
 * The inside of stk_resample: what plan (resample.c) makes and rows (resample_rows.c) use.
 *
 *     source row ──horizontal──► ring of 16-bit rows ──vertical──────────────► destination row
 *                                      └─ many taps: accumulate ─► sums ─finish─┘
 *
 * or, where Pillow takes the vertical pass first and that makes a difference,
 *
 *     source row ──► ring of 16-bit rows ──vertical or sums──► middle row ──horizontal──► line
 *                                                                          destination row ◄──┘
 */
#ifndef STK_TRANSFORM_RESAMPLE_IMPL_H
#define STK_TRANSFORM_RESAMPLE_IMPL_H

#include "transform/kernels.h"
#include "transform/resample.h"
#include "transform/resample_axis.h"

/* The most rows that a vertical pass mixes at once; a destination row made of more is summed up
 * piece by piece. */
#define STK_RESAMPLE_RING 16

/* Vertical first: weights are too precise for 16 bits.  So each row is in the ring twice, one time
 * shifted up by LOW_BITS, and each weight in two parts: v * w = (v << 7) * (w >> 7) + v * (w &
 * 127). */
#define STK_RESAMPLE_LOW_BITS 7

typedef struct stk_block {
    uint8_t *mem;
    size_t size;
} stk_block;

struct stk_resample {
    const stk_kernels *kernels;
    stk_resample_params params;
    bool planned;
    bool copies; /* pixels are picked, not mixed: neither pass is needed */
    stk_block tables, scratch;

    stk_axis x, y;
    int32_t first_row, end_row;
    int32_t first_column, end_column; /* of a row that comes */

    stk_horizontal runs[2]; /* left and right part of a destination row */
    bool run_in_tail[2];    /* whose source is `tail` */
    int32_t steps, fraction;
    struct quick_tables {
        int32_t *base;
        uint8_t *shuffle;
        int16_t *coef;
    } quick;           /* of both runs */
    stk_narrow narrow; /* instead of the runs */
    int32_t tail_at;   /* byte of the row at which the tail begins */
    uint8_t *tail;     /* the row's end, padded for kernels that read too far */

    bool vertical_first;
    bool is_narrow;         /* the horizontal pass is kernel `narrow` */
    bool blends;            /* the vertical pass has few taps, none below zero: kernel `blend` */
    int32_t values;         /* that the vertical pass makes a row of */
    size_t row_values;      /* from one row of `ring` or `sums` to the next */
    int32_t copies_in_ring; /* 2 if vertical_first */
    int32_t ring_rows;      /* source rows */
    int16_t *ring;          /* source row n is row n % ring_rows */
    bool piecewise;
    int32_t open_rows;
    int32_t *sums;   /* destination row n is row n % open_rows */
    uint8_t *middle; /* vertical_first: a row as wide as the source's */
    int16_t *line;   /* vertical_first: what the horizontal pass made of it */

    uint8_t *dst; /* from here on: the image under way */
    ptrdiff_t stride;
    int32_t row;  /* the source row that comes next */
    int32_t next; /* the destination row that is finished next */
};

/* For tests: another table than the fastest one. */
void stk_resample_use_kernels(stk_resample *r, const stk_kernels *kernels);

#endif /* STK_TRANSFORM_RESAMPLE_IMPL_H */
