/*
 * stk_codec: one image format: encoded bytes to rows of pixels.
 *
 *     match ──► begin (header) ──► window (what is wanted) ──► rows ──► push(row), push(row)...
 *
 * A decoder never makes an image: it delivers rows, top to bottom, of the rectangle that was
 * asked for, and whoever takes them resamples them while they are in cache.  Adding a format is
 * one file with one of these tables, and one line in codec.c.
 *
 * Threads: a decoder (state) belongs to one thread at a time; it is reused image after image.
 */
#ifndef STK_CODEC_CODEC_H
#define STK_CODEC_CODEC_H

#include <stoker/image.h>

typedef struct stk_image_limits {
    int64_t max_pixels;
    int32_t max_side;
} stk_image_limits;

typedef enum stk_pixels {
    STK_PIXELS_GRAY = 1, /* 1 byte a pixel */
    STK_PIXELS_RGB = 3,  /* 3 bytes */
    /* 3 bytes, full-range BT.601 YCbCr (JFIF): conversion is cheaper after resampling */
    STK_PIXELS_YCC = 103,
    /* the same as three planes, chroma as coarse as it is stored: `planes` instead of `rows` */
    STK_PIXELS_PLANES = 203,
} stk_pixels;

/* Rectangle in pixels of the stored (unrotated) image. */
typedef struct stk_rect {
    int32_t x, y, width, height;
} stk_rect;

/* In: what is wanted.  */
typedef struct stk_window_request {
    stk_rect rect;      /* inside the image, not empty */
    int32_t min_width;  /* the rect may be delivered scaled down by 2, 4 or 8 as long as it */
    int32_t min_height; /* keeps at least this many pixels; 0: never scaled down */
    bool gray;          /* one channel wanted */
    bool fast;          /* YCC output and cheap chroma are welcome */
    bool planes;        /* so are planes */
} stk_window_request;

/* Rows that are delivered. */
typedef struct stk_extent {
    int32_t width, height; /* covers at least the rect */
    double x0, y0, x1, y1; /* the requested rect, in coordinates of these rows */
} stk_extent;

/* Out: what rows will be. */
typedef struct stk_row_window {
    stk_pixels pixels;
    int32_t width, height; /* as in stk_extent */
    double x0, y0, x1, y1;
    stk_extent chroma; /* STK_PIXELS_PLANES: of Cb and of Cr, and the above is of Y */
} stk_row_window;

/* Takes one row (window.width pixels, valid during the call).  False: enough, stop decoding. */
typedef bool stk_row_fn(void *ctx, const uint8_t *row);

/* Takes the next row of Y (cb and cr are NULL), or the next rows of Cb and Cr (y is NULL).  False:
 * enough of all planes. */
typedef bool stk_planes_fn(void *ctx, const uint8_t *y, const uint8_t *cb, const uint8_t *cr);

typedef struct stk_codec {
    stk_image_format format;
    const char *name; /* "JPEG" */
    bool (*match)(const uint8_t *data, size_t size);
    stk_err (*probe)(const uint8_t *data, size_t size, stk_image_info *out, stk_diag *diag);
    stk_err (*open)(void **state, stk_diag *diag);
    void (*close)(void *state); /* accepts NULL */
    /* Reads the header; `data` must stay until `rows` returned or the next `begin`. Checks limits.
     */
    stk_err (*begin)(void *state, const uint8_t *data, size_t size, const stk_image_limits *limits,
                     stk_image_info *info, stk_diag *diag);
    stk_err (*window)(void *state, const stk_window_request *req, stk_row_window *out,
                      stk_diag *diag);
    /* STK_ECORRUPT when the data ends or breaks before the last row that `push` wanted. */
    stk_err (*rows)(void *state, stk_row_fn *push, void *ctx, stk_diag *diag);
    /* The same for STK_PIXELS_PLANES; NULL where there never are any. */
    stk_err (*planes)(void *state, stk_planes_fn *push, void *ctx, stk_diag *diag);
} stk_codec;

extern const stk_codec stk_codec_jpeg, stk_codec_png, stk_codec_webp;
/* Through FFmpeg (still.h). */
extern const stk_codec stk_codec_avif, stk_codec_bmp, stk_codec_gif, stk_codec_tiff;

/* How many there may be: a decoder of images has room for the state of each. */
enum { STK_MAX_CODECS = 8 };

/* The codec whose `match` says yes, or NULL. */
const stk_codec *stk_codec_find(const uint8_t *data, size_t size);

#endif /* STK_CODEC_CODEC_H */
