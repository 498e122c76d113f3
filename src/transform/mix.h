/*
 * stk_mix: one array of two: shares of each value, or a box of one in the other.
 *
 * Threads: any; no state.
 */
#ifndef STK_TRANSFORM_MIX_H
#define STK_TRANSFORM_MIX_H

#include <stddef.h>
#include <stdint.h>

/* dst = share x a + (1 - share) x b, bytes rounded within 1; dst may be a. */
void stk_mix_bytes(double share, const uint8_t *a, const uint8_t *b, uint8_t *dst, size_t n);
void stk_mix_floats(double share, const float *a, const float *b, float *dst, size_t n);

/* An array as planes, each of rows of pixels of `unit` bytes. */
typedef struct stk_planes {
    int64_t count, height, width;
    size_t unit;
} stk_planes;

typedef struct stk_box {
    int64_t x0, y0, x1, y1; /* within the planes; may be empty */
} stk_box;

/* Copies the box of every plane. */
void stk_mix_box(const stk_planes *p, const stk_box *b, const uint8_t *src, uint8_t *dst);

#endif /* STK_TRANSFORM_MIX_H */
