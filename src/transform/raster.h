/*
 * stk_raster: pictures as memory: a picture, or the frames of a clip, one after the other.
 *
 * Rows are contiguous, pixels interleaved, a byte a channel.  No extent is 0, and the product of
 * all fits in a size_t.
 *
 * Memory: borrowed.
 */
#ifndef STK_TRANSFORM_RASTER_H
#define STK_TRANSFORM_RASTER_H

#include <stddef.h>
#include <stdint.h>

typedef struct stk_raster {
    uint8_t *data;
    int64_t frames;
    int32_t height, width, channels;
} stk_raster;

/* Bytes of a row and of a frame. */
static inline size_t stk_raster_row(const stk_raster *r)
{
    return (size_t)r->width * (size_t)r->channels;
}

static inline size_t stk_raster_frame(const stk_raster *r)
{
    return (size_t)r->height * stk_raster_row(r);
}

#endif /* STK_TRANSFORM_RASTER_H */
