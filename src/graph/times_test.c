#include "graph/times.h"

#include <string.h>

#include "tests/check.h"

static stk_times t;

static void fresh(void)
{
    memset(&t, 0, sizeof(t));
}

static void nothing_takes_no_time(void)
{
    fresh();
    CHECK(stk_times_quantile(&t, 0, 0.9) == 0 && stk_times_mean(&t) == 0);
    CHECK(stk_times_quantile(&t, 5, 0.99) == 0);
}

static void within_a_quarter(void)
{
    for (int64_t ns = 128; ns < INT64_C(200000000000); ns = ns * 9 / 8) {
        fresh();
        times_add(&t, ns, 10);
        const double p90 = stk_times_quantile(&t, 0, 0.9);
        CHECK(p90 >= 0.8 * (double)ns && p90 <= 1.25 * (double)ns);
        const double mean = stk_times_mean(&t);
        CHECK(mean > 0.999 * (double)ns && mean < 1.001 * (double)ns);
    }
}

static void any_duration_counts(void)
{
    fresh();
    times_add(&t, 0, 1);
    times_add(&t, INT64_MAX, 1);
    CHECK(stk_times_quantile(&t, 0, 0.5) <= 128);
    CHECK(stk_times_quantile(&t, 0, 1) > 1e11);
}

static void of_many(void)
{
    fresh();
    times_add(&t, 1000, 95);
    times_add(&t, 1000000, 5);
    CHECK(stk_times_quantile(&t, 0, 0.9) < 1300);
    CHECK(stk_times_quantile(&t, 0, 0.99) > 800000);
    CHECK(stk_times_quantile(&t, 900, 0.9) == 0); /* nine of ten took no time */
    CHECK(stk_times_quantile(&t, 900, 0.99) < 1300);
}

static void since_another_snapshot(void)
{
    stk_stage_stats stages[2] = {{.items = 10, .busy_ns = 50}, {.items = 4, .busy_ns = 20}};
    stk_queue_stats queues[2] = {{.gets = 7, .empty = 0.5, .get_wait_ns = 9},
                                 {.gets = 3, .empty = 1, .get_wait_ns = 4}};
    stk_stats now = {
        .elapsed_ns = 100, .num_stages = 1, .stages = stages, .num_queues = 1, .queues = queues};
    stk_stats before = {.elapsed_ns = 40,
                        .num_stages = 1,
                        .stages = stages + 1,
                        .num_queues = 1,
                        .queues = queues + 1};
    times_add(&stages[0].times, 1000, 10);
    times_add(&stages[1].times, 1000, 4);
    stk_stats *made = NULL;
    CHECK_EQ(stk_stats_since(&now, &before, &made), STK_OK);
    CHECK(made->stages[0].items == 6 && made->stages[0].busy_ns == 30 && stages[0].items == 10);
    CHECK(made->queues[0].gets == 4 && made->queues[0].get_wait_ns == 5 && made->elapsed_ns == 60);
    CHECK(made->queues[0].empty > 0.16 && made->queues[0].empty < 0.17); /* 10 of 60 */
    CHECK(stk_times_quantile(&made->stages[0].times, 0, 0.5) > 800);
    stk_stats_free(&made);
    before.num_queues = 0;
    CHECK_EQ(stk_stats_since(&now, &before, &made), STK_EINVAL);
    CHECK(made == NULL);
}

TESTS(TEST(nothing_takes_no_time), TEST(within_a_quarter), TEST(any_duration_counts), TEST(of_many),
      TEST(since_another_snapshot))
