#include <stoker/op.h>

#include <stdatomic.h>

#include "base/alloc.h"

struct stk_op {
    atomic_int refs;
    const stk_op_class *cls;
    void *params;
};

const char *stk_kind_str(stk_kind kind)
{
    switch (kind) {
    case STK_KIND_ANY: return "anything";
    case STK_KIND_KEY: return "keys";
    case STK_KIND_BYTES: return "bytes";
    case STK_KIND_ARRAY: return "arrays";
    case STK_KIND_BATCH: return "batches";
    case STK_KIND_FOREIGN: return "foreign objects";
    }
    return "unknown";
}

stk_op *stk_op_new(const stk_op_class *cls, void *params)
{
    stk_op *op = stk_alloc_zero(1, sizeof(*op));
    if (!op) {
        if (cls->fini) cls->fini(params);
        return NULL;
    }
    atomic_init(&op->refs, 1);
    op->cls = cls;
    op->params = params;
    return op;
}

stk_op *stk_op_ref(stk_op *op)
{
    atomic_fetch_add_explicit(&op->refs, 1, memory_order_relaxed);
    return op;
}

void stk_op_unref(stk_op **pop)
{
    stk_op *op = *pop;
    *pop = NULL;
    if (!op || atomic_fetch_sub_explicit(&op->refs, 1, memory_order_acq_rel) != 1) return;
    if (op->cls->fini) op->cls->fini(op->params);
    stk_free(op);
}

const stk_op_class *stk_op_get_class(const stk_op *op)
{
    return op->cls;
}

const void *stk_op_params(const stk_op *op)
{
    return op->params;
}
