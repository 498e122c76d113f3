/*
 * stk_normalize: pixels to the numbers that a network takes: out = x * a + b, one a and b for each
 * channel, together with the change of type and layout, in one pass.
 *
 * In: rows of interleaved channels (NHWC), uint8 or float32.  Out: uint8 (rounded to even at a
 * half, clipped), float32, float16, bfloat16 (both rounded to nearest even), NHWC or NCHW.
 * Products and sums are float32.  Kernels for AVX2 and F16C are chosen at run time.
 *
 * Threads: any; no state.
 */
#ifndef STK_TRANSFORM_NORMALIZE_H
#define STK_TRANSFORM_NORMALIZE_H

#include <stoker/ops.h>

#define STK_NORMALIZE_CHANNELS 4

typedef struct stk_normalize {
    stk_dtype in, out;
    stk_layout layout;
    int32_t channels; /* of the pixels, at least 1 */
    int32_t factors;  /* how many of a and b count: `channels`, or 1 for all channels the same */
    float a[STK_NORMALIZE_CHANNELS], b[STK_NORMALIZE_CHANNELS];
} stk_normalize;

/* `images` of `pixels` each.  STK_EINVAL: a type, or factors, that it does not know. */
STK_NODISCARD stk_err stk_normalize_run(const stk_normalize *n, const void *src, void *dst,
                                        int64_t images, int64_t pixels);

/* The loops.  a and b repeat after `period` values: 8, 16, 24 or 32, and `n` is any number. */
typedef struct stk_normalize_kernels {
    const char *name;
    void (*affine)(stk_dtype in, stk_dtype out, const void *src, void *dst, int64_t n,
                   const float *a, const float *b, int32_t period);
    /* Three colours of uint8, each to a plane of its own. */
    void (*split3)(const uint8_t *src, uint8_t *const planes[3], int64_t pixels);
} stk_normalize_kernels;

/* Tables that this processor can run, slowest (scalar) first; NULL past the last. */
const stk_normalize_kernels *stk_normalize_kernels_at(size_t i);

/* As stk_normalize_run, by a given table: for tests. */
STK_NODISCARD stk_err stk_normalize_run_by(const stk_normalize_kernels *k, const stk_normalize *n,
                                           const void *src, void *dst, int64_t images,
                                           int64_t pixels);

extern const stk_normalize_kernels stk_normalize_scalar;
#if defined(__x86_64__)
extern const stk_normalize_kernels stk_normalize_avx2;
#endif

#endif /* STK_TRANSFORM_NORMALIZE_H */
