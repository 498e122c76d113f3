/*
 * stk_blur: a Gaussian of odd size along rows and columns; pixels beyond the edge are those of the
 * mirror there, the edge itself not repeated, as often as the size takes.
 *
 * Weights are exp(-x^2 / (2 sigma^2)), of sum 1; the result is within 1 of their sum.
 *
 * Threads: any; no state.
 */
#ifndef STK_TRANSFORM_BLUR_H
#define STK_TRANSFORM_BLUR_H

#include <stoker/augment.h>

#include "transform/raster.h"

typedef struct stk_blur {
    int32_t width, height; /* of the kernel: odd, 1 to STK_BLUR_MAX */
    double sigma;          /* above 0 */
} stk_blur;

/* Sums in 16 bits: pixels with this much fraction, of which two make a pair, as a kernel is
 * symmetric, times weights of 16 bits, of which the upper half is kept: one instruction. */
enum { STK_BLUR_FRACTION = 7 };

typedef struct stk_blur_kernels {
    const char *name;

    /* Along a row: `step` bytes to the next pixel, which is readable `reach` times on either side
     * of `mid`.  weight[0] is that of the middle, of 65,536. */
    void (*along)(const uint16_t *weight, int32_t reach, const uint8_t *mid, size_t step, size_t n,
                  uint16_t *out);

    /* Across 2 reach + 1 of such rows, to pixels; `sum`: scratch of n. */
    void (*across)(const uint16_t *weight, int32_t reach, const uint16_t *const *rows, size_t n,
                   uint16_t *sum, uint8_t *out);
} stk_blur_kernels;

/* As those of stk_tile. */
const stk_blur_kernels *stk_blur_kernels_best(void);
const stk_blur_kernels *stk_blur_kernels_at(size_t i);

extern const stk_blur_kernels stk_blur_plain;
#if defined(__x86_64__)
extern const stk_blur_kernels stk_blur_avx2;
#endif

/* Bytes of scratch memory, 64-byte aligned, that a frame like those of `r` needs. */
size_t stk_blur_scratch(const stk_blur *b, const stk_raster *r);

/* From src to dst, of one shape, perhaps the same memory. */
void stk_blur_run(const stk_blur_kernels *k, const stk_blur *b, const stk_raster *src,
                  const stk_raster *dst, void *scratch);

#endif /* STK_TRANSFORM_BLUR_H */
