/*
 * What ops have in common that change some samples and keep others.
 *
 * Threads: any.
 */
#ifndef STK_OPS_AUGMENT_H
#define STK_OPS_AUGMENT_H

#include <stoker/op.h>

#include "ops/draws.h"

/* STK_EINVAL: `keep` is no probability; `op` is in the text. */
STK_NODISCARD stk_err stk_augment_check(const char *op, double keep, stk_diag *diag);

/* An op with a copy of `params` on the heap, which its class frees by stk_free.  NULL: no memory.
 */
stk_op *stk_augment_op(const stk_op_class *cls, const void *params, size_t size, stk_diag *diag);

#endif /* STK_OPS_AUGMENT_H */
