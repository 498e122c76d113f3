/*
 * stk_frame_picks: which frames of a file make a clip.
 *
 *     file   0 1 2 3 4 5 6 7 8 9       3 frames, stride 3, from 2:  2 5 8
 *            0 1 2 3                   ... repeated:                0 3 3
 *
 * Threads: plain values.
 */
#ifndef STK_OPS_FRAME_PICKS_H
#define STK_OPS_FRAME_PICKS_H

#include <stoker/clip.h>

typedef struct stk_frame_picks {
    size_t n;       /* of the clip */
    size_t num;     /* different ones */
    int64_t *index; /* [num] in the file, rising */
    size_t *pick;   /* [n] of those */
    int64_t step;   /* from each to the next; 0: not even */
} stk_frame_picks;

/* For a file of `total` frames, at least one.  *start: of the clip, -1: to be decided, at random
 * for the item where the options say so. STK_EINVAL: the file is too short.  STK_ENOMEM.  After a
 * failure *out holds nothing. */
STK_NODISCARD stk_err stk_frame_picks_make(const stk_video_opts *o, const stk_item *item,
                                           int64_t total, int64_t *start, stk_frame_picks *out,
                                           stk_diag *diag);
void stk_frame_picks_fini(stk_frame_picks *p);

#endif /* STK_OPS_FRAME_PICKS_H */
