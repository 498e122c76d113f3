#include "source/permute.h"

#include <assert.h>

#include "base/rng.h"

/* Keeps these keys apart from other uses of the user's seed with Philox. */
#define DOMAIN UINT64_C(0x7065726d75746531) /* "permute1" */

void stk_permutation_init(stk_permutation *p, int64_t n, uint64_t seed, int64_t epoch,
                          int64_t tweak)
{
    assert(n >= 1 && n <= STK_PERMUTE_MAX && epoch >= 0);
    assert(tweak >= 0 && tweak < INT64_C(1) << 62);
    uint32_t bits = 0;
    while (INT64_C(1) << bits < n) bits++;
    p->n = n;
    p->low_bits = bits / 2;
    p->high_bits = bits - bits / 2;

    const uint32_t key[2] = {(uint32_t)(seed ^ DOMAIN), (uint32_t)((seed ^ DOMAIN) >> 32)};
    for (uint32_t block = 0; block < STK_PERMUTE_ROUNDS / 2; block++) {
        const uint32_t counter[4] = {
            (uint32_t)epoch,
            (uint32_t)(epoch >> 32),
            (uint32_t)tweak,
            (uint32_t)(tweak >> 32) << 2 | block,
        };
        uint32_t word[4];
        stk_philox(key, counter, word);
        p->keys[2 * block] = word[0] | (uint64_t)word[1] << 32;
        p->keys[2 * block + 1] = word[2] | (uint64_t)word[3] << 32;
    }
}

/* The multipliers are those of splitmix64; the best-mixed bits of a product are its top ones. */
static uint64_t round_of(uint64_t key, uint64_t half, uint32_t bits)
{
    uint64_t h = (half ^ key) * UINT64_C(0xBF58476D1CE4E5B9);
    h ^= h >> 32;
    h *= UINT64_C(0x94D049BB133111EB);
    return h >> 1 >> (63 - bits); /* bits may be 0 */
}

static uint64_t forward(const stk_permutation *p, uint64_t x)
{
    uint64_t low = x & ((UINT64_C(1) << p->low_bits) - 1), high = x >> p->low_bits;
    for (int r = 0; r < STK_PERMUTE_ROUNDS; r += 2) {
        high ^= round_of(p->keys[r], low, p->high_bits);
        low ^= round_of(p->keys[r + 1], high, p->low_bits);
    }
    return high << p->low_bits | low;
}

static uint64_t backward(const stk_permutation *p, uint64_t x)
{
    uint64_t low = x & ((UINT64_C(1) << p->low_bits) - 1), high = x >> p->low_bits;
    for (int r = STK_PERMUTE_ROUNDS - 2; r >= 0; r -= 2) {
        low ^= round_of(p->keys[r + 1], high, p->low_bits);
        high ^= round_of(p->keys[r], low, p->high_bits);
    }
    return high << p->low_bits | low;
}

int64_t stk_permutation_at(const stk_permutation *p, int64_t i)
{
    assert(i >= 0 && i < p->n);
    uint64_t x = forward(p, (uint64_t)i);
    while (x >= (uint64_t)p->n) x = forward(p, x); /* ends: the cycle leads back to i at last */
    return (int64_t)x;
}

int64_t stk_permutation_find(const stk_permutation *p, int64_t image)
{
    assert(image >= 0 && image < p->n);
    uint64_t x = backward(p, (uint64_t)image);
    while (x >= (uint64_t)p->n) x = backward(p, x);
    return (int64_t)x;
}
