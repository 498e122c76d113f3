/* What failing samples do: raise, skip within limits, substitute; failing memory. */
#include "tests/engine/kit.h"

#include "base/alloc.h"

#define N 2000
static int64_t got[N], want[N];

static stk_plan *failing(kit_source *s, const kit_op *op, const stk_stage_opts *opts)
{
    stk_plan *p = kit_plan(s, kit_value(op), opts);
    stk_plan_pipe(p, kit_random(NULL), NULL);
    stk_plan_batch(p, 5, NULL);
    stk_plan_sink(p, 2);
    return p;
}

static void raise_names_the_first(void)
{
    for (int32_t threads = 1; threads <= 8; threads *= 2) {
        kit_source s = kit_counting(200);
        s.first_id = 1;
        size_t n;
        stk_diag diag;
        CHECK_EQ(
            kit_run(failing(&s, &(kit_op){.fail_every = 33}, NULL), threads, got, N, &n, &diag),
            STK_ECORRUPT);
        CHECK_EQ(n, 6 * 6); /* ids 1..30: every batch before that of 33 */
        CHECK(!strcmp(diag.text, "stage 'value', sample 33, sample-33: planned failure"));
    }
}

static void a_failed_run_stays_failed(void)
{
    kit_source s = kit_counting(20);
    s.first_id = 1;
    stk_plan *p = failing(&s, &(kit_op){.fail_id = 1}, NULL);
    stk_run *run;
    stk_batch *b;
    stk_diag diag;
    CHECK_EQ(stk_run_start(p, NULL, &run, NULL), STK_OK);
    stk_plan_free(&p);
    for (int i = 0; i < 3; i++) {
        diag.text[0] = 0;
        CHECK_EQ(stk_run_next(run, STK_FOREVER, &b, &diag), STK_ECORRUPT);
        CHECK(b == NULL && strstr(diag.text, "sample 1"));
    }
    CHECK_EQ(stk_run_stop(run, STK_FOREVER, NULL), STK_OK);
    CHECK_EQ(stk_run_next(run, STK_FOREVER, &b, &diag), STK_ECORRUPT);
    stk_run_free(&run);
}

static void skip_counts(void)
{
    kit_source s = kit_counting(200);
    s.first_id = 1;
    s.gap_at = 3;
    stk_plan *p = failing(&s, &(kit_op){.fail_every = 33}, &(stk_stage_opts){.on_error = STK_SKIP});
    stk_run *run;
    stk_diag diag;
    size_t n, kept;
    stk_failure *failures;
    stk_stats *stats;
    CHECK_EQ(stk_run_start(p, NULL, &run, NULL), STK_OK);
    CHECK_EQ(kit_read(run, got, N, &n, &diag), STK_EEND);
    CHECK_EQ(n, 40 + 200 - 6 - 1);
    CHECK_EQ(stk_run_failures(run, &failures, &kept), STK_OK);
    CHECK_EQ(kept, 6);
    for (size_t i = 0; i < kept; i++) CHECK_EQ(failures[i].id, 33 * (int64_t)(i + 1));
    CHECK(!strcmp(failures[0].stage, "value") && !strcmp(failures[0].key, "sample-33"));
    stk_failures_free(&failures, kept);
    CHECK_EQ(stk_run_stats(run, &stats), STK_OK);
    CHECK_EQ(stats->stages[1].failed, 6);
    CHECK_EQ(stats->stages[1].items, 193);
    CHECK_EQ(stats->results, 40);
    stk_stats_free(&stats);
    stk_run_free(&run);
    stk_plan_free(&p);
}

