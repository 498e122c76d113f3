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
    double x0, y0, x1, y1; /* what becomes the sample, in pixels */
    bool outside;          /* the filter may reach beyond it: it is cut after resizing */
    bool mirror;
    int32_t width, height; /* of the sample */
} stk_geometry;

/* Replaces zeros by the defaults that they stand for.  STK_EINVAL: out of range. */
STK_NODISCARD stk_err stk_image_opts_check(const stk_image_opts *opts, stk_image_opts *out,
                                           stk_diag *diag);

/* For checked options and an image of width x height. */
void stk_geometry_draw(const stk_image_opts *opts, int32_t width, int32_t height, stk_draw_fn *draw,
                       void *ctx, stk_geometry *out);

/* A geometry in the stored image. */
typedef struct stk_placement {
    double x0, y0, x1, y1;
    bool outside;
    bool mirror, upside_down; /* what turns the stored box into the sample, */
    bool transposed;          /* this one last */
    int32_t width, height;    /* of the sample before it is transposed */
} stk_placement;

/* `width` x `height`: of the stored image; `orientation`: 1 to 8. */
void stk_geometry_place(const stk_geometry *g, int32_t orientation, int32_t width, int32_t height,
                        stk_placement *out);

/* The pixels that a placement needs, when its filter reaches `support` pixels beyond the pixel
 * of the sample that it makes (twice as many where it makes the image twice smaller). */
stk_rect stk_placement_rect(const stk_placement *p, double support, int32_t width, int32_t height);

#endif /* STK_OPS_GEOMETRY_H */
