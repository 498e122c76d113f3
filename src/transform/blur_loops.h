/* The loops of stk_blur_kernels, in plain C: compiled once for each instruction set. */
#ifndef STK_TRANSFORM_BLUR_LOOPS_H
#define STK_TRANSFORM_BLUR_LOOPS_H

#include "transform/blur.h"

/* What truncated products lose on average, so that it is not lost. */
static uint16_t lost(int32_t reach)
{
    return (uint16_t)((reach + 1) / 2);
}

static inline uint16_t part(uint16_t v, uint16_t weight)
{
    return (uint16_t)(((uint32_t)v * weight) >> 16);
}

/* A tap on either side, apart from the loop over taps: gcc would join two of them, and then make no
 * vectors of either. */
__attribute__((noinline)) static void add_bytes(const uint8_t *a, const uint8_t *b, uint16_t weight,
                                                size_t n, uint16_t *restrict sum)
{
    for (size_t x = 0; x < n; x++) {
        const uint16_t pair = (uint16_t)((a[x] + b[x]) << STK_BLUR_FRACTION);
        sum[x] = (uint16_t)(sum[x] + part(pair, weight));
    }
}

__attribute__((noinline)) static void add_rows(const uint16_t *a, const uint16_t *b,
                                               uint16_t weight, size_t n, uint16_t *restrict sum)
{
    for (size_t x = 0; x < n; x++)
        sum[x] = (uint16_t)(sum[x] + part((uint16_t)(a[x] + b[x]), weight));
}

static void along(const uint16_t *weight, int32_t reach, const uint8_t *mid, size_t step, size_t n,
                  uint16_t *restrict out)
{
    const uint16_t begin = lost(reach);
    for (size_t x = 0; x < n; x++)
        out[x] = (uint16_t)(begin + part((uint16_t)(mid[x] << STK_BLUR_FRACTION), weight[0]));
    for (int32_t i = 1; i <= reach; i++)
        add_bytes(mid - (size_t)i * step, mid + (size_t)i * step, weight[i], n, out);
}

static void across(const uint16_t *weight, int32_t reach, const uint16_t *const *rows, size_t n,
                   uint16_t *restrict sum, uint8_t *restrict out)
{
    const uint16_t *mid = rows[reach];
    const uint16_t begin = (uint16_t)(lost(reach) + (1 << (STK_BLUR_FRACTION - 1)));
    for (size_t x = 0; x < n; x++) sum[x] = (uint16_t)(begin + part(mid[x], weight[0]));
    for (int32_t i = 1; i <= reach; i++)
        add_rows(rows[reach - i], rows[reach + i], weight[i], n, sum);
    for (size_t x = 0; x < n; x++) {
        const uint16_t v = sum[x] >> STK_BLUR_FRACTION;
        out[x] = (uint8_t)(v > 255 ? 255 : v);
    }
}

#define STK_BLUR_TABLE(table, text) \
    const stk_blur_kernels table = {.name = (text), .along = along, .across = across}

#endif /* STK_TRANSFORM_BLUR_LOOPS_H */