static void skip_has_limits(void)
{
    for (int32_t threads = 1; threads <= 8; threads *= 2) {
        kit_source s = kit_counting(200);
        s.first_id = 1;
        size_t n;
        stk_diag diag;
        const stk_stage_opts three = {.on_error = STK_SKIP, .max_failures = 3};
        CHECK_EQ(
            kit_run(failing(&s, &(kit_op){.fail_every = 10}, &three), threads, got, N, &n, &diag),
            STK_ETOOMANY);
        CHECK_EQ(n, 7 * 6 - 3); /* ids 1..35; 40 is the fourth */
        CHECK(strstr(diag.text, "failed 4 times, which exceeds the threshold (3)"));
        CHECK(strstr(diag.text, "sample 10: sample-10: planned failure") &&
              strstr(diag.text, "sample 40:"));
        const stk_stage_opts rate = {.on_error = STK_SKIP, .max_failure_rate = 0.3};
        CHECK_EQ(
            kit_run(failing(&s, &(kit_op){.fail_every = 3}, &rate), threads, got, N, &n, &diag),
            STK_ETOOMANY);
        CHECK(strstr(diag.text, "times out of 100"));
        s = kit_counting(120);
        s.first_id = 1;
        const stk_stage_opts early = {.on_error = STK_SKIP, .max_failure_rate = 0.005};
        CHECK_EQ(kit_run(failing(&s, &(kit_op){.fail_id = 1}, &early), threads, got, N, &n, &diag),
                 STK_ETOOMANY);
        CHECK(strstr(diag.text, "failed 1 times out of 100 invocations (1.0%)"));
        const stk_stage_opts none = {.on_error = STK_SKIP, .max_failures = -5};
        CHECK_EQ(kit_run(failing(&s, &(kit_op){.fail_id = 7}, &none), threads, got, N, &n, &diag),
                 STK_ETOOMANY);
    }
}

static void substitute_fills_the_slot(void)
{
    size_t n, n0 = 0;
    for (int32_t threads = 1; threads <= 8; threads *= 2) {
        kit_source s = kit_counting(100);
        s.first_id = 1;
        s.gap_at = 50;
        stk_diag diag;
        const stk_stage_opts opts = {.on_error = STK_SUBSTITUTE};
        CHECK_EQ(
            kit_run(failing(&s, &(kit_op){.fail_every = 10}, &opts), threads, got, N, &n, &diag),
            STK_EEND);
        CHECK_EQ(n, 120); /* the gap of the source, too, holds ranks level */
        for (size_t i = 0; i < n; i++) CHECK(got[i] < 0 || got[i] / 10 > 0);
        if (threads == 1) memcpy(want, got, sizeof(got));
        if (threads == 1) n0 = n;
        CHECK(n == n0 && !memcmp(want, got, n * sizeof(*got)));
        CHECK_EQ(
            kit_run(failing(&s, &(kit_op){.fail_every = 1}, &opts), threads, got, N, &n, &diag),
            STK_ECORRUPT);
        CHECK_EQ(n, 0);
    }
}

static void batches_say_what_was_substituted(void)
{
    kit_source s = kit_counting(4);
    s.first_id = 1;
    stk_plan *p =
        failing(&s, &(kit_op){.fail_id = 2}, &(stk_stage_opts){.on_error = STK_SUBSTITUTE});
    stk_run *run;
    stk_batch *b;
    stk_tensor ids, flags;
    char key[32];
    CHECK_EQ(stk_run_start(p, NULL, &run, NULL), STK_OK);
    CHECK_EQ(stk_run_next(run, STK_FOREVER, &b, NULL), STK_OK);
    CHECK_EQ(stk_batch_array(b, (size_t)stk_batch_find(b, "id"), &ids, NULL), STK_OK);
    CHECK_EQ(stk_batch_array(b, (size_t)stk_batch_find(b, "substituted"), &flags, NULL), STK_OK);
    CHECK_EQ(((int64_t *)ids.data)[1], 3);
    CHECK_EQ(((bool *)flags.data)[1], true);
    CHECK_EQ(((bool *)flags.data)[2], false);
    CHECK_EQ(stk_batch_key(b, 1, key, sizeof(key)), STK_OK);
    CHECK(!strcmp(key, "sample-3"));
    stk_batch_unref(&b);
    stk_run_free(&run);
    stk_plan_free(&p);
}

static void source_failures_end_the_run(void)
{
    kit_source s = kit_counting(100);
    s.fail_at = 12;
    s.fail_with = STK_EIO;
    size_t n;
    stk_diag diag;
    CHECK_EQ(kit_run(failing(&s, NULL, NULL), 3, got, N, &n, &diag), STK_EIO);
    CHECK_EQ(n, 12);
    CHECK(strstr(diag.text, "planned failure of the source"));
}

