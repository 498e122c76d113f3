#include "ops/draws.h"

#include <math.h>

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

/* In (0, 1). */
static double open_unit(stk_draws *d)
{
    return stk_draws_unit(d) + 0x1p-33;
}

/* Box and Muller. */
static double normal(stk_draws *d)
{
    const double radius = sqrt(-2 * log(open_unit(d)));
    return radius * cos(6.283185307179586 * stk_draws_unit(d));
}

/* The logarithm of a variate of Gamma(a): small ones of small a are too small for a double.
 * Marsaglia and Tsang: "A simple method for generating gamma variables", ACM TOMS 26 (2000): that
 * of a + 1, times the a-th root of a uniform one. */
static double log_gamma_variate(stk_draws *d, double a)
{
    const double e = a + 1 - 1.0 / 3, c = 1 / sqrt(9 * e);
    for (;;) {
        const double x = normal(d), v = (1 + c * x) * (1 + c * x) * (1 + c * x);
        const double u = open_unit(d);
        if (v > 0 && log(u) < x * x / 2 + e - e * v + e * log(v))
            return log(e * v) + log(open_unit(d)) / a;
    }
}

double stk_draws_beta(stk_draws *d, double a)
{
    const double x = log_gamma_variate(d, a), y = log_gamma_variate(d, a);
    return 1 / (1 + exp(y - x));
}
