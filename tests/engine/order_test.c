/* Order, batches by planned position, determinism over threads. */
#include "tests/engine/kit.h"

#define N 1000
static int64_t got[4 * N], want[4 * N];
static const int32_t threads[] = {1, 2, 8};

static void maps_keep_order(void)
{
    for (size_t k = 0; k < 3; k++) {
        size_t n;
        stk_diag diag;
        kit_source s = kit_counting(N);
        stk_plan *p = kit_plan(&s, kit_value(NULL), NULL);
        stk_plan_pipe(p, kit_add(NULL), NULL);
        stk_plan_pipe(p, kit_add(NULL), &(stk_stage_opts){.concurrency = 3});
        stk_plan_pipe(p, kit_same(&(kit_op){.blocking = true}), NULL);
        stk_plan_sink(p, 5);
        CHECK_EQ(kit_run(p, threads[k], got, N, &n, &diag), STK_EEND);
        CHECK_EQ(n, N);
        for (int64_t i = 0; i < N; i++) CHECK_EQ(got[i], i * 10 + 2);
    }
}

static void completion_loses_nothing(void)
{
    size_t n;
    kit_source s = kit_counting(N);
    stk_plan *p = kit_plan(&s, kit_value(&(kit_op){.spin_ns = 1000}),
                           &(stk_stage_opts){.order = STK_ORDER_COMPLETION});
    stk_plan_sink(p, 5);
    CHECK_EQ(kit_run(p, 4, got, N, &n, NULL), STK_EEND);
    CHECK_EQ(n, N);
    int64_t sum = 0;
    for (int64_t i = 0; i < N; i++) sum += got[i];
    CHECK_EQ(sum, 10 * (int64_t)N * (N - 1) / 2);
}

static stk_plan *batched(size_t size, const stk_batch_opts *b, int64_t epochs, int64_t fail_every)
{
    static kit_source source;
    source = kit_counting(100);
    source.first_id = 1;
    source.epochs = epochs;
    stk_plan *p = kit_plan(&source, kit_value(&(kit_op){.fail_every = fail_every}),
                           &(stk_stage_opts){.on_error = STK_SKIP});
    stk_plan_pipe(p, kit_random(NULL), NULL);
    stk_plan_batch(p, size, b);
    stk_plan_pipe(p, kit_batch(NULL), NULL);
    stk_plan_sink(p, 2);
    return p;
}

static void batches_are_the_same_with_any_threads(void)
{
    size_t n0, n;
    CHECK_EQ(kit_run(batched(7, NULL, 3, 9), 1, want, 4 * N, &n0, NULL), STK_EEND);
    for (int i = 0; i < 10; i++)
        for (size_t k = 0; k < 3; k++) {
            CHECK_EQ(kit_run(batched(7, NULL, 3, 9), threads[k], got, 4 * N, &n, NULL), STK_EEND);
            CHECK_EQ(n, n0);
            CHECK(!memcmp(got, want, n * sizeof(*got)));
        }
}

static void batches_group_by_plan(void)
{
    size_t n;
    /* ids 1..100, 9 | id fails: 11 of them; 15 batches of 7 planned, the last of 2 */
    CHECK_EQ(kit_run(batched(7, NULL, 1, 9), 2, got, 4 * N, &n, NULL), STK_EEND);
    CHECK_EQ(n, 15 + 89);
    CHECK_EQ(got[0], -8);
    CHECK_EQ(got[8], -7);     /* 8..14 without 9 */
    CHECK_EQ(got[n - 2], -2); /* 99 failed, 100 alone */
    CHECK_EQ(
        kit_run(batched(7, &(stk_batch_opts){.drop_last = true}, 2, 0), 2, got, 4 * N, &n, NULL),
        STK_EEND);
    CHECK_EQ(n, 2 * (14 + 98));
    CHECK_EQ(
        kit_run(batched(1, &(stk_batch_opts){.keep_empty = true}, 1, 2), 2, got, 4 * N, &n, NULL),
        STK_EEND);
    CHECK_EQ(n, 100 + 50);
    CHECK_EQ(kit_run(batched(1, NULL, 1, 2), 2, got, 4 * N, &n, NULL), STK_EEND);
    CHECK_EQ(n, 50 + 50);
    CHECK_EQ(kit_run(batched(1000, NULL, 3, 0), 2, got, 4 * N, &n, NULL), STK_EEND);
    CHECK_EQ(n, 3 * 101);
}