/* Runs the plan to its end; gives the causes and what reads said. */
static stk_err end_of(stk_plan *p, int32_t threads, stk_failure **causes, size_t *n)
{
    stk_run *run;
    size_t num;
    CHECK_EQ(stk_run_start(p, &(stk_run_opts){.num_threads = threads}, &run, NULL), STK_OK);
    CHECK_EQ(stk_run_causes(run, causes, n), STK_OK);
    CHECK(*n == 0 && !*causes);
    const stk_err end = kit_read(run, got, N, &num, NULL);
    stk_err err;
    TORTURE (err) err = stk_run_causes(run, causes, n);
    CHECK_EQ(*n > 0, end != STK_EEND);
    CHECK(*n == 0 || (*causes)[0].diag.err == end);
    stk_run_free(&run);
    stk_plan_free(&p);
    return end;
}

/* The failure that was one too many is told, also where it is not among the first ten. */
static void causes_of_too_many(void)
{
    for (int32_t threads = 1; threads <= 8; threads *= 2) {
        kit_source s = kit_counting(100);
        s.first_id = 1;
        stk_failure *causes;
        size_t n;
        const stk_stage_opts opts = {.on_error = STK_SKIP, .max_failures = 13};
        CHECK_EQ(end_of(failing(&s, &(kit_op){.fail_every = 2}, &opts), threads, &causes, &n),
                 STK_ETOOMANY);
        CHECK_EQ(n, 1 + 10 + 1);
        CHECK(causes[0].id == 28 && !causes[0].is_batch && !strcmp(causes[0].key, "sample-28"));
        for (size_t i = 1; i <= 10; i++) CHECK_EQ(causes[i].id, 2 * (int64_t)i);
        CHECK_EQ(causes[11].id, 28);
        CHECK_EQ(causes[11].diag.err, STK_ECORRUPT);
        CHECK(!strcmp(causes[11].diag.text, "planned failure"));
        CHECK(!strcmp(causes[11].stage, "value") && !strcmp(causes[11].key, "sample-28"));
        stk_failures_free(&causes, n);

        const stk_stage_opts few = {.on_error = STK_SKIP, .max_failures = 1};
        CHECK_EQ(end_of(failing(&s, &(kit_op){.fail_every = 2}, &few), threads, &causes, &n),
                 STK_ETOOMANY);
        CHECK_EQ(n, 1 + 2); /* the list has it */
        CHECK_EQ(causes[2].id, 4);
        stk_failures_free(&causes, n);
    }
}

static void causes_of_other_ends(void)
{
    kit_source s = kit_counting(100);
    s.first_id = 1;
    stk_failure *causes;
    size_t n;
    CHECK_EQ(end_of(failing(&s, NULL, NULL), 2, &causes, &n), STK_EEND);
    CHECK_EQ(end_of(failing(&s, &(kit_op){.fail_id = 7}, NULL), 2, &causes, &n), STK_ECORRUPT);
    CHECK_EQ(n, 1);
    CHECK(causes[0].id == 7 && !strcmp(causes[0].diag.text, "planned failure"));
    stk_failures_free(&causes, n);

    const stk_stage_opts opts = {.on_error = STK_SUBSTITUTE};
    CHECK_EQ(end_of(failing(&s, &(kit_op){.fail_every = 1}, &opts), 2, &causes, &n), STK_ECORRUPT);
    CHECK_EQ(n, 1 + 16); /* the sample's own, and each substitute's */
    CHECK(causes[0].id == 1 && causes[1].id == 2 && causes[16].id == 17);
    stk_failures_free(&causes, n);

    s = kit_counting(100);
    s.fail_at = 12;
    s.fail_with = STK_EIO;
    CHECK_EQ(end_of(failing(&s, NULL, NULL), 2, &causes, &n), STK_EIO);
    CHECK(n == 1 && causes[0].id == -1 && causes[0].epoch == -1);
    CHECK(!strcmp(causes[0].stage, "source") && !*causes[0].key);
    stk_failures_free(&causes, n);
}

static void expand_failures(void)
{
    for (int policy = STK_RAISE; policy <= STK_SKIP; policy++) {
        kit_source s = kit_counting(40);
        size_t n;
        stk_diag diag;
        stk_plan *p = kit_plan(&s, kit_value(NULL), NULL);
        stk_plan_pipe(p, kit_repeat(&(kit_op){.fail_id = 7}),
                      &(stk_stage_opts){.on_error = (stk_on_error)policy});
        stk_plan_sink(p, 3);
        CHECK_EQ(kit_run(p, 2, got, N, &n, &diag), policy == STK_SKIP ? STK_EEND : STK_ECORRUPT);
        CHECK_EQ(n, policy == STK_SKIP ? 60 - 3 : 1 + 2 + 3 + 0 + 1 + 2);
    }
}

