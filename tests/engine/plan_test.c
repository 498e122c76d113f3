/* Plans: checked as a whole, printed, run twice. */
#include "tests/engine/kit.h"

#include "base/alloc.h"

static void check_says(stk_plan *p, const char *text)
{
    stk_diag diag = {0};
    CHECK_EQ(stk_plan_check(p, &diag), STK_EINVAL);
    if (!strstr(diag.text, text)) fprintf(stderr, "said: %s\n", diag.text);
    CHECK(strstr(diag.text, text));
    stk_run *run;
    CHECK_EQ(stk_run_start(p, NULL, &run, &diag), STK_EINVAL);
    CHECK(run == NULL && strstr(diag.text, text));
    stk_plan_free(&p);
    CHECK(p == NULL);
}

static stk_plan *empty(void)
{
    stk_plan *p;
    CHECK_EQ(stk_plan_new(&p), STK_OK);
    return p;
}

static kit_source counting;

static stk_plan *begun(void)
{
    counting = kit_counting(10);
    return kit_plan(&counting, kit_value(NULL), NULL);
}

static int first(const stk_item *item, void *ctx)
{
    (void)item, (void)ctx;
    return 0;
}

static void errors_are_kept(void)
{
    stk_plan *p = empty();
    check_says(p, "no source");
    p = begun();
    check_says(p, "no sink");
    p = begun();
    stk_plan_source(p, NULL);
    stk_plan_batch(p, 0, NULL);
    check_says(p, "the source was not made");
    p = begun();
    stk_plan_pipe(p, NULL, NULL);
    check_says(p, "the op was not made");
    p = begun();
    stk_plan_source(p, kit_source_new(&counting));
    check_says(p, "has a source already");
    p = begun();
    stk_plan_batch(p, 0, NULL);
    check_says(p, "a batch of 0");
    p = begun();
    stk_plan_sink(p, 0);
    check_says(p, "a sink for 0 results");
    p = begun();
    stk_plan_pipe(p, kit_add(NULL), &(stk_stage_opts){.concurrency = -1});
    check_says(p, "stage 'add': concurrency is -1");
    p = begun();
    stk_plan_pipe(p, kit_add(NULL), &(stk_stage_opts){.capacity = 100000});
    check_says(p, "stage 'add': capacity is 100000");
    p = begun();
    stk_plan_pipe(p, kit_add(NULL), &(stk_stage_opts){.max_failures = 3});
    check_says(p, "with the policy skip only");
    p = begun();
    stk_plan_pipe(p, kit_add(NULL), &(stk_stage_opts){.on_error = STK_SKIP, .max_failure_rate = 2});
    check_says(p, "max_failure_rate is 2");
    p = begun();
    stk_plan_sink(p, 1);
    stk_plan_pipe(p, kit_add(NULL), NULL);
    check_says(p, "stage 'add' comes after the sink");
}

static void ends_must_fit(void)
{
    stk_plan *p = begun();
    stk_plan_pipe(p, kit_value(NULL), NULL);
    stk_plan_sink(p, 1);
    check_says(p, "stage 'value' takes keys but gets arrays");
    p = begun();
    stk_plan_pipe(p, kit_batch(NULL), NULL);
    stk_plan_sink(p, 1);
    check_says(p, "put a batch stage before it");
    p = begun();
    stk_plan_unbatch(p, NULL);
    stk_plan_sink(p, 1);
    check_says(p, "stage 'unbatch' takes batches but gets arrays");
    p = begun();
    stk_plan_batch(p, 2, NULL);
    stk_plan_unbatch(p, NULL);
    stk_plan_pipe(p, kit_add(NULL), &(stk_stage_opts){.on_error = STK_SUBSTITUTE});
    stk_plan_sink(p, 1);
    check_says(p, "can be substituted only where maps lead from one source");
}

static void routes_and_merges_are_checked(void)
{
    stk_plan *p = begun();
    stk_plan_route(p, first, NULL, 1, &(stk_plan *){empty()}, NULL);
    stk_plan_sink(p, 1);
    check_says(p, "path 0 must have stages");
    p = begun();
    stk_plan *path = empty();
    stk_plan_pipe(path, kit_repeat(NULL), NULL);
    stk_plan_route(p, first, NULL, 1, &path, NULL);
    stk_plan_sink(p, 1);
    check_says(p, "may only hold maps in input order");
    p = begun();
    path = empty();
    stk_plan_pipe(path, kit_value(NULL), NULL);
    stk_plan_route(p, first, NULL, 1, &path, NULL);
    stk_plan_sink(p, 1);
    check_says(p, "path 0 of stage 'route': stage 'value' takes keys");
    p = empty();
    stk_plan_merge(p, 1, &(stk_plan *){empty()}, NULL, 0);
    stk_plan_sink(p, 1);
    check_says(p, "input 0 of the merge: the plan has no source");
    p = empty();
    stk_plan_merge(p, 0, NULL, NULL, 0);
    check_says(p, "a merge of 0 inputs");
}

