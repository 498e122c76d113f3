/*
 * stk_kernels: the inner loops of resampling, one table of functions for each instruction set.
 *
 * A row of bytes becomes a row of 16-bit intermediates (horizontal), several of these become a
 * row of bytes (vertical; or accumulate, accumulate, ... finish, where there are many).  All is
 * integer arithmetic, so every table gives the same bits.
 *
 * Intermediates carry `fraction` bits below the pixel's value and are clipped to the pixel's
 * range, as they would be if they were pixels.
 *
 * Threads: any; no state.
 */
#ifndef STK_TRANSFORM_KERNELS_H
#define STK_TRANSFORM_KERNELS_H

#include <stddef.h>
#include <stdint.h>

enum {
    STK_KERNEL_GROUP = 4,  /* pixels that a horizontal pass makes at a time */
    STK_KERNEL_STEP = 4,   /* taps that it takes at a time */
    STK_KERNEL_LANES = 16, /* intermediates that a vertical pass reads at a time */
    STK_KERNEL_ROWS = 8,   /* rows of one `accumulate` */
    STK_KERNEL_BLEND = 6,  /* bits of fraction that `blend` takes, and `narrow` makes */
    STK_KERNEL_NARROW = 4, /* taps of `narrow` */
};

/* Weights of one group and step.  One channel: [pixel][tap].  Else each is there for four colours,
 * in the order in which registers want them: pixels 0 and 2, then 1 and 3, each taps 0 and 1, then
 * 2 and 3: 4 x [0 1 0 1 0 1 0 1 of one pixel, 0 1 0 1 0 1 0 1 of the other]. */
#define STK_KERNEL_BLOCK(channels) ((channels) == 1 ? 16 : 64)

/* Where the weight of a tap is in its block; for colours, also at + 2, + 4 and + 6. */
#define STK_KERNEL_WEIGHT(channels, pixel, tap) \
    ((channels) == 1 ? (pixel)*4 + (tap)        \
                     : ((pixel) % 2 * 2 + (tap) / 2) * 16 + (pixel) / 2 * 8 + (tap) % 2)

/* Bytes that a horizontal pass reads from a pixel's first tap on. */
#define STK_KERNEL_READS(channels, steps) \
    ((channels) == 1 ? 4 * (steps) + 12 : 4 * (channels) * ((steps)-1) + 16)

/* One channel and no more than four taps: eight pixels at a time, from two loads of 16 bytes.  For
 * kernels that have no use for it, the tables of stk_horizontal hold the same. */
typedef struct stk_quick {
    const int32_t *base;    /* byte offset of each group's load; NULL: not to be used */
    const uint8_t *shuffle; /* [two groups][32]: taps 0 and 1 of each pixel of one, then 2 and 3 */
    const int16_t *coef;    /* [two groups][32]: taps 0 and 1 of each pixel of both, then 2 and 3 */
} stk_quick;

typedef struct stk_horizontal {
    const int32_t *offset; /* byte offset of each pixel's first tap: groups * 4 */
    const int16_t *coef;   /* [group][step] blocks */
    stk_quick quick;
    int32_t groups, steps;
    int32_t shift;    /* of the sum of products: precision - fraction, at least 1 */
    int32_t fraction; /* bits */
} stk_horizontal;

/* Writes groups * 4 pixels, and scratches up to 8 values behind them. */
typedef void stk_horizontal_fn(const stk_horizontal *h, const uint8_t *src, int16_t *dst);

/* One channel, no more than four taps, weights of 6 bits that are not negative: sixteen pixels at
 * a time, each half from one load of 16 bytes, and nothing is rounded. */
typedef struct stk_narrow {
    const int32_t *base;    /* byte offset of each eight pixels' load */
    const uint8_t *shuffle; /* [sixteen pixels][pair of taps][32]: which bytes of the loads */
    const int8_t *coef;     /* the same of weights, 0 to 64 */
    int32_t count;          /* of sixteen pixels */
    int32_t pairs;          /* of taps: 1 or 2 */
} stk_narrow;

typedef struct stk_kernels {
    const char *name;

    stk_horizontal_fn *horizontal1, *horizontal3, *horizontal4; /* by channels */

    /* Writes count * 16 values with STK_KERNEL_BLEND bits of fraction. */
    void (*narrow)(const stk_narrow *n, const uint8_t *src, int16_t *dst);

    /* dst[x] = sum over rows of rows[i][x] * coef[i], rounded, >> shift, clipped.  `n` is even.
     * Rows are readable up to a multiple of STK_KERNEL_LANES; dst gets `count` bytes exactly. */
    void (*vertical)(const int16_t *const *rows, const int16_t *coef, int32_t n, int32_t count,
                     int32_t shift, uint8_t *dst);

    /* The same for weights that are not negative, 15 bits, 1.0 being 32,767, and for rows whose
     * fraction is STK_KERNEL_BLEND: each product is rounded to it.  `n` may be odd. */
    void (*blend)(const int16_t *const *rows, const int16_t *coef, int32_t n, int32_t count,
                  uint8_t *dst);

    /* acc[x] += sum over STK_KERNEL_ROWS rows; count rounded up to STK_KERNEL_LANES. */
    void (*accumulate)(const int16_t *const *rows, const int16_t *coef, int32_t count,
                       int32_t *acc);

    /* dst[x] = acc[x], rounded, >> shift, clipped; `count` of them exactly. */
    void (*finish)(const int32_t *acc, int32_t count, int32_t shift, uint8_t *dst);

    /* JFIF YCbCr (BT.601, full range) to RGB, interleaved, in place or not. */
    void (*ycc_to_rgb)(const uint8_t *src, uint8_t *dst, int32_t pixels);
} stk_kernels;

/* The fastest table that this processor can run. */
const stk_kernels *stk_kernels_best(void);

/* Every table that this processor can run, slowest (scalar) first; NULL past the last. */
const stk_kernels *stk_kernels_at(size_t i);

extern const stk_kernels stk_kernels_scalar; /* the reference for the others */
void stk_color_ycc_to_rgb_scalar(const uint8_t *src, uint8_t *dst, int32_t pixels);
/* Y, Cb and Cr apart; makes what is a multiple of 32, and returns how many. */
int32_t stk_color_planes_to_rgb_simd(const uint8_t *const planes[3], uint8_t *dst, int32_t pixels);
#if defined(__x86_64__)
extern const stk_kernels stk_kernels_avx2;
/* [colour][register]: which bytes of three registers, 16 pixels, belong to the colour. */
extern const int8_t stk_kernel_split3[3][3][16];
void stk_color_ycc_to_rgb_avx2(const uint8_t *src, uint8_t *dst, int32_t pixels);
#elif defined(__aarch64__)
extern const stk_kernels stk_kernels_neon;
void stk_color_ycc_to_rgb_neon(const uint8_t *src, uint8_t *dst, int32_t pixels);
#endif

#endif /* STK_TRANSFORM_KERNELS_H */
