/* Wake-ups of foreign lanes that are spared while the reader has results and does something else.
 */
#include "tests/engine/lanes.h"

#include "base/thread.h"

#define ROUNDS 500
#define STAGES 3
#define SINK 3
#define LATE_NS INT64_C(20000000000) /* of what should take milliseconds */

/* The lane of this thread does what there is to do. */
static void work(stk_lane *lane)
{
    stk_err err;
    while (!(err = stk_lane_work(lane))) continue;
    CHECK_EQ(err, STK_EAGAIN);
}

static bool is_wanted(stk_lane *lane)
{
    const stk_err err = stk_lane_wait(lane, 0);
    CHECK(!err || err == STK_ETIMEOUT);
    return !err;
}

static stk_run *start(kit_source *s)
{
    stk_run *run;
    stk_plan *p = kit_plan(s, NULL, NULL);
    for (int i = 0; i < STAGES; i++)
        stk_plan_pipe(p, kit_hook_op((kit_hook){0}),
                      &(stk_stage_opts){.group = 1, .concurrency = 1});
    stk_plan_sink(p, SINK);
    CHECK_EQ(stk_run_start(p, NULL, &run, NULL), STK_OK);
    stk_plan_free(&p);
    return run;
}

/* Until the lane is wanted no more, whatever the worker brings. */
static void fill(stk_lane *lane)
{
    do work(lane);
    while (!stk_lane_wait(lane, 1000000));
}

static bool reads(stk_run *run, int64_t *next)
{
    stk_item *item;
    size_t n;
    const stk_err err = stk_run_next_items(run, 0, 1, &item, &n, NULL);
    CHECK(!err || err == STK_EAGAIN || err == STK_ETIMEOUT);
    if (err) return false;
    CHECK_EQ(stk_item_id(item), (*next)++);
    stk_item_free(&item);
    return true;
}

/* How many reads a wake-up serves, at most: a lane that lost its processor passes for slow. */
static void queues_before_quick_ops_are_filled_by_halves(void)
{
    kit_source s = kit_counting(INT64_C(1) << 40);
    stk_run *run = start(&s);
    stk_lane *lane;
    int64_t next = 0;
    int most = 0;
    CHECK_EQ(stk_lane_new(run, 1, NULL, NULL, &lane), STK_OK);
    for (int round = 0; round < ROUNDS; round++) {
        fill(lane);
        int served = 0;
        while (!is_wanted(lane) && reads(run, &next)) served++;
        most = served > most ? served : most;
    }
    CHECK(most >= 2);
    stk_lane_free(&lane);
    stk_run_free(&run);
}

/* A reader that has gone finds them full when it comes back. */
static void queues_that_rest_are_filled(void)
{
    kit_source s = kit_counting(INT64_C(1) << 40);
    stk_run *run = start(&s);
    stk_lane *lane;
    int64_t next = 0;
    CHECK_EQ(stk_lane_new(run, 1, NULL, NULL, &lane), STK_OK);
    for (int round = 0; round < 5; round++) {
        do fill(lane); /* on a busy machine a lane is left alone before anything has come */
        while (!reads(run, &next));
        CHECK_EQ(stk_lane_wait(lane, LATE_NS), STK_OK);
    }
    stk_lane_free(&lane);
    stk_run_free(&run);
}

TESTS(TEST(queues_that_rest_are_filled), TEST(queues_before_quick_ops_are_filled_by_halves))
