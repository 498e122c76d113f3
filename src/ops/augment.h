/*
 * What ops have in common that change some samples and keep others.
 *
 * Threads: any.
 */
#ifndef STK_OPS_AUGMENT_H
#define STK_OPS_AUGMENT_H

#include <stoker/augment.h>

#include "ops/draws.h"

#define STK_FILLED_CHANNELS 64 /* of arrays that a colour can be put into */

/* STK_EINVAL: `keep` is no probability; `op` is in the text. */
STK_NODISCARD stk_err stk_augment_check(const char *op, double keep, stk_diag *diag);

/* STK_EINVAL: a number of channels that is out of range. */
STK_NODISCARD stk_err stk_augment_check_fill(const char *op, const stk_fill *fill, stk_diag *diag);

/* The colour of each channel.  STK_EINVAL: the fill is of another number of channels. */
STK_NODISCARD stk_err stk_augment_fill(const stk_fill *fill, int32_t channels,
                                       uint8_t out[STK_FILLED_CHANNELS], stk_diag *diag);

/* STK_EINVAL: not least <= range[0] <= range[1] <= most. */
STK_NODISCARD stk_err stk_augment_check_range(const char *op, const char *what,
                                              const double range[2], double least, double most,
                                              stk_diag *diag);

/* An op with a copy of `params` on the heap, which its class frees by stk_free.  NULL: no memory.
 */
stk_op *stk_augment_op(const stk_op_class *cls, const void *params, size_t size, stk_diag *diag);

#endif /* STK_OPS_AUGMENT_H */
