/*
 * What the op `normalize` does to a batch.
 *
 * Threads: any; a batch belongs to one at a time.
 */
#ifndef STK_OPS_NORMALIZE_H
#define STK_OPS_NORMALIZE_H

#include <stoker/ops.h>

/* `params` are those of an op that stk_op_normalize made.  Puts the result in the place of the
 * field.  STK_EINVAL: no such field, or not one that can be normalised. */
STK_NODISCARD stk_err stk_normalize_batch(const void *params, stk_batch *b, stk_diag *diag);

#endif /* STK_OPS_NORMALIZE_H */
