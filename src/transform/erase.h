/*
 * stk_erase: a rectangle of one colour, or of noise, in every frame.
 *
 * Threads: any; no state.
 */
#ifndef STK_TRANSFORM_ERASE_H
#define STK_TRANSFORM_ERASE_H

#include "transform/raster.h"

typedef struct stk_erase {
    int32_t x, y, width, height; /* lies in the frame; may be empty */
    const uint8_t *fill;         /* of each channel; NULL: noise, the same in all frames */
    uint32_t key[2];             /* of the noise */
} stk_erase;

void stk_erase_run(const stk_erase *e, const stk_raster *r);

/* n pixels of a colour. */
void stk_erase_row(const uint8_t *fill, int32_t channels, uint8_t *dst, size_t n);

#endif /* STK_TRANSFORM_ERASE_H */
