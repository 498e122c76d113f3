/*
 * The ops that come with Stoker.  Each constructor gives an stk_op for stk_plan_pipe, or NULL
 * with *diag (may be NULL) saying why: no memory, or an option out of range.  Options may be
 * NULL for the defaults; zero in a field is its default; strings and arrays are copied.
 */
#ifndef STK_OPS_H
#define STK_OPS_H

#include <stoker/op.h>

STK_BEGIN

typedef struct stk_read_opts {
    size_t max_bytes; /* of one file; 0: 256 MiB */
} stk_read_opts;

/* read: key to bytes.  The whole of each file, on I/O threads. */
STK_API stk_op *stk_op_read(const stk_read_opts *opts, stk_diag *diag);

typedef enum stk_crop {
    STK_CROP_NONE = 0,       /* the whole image resized to width x height */
    STK_CROP_CENTER,         /* the short side resized, then the middle cut out */
    STK_CROP_RANDOM_RESIZED, /* a random area and aspect ratio, resized */
} stk_crop;

typedef enum stk_filter {
    STK_FILTER_BILINEAR = 0, /* all but nearest are antialiased, as in Pillow */
    STK_FILTER_BICUBIC,
    STK_FILTER_LANCZOS,
    STK_FILTER_BOX,
    STK_FILTER_NEAREST,
} stk_filter;

typedef enum stk_quality {
    STK_QUALITY_FAST = 0, /* DCT scaling and cheaper chroma; PSNR against exact >= 38 dB */
    STK_QUALITY_EXACT,    /* full-size decoding; resampling within 1 of Pillow's */
} stk_quality;

typedef enum stk_color {
    STK_COLOR_RGB = 0,
    STK_COLOR_GRAY,
} stk_color;

typedef struct stk_image_opts {
    int32_t width, height; /* both 0: keep the size, which all images of a batch must share */
    stk_crop crop;
    stk_filter filter;
    stk_quality quality;
    stk_color color;
    double flip;     /* probability of a left-right flip, 0 to 1 */
    double scale[2]; /* random_resized: area; {0, 0}: {0.08, 1} */
    double ratio[2]; /* random_resized: width / height; {0, 0}: {3/4, 4/3} */
    int32_t resize;  /* center: short side before the cut; 0: max(width, height) * 256 / 224 */
    bool ignore_orientation; /* true: EXIF's, or a video's, is not applied */
    uint32_t nearest_parts;  /* bit i: part i is resampled with NEAREST whatever `filter` (masks) */
    uint32_t gray_parts;     /* bit i: part i is decoded to one channel (masks) */
    uint32_t parts;          /* bit i: part i is decoded, others stay as they are; 0: all */
    int64_t max_pixels;      /* of the encoded image; 0: 178,956,970 (as Pillow's limit) */
    int32_t max_side;        /* of either side; 0: 65,500 */
} stk_image_opts;

/* decode_image: bytes to array (height, width, channels) uint8.  JPEG, PNG and WebP; AVIF, BMP, GIF
 * (its first image) and TIFF through FFmpeg, which is loaded when the first of these comes.  They
 * are recognised by content.  All parts of a sample get the same geometry. */
STK_API stk_op *stk_op_decode_image(const stk_image_opts *opts, stk_diag *diag);

typedef struct stk_npy_opts {
    uint32_t parts; /* as in stk_image_opts */
} stk_npy_opts;

/* load_npy: bytes of a NumPy file to its array, a view of them, of any type that stk_dtype names,
 * in this machine's order of bytes.  All arrays of a batch have one shape. */
STK_API stk_op *stk_op_load_npy(const stk_npy_opts *opts, stk_diag *diag);

typedef enum stk_layout {
    STK_LAYOUT_NHWC = 0,
    STK_LAYOUT_NCHW,
} stk_layout;

typedef struct stk_normalize_opts {
    size_t num_channels; /* length of mean and std: 1 to 4; 1 serves any number of channels */
    const double *mean;  /* NULL: 0 */
    const double *std;   /* NULL: 1 */
    double scale;        /* 0: 255 */
    stk_dtype dtype;     /* uint8 float32 float16 bfloat16; NONE: float32 */
    stk_layout layout;
    const char *field; /* NULL: "image" */
} stk_normalize_opts;

/* normalize: batch to batch: out = (x / scale - mean) / std, in one pass over the field, of
 * pictures or of clips (n, frames, height, width, channels): the layout is that of each picture. */
STK_API stk_op *stk_op_normalize(const stk_normalize_opts *opts, stk_diag *diag);

STK_END

#endif /* STK_OPS_H */
