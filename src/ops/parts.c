#include "ops/parts.h"

static bool is_taken(uint32_t parts, size_t part)
{
    return !parts || (part < 32 && (parts >> part & 1));
}

stk_err stk_parts_decode(uint32_t parts, stk_item *item, stk_part_fn *decode, const void *params,
                         void *ctx, stk_diag *diag)
{
    const size_t n = stk_item_num_parts(item); /* without those that `decode` may add */
    bool any = false;
    for (size_t part = 0; part < n; part++) {
        if (!is_taken(parts, part)) continue;
        stk_err err = STK_OK;
        any = true;
        if (!stk_item_bytes(item, part))
            err = stk_diag_set(diag, STK_EINVAL, "there are no bytes to decode: read comes first");
        if (!err) err = decode(params, ctx, item, part, diag);
        if (!err) continue;
        if (diag) diag->part = (int)part;
        return err;
    }
    return any ? STK_OK
               : stk_diag_set(diag, STK_EINVAL, "the sample has none of the parts to decode");
}

bool stk_op_takes(const stk_op *op, size_t part)
{
    const stk_op_class *cls = stk_op_get_class(op);
    return is_taken(cls->takes ? cls->takes(stk_op_params(op)) : 0, part);
}
