#include "transform/half.h"

#include <string.h>

static uint32_t bits_of(float v)
{
    uint32_t u;
    memcpy(&u, &v, sizeof(u));
    return u;
}

/* u >> n, to nearest, a tie to even; n >= 1. */
static uint32_t shift_rounded(uint32_t u, uint32_t n)
{
    const uint32_t half = UINT32_C(1) << (n - 1);
    return (u + half - 1 + ((u >> n) & 1)) >> n;
}

uint16_t stk_half_from_float(float v)
{
    const uint32_t u = bits_of(v), sign = u >> 16 & 0x8000, size = u & 0x7FFFFFFF;
    if (size > 0x7F800000) return (uint16_t)(sign | 0x7E00 | (size >> 13 & 0x3FF)); /* NaN */
    if (size >= 0x47800000) return (uint16_t)(sign | 0x7C00);                       /* 2^16 */
    if (size >= 0x38800000) /* 2^-14: a normal number; the exponent's bias changes by 112 */
        return (uint16_t)(sign | shift_rounded(size - (UINT32_C(112) << 23), 13));
    if (size < 0x33000000) return (uint16_t)sign; /* 2^-25: half of the smallest, or less */
    const uint32_t mantissa = (size & 0x7FFFFF) | 0x800000;
    return (uint16_t)(sign | shift_rounded(mantissa, 126 - (size >> 23)));
}

uint16_t stk_bfloat16_from_float(float v)
{
    const uint32_t u = bits_of(v);
    if ((u & 0x7FFFFFFF) > 0x7F800000) return (uint16_t)(u >> 16 | 0x40); /* NaN, made quiet */
    return (uint16_t)shift_rounded(u, 16);
}

uint8_t stk_uint8_from_float(float v)
{
    if (!(v > 0.0f)) return 0; /* NaN as well */
    if (v >= 255.0f) return 255;
    const float whole = v + 8388608.0f; /* 2^23: no bits are left below 1, and the sum is rounded */
    return (uint8_t)bits_of(whole);
}
