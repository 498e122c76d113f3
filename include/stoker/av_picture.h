/*
 * stk_picture_decoder: pictures, each of which is one piece of bytes to a decoder of FFmpeg's: a
 * BMP, TIFF or GIF file, the item of an AVIF file.
 *
 *     stk_picture (bytes, and what their header says) ──► decoder ──► push(row), push(row)...
 *
 * No demuxer takes part, so nothing but the bytes is read.
 *
 * Threads: a decoder: one at a time.
 */
#ifndef STK_AV_PICTURE_H
#define STK_AV_PICTURE_H

#include <stoker/av.h>

STK_BEGIN

typedef struct stk_picture_decoder stk_picture_decoder;

/* `codec`: FFmpeg's name of it: "bmp", "tiff", "gif", "av1".  STK_EUNSUPPORTED: it has no decoder
 * for that, or there is no FFmpeg. */
STK_API STK_NODISCARD stk_err stk_picture_decoder_new(const char *codec, stk_picture_decoder **out,
                                                      stk_diag *diag);
STK_API void stk_picture_decoder_free(stk_picture_decoder **decoder);

typedef enum stk_picture_range {
    STK_PICTURE_RANGE_OF_DATA = 0,
    STK_PICTURE_RANGE_LIMITED, /* 16 is black */
    STK_PICTURE_RANGE_FULL,
} stk_picture_range;

typedef struct stk_picture {
    const void *data;
    size_t size;
    int32_t width,
        height; /* that the data must have: no memory is taken for more than twice that */
    int32_t x, y, columns, rows; /* the rectangle that is wanted; inside, not empty */
    bool alpha;                  /* rows of RGBA, not of RGB */
    bool exact;                  /* chroma is interpolated, and not repeated */
    bool strict;                 /* what FFmpeg logs as an error is one */
    int matrix; /* of YCbCr, a number of ITU-T H.273; 0: what the data says, else BT.601 */
    stk_picture_range range;
} stk_picture;

/* Takes a row: `columns` pixels of 8 bits a channel, palettes expanded, gray three times, of 16
 * bits the upper 8; valid during the call.  False: no more. */
typedef bool stk_picture_row_fn(void *ctx, const uint8_t *row);

/* Rows from the top.  STK_ECORRUPT: the data, or it is of another size: no row was pushed.
 * STK_EUNSUPPORTED: of a kind that FFmpeg does not decode, or of other pixels. */
STK_API STK_NODISCARD stk_err stk_picture_decode(stk_picture_decoder *decoder,
                                                 const stk_picture *picture,
                                                 stk_picture_row_fn *push, void *ctx,
                                                 stk_diag *diag);

STK_END

#endif /* STK_AV_PICTURE_H */