static void a_fatal_failure_ends_the_run_whatever_the_policy(void)
{
    const kit_op fatal = {.fail_id = 7, .fatal = true};
    for (int32_t threads = 1; threads <= 4; threads *= 2)
        for (int policy = STK_RAISE; policy <= STK_SUBSTITUTE; policy++) {
            const stk_stage_opts opts = {.on_error = (stk_on_error)policy};
            const bool expands = policy == STK_SKIP && threads > 1;
            kit_source s = kit_counting(40);
            size_t n;
            stk_diag diag;
            stk_plan *p = kit_plan(&s, kit_value(expands ? NULL : &fatal), expands ? NULL : &opts);
            if (expands) stk_plan_pipe(p, kit_repeat(&fatal), &opts);
            stk_plan_sink(p, 3);
            CHECK_EQ(kit_run(p, threads, got, N, &n, &diag), STK_ECORRUPT);
            CHECK_EQ(n, expands ? 1 + 2 + 3 + 0 + 1 + 2 : 7);
            CHECK(strstr(diag.text, "sample 7, sample-7: planned failure"));
        }
}

static stk_plan *everything(kit_source *s);

static int odd(const stk_item *item, void *ctx)
{
    (void)ctx;
    return stk_item_id(item) % 5 == 4 ? 9 : (int)(stk_item_id(item) & 1);
}

static stk_plan *path_of(stk_op *op)
{
    stk_plan *p = NULL;
    if (stk_plan_new(&p))
        stk_op_unref(&op);
    else
        stk_plan_pipe(p, op, NULL);
    return p;
}

static stk_plan *everything(kit_source *s)
{
    stk_plan *p = kit_plan(s, kit_value(&(kit_op){.fail_every = 6}),
                           &(stk_stage_opts){.on_error = STK_SUBSTITUTE});
    if (!p) return NULL;
    stk_plan *paths[] = {path_of(kit_add(NULL)), path_of(kit_same(&(kit_op){.blocking = true}))};
    stk_plan_route(p, odd, NULL, 2, paths, &(stk_stage_opts){.on_error = STK_SKIP});
    stk_plan_pipe(p, kit_repeat(NULL), NULL);
    stk_plan_batch(p, 4, NULL);
    stk_plan_unbatch(p, NULL);
    stk_plan_pipe(p, kit_random(&(kit_op){.fail_every = 7}),
                  &(stk_stage_opts){.on_error = STK_SKIP});
    stk_plan_batch(p, 3, NULL);
    stk_plan_sink(p, 2);
    return p;
}

/* Every allocation in turn: an error or the full result, never a hang, a crash or a leak. */
static void survives_every_failure(void)
{
    stk_err err;
    stk_fault_arm(-1);
    kit_source s = kit_counting(30);
    s.first_id = 1;
    size_t n0, n;
    CHECK_EQ(kit_run(everything(&s), 1, want, N, &n0, NULL), STK_EEND);
    TORTURE (err) {
        stk_plan *p = everything(&s);
        err = p ? kit_run(p, 2, got, N, &n, NULL) : STK_ENOMEM;
        if (err == STK_EEND && n == n0 && !memcmp(got, want, n * sizeof(*got)))
            err = stk_fault_armed() ? STK_OK : STK_ENOMEM; /* it coped */
        else
            CHECK(err == STK_ENOMEM || err == STK_EAGAIN || err == STK_EINVAL ||
                  err == STK_ETOOMANY || err == STK_EEND);
    }
    stk_fault_arm(-1);
}

TESTS(TEST(raise_names_the_first), TEST(a_failed_run_stays_failed), TEST(skip_counts),
      TEST(skip_has_limits), TEST(substitute_fills_the_slot),
      TEST(batches_say_what_was_substituted), TEST(source_failures_end_the_run),
      TEST(causes_of_too_many), TEST(causes_of_other_ends), TEST(expand_failures),
      TEST(a_fatal_failure_ends_the_run_whatever_the_policy), TEST(survives_every_failure))
