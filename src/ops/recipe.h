/*
 * stk_recipe: what an op that decodes was made of, as bytes from which another process of the same
 * build makes it once more.
 *
 * Threads: any.
 */
#ifndef STK_OPS_RECIPE_H
#define STK_OPS_RECIPE_H

#include <stoker/op.h>

/* Of decode_image, decode_wav, decode_audio, decode_video.  STK_EUNSUPPORTED: another op. */
STK_NODISCARD stk_err stk_recipe_write(const stk_op *op, stk_buffer **out, stk_diag *diag);

/* NULL, with *diag: bytes that are none, options that the op refuses, no memory, no FFmpeg. */
stk_op *stk_recipe_make(const void *bytes, size_t size, stk_diag *diag);

#endif /* STK_OPS_RECIPE_H */