static void unknown_specs_are_copied(void)
{
    size_t n;
    kit_source s = kit_counting(100);
    stk_plan *p = kit_plan(&s, kit_value(&(kit_op){.no_spec = true}), NULL);
    stk_plan_batch(p, 8, NULL);
    stk_plan_unbatch(p, NULL);
    stk_plan_pipe(p, kit_add(NULL), NULL);
    stk_plan_batch(p, 10, NULL);
    stk_plan_sink(p, 2);
    CHECK_EQ(kit_run(p, 3, got, N, &n, NULL), STK_EEND);
    CHECK_EQ(n, 110);
    for (int64_t i = 0; i < 100; i++) CHECK_EQ(got[i + i / 10 + 1], i * 10 + 1);
}

static void expand_keeps_order(void)
{
    for (size_t k = 0; k < 3; k++) {
        size_t n, at = 0;
        kit_source s = kit_counting(N);
        stk_plan *p = kit_plan(&s, kit_value(NULL), NULL);
        stk_plan_pipe(p, kit_repeat(NULL), NULL);
        stk_plan_pipe(p, kit_add(NULL), NULL);
        stk_plan_sink(p, 3);
        CHECK_EQ(kit_run(p, threads[k], got, 4 * N, &n, NULL), STK_EEND);
        for (int64_t id = 0; id < N; id++)
            for (int64_t i = 0; i < id % 4; i++) CHECK_EQ(got[at++], id * 10 + i + 1);
        CHECK_EQ(n, at);
    }
}

static int by_id(const stk_item *item, void *ctx)
{
    (void)ctx;
    return (int)(stk_item_id(item) % 3);
}

static stk_plan *path(stk_op *op)
{
    stk_plan *p = NULL;
    if (stk_plan_new(&p)) return NULL;
    stk_plan_pipe(p, op, NULL);
    return p;
}

static void route_rejoins(void)
{
    for (int order = 0; order < 2; order++)
        for (size_t k = 0; k < 3; k++) {
            size_t n;
            stk_diag diag = {0};
            kit_source s = kit_counting(300);
            s.epochs = 2;
            stk_plan *p = kit_plan(&s, kit_value(NULL), NULL);
            stk_plan *paths[] = {path(kit_add(NULL)), path(kit_same(&(kit_op){.blocking = true})),
                                 path(kit_same(&(kit_op){.spin_ns = 2000}))};
            stk_plan_route(p, by_id, NULL, 3, paths, &(stk_stage_opts){.order = (stk_order)order});
            stk_plan_batch(p, 16, NULL);
            stk_plan_sink(p, 3);
            stk_err err = kit_run(p, threads[k], got, 4 * N, &n, &diag);
            if (err != STK_EEND) fprintf(stderr, "%s\n", diag.text);
            CHECK_EQ(err, STK_EEND);
            CHECK_EQ(n, 2 * (300 + 19));
            int64_t sum = 0;
            for (size_t i = 0; i < n; i++) sum += got[i] > 0 ? got[i] : 0;
            CHECK_EQ(sum, 2 * (10 * 300 * 299 / 2 + 100));
            for (int64_t i = 0; order == 0 && i < 300; i++)
                CHECK_EQ(got[i + i / 16 + 1], i * 10 + (i % 3 == 0));
        }
}

static stk_plan *merged(const double *weights)
{
    static kit_source a, b;
    a = kit_counting(10);
    b = kit_counting(30);
    b.first_id = 1000;
    a.epochs = b.epochs = 2;
    stk_plan *p = NULL;
    stk_plan *in[] = {kit_plan(&a, kit_value(NULL), NULL), kit_plan(&b, kit_value(NULL), NULL)};
    CHECK_EQ(stk_plan_new(&p), STK_OK);
    stk_plan_merge(p, 2, in, weights, 7);
    stk_plan_batch(p, 8, NULL);
    stk_plan_sink(p, 2);
    return p;
}

static void merge_interleaves(void)
{
    size_t n0, n;
    CHECK_EQ(kit_run(merged(NULL), 2, got, N, &n, NULL), STK_EEND);
    CHECK_EQ(n, 2 * (40 + 5));
    for (int64_t i = 0; i < 20; i++)
        CHECK_EQ(got[i + i / 8 + 1], i % 2 ? (1000 + i / 2) * 10 : i / 2 * 10);
    const double weights[] = {1, 3};
    CHECK_EQ(kit_run(merged(weights), 1, want, N, &n0, NULL), STK_EEND);
    CHECK_EQ(n0, n);
    CHECK(memcmp(got, want, n * sizeof(*got)));
    CHECK_EQ(kit_run(merged(weights), 8, got, N, &n, NULL), STK_EEND);
    CHECK(!memcmp(got, want, n * sizeof(*got)));
}

TESTS(TEST(maps_keep_order), TEST(completion_loses_nothing),
      TEST(batches_are_the_same_with_any_threads), TEST(batches_group_by_plan),
      TEST(unknown_specs_are_copied), TEST(expand_keeps_order), TEST(route_rejoins),
      TEST(merge_interleaves))
