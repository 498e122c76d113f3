/*
 * stk_frames: an item's array as pictures of uint8: one, (height, width, channels), or those of a
 * clip, (frames, height, width, channels).
 *
 * Threads: as the item's: one.
 */
#ifndef STK_OPS_FRAMES_H
#define STK_OPS_FRAMES_H

#include <stoker/item.h>

#include "transform/raster.h"

/* "(64, 224, 224, 3) uint8" */
void stk_describe_array(const stk_tensor *t, char *dst, size_t size);

/* What the part holds, to be read.  STK_EINVAL: not pictures, with a text that says what it is.
 * STK_ENOMEM: rows that are not contiguous are copied first. */
STK_NODISCARD stk_err stk_frames_view(stk_item *item, size_t part, stk_raster *out, stk_diag *diag);

/* The same, to be written: in its place, or a copy where others can see that. */
STK_NODISCARD stk_err stk_frames_own(stk_item *item, size_t part, stk_raster *out, stk_diag *diag);

/* The part, to be written and to be read: *src is *dst, or what the next stk_item_commit_array
 * drops where others can see that. */
STK_NODISCARD stk_err stk_frames_pair(stk_item *item, size_t part, stk_raster *src, stk_raster *dst,
                                      stk_diag *diag);

/* Memory for the part's frames in another size; stk_item_commit_array puts it in their place. */
STK_NODISCARD stk_err stk_frames_new(stk_item *item, size_t part, int32_t height, int32_t width,
                                     stk_raster *out, stk_diag *diag);

/* Colours are 1 or 3 channels.  STK_EINVAL: others. */
STK_NODISCARD stk_err stk_frames_check_colors(const stk_raster *r, stk_diag *diag);

#endif /* STK_OPS_FRAMES_H */
