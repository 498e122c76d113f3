/*
 * stk_jitter: brightness, contrast, saturation and hue of pictures, one step after the other.
 *
 *     brightness   blend of the pixel and black       contrast   of it and the frame's mean luma
 *     saturation   of the pixel and its own luma      hue        the angle of HSV turns, in turns
 *
 * blend(x, o) = f x + (1 - f) o, where 1 changes nothing.  A step's result is rounded and clipped
 * to 0 to 255; it is within 1 of the formula.  A picture of one channel has no saturation and no
 * hue.
 *
 * Threads: any; no state.
 */
#ifndef STK_TRANSFORM_JITTER_H
#define STK_TRANSFORM_JITTER_H

#include "transform/raster.h"
#include "transform/tile.h"

typedef enum stk_jitter_kind {
    STK_JITTER_BRIGHTNESS,
    STK_JITTER_CONTRAST,
    STK_JITTER_SATURATION,
    STK_JITTER_HUE,
} stk_jitter_kind;

#define STK_JITTER_MAX 16.0 /* factors of blends: 0 to this */

typedef struct stk_jitter_step {
    stk_jitter_kind kind;
    double factor; /* hue: -1 to 1 */
} stk_jitter_step;

/* In place; 1 or 3 channels. */
void stk_jitter_run(const stk_tile_kernels *k, const stk_jitter_step *steps, size_t n,
                    const stk_raster *r);

/* Every colour becomes its luma; the channels stay.  1 or 3 channels. */
void stk_jitter_gray(const stk_tile_kernels *k, const stk_raster *r);

#endif /* STK_TRANSFORM_JITTER_H */
