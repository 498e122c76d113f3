/*
 * av_index: which packet each picture of a video is, and where decoding it begins; without the
 * packets' data.
 *
 * Times tell.  Where they do not (there are none, or two are the same), pictures can only be
 * counted as they come out of a decoder, from the first packet on.
 */
#ifndef STK_AV_VIDEO_INDEX_H
#define STK_AV_VIDEO_INDEX_H

#include <stoker/error.h>

#include "av/refresh.h"

typedef struct av_entry {
    int64_t pts, dts;
    size_t key; /* the last key frame up to it that is a whole picture; 0 if there is none */
    int size;
    bool shown;    /* it is a picture of the video */
    bool left_out; /* its picture need not come: stk_decoder_send_some */
} av_entry;

typedef struct av_picture {
    int64_t time;
    size_t at; /* its packet */
} av_picture;

typedef struct av_index {
    av_refresh refresh; /* of the codec, before any packet is added; all zero: of none */
    av_entry *list;     /* of packets, in the order of the file */
    size_t n, room;
    int64_t first_key;
    av_picture *shown; /* in the order of their times; av_index_finish makes it */
    size_t num_shown;
    bool untold; /* times do not tell which packet a picture is */
} av_index;

/* Whether it shows anything, as far as that can be told. */
bool av_is_picture(const AVPacket *packet, enum AVCodecID codec);

/* `in`: its picture, if it is one, is part of the video. */
STK_NODISCARD stk_err av_index_add(av_index *x, const AVPacket *packet, enum AVCodecID codec,
                                   bool in);
STK_NODISCARD stk_err av_index_finish(av_index *x);
void av_index_fini(av_index *x); /* also of all zero */

/* The packet that decoding begins with.  A picture that is shown before the key frame in front of
 * it may refer to what is before that. */
size_t av_index_begin(const av_index *x, const av_picture *is);

/* The first picture that is not shown before `time`; num_shown: there is none. */
size_t av_index_find(const av_index *x, int64_t time);

#endif /* STK_AV_VIDEO_INDEX_H */
