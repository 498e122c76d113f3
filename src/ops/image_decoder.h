/*
 * stk_image_decoder: encoded bytes to a sample: codec, resampler and scratch memory of a thread.
 *
 *     begin (header) ──► stk_geometry_draw ──► run: rows of the codec, through the resampler,
 *                                              straight into the tensor
 *
 * Threads: one at a time.
 */
#ifndef STK_OPS_IMAGE_DECODER_H
#define STK_OPS_IMAGE_DECODER_H

#include "ops/geometry.h"

typedef struct stk_image_decoder stk_image_decoder;

STK_NODISCARD stk_err stk_image_decoder_new(stk_image_decoder **out, stk_diag *diag);
void stk_image_decoder_free(stk_image_decoder **d);

/* Reads the header and gives the size as people see it, after orientation.  `opts` have been
 * checked; `data` must stay until `run` returned or the next `begin`.
 * STK_EUNSUPPORTED, STK_ECORRUPT, STK_ELIMIT, STK_ENOMEM. */
STK_NODISCARD stk_err stk_image_decoder_begin(stk_image_decoder *d, const stk_image_opts *opts,
                                              const void *data, size_t size, int32_t *width,
                                              int32_t *height, stk_diag *diag);

/* The array that `part` becomes with that size. */
stk_spec stk_image_spec(const stk_image_opts *opts, size_t part, int32_t width, int32_t height);

/* Decodes what `begin` found into `dst`, contiguous, of stk_image_spec of the geometry.  After a
 * failure dst holds anything.  Call begin again before the next run. */
STK_NODISCARD stk_err stk_image_decoder_run(stk_image_decoder *d, const stk_image_opts *opts,
                                            size_t part, const stk_geometry *geometry,
                                            const stk_tensor *dst, stk_diag *diag);

#endif /* STK_OPS_IMAGE_DECODER_H */
