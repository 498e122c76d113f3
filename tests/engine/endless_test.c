/* Epochs without results: an endless run ends with a failure that says why. */
#include "tests/engine/kit.h"

#define N 4000
static int64_t got[N];

static const stk_stage_opts skip = {.on_error = STK_SKIP};

static stk_plan *batched(kit_source *s, const kit_op *op, const stk_batch_opts *opts)
{
    stk_plan *p = kit_plan(s, kit_value(op), &skip);
    stk_plan_batch(p, 4, opts);
    stk_plan_sink(p, 2);
    return p;
}

static kit_source endless(int64_t samples)
{
    kit_source s = kit_counting(samples);
    s.first_id = 1;
    s.epochs = -1;
    return s;
}

static void all_samples_fail(void)
{
    for (int32_t threads = 1; threads <= 4; threads *= 2) {
        kit_source s = endless(10);
        stk_run *run;
        stk_diag diag;
        stk_failure *causes;
        size_t n;
        stk_plan *p = batched(&s, &(kit_op){.fail_every = 1}, NULL);
        CHECK_EQ(stk_run_start(p, &(stk_run_opts){.num_threads = threads}, &run, NULL), STK_OK);
        CHECK_EQ(kit_read(run, got, N, &n, &diag), STK_ETOOMANY);
        CHECK_EQ(n, 0);
        CHECK(strstr(diag.text, "stage 'value': failed ") == diag.text);
        CHECK(strstr(diag.text, "2 epochs in a row of an endless source gave no result"));
        CHECK(strstr(diag.text, "sample 1: sample-1: planned failure"));
        CHECK_EQ(stk_run_causes(run, &causes, &n), STK_OK);
        CHECK(n >= 2 && causes[0].id == -1 && !*causes[0].key && causes[1].id == 1);
        stk_failures_free(&causes, n);
        CHECK_EQ(stk_run_stop(run, STK_FOREVER, NULL), STK_OK);
        CHECK_EQ(kit_read(run, got, N, &n, NULL), STK_ETOOMANY);
        stk_run_free(&run);
        stk_plan_free(&p);
    }
}

static void no_sample_for_the_rank(void)
{
    kit_source s = endless(1);
    s.gap_at = 0;
    size_t n;
    stk_diag diag;
    CHECK_EQ(kit_run(batched(&s, NULL, NULL), 2, got, N, &n, &diag), STK_EINVAL);
    CHECK(n == 0 && strstr(diag.text, "it has no samples for this rank"));
    s = endless(0);
    CHECK_EQ(kit_run(batched(&s, NULL, NULL), 2, got, N, &n, &diag), STK_EINVAL);
    CHECK(strstr(diag.text, "it has no samples for this rank"));
}

static void drop_last_leaves_all_out(void)
{
    kit_source s = endless(3);
    size_t n;
    stk_diag diag;
    CHECK_EQ(kit_run(batched(&s, NULL, &(stk_batch_opts){.drop_last = true}), 2, got, N, &n, &diag),
             STK_EINVAL);
    CHECK(n == 0 && strstr(diag.text, "stage 'batch': ") == diag.text);
    CHECK(strstr(diag.text, "drop_last left out every batch"));
}

/* An epoch that the pattern marks with '-' goes down the path where all fails. */
static int by_turns(const stk_item *item, void *ctx)
{
    const char *pattern = ctx;
    return pattern[stk_item_epoch(item) % (int64_t)strlen(pattern)] == '-';
}

static stk_plan *routed(kit_source *s, const char *pattern)
{
    stk_plan *p = kit_plan(s, kit_value(NULL), NULL), *paths[2] = {NULL, NULL};
    CHECK(!stk_plan_new(&paths[0]) && !stk_plan_new(&paths[1]));
    stk_plan_pipe(paths[0], kit_same(NULL), NULL);
    stk_plan_pipe(paths[1], kit_same(&(kit_op){.fail_every = 1}), &skip);
    stk_plan_route(p, by_turns, (void *)(uintptr_t)pattern, 2, paths, NULL);
    stk_plan_sink(p, 3);
    return p;
}

static void an_epoch_with_results_resets_the_count(void)
{
    for (int32_t threads = 1; threads <= 4; threads *= 2) {
        kit_source s = endless(1);
        stk_run *run;
        stk_diag diag;
        size_t n;
        stk_plan *p = routed(&s, "-+-+-+--++++");
        CHECK_EQ(stk_run_start(p, &(stk_run_opts){.num_threads = threads}, &run, NULL), STK_OK);
        CHECK_EQ(kit_read(run, got, N, &n, &diag), STK_ETOOMANY);
        CHECK_EQ(n, 3);
        stk_run_free(&run);
        stk_plan_free(&p);
    }
}

static void numbered_epochs_may_be_empty(void)
{
    kit_source s = endless(3);
    s.epochs = 50;
    size_t n;
    CHECK_EQ(kit_run(batched(&s, NULL, &(stk_batch_opts){.drop_last = true}), 2, got, N, &n, NULL),
             STK_EEND);
    CHECK_EQ(n, 0);
}

static void a_reader_of_ends_sees_them_all(void)
{
    kit_source s = endless(3);
    stk_run *run;
    stk_batch *b;
    stk_plan *p = batched(&s, NULL, &(stk_batch_opts){.drop_last = true});
    CHECK_EQ(stk_run_start(p, &(stk_run_opts){.epoch_ends = true}, &run, NULL), STK_OK);
    for (int i = 0; i < 50; i++) CHECK_EQ(stk_run_next(run, STK_FOREVER, &b, NULL), STK_EEPOCH);
    stk_run_free(&run);
    stk_plan_free(&p);
}

TESTS(TEST(all_samples_fail), TEST(no_sample_for_the_rank), TEST(drop_last_leaves_all_out),
      TEST(an_epoch_with_results_resets_the_count), TEST(numbered_epochs_may_be_empty),
      TEST(a_reader_of_ends_sees_them_all))
