/*
 * Ops that change pictures at random: what a sample gets depends on (seed, epoch, id, stage) alone.
 *
 * They take arrays of uint8, (height, width, channels) or, for clips, (frames, height, width,
 * channels), whose frames all get the same.  Names and meanings are those of torchvision.
 * Constructors are as in <stoker/ops.h>: zero in a field is its default.
 */
#ifndef STK_AUGMENT_H
#define STK_AUGMENT_H

#include <stoker/ops.h>

STK_BEGIN

#define STK_FACTOR_MAX 16.0 /* of brightness, contrast and saturation */

typedef struct stk_color_jitter_opts {
    /* Ranges that factors are drawn from, less 1: {-0.4, 0.4} is 0.6 to 1.4; {0, 0}: unchanged. */
    double brightness[2];
    double contrast[2];
    double saturation[2];
    double hue[2]; /* of the whole circle, -0.5 to 0.5 */
    double keep;   /* how probable it is that a sample stays as it is, 0 to 1 */
} stk_color_jitter_opts;

/* color_jitter: array to array, in place, the first part only; 1 or 3 channels.  Brightness,
 * contrast, saturation and hue in an order drawn for each sample. */
STK_API stk_op *stk_op_color_jitter(const stk_color_jitter_opts *opts, stk_diag *diag);

typedef struct stk_grayscale_opts {
    double keep; /* how probable it is that a sample stays as it is, 0 to 1 */
} stk_grayscale_opts;

/* grayscale: array to array, in place, the first part only: luma in all of its channels. */
STK_API stk_op *stk_op_grayscale(const stk_grayscale_opts *opts, stk_diag *diag);

STK_END

#endif /* STK_AUGMENT_H */
