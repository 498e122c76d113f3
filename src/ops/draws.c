#include "ops/draws.h"

#include "base/rng.h"

uint32_t stk_draws_word(stk_draws *d)
{
    if (d->count % 4 == 0) stk_item_random(d->item, (uint32_t)(d->count / 4), d->word);
    return d->word[d->count++ % 4];
}

double stk_draws_unit(stk_draws *d)
{
    return stk_unit(stk_draws_word(d));
}

double stk_draws_between(stk_draws *d, const double range[2])
{
    return range[0] + (range[1] - range[0]) * stk_draws_unit(d);
}

int64_t stk_draws_below(stk_draws *d, int64_t n)
{
    return (int64_t)(((uint64_t)stk_draws_word(d) * (uint64_t)n) >> 32);
}
