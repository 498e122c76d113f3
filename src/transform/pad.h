/*
 * stk_pad: pixels added on each side of every frame.
 *
 * Threads: any; no state.
 */
#ifndef STK_TRANSFORM_PAD_H
#define STK_TRANSFORM_PAD_H

#include "transform/border.h"
#include "transform/raster.h"

typedef struct stk_pad {
    int32_t left, top, right, bottom;
    stk_pad_mode mode;
    const uint8_t *fill; /* of each channel; STK_PAD_CONSTANT only */
} stk_pad;

/* dst is that much larger than src. */
void stk_pad_run(const stk_pad *p, const stk_raster *src, const stk_raster *dst);

#endif /* STK_TRANSFORM_PAD_H */
