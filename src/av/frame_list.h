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
    size_t num_failed;
};

STK_NODISCARD stk_err stk_frames_make(stk_media media, stk_frames **out);

/* Moves what `from` holds to the end. */
STK_NODISCARD stk_err stk_frames_add(stk_frames *frames, AVFrame *from);

#endif /* STK_AV_FRAME_LIST_H */
