/*
 * av_scale: pictures converted by libswscale alone, into memory that becomes their array.
 *
 * It does what the filters [scale=w=W:h=H:flags=F,]format=pix_fmts=P do, to the bit, for pixels of
 * whole bytes in one plane and rows of whole cache lines; the rest is av_filter's.
 *
 *     block  [picture][picture][picture]...      one block for what one call decodes
 *
 * A block nobody refers to any more is filled again: fresh memory costs as much as the conversion.
 */
#ifndef STK_AV_SCALE_H
#define STK_AV_SCALE_H

#include <stoker/buffer.h>

#include "av/call.h"
#include "av/frame_list.h"

struct SwsContext;

typedef struct av_scale {
    enum AVPixelFormat format; /* AV_PIX_FMT_NONE: the filters are others */
    int width, height;         /* 0: as the picture has them */
    char flags[16];            /* of libswscale; empty: its own */

    struct SwsContext *sws;
    AVFrame *like; /* the properties it was made for */
    AVFrame *made;
    AVBufferPool *blocks;
    size_t block_size;
    AVBufferRef *block; /* NULL: the next picture begins one */
    size_t used;        /* bytes of it */
} av_scale;

/* Tells libswscale the matrix and range of the frame: what it says, else BT.601. */
void av_scale_set_colors(struct SwsContext *sws, const AVFrame *frame);

/* Reads the text of the filters; NULL is none. */
void av_scale_init(av_scale *s, const char *filters);
void av_scale_fini(av_scale *s);

/* Whether it can do this picture. */
bool av_scale_fits(const av_scale *s, const AVFrame *frame);

/* What to make room for, if a block begins: the smaller of the two, but one picture. */
typedef struct av_room {
    size_t pictures, bytes;
} av_room;

/* Adds the picture to `out`. */
STK_NODISCARD stk_err av_scale_push(av_scale *s, const AVFrame *frame, const av_room *room,
                                    stk_frames *out, stk_av_call *call);

/* The array that the picture becomes. */
void av_scale_spec(const av_scale *s, const AVFrame *frame, stk_spec *out);

/* The same to memory of the caller's, aligned to AV_SCALE_ALIGN, with so many bytes behind it that
 * are the caller's, too, and stay as they are: rows, and so pictures, are whole multiples of it. */
#define AV_SCALE_ALIGN 64
STK_NODISCARD stk_err av_scale_into(av_scale *s, const AVFrame *frame, uint8_t *dst,
                                    stk_av_call *call);

/* The pictures that were made belong to one call: the next begin another block. */
void av_scale_end(av_scale *s);

#endif /* STK_AV_SCALE_H */
