/* The verdict names planted bottlenecks; a snapshot adds up. */
#include "base/alloc.h"
#include "tests/engine/kit.h"

#define MS INT64_C(1000000)

/* Reads a run to its end, spending `each_ns` on every batch, and gives its statistics. */
static stk_stats *observe(kit_source *s, const kit_op *first, const kit_op *second, int64_t each_ns)
{
    stk_run *run;
    stk_stats *st = NULL;
    stk_batch *b;
    stk_plan *p = kit_plan(s, kit_value(first), NULL);
    stk_plan_pipe(p, kit_same(second), &(stk_stage_opts){.name = "second", .concurrency = 2});
    stk_plan_batch(p, 5, NULL);
    stk_plan_sink(p, 2);
    CHECK_EQ(stk_run_start(p, &(stk_run_opts){.num_threads = 2}, &run, NULL), STK_OK);
    stk_plan_free(&p);
    while (stk_run_next(run, STK_FOREVER, &b, NULL) == STK_OK) {
        stk_batch_unref(&b);
        if (each_ns) kit_pause(each_ns);
    }
    CHECK_EQ(stk_run_stats(run, &st), STK_OK);
    stk_run_free(&run);
    return st;
}

static void expect(stk_stats *st, const char *stage)
{
    const bool good = st->bottleneck >= 0 && !strcmp(st->stages[st->bottleneck].name, stage);
    if (!good) fprintf(stderr, "%s, not '%s'\n", st->verdict, stage);
    CHECK(good && *st->verdict);
    stk_stats_free(&st);
}

static void slow_source(void)
{
    kit_source s = kit_counting(200);
    s.spin_ns = MS / 2;
    expect(observe(&s, NULL, NULL, 0), "source");
}

static void heavy_cpu_stage(void)
{
    kit_source s = kit_counting(200);
    expect(observe(&s, &(kit_op){.spin_ns = MS / 20}, &(kit_op){.spin_ns = MS}, 0), "second");
    expect(observe(&s, &(kit_op){.spin_ns = MS}, &(kit_op){.spin_ns = MS / 20}, 0), "value");
}

static void sleeping_stage(void)
{
    kit_source s = kit_counting(200);
    const kit_op waits = {.blocking = true, .sleep_ns = MS};
    expect(observe(&s, &(kit_op){.spin_ns = MS / 20}, &waits, 0), "second");
}

static void slow_consumer(void)
{
    kit_source s = kit_counting(200);
    stk_stats *st = observe(&s, NULL, NULL, 5 * MS);
    CHECK(strstr(st->verdict, "consumer"));
    expect(st, "sink");
}

static void numbers_add_up(void)
{
    kit_source s = kit_counting(200);
    stk_stats *st = observe(&s, &(kit_op){.spin_ns = MS / 20}, NULL, 0);
    CHECK_EQ(st->num_stages, 5);
    for (size_t i = 0; i < 3; i++) CHECK_EQ(st->stages[i].items, 200);
    CHECK_EQ(st->stages[3].items, 40);
    CHECK_EQ(st->results, 40);
    CHECK(st->stages[1].busy_ns >= 200 * MS / 20);
    CHECK_EQ(st->stages[1].bytes, 200 * 8);
    CHECK(st->first_result_ns > 0 && st->first_result_ns <= st->elapsed_ns);
    for (size_t i = 0; i < st->num_queues; i++) {
        CHECK(st->queues[i].occupancy >= 0 && st->queues[i].occupancy <= 1);
        CHECK(st->queues[i].full <= 1 && st->queues[i].empty <= 1);
        CHECK_EQ(st->queues[i].len, 0);
    }
    stk_stats_free(&st);
}

static void nothing_said_too_early(void)
{
    kit_source s = kit_counting(10);
    s.hold_at = 0;
    stk_run *run;
    stk_stats *st;
    stk_plan *p = kit_plan(&s, kit_value(NULL), NULL);
    stk_plan_sink(p, 2);
    CHECK_EQ(stk_run_start(p, NULL, &run, NULL), STK_OK);
    CHECK_EQ(stk_run_stats(run, &st), STK_OK);
    CHECK(st->bottleneck == -1 || st->elapsed_ns > 20 * MS);
    stk_stats_free(&st);
    stk_run_free(&run);
    stk_plan_free(&p);
}

/* Reads a run to its end in which the stage 'value' does with each item what `op` says. */
static void expect_nothing(int64_t n, const kit_op *op, const char *text)
{
    kit_source s = kit_counting(n);
    stk_run *run;
    stk_batch *b;
    stk_stats *st;
    stk_plan *p = kit_plan(&s, kit_value(op), &(stk_stage_opts){.on_error = STK_SKIP});
    stk_plan_batch(p, 5, NULL);
    stk_plan_sink(p, 2);
    CHECK_EQ(stk_run_start(p, NULL, &run, NULL), STK_OK);
    CHECK_EQ(stk_run_next(run, STK_FOREVER, &b, NULL), STK_EEND);
    CHECK_EQ(stk_run_stats(run, &st), STK_OK);
    if (!strstr(st->verdict, text)) fprintf(stderr, "said: %s\n", st->verdict);
    CHECK(strstr(st->verdict, text) && st->bottleneck == -1);
    stk_stats_free(&st);
    stk_run_free(&run);
    stk_plan_free(&p);
}

static void no_result_is_explained(void)
{
    expect_nothing(0, NULL, "the source gave nothing");
    expect_nothing(20, &(kit_op){.fail_every = 1}, "stage 'value' failed for each of 20 items");
}

/* The n-th fallible call after the start fails; false: that was no thread of the executor. */
static bool refuse(long n)
{
    kit_source s = kit_counting(50);
    stk_run *run;
    stk_batch *b;
    stk_stats *st;
    size_t batches = 0;
    stk_plan *p = kit_plan(&s, kit_value(&(kit_op){.spin_ns = MS / 5}), NULL);
    stk_plan_batch(p, 5, NULL);
    stk_plan_sink(p, 2);
    CHECK_EQ(stk_run_start(p, &(stk_run_opts){.num_threads = 4}, &run, NULL), STK_OK);
    stk_fault_arm(n);
    stk_err err;
    for (; !(err = stk_run_next(run, STK_FOREVER, &b, NULL)); batches++) stk_batch_unref(&b);
    stk_fault_arm(-1);
    CHECK_EQ(stk_run_stop(run, STK_FOREVER, NULL), STK_OK);
    CHECK_EQ(stk_run_stats(run, &st), STK_OK);
    const bool refused = st->threads_refused > 0;
    if (refused) {
        CHECK(err == STK_EEND && batches == 10 && st->threads_refused < 4);
        CHECK(!strncmp(st->verdict, "The system refused ", 19) && strstr(st->verdict, " of 4 "));
    }
    stk_stats_free(&st);
    stk_run_free(&run);
    stk_plan_free(&p);
    return refused;
}

static void a_refused_thread_is_said(void)
{
    bool refused = false;
    for (long n = 0; n < 300 && !refused; n++) refused = refuse(n);
    CHECK(refused);
}

TESTS(TEST(slow_source), TEST(heavy_cpu_stage), TEST(sleeping_stage), TEST(slow_consumer),
      TEST(numbers_add_up), TEST(nothing_said_too_early), TEST(no_result_is_explained),
      TEST(a_refused_thread_is_said))
