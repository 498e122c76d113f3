/*
 * av_picture_rows: a decoded picture of any format as rows of RGB or RGBA, 8 bits each.
 *
 * RGB, gray and palettes are read as they are; YCbCr goes through libswscale.
 */
#ifndef STK_AV_PICTURE_ROWS_H
#define STK_AV_PICTURE_ROWS_H

#include <libavutil/frame.h>

#include <stoker/av_picture.h>

#include "av/call.h"

struct SwsContext;

/* What libswscale was set up for; all of it is compared. */
typedef struct av_picture_like {
    int width, height, format, matrix, range, alpha, exact;
} av_picture_like;

/* What pictures share; all zero: nothing. */
typedef struct av_picture_rows {
    uint8_t *bytes; /* a row, or all rows of YCbCr; not kept */
    uint16_t *wide; /* a component of a row */
    struct SwsContext *sws;
    av_picture_like like;
} av_picture_rows;

void av_picture_rows_fini(av_picture_rows *r);

/* `frame` has the size of the picture. */
STK_NODISCARD stk_err av_picture_rows_push(av_picture_rows *r, const AVFrame *frame,
                                           const stk_picture *p, stk_picture_row_fn *push,
                                           void *ctx, stk_av_call *call);

#endif /* STK_AV_PICTURE_ROWS_H */
