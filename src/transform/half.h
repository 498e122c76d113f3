/*
 * Rounding float32 to narrower types as processors do: to nearest, a tie to even; NaN stays NaN
 * (for uint8: becomes 0), too large becomes infinite (for uint8: 255).
 *
 * Threads: any.
 */
#ifndef STK_TRANSFORM_HALF_H
#define STK_TRANSFORM_HALF_H

#include <stdint.h>

uint16_t stk_half_from_float(float v);
uint16_t stk_bfloat16_from_float(float v);
uint8_t stk_uint8_from_float(float v);

#endif /* STK_TRANSFORM_HALF_H */
