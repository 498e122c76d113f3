/*
 * av_filter: a chain of FFmpeg's filters with one input and one output.
 *
 * It is made for the first frame that comes, and anew for one of another size or format, as the
 * ffmpeg command does.
 */
#ifndef STK_AV_FILTER_H
#define STK_AV_FILTER_H

#include "av/call.h"
#include "av/frame_list.h"

typedef struct av_filter {
    AVFilterGraph *graph; /* NULL: not made yet */
    AVFilterContext *source, *sink;
    AVFrame *like; /* the properties it was made for */
    AVFrame *got;
} av_filter;

typedef struct av_filter_input {
    const char *text;
    bool audio;
    AVRational time_base, frame_rate;
} av_filter_input;

/* Puts a frame in, which keeps its reference; what comes out is added to `out`, with its time base.
 * `frame` NULL: the last one was put in. */
STK_NODISCARD stk_err av_filter_push(av_filter *f, const av_filter_input *input, AVFrame *frame,
                                     stk_frames *out, stk_av_call *call);

/* Also of all zero. */
void av_filter_fini(av_filter *f);

#endif /* STK_AV_FILTER_H */