static void prints(void)
{
    stk_plan *p = begun();
    stk_plan_pipe(p, kit_add(NULL),
                  &(stk_stage_opts){.name = "plus", .order = STK_ORDER_COMPLETION});
    stk_plan_batch(p, 4, &(stk_batch_opts){.drop_last = true});
    stk_plan_sink(p, 3);
    char *text;
    CHECK_EQ(stk_plan_print(p, &text), STK_OK);
    CHECK(strstr(text, "source   counting") && strstr(text, "plus: add") &&
          strstr(text, "4, drop_last"));
    CHECK(strstr(text, "not reproducible: stage 'plus'"));
    stk_text_free(&text);
    CHECK_EQ(stk_plan_length(p), 2);
    stk_plan_free(&p);
    p = begun();
    stk_plan_sink(p, 1);
    CHECK_EQ(stk_plan_print(p, &text), STK_OK);
    CHECK(strstr(text, "\nreproducible:"));
    stk_text_free(&text);
    CHECK_EQ(stk_plan_length(p), 10);
    stk_plan_free(&p);
}

static void runs_twice_at_once(void)
{
    stk_plan *p = begun();
    stk_plan_sink(p, 3);
    stk_run *a, *b;
    int64_t x[10], y[10];
    size_t n, m;
    CHECK_EQ(stk_run_start(p, NULL, &a, NULL), STK_OK);
    CHECK_EQ(stk_run_start(p, NULL, &b, NULL), STK_OK);
    stk_plan_free(&p);
    CHECK_EQ(kit_read(a, x, 10, &n, NULL), STK_EEND);
    CHECK_EQ(kit_read(b, y, 10, &m, NULL), STK_EEND);
    CHECK(n == 10 && m == 10 && !memcmp(x, y, sizeof(x)));
    stk_run_free(&a);
    stk_run_free(&b);
}

static void printing_survives_every_failure(void)
{
    stk_err err;
    stk_fault_arm(-1);
    stk_plan *p = begun();
    stk_plan_sink(p, 1);
    TORTURE (err) {
        char *text;
        err = stk_plan_print(p, &text);
        CHECK(!err == !!text);
        stk_text_free(&text);
    }
    stk_fault_arm(-1);
    stk_plan_free(&p);
}

static stk_err wrap_run(const void *params, void *state, stk_item *item, stk_diag *diag)
{
    (void)params, (void)state, (void)item, (void)diag;
    return STK_OK;
}

/* Where one of several plans gives foreign objects, the stage behind them takes anything. */
static void foreign_ends(void)
{
    static const stk_op_class wrap = {
        .name = "wrap", .in = STK_KIND_ANY, .out = STK_KIND_FOREIGN, .run = wrap_run};
    stk_diag diag = {0};
    for (int k = 0; k < 2; k++) {
        stk_plan *p = begun(), *paths[] = {empty(), empty()};
        stk_plan_pipe(paths[0], kit_add(NULL), NULL);
        stk_plan_pipe(paths[1], stk_op_new(&wrap, NULL), NULL);
        stk_plan_route(p, first, NULL, 2, paths, NULL);
        stk_plan_pipe(p, k ? kit_add(NULL) : stk_op_new(&wrap, NULL), NULL);
        stk_plan_sink(p, 1);
        if (k) {
            check_says(p, "takes arrays but gets foreign objects");
            continue;
        }
        CHECK_EQ(stk_plan_check(p, &diag), STK_OK);
        stk_plan_free(&p);
    }
    for (int k = 0; k < 2; k++) {
        stk_plan *p = empty(), *inputs[] = {begun(), begun()};
        stk_plan_pipe(inputs[k], stk_op_new(&wrap, NULL), NULL);
        stk_plan_merge(p, 2, inputs, NULL, 0);
        stk_plan_sink(p, 1);
        CHECK_EQ(stk_plan_check(p, &diag), STK_OK);
        stk_plan_free(&p);
    }
    stk_plan *p = begun();
    stk_plan_pipe(p, kit_same(NULL), &(stk_stage_opts){.name = "theirs", .group = 1});
    stk_plan_pipe(p, kit_add(NULL), &(stk_stage_opts){.on_error = STK_SUBSTITUTE});
    stk_plan_sink(p, 1);
    check_says(p, "behind stage 'theirs', which runs on threads of another runtime");
}

TESTS(TEST(errors_are_kept), TEST(ends_must_fit), TEST(routes_and_merges_are_checked),
      TEST(foreign_ends), TEST(prints), TEST(runs_twice_at_once),
      TEST(printing_survives_every_failure))
