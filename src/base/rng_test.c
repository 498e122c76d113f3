#include "base/rng.h"

#include "tests/check.h"

static void check_philox(const uint32_t counter[4], const uint32_t key[2], const uint32_t want[4])
{
    uint32_t got[4];
    stk_philox(key, counter, got);
    for (int i = 0; i < 4; i++) CHECK_EQ(got[i], want[i]);
}

/* The answers for philox4x32-10 in Random123's kat_vectors: zeros, ones, and digits of pi. */
static void known_answers(void)
{
    check_philox((uint32_t[]){0, 0, 0, 0}, (uint32_t[]){0, 0},
                 (uint32_t[]){0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
    check_philox((uint32_t[]){~0u, ~0u, ~0u, ~0u}, (uint32_t[]){~0u, ~0u},
                 (uint32_t[]){0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
    check_philox((uint32_t[]){0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
                 (uint32_t[]){0xa4093822, 0x299f31d0},
                 (uint32_t[]){0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

/* splitmix64 from seed 1234567: its first three numbers, as in Vigna's reference code. */
static void splitmix(void)
{
    const uint64_t step = 0x9E3779B97F4A7C15u;
    CHECK(stk_mix64(1234567) == 6457827717110365317u);
    CHECK(stk_mix64(1234567 + step) == 3203168211198807973u);
    CHECK(stk_mix64(1234567 + 2 * step) == 9817491932198370423u);
}

static void units(void)
{
    CHECK(stk_unit(0) == 0);
    CHECK(stk_unit(0x80000000u) == 0.5);
    CHECK(stk_unit(~0u) < 1 && stk_unit(~0u) > 0.9999999997);
}

/* Each counter bit and each key bit matters, and roughly half of the answer changes with it. */
static void avalanche(void)
{
    uint32_t base[4], other[4];
    stk_philox((uint32_t[]){1, 2}, (uint32_t[]){3, 4, 5, 6}, base);
    for (int bit = 0; bit < 192; bit++) {
        uint32_t in[6] = {1, 2, 3, 4, 5, 6};
        in[bit / 32] ^= 1u << (bit % 32);
        stk_philox(in, in + 2, other);
        int changed = 0;
        for (int i = 0; i < 4; i++) changed += __builtin_popcount(base[i] ^ other[i]);
        CHECK(changed > 32 && changed < 96);
    }
}

TESTS(TEST(known_answers), TEST(splitmix), TEST(units), TEST(avalanche))
