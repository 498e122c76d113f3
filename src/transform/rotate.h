/*
 * stk_rotate: pictures turned about a point, counter-clockwise as people see them.
 *
 * Pixel (x, y) covers the square from there to (x + 1, y + 1).  The centre of each new pixel is
 * turned back; nearest takes the pixel that it falls into, bilinear the four centres around it, in
 * which those beyond the picture are the fill.
 *
 * Threads: any; no state.
 */
#ifndef STK_TRANSFORM_ROTATE_H
#define STK_TRANSFORM_ROTATE_H

#include <stdbool.h>

#include "transform/raster.h"

typedef struct stk_rotate {
    double degrees;
    double x, y;       /* the point, */
    double to_x, to_y; /* and where it is in the result */
    bool bilinear;
    const uint8_t *fill; /* of each channel */
} stk_rotate;

/* The size of all pixels that a picture of width x height touches, turned about its middle, which
 * stays: that of Pillow and torchvision. */
void stk_rotate_extent(double degrees, int32_t width, int32_t height, double *out_width,
                       double *out_height);

/* From src to dst: another memory, perhaps of another size. */
void stk_rotate_run(const stk_rotate *r, const stk_raster *src, const stk_raster *dst);

#endif /* STK_TRANSFORM_ROTATE_H */
