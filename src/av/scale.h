/*
 * av_scale: pictures converted by libswscale alone, into memory that becomes their array.
 *
 * It does what the filters
 *
 *     [crop=w=W:h=H:x=X:y=Y:exact=1,][scale=w=W:h=H:flags=F,]format=pix_fmts=P[,hflip]
 *
 * do, to the bit, for pixels of whole bytes in one plane; the rest is av_filter's.  Frames have
 * rows of whole cache lines, as others of FFmpeg's; an array's are of whole blocks of pixels.
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
    enum AVPixelFormat format;       /* AV_PIX_FMT_NONE: the filters are others */
    int x, y, box_width, box_height; /* what is scaled; 0: all of the picture */
    int width, height;               /* 0: as the box has them */
    char flags[16];                  /* of libswscale; empty: its own */
    bool mirror;

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

/* Whether it can do this picture, as a frame, and into an array. */
bool av_scale_fits(const av_scale *s, const AVFrame *frame);
bool av_scale_fits_array(const av_scale *s, const AVFrame *frame);

/* What to make room for, if a block begins: the smaller of the two, but one picture. */
typedef struct av_room {
    size_t pictures, bytes;
} av_room;

/* Adds the picture to `out`. */
STK_NODISCARD stk_err av_scale_push(av_scale *s, const AVFrame *frame, const av_room *room,
                                    stk_frames *out, stk_av_call *call);

/* The array that the picture becomes. */
void av_scale_spec(const av_scale *s, const AVFrame *frame, stk_spec *out);

/* The same of what fits an array to memory of the caller's, aligned to AV_SCALE_ALIGN.  Pictures
 * are whole multiples of it, so that they may follow each other; nothing behind is written. */
#define AV_SCALE_ALIGN 16
STK_NODISCARD stk_err av_scale_into(av_scale *s, const AVFrame *frame, uint8_t *dst,
                                    stk_av_call *call);

/* The pictures that were made belong to one call: the next begin another block. */
void av_scale_end(av_scale *s);

#endif /* STK_AV_SCALE_H */
