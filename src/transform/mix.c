#include "transform/mix.h"

#include <math.h>
#include <string.h>

/* The upper half of a product of 16 bits each, one instruction of most processors. */
static inline uint16_t part(uint8_t v, uint16_t weight)
{
    return (uint16_t)(((uint32_t)(uint16_t)(v << 8) * weight) >> 16);
}

void stk_mix_bytes(double share, const uint8_t *a, const uint8_t *b, uint8_t *dst, size_t n)
{
    const double scaled = nearbyint(share * 65536);
    const uint16_t of_a = (uint16_t)(scaled > 65535 ? 65535 : scaled);
    const uint16_t of_b = (uint16_t)(65535 - of_a);
    for (size_t i = 0; i < n; i++) {
        /* Up to 65,278: what three roundings have lost, and a half. */
        const uint16_t sum = (uint16_t)(part(a[i], of_a) + part(b[i], of_b) + 129);
        dst[i] = (uint8_t)(sum >> 8);
    }
}

void stk_mix_floats(double share, const float *a, const float *b, float *dst, size_t n)
{
    const float of_a = (float)share, of_b = (float)(1 - share);
    for (size_t i = 0; i < n; i++) dst[i] = of_a * a[i] + of_b * b[i];
}

void stk_mix_box(const stk_planes *p, const stk_box *b, const uint8_t *src, uint8_t *dst)
{
    const size_t row = (size_t)p->width * p->unit;
    if (b->x1 <= b->x0) return;
    for (int64_t k = 0; k < p->count; k++)
        for (int64_t y = b->y0; y < b->y1; y++) {
            const size_t at = (size_t)(k * p->height + y) * row + (size_t)b->x0 * p->unit;
            memcpy(dst + at, src + at, (size_t)(b->x1 - b->x0) * p->unit);
        }
}
