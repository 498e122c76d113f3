/*
 * Which parts of a sample an op that decodes takes: its option `parts`, bit i for part i, 0 for
 * all.
 *
 * Threads: plain values.
 */
#ifndef STK_OPS_PARTS_H
#define STK_OPS_PARTS_H

#include <stoker/op.h>

/* What makes one part an array; `ctx` is what the op keeps for a sample. */
typedef stk_err stk_part_fn(const void *params, void *ctx, stk_item *item, size_t part,
                            stk_diag *diag);

/* Calls `decode` for each part that is taken, in order, up to the first that fails, whose number
 * goes to *diag.  STK_EINVAL: the sample has none of them, or one that is taken has no bytes. */
STK_NODISCARD stk_err stk_parts_decode(uint32_t parts, stk_item *item, stk_part_fn *decode,
                                       const void *params, void *ctx, stk_diag *diag);

/* Whether `op` takes that part of samples. */
bool stk_op_takes(const stk_op *op, size_t part);

#endif /* STK_OPS_PARTS_H */
