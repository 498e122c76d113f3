#include "ops/augment.h"

#include <string.h>

#include "base/alloc.h"

stk_err stk_augment_check(const char *op, double keep, stk_diag *diag)
{
    if (keep >= 0 && keep <= 1) return STK_OK; /* a NaN is neither */
    return stk_diag_set(diag, STK_EINVAL, "%s: keep is %g, not a probability from 0 to 1", op,
                        keep);
}

stk_op *stk_augment_op(const stk_op_class *cls, const void *params, size_t size, stk_diag *diag)
{
    void *copy = stk_alloc(size);
    if (copy) memcpy(copy, params, size);
    stk_op *op = copy ? stk_op_new(cls, copy) : NULL;
    if (!op) stk_diag_set(diag, STK_ENOMEM, "%s: no memory", cls->name);
    return op;
}
