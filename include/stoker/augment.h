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

#define STK_FILL_CHANNELS 4

/* A colour: value[0] for all channels, or `channels` of them, which must be as many as the array
 * has; 0 channels: value[0] as well. */
typedef struct stk_fill {
    int32_t channels; /* 0 to STK_FILL_CHANNELS */
    uint8_t value[STK_FILL_CHANNELS];
} stk_fill;

typedef struct stk_erase_opts {
    double keep;     /* how probable it is that a sample stays as it is, 0 to 1 */
    double scale[2]; /* share of the area; {0, 0}: {0.02, 0.33} */
    double ratio[2]; /* height / width; {0, 0}: {0.3, 3.3} */
    stk_fill fill;
    bool random; /* noise instead of `fill` */
} stk_erase_opts;

/* erase: array to array, in place, the first part only: a random rectangle is filled.  One that is
 * as high or as wide as the picture is drawn again, ten times; then nothing is erased. */
STK_API stk_op *stk_op_erase(const stk_erase_opts *opts, stk_diag *diag);

typedef enum stk_pad_mode {
    STK_PAD_CONSTANT = 0, /* the fill */
    STK_PAD_EDGE,         /* a a | a b c d | d d   the last pixel */
    STK_PAD_REFLECT,      /* c b | a b c d | c b   mirrors in the middle of the last pixel */
    STK_PAD_SYMMETRIC,    /* b a | a b c d | d c   mirrors behind it */
} stk_pad_mode;

#define STK_PAD_MAX 65535

typedef struct stk_pad_opts {
    int32_t left, top, right, bottom; /* pixels, 0 to STK_PAD_MAX */
    stk_pad_mode mode;                /* mirrors repeat as often as it takes */
    stk_fill fill;
    uint32_t mask_parts; /* bit i: part i is a mask, which gets `mask_fill` instead */
    stk_fill mask_fill;
} stk_pad_opts;

/* pad: array to array, each part: pixels are added on each side. */
STK_API stk_op *stk_op_pad(const stk_pad_opts *opts, stk_diag *diag);

#define STK_BLUR_MAX 255

typedef struct stk_blur_opts {
    int32_t width, height; /* of the kernel, odd, up to STK_BLUR_MAX; 0: as the other one */
    double sigma[2];       /* pixels, a range above 0; {0, 0}: {0.1, 2} */
    double keep;           /* how probable it is that a sample stays as it is, 0 to 1 */
} stk_blur_opts;

/* blur: array to array, in place, the first part only: a Gaussian, mirrors beyond the edges. */
STK_API stk_op *stk_op_blur(const stk_blur_opts *opts, stk_diag *diag);

typedef struct stk_rotate_opts {
    double degrees[2]; /* a range, counter-clockwise */
    stk_filter filter; /* STK_FILTER_BILINEAR or STK_FILTER_NEAREST */
    bool expand;       /* true: as large as it takes to hold the whole picture, as Pillow's */
    bool off_center;   /* true: about `center`, in pixels from the left and the top; not expand */
    double center[2];
    stk_fill fill;       /* of what lies beyond the picture */
    uint32_t mask_parts; /* bit i: part i is a mask: nearest, and `mask_fill` */
    stk_fill mask_fill;
    double keep; /* how probable it is that a sample stays as it is, 0 to 1 */
} stk_rotate_opts;

/* rotate: array to array, each part by the same angle; in place unless it expands. */
STK_API stk_op *stk_op_rotate(const stk_rotate_opts *opts, stk_diag *diag);

typedef struct stk_mix_opts {
    double alpha;        /* of Beta(alpha, alpha), which lam is drawn from; 0: 1 */
    double keep;         /* how probable it is that a batch stays as it is, 0 to 1 */
    int64_t num_classes; /* 0: labels stay, and fields are added; else they become shares of each */
    stk_layout layout;   /* of cutmix's field */
    const char *field;   /* NULL: "image" */
    const char *label;   /* NULL: "label" */
} stk_mix_opts;

/*
 * mixup, cutmix: batch to batch: each sample is mixed with the one before it, the first with the
 * last, by one share, lam, that is drawn for the batch (by its number, its epoch and its rank).
 *
 * Without num_classes the batch gets the labels of those partners as "label_b" (if it has labels),
 * and lam as "lam", float32 (n,).  With it, labels of integers (n,) or float32 (n, num_classes)
 * become float32 (n, num_classes), mixed in the same shares, and "lam" is added.  Of a batch that
 * stays as it is lam is 1.  A batch that was mixed is not mixed again.
 *
 * mixup: lam x + (1 - lam) x of the partner; fields of uint8 (rounded) or float32.
 * cutmix: a box of the partner's with 1 - lam of the area, less what lies beyond the picture; lam
 * becomes the share of what stays.  Any type: (n, h, w, c), clips (n, t, h, w, c), or both with the
 * channels before h.  STK_EINVAL: more than 4 channels, where the other layout finds 1 to 4.
 */
STK_API stk_op *stk_op_mixup(const stk_mix_opts *opts, stk_diag *diag);
STK_API stk_op *stk_op_cutmix(const stk_mix_opts *opts, stk_diag *diag);

STK_END

#endif /* STK_AUGMENT_H */
