#include "source/order.h"

#include "base/alloc.h"
#include "tests/check.h"

static void options_are_checked(void)
{
    static const struct {
        stk_order_opts opts;
        const char *word; /* of the message; NULL: good */
    } cases[] = {
        {{0}, NULL},
        {{.rank = 3, .world_size = 4, .epochs = -1}, NULL},
        {{.rank = 1}, "rank"},
        {{.rank = -1, .world_size = 4}, "rank"},
        {{.rank = 4, .world_size = 4}, "rank"},
        {{.world_size = -1}, "world_size"},
        {{.world_size = INT64_MAX}, "world_size"},
        {{.world_size = INT64_C(1) << 31},
         "world_size is 2147483648: it must be from 1 to 2147483647"},
        {{.world_size = INT32_MAX}, NULL},
        {{.epochs = -2}, "epochs"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        stk_diag diag = {0};
        stk_order_opts o;
        const stk_err err = stk_order_check(&cases[i].opts, &o, &diag);
        CHECK_EQ(err, cases[i].word ? STK_EINVAL : STK_OK);
        CHECK(!cases[i].word || strstr(diag.text, cases[i].word));
        if (!err) CHECK(o.world_size >= 1 && o.epochs != 0);
    }
}

/* Each sample exactly once over all ranks, with equal steps. */
static void check_cover(int64_t count, int64_t world, bool shuffle)
{
    unsigned char seen[300] = {0};
    int64_t gaps = 0, total = 0;
    for (int64_t rank = 0; rank < world; rank++) {
        const stk_order_opts o = {
            .shuffle = shuffle, .seed = 9, .rank = rank, .world_size = world, .epochs = 1};
        const int64_t steps = stk_order_steps(&o, count);
        CHECK(steps * world >= count && (steps - 1) * world < count);
        stk_permutation p;
        stk_order_epoch(&o, count, 3, &p);
        for (int64_t step = 0; step < steps; step++, total++) {
            const int64_t i = stk_order_index(&o, count, &p, step);
            if (i == STK_ORDER_GAP) {
                CHECK_EQ(step, steps - 1);
                gaps++;
                continue;
            }
            CHECK(i >= 0 && i < count);
            CHECK(!seen[i]++);
        }
    }
    CHECK_EQ(total - gaps, count);
}

static void ranks_cover_everything_once(void)
{
    for (int64_t count = 1; count <= 260; count += count < 40 ? 1 : 13)
        for (int64_t world = 1; world <= 19; world++) {
            check_cover(count, world, false);
            check_cover(count, world, true);
        }
}

static void unshuffled_is_in_order(void)
{
    const stk_order_opts o = {.rank = 2, .world_size = 5};
    CHECK_EQ(stk_order_index(&o, 100, NULL, 0), 2);
    CHECK_EQ(stk_order_index(&o, 100, NULL, 3), 17);
    CHECK_EQ(stk_order_index(&o, 17, NULL, 3), STK_ORDER_GAP);
}

/* Attempts name every other sample of the shard once, and never one of another rank. */
static void check_substitutes(int64_t count, int64_t world, bool shuffle)
{
    const stk_order_opts o = {
        .shuffle = shuffle, .seed = 4, .rank = world - 1, .world_size = world, .epochs = 1};
    stk_permutation p;
    stk_order_epoch(&o, count, 2, &p);
    unsigned char mine[300] = {0};
    int64_t num_mine = 0;
    for (int64_t step = 0; step < stk_order_steps(&o, count); step++) {
        const int64_t i = stk_order_index(&o, count, &p, step);
        if (i != STK_ORDER_GAP) mine[i] = 1, num_mine++;
    }
    for (int64_t id = STK_ORDER_GAP; id < count; id++) {
        unsigned char seen[300] = {0};
        int64_t other, again;
        const int others = (int)num_mine - (id != STK_ORDER_GAP);
        if (id != STK_ORDER_GAP && !mine[id] && num_mine) {
            CHECK_EQ(stk_order_substitute(&o, count, id, 2, 0, &other), STK_EINVAL);
            continue;
        }
        for (int attempt = 0; attempt < others; attempt++) {
            CHECK_EQ(stk_order_substitute(&o, count, id, 2, attempt, &other), STK_OK);
            CHECK_EQ(stk_order_substitute(&o, count, id, 2, attempt, &again), STK_OK);
            CHECK(other == again && other != id && mine[other] && !seen[other]++);
        }
        CHECK_EQ(stk_order_substitute(&o, count, id, 2, others > 0 ? others : 0, &other), STK_EEND);
        CHECK_EQ(stk_order_substitute(&o, count, id, 2, -1, &other), STK_EINVAL);
    }
}

static void substitutes_are_of_the_same_shard(void)
{
    for (int64_t count = 1; count < 60; count += 7)
        for (int64_t world = 1; world < 5; world++) {
            check_substitutes(count, world, false);
            check_substitutes(count, world, true);
        }
}

static void epochs_and_ids_draw_apart(void)
{
    const stk_order_opts o = {.seed = 4, .world_size = 1, .epochs = -1};
    int same_epoch = 0, same_id = 0;
    int64_t last = -1, last_of_id = -1, other;
    for (int64_t k = 0; k < 500; k++) {
        CHECK_EQ(stk_order_substitute(&o, 1000, 7, k, 0, &other), STK_OK);
        same_epoch += other == last;
        last = other;
        CHECK_EQ(stk_order_substitute(&o, 1000, k, 0, 0, &other), STK_OK);
        same_id += other == last_of_id;
        last_of_id = other;
    }
    CHECK(same_epoch < 10 && same_id < 10);
}

TESTS(TEST(options_are_checked), TEST(ranks_cover_everything_once), TEST(unshuffled_is_in_order),
      TEST(substitutes_are_of_the_same_shard), TEST(epochs_and_ids_draw_apart))
