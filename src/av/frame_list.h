/* Frames, as the module knows them (include/stoker/av_frames.h): never changed once given out. */
#ifndef STK_AV_FRAME_LIST_H
#define STK_AV_FRAME_LIST_H

#include <stdatomic.h>

#include <stoker/av_frames.h>

#include "av/compat.h"

struct stk_frames {
    atomic_size_t refs;
    stk_media media;
    AVRational time_base, frame_rate;
    AVFrame **list;
    size_t n, room;
    size_t bytes; /* of their data */
    size_t num_failed;
    bool joined; /* av_join made the only one */
};

STK_NODISCARD stk_err stk_frames_make(stk_media media, stk_frames **out);

/* Moves what `from` holds to the end. */
STK_NODISCARD stk_err stk_frames_add(stk_frames *frames, AVFrame *from);

/* Lets go of them all. */
void stk_frames_clear(stk_frames *frames);

/* STK_DTYPE_NONE: not known. */
stk_dtype stk_sample_dtype(enum AVSampleFormat format);

/* The elements of a pixel format. */
typedef struct stk_pixels {
    stk_dtype dtype;
    int packed; /* components beside each other in one plane; 0: planes */
    int planes;
    bool same_size; /* all planes have the size of the picture */
} stk_pixels;

/* False: pixels that are no array of whole elements. */
bool stk_pixels_of(enum AVPixelFormat format, stk_pixels *out);

/* (height, width, components) and so on of one picture. */
STK_NODISCARD stk_err stk_picture_spec(const AVFrame *f, stk_spec *out, stk_diag *diag);

/* Writes its array to `dst`; where that ends.  NULL: it cannot be copied. */
uint8_t *stk_picture_copy(const AVFrame *f, uint8_t *dst);

/* Of its data, without padding; 0: not known. */
size_t stk_frame_bytes(const AVFrame *frame);

/* When a frame ends, in `tb`, which its times are in; AV_NOPTS_VALUE: not known. */
int64_t stk_frame_end(const AVFrame *frame, bool audio, AVRational tb, AVRational frame_rate);

#endif /* STK_AV_FRAME_LIST_H */
