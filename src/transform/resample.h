/*
 * stk_resample: antialiased resizing of a rectangle, fed row by row.
 *
 *     plan (sizes, filter: tables) ──► start (destination) ──► row, row, ... ──► done
 *
 * The result equals Pillow's Image.crop(box).resize(size, filter) within 1 of 255 per value:
 * separable convolution with the filter stretched by the reduction.  (Of Pillow 13, which for
 * filters that overshoot chooses the order of the passes by the sizes.)  Rows come top to bottom;
 * each is used while it is in cache, so no image is ever made.  Kernels for AVX2 and NEON are
 * chosen at run time and give the same bits as the scalar ones.
 *
 * Threads: an object belongs to one thread at a time; it keeps tables and scratch for reuse.
 */
#ifndef STK_TRANSFORM_RESAMPLE_H
#define STK_TRANSFORM_RESAMPLE_H

#include <stoker/ops.h>

typedef struct stk_resample stk_resample;

typedef struct stk_resample_params {
    int32_t src_width, src_height; /* of the source */
    double x0, y0, x1, y1;         /* the box in it that becomes the destination */

    /* The rows that come hold only pixels [row_x, row_x + row_width) of the source's, which must
     * be all that the destination needs.  Both 0: all of them. */
    int32_t row_x, row_width;
    int32_t dst_width, dst_height;

    /* The destination is the dst_width x dst_height window at (dst_x, dst_y) of the box's
     * full_width x full_height result: a resize and a cut in one.  Both full_* 0: the whole. */
    int32_t full_width, full_height;
    int32_t dst_x, dst_y;

    int32_t channels; /* 1, 3 or 4, interleaved uint8 */
    bool pair;        /* one channel, bilinear: two sources of one geometry at once */
    bool coarse;      /* weights along rows may have as few as 6 bits */
    /* The filter is widened as if linear interpolation had brought the source to twice its width
     * (height) before: what JPEG decoders do to chroma. */
    bool twice_x, twice_y;
    stk_filter filter;
    bool outside;     /* pixels outside the box count as well where the filter reaches them, as in
                       * Pillow's resize(size, filter, box=box) */
    bool mirror;      /* flip the destination left-right */
    bool upside_down; /* flip it top-bottom */
    /* The picture is the source mirrored left-right (top-bottom): where a tie falls, and how sums
     * round, is decided from that side.  The destination is as ever, not mirrored. */
    bool from_right, from_bottom;
    bool transposed; /* the picture is the source transposed besides: only the order of the passes
                      * depends on it */
    bool ycc_to_rgb; /* channels == 3: JFIF YCbCr in, RGB out (converted after resampling) */
} stk_resample_params;

STK_NODISCARD stk_err stk_resample_new(stk_resample **out);
void stk_resample_free(stk_resample **r);

/* Sets sizes and tables.  STK_EINVAL: sizes, box or window out of range (sides 1 to 65,535, full
 * sides to 16,777,216, box inside the source and not empty, window inside the full result, rows too
 * narrow). STK_ENOMEM.  After a failure only plan and free may follow. */
STK_NODISCARD stk_err stk_resample_plan(stk_resample *r, const stk_resample_params *params);

/* Rows [*first, *end) are the only ones that matter; others may be left out at both ends. */
void stk_resample_rows(const stk_resample *r, int32_t *first, int32_t *end);

/* Pixels [*first, *end) of each row are the only ones that matter; the others may hold anything. */
void stk_resample_columns(const stk_resample *r, int32_t *first, int32_t *end);

/* Begins an image: `dst` has rows of dst_width * channels bytes (twice that for a pair), `stride`
 * bytes apart.  The first row that comes is number `first_row` of the source (<= *first of
 * stk_resample_rows). */
void stk_resample_start(stk_resample *r, uint8_t *dst, ptrdiff_t stride, int32_t first_row);

/* Takes the next row, row_width pixels.  False: the destination is complete. */
bool stk_resample_row(stk_resample *r, const uint8_t *row);

/* The same for a pair: rows of both sources; destination rows hold that of the first, then that of
 * the second. */
bool stk_resample_row_pair(stk_resample *r, const uint8_t *row, const uint8_t *twin);

/* True when every row of the destination was written. */
bool stk_resample_done(const stk_resample *r);

#endif /* STK_TRANSFORM_RESAMPLE_H */
