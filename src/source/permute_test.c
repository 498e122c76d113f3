#include "source/permute.h"

#include <math.h>
#include <time.h>

#include "base/alloc.h"
#include "tests/check.h"

static void is_a_bijection(void)
{
    enum { MAX = 3000 };
    static unsigned char seen[MAX];
    for (int64_t n = 1; n <= MAX; n += n < 600 ? 1 : 7) {
        stk_permutation p;
        stk_permutation_init(&p, n, (uint64_t)n * 77, n % 5, n % 3);
        memset(seen, 0, sizeof(seen));
        for (int64_t i = 0; i < n; i++) {
            const int64_t image = stk_permutation_at(&p, i);
            CHECK(image >= 0 && image < n);
            CHECK(!seen[image]++);
            CHECK_EQ(stk_permutation_find(&p, image), i);
        }
    }
}

static void reaches_the_largest_n(void)
{
    static const int64_t sizes[] = {STK_PERMUTE_MAX, STK_PERMUTE_MAX - 1, STK_PERMUTE_MAX / 2 + 1,
                                    (INT64_C(1) << 32) + 1};
    for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
        stk_permutation p;
        stk_permutation_init(&p, sizes[s], UINT64_MAX, INT64_MAX, STK_PERMUTE_MAX - 1);
        for (int64_t k = 0; k < 200; k++) {
            const int64_t i = k < 100 ? k : sizes[s] - 1 - (k - 100);
            const int64_t image = stk_permutation_at(&p, i);
            CHECK(image >= 0 && image < sizes[s]);
            CHECK_EQ(stk_permutation_find(&p, image), i);
        }
    }
}

/* A change of these vectors changes the batches of everybody's seeds. */
static void never_changes(void)
{
    static const struct {
        int64_t n;
        uint64_t seed;
        int64_t epoch, tweak, first[8];
    } known[] = {
        {10, 0, 0, 0, {6, 5, 1, 0, 2, 4, 8, 3}},
        {1000, 43, 1, 0, {774, 410, 197, 646, 190, 972, 516, 19}},
        {1281167, 44, 2, 7, {614539, 261445, 1403, 803971, 255894, 447723, 1164760, 1074113}},
        {INT64_C(1) << 40,
         45,
         3,
         0,
         {751159042945, 451173664915, 998456300959, 222053656186, 451485687054, 162478685457,
          573904085696, 884668673063}},
    };
    for (size_t k = 0; k < sizeof(known) / sizeof(known[0]); k++) {
        stk_permutation p;
        stk_permutation_init(&p, known[k].n, known[k].seed, known[k].epoch, known[k].tweak);
        for (int64_t i = 0; i < 8; i++) CHECK_EQ(stk_permutation_at(&p, i), known[k].first[i]);
    }
}

/* Chi-square of `count` cells against an even spread; the bound is far out: mean + 8 sigma. */
static void check_even(const long *cell, size_t count, long total)
{
    const double want = (double)total / (double)count;
    double chi = 0;
    for (size_t i = 0; i < count; i++)
        chi += ((double)cell[i] - want) * ((double)cell[i] - want) / want;
    CHECK(chi < (double)count + 8 * sqrt(2.0 * (double)count));
}

static void looks_random(void)
{
    enum { N = 1000, SEEDS = 20000, CELLS = 100 };
    static long at[CELLS], step[CELLS], fixed;
    for (int64_t epoch = 0; epoch < SEEDS; epoch++) {
        stk_permutation p;
        stk_permutation_init(&p, N, 5, epoch, 0);
        const int64_t i = epoch % N, a = stk_permutation_at(&p, i);
        const int64_t b = stk_permutation_at(&p, (i + 1) % N);
        at[a * CELLS / N]++;
        step[(b - a + N) % N * CELLS / N]++;
        fixed += a == i;
    }
    check_even(at, CELLS, SEEDS);
    check_even(step, CELLS, SEEDS);
    CHECK(fixed > 2 && fixed < 60); /* 20 expected */

    /* Within one shuffle: every tenth of the images gets its share of every tenth of the indices.
     */
    static long cell[100];
    stk_permutation p;
    stk_permutation_init(&p, 100000, 1, 0, 0);
    for (int64_t i = 0; i < 100000; i++) cell[i / 10000 * 10 + stk_permutation_at(&p, i) / 10000]++;
    check_even(cell, 100, 100000);
}

static void keys_matter(void)
{
    stk_permutation p[4];
    stk_permutation_init(&p[0], 1000, 1, 0, 0);
    stk_permutation_init(&p[1], 1000, 2, 0, 0);
    stk_permutation_init(&p[2], 1000, 1, 1, 0);
    stk_permutation_init(&p[3], 1000, 1, 0, 1);
    for (int k = 1; k < 4; k++) {
        int same = 0;
        for (int64_t i = 0; i < 1000; i++)
            same += stk_permutation_at(&p[0], i) == stk_permutation_at(&p[k], i);
        CHECK(same < 12); /* 1 expected */
    }
}

/* The target is 60 ns; a debug build under a sanitizer on a busy machine gets fifty times that. */
static void is_quick(void)
{
    enum { N = (1 << 18) + 1 }; /* the worst n: half of all images walk on */
    stk_permutation p;
    stk_permutation_init(&p, N, 3, 0, 0);
    struct timespec from, to;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
    int64_t sum = 0;
    for (int64_t i = 0; i < N; i++) sum += stk_permutation_at(&p, i);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
    CHECK_EQ(sum, (int64_t)N * (N - 1) / 2);
    const double ns = (double)(to.tv_sec - from.tv_sec) * 1e9 + (double)(to.tv_nsec - from.tv_nsec);
    fprintf(stderr, "  %.1f ns an index\n", ns / N);
    CHECK(ns / N < 3000);
}

TESTS(TEST(is_a_bijection), TEST(reaches_the_largest_n), TEST(never_changes), TEST(looks_random),
      TEST(keys_matter), TEST(is_quick))
