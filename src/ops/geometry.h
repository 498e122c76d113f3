/*
 * stk_geometry: which part of an image becomes the sample, and at which size.
 *
 *     options, size of the image, random words ──► box, flip ──► the same in the stored image
 *
 * Everything is said of the image as people see it; EXIF orientation comes in last, when the box
 * is turned into a rectangle of the stored image.
 *
 * Threads: plain values.
 */
#ifndef STK_OPS_GEOMETRY_H
#define STK_OPS_GEOMETRY_H

#include <stoker/ops.h>

#include "codec/codec.h"

/* Four random words; `n` selects the block. */
typedef void stk_draw_fn(void *ctx, uint32_t n, uint32_t out[4]);

typedef struct stk_geometry {
    int32_t x, y, box_width, box_height; /* what is resized, in pixels */
    int32_t full_width, full_height;     /* to this, */
    int32_t left, top, width, height;    /* of which this is the sample */
    bool mirror;
} stk_geometry;

/* Replaces zeros by the defaults that they stand for.  STK_EINVAL: out of range. */
STK_NODISCARD stk_err stk_image_opts_check(const stk_image_opts *opts, stk_image_opts *out,
                                           stk_diag *diag);

/* For checked options and an image of width x height. */
void stk_geometry_draw(const stk_image_opts *opts, int32_t width, int32_t height, stk_draw_fn *draw,
                       void *ctx, stk_geometry *out);

/* A geometry in the stored image, before it is transposed. */
typedef struct stk_placement {
    int32_t x, y, box_width, box_height;
    int32_t full_width, full_height;
    int32_t left, top, width, height;
    bool mirror, upside_down;     /* what turns the stored pixels into the sample, */
    bool transposed;              /* this one last */
    bool from_right, from_bottom; /* the orientation mirrors: as in stk_resample_params */
} stk_placement;

/* `width` x `height`: of the stored image; `orientation`: 1 to 8. */
void stk_geometry_place(const stk_geometry *g, int32_t orientation, int32_t width, int32_t height,
                        stk_placement *out);

/* The pixels that a placement needs, all inside its box, when the filter reaches `support` pixels
 * from the pixel that it makes (twice as many where it makes the image twice smaller).
 * `coarse`: also when they come scaled down, or chroma in pairs. */
stk_rect stk_placement_rect(const stk_placement *p, double support, bool coarse);

#endif /* STK_OPS_GEOMETRY_H */
