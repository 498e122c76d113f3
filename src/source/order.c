#include "source/order.h"

#include <assert.h>

stk_err stk_order_check(const stk_order_opts *in, stk_order_opts *out, stk_diag *diag)
{
    *out = *in;
    if (!out->world_size) out->world_size = 1;
    if (!out->epochs) out->epochs = 1;
    if (out->world_size < 1 || out->world_size > INT32_MAX)
        return stk_diag_set(diag, STK_EINVAL, "world_size is %lld: it must be from 1 to %d",
                            (long long)out->world_size, INT32_MAX);
    if (out->rank < 0 || out->rank >= out->world_size)
        return stk_diag_set(diag, STK_EINVAL,
                            "rank is %lld: it must be from 0 to world_size - 1 = %lld",
                            (long long)out->rank, (long long)(out->world_size - 1));
    if (out->epochs < -1)
        return stk_diag_set(diag, STK_EINVAL,
                            "epochs is %lld: it must be at least 1, or -1: endless",
                            (long long)out->epochs);
    return STK_OK;
}

int64_t stk_order_steps(const stk_order_opts *o, int64_t count)
{
    return count / o->world_size + (count % o->world_size != 0);
}

int64_t stk_order_position(const stk_order_opts *o, int64_t step)
{
    return step * o->world_size + o->rank;
}

void stk_order_epoch(const stk_order_opts *o, int64_t count, int64_t epoch, stk_permutation *p)
{
    if (o->shuffle) stk_permutation_init(p, count, o->seed, epoch, 0);
}

int64_t stk_order_index(const stk_order_opts *o, int64_t count, const stk_permutation *p,
                        int64_t step)
{
    const int64_t position = stk_order_position(o, step);
    if (position >= count) return STK_ORDER_GAP;
    return o->shuffle ? stk_permutation_at(p, position) : position;
}

stk_err stk_order_substitute(const stk_order_opts *o, int64_t count, int64_t id, int64_t epoch,
                             int attempt, int64_t *out)
{
    *out = STK_ORDER_GAP;
    if (id < STK_ORDER_GAP || id >= count || attempt < 0 || epoch < 0) return STK_EINVAL;
    if (o->rank >= count) return STK_EEND;
    stk_permutation shuffle;
    stk_order_epoch(o, count, epoch, &shuffle);
    int64_t others = (count - 1 - o->rank) / o->world_size + 1, left_out = others;
    if (id != STK_ORDER_GAP) {
        const int64_t position = o->shuffle ? stk_permutation_find(&shuffle, id) : id;
        if (position % o->world_size != o->rank) return STK_EINVAL;
        left_out = position / o->world_size;
        others--;
    }
    if (attempt >= others) return STK_EEND;
    stk_permutation draw;
    stk_permutation_init(&draw, others, o->seed, epoch, id + 1);
    int64_t step = stk_permutation_at(&draw, attempt);
    if (step >= left_out) step++;
    *out = stk_order_index(o, count, &shuffle, step);
    assert(*out != STK_ORDER_GAP && *out != id);
    return STK_OK;
}
