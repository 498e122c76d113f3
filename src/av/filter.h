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
    bool ended;          /* no more frames come */
    size_t given, bytes; /* since a frame was put in; the bytes of one call */
    size_t put, earlier; /* frames: put in, and given before the last of them */
    int64_t end;         /* of the last frame: fps, for one, repeats a frame as long as it lasts */
} av_filter;

typedef struct av_filter_input {
    const char *text;
    bool audio;
    AVRational time_base, frame_rate;
} av_filter_input;

/* Whether frames were put in, and no end. */
bool av_filter_open(const av_filter *f);

/* Whether such a frame may be put in: otherwise the filters must end first, and give all they have.
 */
bool av_filter_fits(const av_filter *f, const av_filter_input *input, const AVFrame *frame);

/* Puts a frame in, which keeps its reference. */
STK_NODISCARD stk_err av_filter_put(av_filter *f, const av_filter_input *input, AVFrame *frame,
                                    stk_av_call *call);

/* The last frame was put in. */
STK_NODISCARD stk_err av_filter_end(av_filter *f, const av_filter_input *input, stk_av_call *call);

/* Adds one frame to `out`, with its time base.  STK_EAGAIN: it has none; after its end it takes any
 * frame again.  STK_ELIMIT: it does not stop giving. */
STK_NODISCARD stk_err av_filter_get(av_filter *f, const av_filter_input *input, stk_frames *out,
                                    stk_av_call *call);

/* All that it has. */
STK_NODISCARD stk_err av_filter_get_all(av_filter *f, const av_filter_input *input, stk_frames *out,
                                        stk_av_call *call);

/* Ends, if it is open, and all that is left. */
STK_NODISCARD stk_err av_filter_finish(av_filter *f, const av_filter_input *input, stk_frames *out,
                                       stk_av_call *call);

/* Also of all zero. */
void av_filter_fini(av_filter *f);

#endif /* STK_AV_FILTER_H */
