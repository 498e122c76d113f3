/*
 * stk_video_clip: the frames of a clip, out of the packets of its file, into an array.
 *
 *     packets ──► only the groups of pictures that have frames of the clip ──► filters ──► array
 *
 * Which frames these are, the packets say.  Where what is decoded differs from that (fields,
 * frames that are dropped), all from the first frame of the clip to the last is decoded, and the
 * clip has what is shown at its times.
 *
 * Threads: one at a time.
 */
#ifndef STK_OPS_VIDEO_CLIP_H
#define STK_OPS_VIDEO_CLIP_H

#include "ops/frame_picks.h"
#include "ops/media.h"

typedef struct stk_video_clip {
    const stk_media_file *file;
    const stk_frame_picks *picks;
    const int64_t *times; /* of all frames of the file, rising; NULL: not known */
    stk_ratio time_base;
    const char *filter; /* makes one frame of one */
    int64_t max_pixels; /* as in stk_decode_opts, */
    size_t max_bytes;   /* also this */
} stk_video_clip;

/* Into `to`, of (n, height, width, channels).  STK_ECORRUPT: a packet cannot be decoded, or none of
 * the frames came.  STK_EUNSUPPORTED: the frames are not all of this size.  After a failure `to`
 * may hold anything. */
STK_NODISCARD stk_err stk_video_clip_decode(const stk_video_clip *c, const stk_tensor *to,
                                            stk_diag *diag);

#endif /* STK_OPS_VIDEO_CLIP_H */
