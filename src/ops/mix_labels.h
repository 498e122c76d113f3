/*
 * What becomes of the labels of a batch whose samples are mixed.
 *
 * Threads: as the batch: one.
 */
#ifndef STK_OPS_MIX_LABELS_H
#define STK_OPS_MIX_LABELS_H

#include "ops/mixing.h"

#define STK_MIX_LAM "lam"

/* `mixes`: each sample with the one before it, by `lam`.  STK_EINVAL: labels that are none of the
 * classes, or of a type that has none. */
STK_NODISCARD stk_err stk_mix_labels(stk_batch *b, const stk_mixing *m, bool mixes, double lam,
                                     stk_diag *diag);

#endif /* STK_OPS_MIX_LABELS_H */
