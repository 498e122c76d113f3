/* What stages of foreign threads do with items: folds, failures, limits, routes, merges, windows.
 */
#include "tests/engine/lanes.h"

#include <sched.h>

#define N 20000

static int64_t ids[N];
static const stk_stage_opts one = {.group = 1, .concurrency = 1};

/* Sums three items into the third; flush gives what is left, if anything. */
typedef struct three {
    int64_t held, flushes, fail_flush;
} three;

static stk_err take_three(void *ctx, stk_item *item, stk_diag *diag)
{
    (void)item, (void)diag;
    three *t = ctx;
    if (++t->held < 3) return STK_ESKIP;
    t->held = 0;
    return STK_OK;
}

static stk_err flush_three(void *ctx, stk_item *out, stk_diag *diag)
{
    (void)out;
    three *t = ctx;
    if (++t->flushes == t->fail_flush)
        return stk_diag_set(diag, STK_ECORRUPT, "flush %d fails", (int)t->flushes);
    if (t->held == 0) return STK_ESKIP;
    t->held = 0;
    return STK_OK;
}

static stk_plan *fold_plan(kit_source *s, three *t, const stk_stage_opts *o)
{
    stk_plan *p = kit_plan(s, NULL, NULL);
    stk_plan_pipe(p, kit_fold_op((kit_hook){take_three, flush_three, t}), o);
    stk_plan_sink(p, 2);
    return p;
}

static void folds_flush_at_ends(void)
{
    for (uint32_t group = 0; group < 2; group++) {
        three t = {0};
        kit_source s = kit_counting(7);
        s.epochs = 2;
        kit_lanes l;
        stk_err end;
        kit_lanes_start(&l, fold_plan(&s, &t, &(stk_stage_opts){.group = group}),
                        &(stk_run_opts){.num_threads = 2, .epoch_ends = true}, 2);
        CHECK_EQ(kit_lanes_read(&l, ids, N, &end, NULL), 8);
        /* what is left has the identity of the last item */
        const int64_t want[] = {2, 5, 6, KIT_EPOCH_END, 2, 5, 6, KIT_EPOCH_END};
        CHECK(!memcmp(ids, want, sizeof(want)));
        CHECK_EQ(end, STK_EEND);
        CHECK_EQ(t.flushes, 3);
        kit_lanes_end(&l);
    }
}

static void flushes_may_fail(void)
{
    for (uint32_t group = 0; group < 2; group++)
        for (int skip = 0; skip < 2; skip++) {
            three t = {.fail_flush = 1};
            kit_source s = kit_counting(5);
            kit_lanes l;
            stk_err end;
            stk_diag diag;
            stk_failure *f;
            size_t n;
            kit_lanes_start(&l,
                            fold_plan(&s, &t,
                                      &(stk_stage_opts){.group = group,
                                                        .on_error = skip ? STK_SKIP : STK_RAISE}),
                            NULL, 2);
            CHECK_EQ(kit_lanes_read(&l, ids, N, &end, &diag), skip ? 2 : 1);
            CHECK_EQ(end, skip ? STK_EEND : STK_ECORRUPT);
            if (!skip) CHECK(strstr(diag.text, "sample 4") && strstr(diag.text, "flush 1 fails"));
            CHECK_EQ(stk_run_failures(l.run, &f, &n), STK_OK);
            CHECK_EQ(n, skip);
            if (skip) CHECK(f[0].id == 4 && !strcmp(f[0].diag.text, "flush 1 fails"));
            stk_failures_free(&f, n);
            kit_lanes_end(&l);
        }
}

static void folds_do_not_substitute(void)
{
    kit_source s = kit_counting(5);
    stk_plan *p = fold_plan(&s, NULL, &(stk_stage_opts){.on_error = STK_SUBSTITUTE});
    CHECK_EQ(stk_plan_check(p, NULL), STK_EINVAL);
    stk_plan_free(&p);
    p = kit_plan(&s, NULL, NULL);
    stk_plan_pipe(p, kit_fold_op((kit_hook){0}), NULL);
    stk_plan_pipe(p, kit_same(NULL), &(stk_stage_opts){.on_error = STK_SUBSTITUTE});
    stk_plan_sink(p, 1);
    CHECK_EQ(stk_plan_check(p, NULL), STK_EINVAL);
    stk_plan_free(&p);
}

/* Fails or skips by id, and leaves a handle where it fails. */
typedef struct picky {
    int64_t fail_every, fail_from, skip_every;
    stk_foreign_domain *domain;
    _Atomic int64_t calls;
} picky;

static stk_err pick(void *ctx, stk_item *item, stk_diag *diag)
{
    picky *p = ctx;
    const int64_t id = stk_item_id(item);
    atomic_fetch_add(&p->calls, 1);
    if (p->skip_every && id % p->skip_every == 0) return STK_ESKIP;
    if (!p->fail_every || id < p->fail_from || id % p->fail_every) return STK_OK;
    if (!p->domain) return stk_diag_set(diag, STK_ECORRUPT, "picked %d", (int)id);
    stk_foreign *f;
    CHECK_EQ(stk_foreign_new(p->domain, (void *)(intptr_t)id, &f), STK_OK);
    stk_item_set_foreign(item, &f);
    return stk_diag_set(diag, STK_EFOREIGN, "raised %d", (int)id);
}

static void count_release(void *handle, void *ctx)
{
    (void)handle;
    ++*(int64_t *)ctx;
}

static void skipped_results_leave_no_trace(void)
{
    for (int order = 0; order < 2; order++) {
        picky p = {.skip_every = 3};
        kit_source s = kit_counting(100);
        kit_lanes l;
        stk_err end;
        stk_stats *st;
        stk_plan *plan = kit_plan(&s, NULL, NULL);
        stk_plan_pipe(plan, kit_hook_op((kit_hook){pick, NULL, &p}),
                      &(stk_stage_opts){.group = 1, .concurrency = 1, .order = (stk_order)order});
        stk_plan_sink(plan, 2);
        kit_lanes_start(&l, plan, NULL, 1);
        CHECK_EQ(kit_lanes_read(&l, ids, N, &end, NULL), 66);
        for (int64_t i = 0; i < 66; i++) CHECK_EQ(ids[i], 3 * (i / 2) + 1 + i % 2);
        CHECK_EQ(stk_run_stats(l.run, &st), STK_OK);
        CHECK(st->stages[1].items == 100 && st->stages[1].failed == 0);
        stk_stats_free(&st);
        kit_lanes_end(&l);
    }
}

/* Two stages fail on different items; together they may fail four times. */
static void limits_are_shared(void)
{
    int64_t released = 0;
    picky a = {.fail_every = 10}, b = {.fail_every = 10, .fail_from = 5};
    kit_source s = kit_counting(1000);
    s.first_id = 1;
    kit_lanes l;
    stk_err end;
    stk_diag diag;
    stk_failure *f;
    size_t n;
    const stk_stage_opts o = {
        .group = 1, .concurrency = 1, .on_error = STK_SKIP, .shared_limit = true};
    CHECK_EQ(stk_foreign_domain_new(count_release, NULL, &released, &a.domain), STK_OK);
    b.domain = a.domain;
    b.fail_every = 7;
    stk_plan *p = kit_plan(&s, NULL, NULL);
    stk_plan_limit(p, 4, 0);
    stk_plan_pipe(p, kit_hook_op((kit_hook){pick, NULL, &a}), &o);
    stk_plan_pipe(p, kit_hook_op((kit_hook){pick, NULL, &b}), &o);
    stk_plan_sink(p, 2);
    kit_lanes_start(&l, p, NULL, 1);
    const size_t read = kit_lanes_read(&l, ids, N, &end, &diag);
    CHECK_EQ(end, STK_ETOOMANY);
    CHECK(read < 100 && strstr(diag.text, "exceeds the threshold (4)"));
    CHECK_EQ(stk_run_causes(l.run, &f, &n), STK_OK);
    CHECK(n >= 2 && !f[0].cause);
    for (size_t i = 1; i < n; i++) {
        CHECK(f[i].diag.err == STK_EFOREIGN && f[i].cause);
        CHECK_EQ((intptr_t)stk_foreign_handle(f[i].cause), f[i].id);
    }
    kit_lanes_end(&l);
    stk_failures_free(&f, n);
    CHECK(stk_foreign_drain(a.domain) >= 5 && released >= 5);
    stk_foreign_domain_close(&a.domain);
}

/* In order of completion all that began before a failure comes before it, and nothing behind. */
static void errors_end_the_stage(void)
{
    for (int order = 0; order < 2; order++)
        for (int lanes = 1; lanes <= 3; lanes += 2) {
            picky p = {.fail_every = 50, .fail_from = 50};
            kit_source s = kit_counting(5000);
            kit_lanes l;
            stk_err end;
            stk_diag diag;
            stk_plan *plan = kit_plan(&s, NULL, NULL);
            stk_plan_pipe(
                plan, kit_hook_op((kit_hook){pick, NULL, &p}),
                &(stk_stage_opts){.group = 1, .concurrency = lanes, .order = (stk_order)order});
            stk_plan_pipe(plan, kit_hook_op((kit_hook){0}), &one);
            stk_plan_sink(plan, 2);
            kit_lanes_start(&l, plan, NULL, lanes);
            const size_t n = kit_lanes_read(&l, ids, N, &end, &diag);
            CHECK_EQ(end, STK_ECORRUPT);
            if (order == STK_ORDER_INPUT) CHECK_EQ(n, 50);
            if (lanes == 1) CHECK(n == 50 && p.calls < 200 && strstr(diag.text, "picked 50"));
            kit_lanes_end(&l);
        }
}

static stk_err set_path(void *ctx, stk_item *item, stk_diag *diag)
{
    (void)diag;
    const int64_t id = stk_item_id(item), wrong = *(const int64_t *)ctx;
    stk_item_set_path(item, wrong && id % 10 == 9 ? (size_t)wrong : (size_t)id % 3);
    return STK_OK;
}

static int send_to_last(const stk_item *item, void *ctx)
{
    (void)ctx;
    return (int)(stk_item_id(item) % 5);
}

static void add_paths(stk_plan *p, stk_router_fn *router, size_t n, const stk_stage_opts *route,
                      const stk_stage_opts *stage, stk_op *last)
{
    stk_plan *paths[STK_MAX_PATHS];
    for (size_t i = 0; i < n; i++) {
        CHECK_EQ(stk_plan_new(&paths[i]), STK_OK);
        stk_plan_pipe(paths[i], i == n - 1 && last ? last : kit_hook_op((kit_hook){0}), stage);
    }
    stk_plan_route(p, router, NULL, n, paths, route);
}

/* The op before the route names the path, also paths that no route has: 99, and no int. */
static void ops_choose_paths(void)
{
    static const int64_t wrong[] = {0, 99, -1, INT64_C(1) << 32};
    for (int order = 0; order < 2; order++)
        for (int w = 0; w < 4; w++) {
            kit_source s = kit_counting(1000);
            int64_t bad = wrong[w];
            kit_lanes l;
            stk_err end;
            stk_plan *p = kit_plan(&s, NULL, NULL);
            stk_plan_pipe(p, kit_hook_op((kit_hook){set_path, NULL, &bad}), &one);
            add_paths(p, NULL, 3,
                      &(stk_stage_opts){.order = (stk_order)order, .on_error = STK_SKIP}, &one,
                      NULL);
            /* gaps of a route with many paths go through one with fewer */
            add_paths(p, send_to_last, 5,
                      &(stk_stage_opts){.order = (stk_order)order, .on_error = STK_SKIP}, &one,
                      kit_same(&(kit_op){.fail_every = 20}));
            stk_plan_sink(p, 3);
            kit_lanes_start(&l, p, NULL, 2);
            stk_diag diag;
            const size_t n = kit_lanes_read(&l, ids, N, &end, &diag);
            if (end != STK_EEND) fprintf(stderr, "%s\n", diag.text);
            CHECK_EQ(end, STK_EEND);
            CHECK_EQ(n, w ? 900 : 1000);
            for (size_t i = 1; i < n && order == STK_ORDER_INPUT; i++) CHECK(ids[i - 1] < ids[i]);
            kit_lanes_end(&l);
        }
}

/* Path 2 holds still: up to 32 items wait for it while the others pass. */
static void routes_look_ahead(void)
{
    _Atomic int64_t gate = 0;
    int64_t bad = 0;
    kit_source s = kit_counting(3000);
    kit_lanes l;
    stk_err end;
    stk_plan *p = kit_plan(&s, NULL, NULL);
    stk_plan_pipe(p, kit_hook_op((kit_hook){set_path, NULL, &bad}), &one);
    add_paths(p, NULL, 3, &(stk_stage_opts){.order = STK_ORDER_COMPLETION},
              &(stk_stage_opts){.concurrency = 1, .capacity = 1},
              kit_same(&(kit_op){.gate = &gate}));
    stk_plan_sink(p, 1);
    kit_lanes_start(&l, p, NULL, 1);
    size_t n = 0;
    int64_t id;
    while ((id = kit_lanes_next(&l, 300000000, NULL)) >= 0) {
        CHECK(id % 3 != 2);
        n++;
    }
    CHECK_EQ(id, STK_ETIMEOUT);
    CHECK(n >= 64 && n <= 2 * (32 + 16)); /* two others for each that waits or runs */
    atomic_store(&gate, 1);
    CHECK_EQ(kit_lanes_read(&l, ids, N, &end, NULL), 3000 - n);
    CHECK_EQ(end, STK_EEND);
    kit_lanes_end(&l);
}

/* The failure goes down one path, and what is behind it, too: the run ends all the same. */
static void failures_before_routes_end_the_run(void)
{
    for (int order = 0; order < 2; order++)
        for (uint32_t group = 0; group < 2; group++) {
            picky picks = {.fail_every = 100, .fail_from = 100};
            kit_source s = kit_counting(100000);
            kit_lanes l;
            stk_err end;
            stk_plan *p = kit_plan(&s, NULL, NULL);
            stk_plan_pipe(p, kit_hook_op((kit_hook){pick, NULL, &picks}),
                          &(stk_stage_opts){.group = group, .concurrency = 1});
            add_paths(p, send_to_last, 5, &(stk_stage_opts){.order = (stk_order)order},
                      &(stk_stage_opts){.concurrency = 1}, NULL);
            stk_plan_sink(p, 3);
            kit_lanes_start(&l, p, NULL, 1);
            const size_t n = kit_lanes_read(&l, ids, N, &end, NULL);
            CHECK_EQ(end, STK_ECORRUPT);
            CHECK(n >= 100 && (order == STK_ORDER_COMPLETION || n == 100));
            kit_lanes_end(&l);
        }
}

/* Inputs of a merge by arrival: input 1 fails in its second epoch, and the others get through
 * theirs; what it would give behind its failure is never seen. */
static void merges_let_the_others_finish(void)
{
    for (uint32_t g = 0; g < 2; g++) {
        picky picks[3] = {{0}, {.fail_every = 1004, .fail_from = 1}, {0}};
        kit_source s[3];
        stk_plan *in[3], *p;
        kit_lanes l;
        stk_err end;
        stk_diag diag;
        _Atomic int64_t gate = 0;
        for (int i = 0; i < 3; i++) {
            s[i] = kit_counting(i == 1 ? 1000 : 10);
            s[i].first_id = 1000 * i + 1;
            s[i].epochs = i == 1 ? 1 : 2;
            in[i] = kit_plan(&s[i], i == 0 ? kit_same(&(kit_op){.gate = &gate}) : NULL,
                             &(stk_stage_opts){.concurrency = 1});
            stk_plan_pipe(in[i], kit_hook_op((kit_hook){pick, NULL, &picks[i]}),
                          &(stk_stage_opts){.group = g, .concurrency = 1});
        }
        CHECK_EQ(stk_plan_new(&p), STK_OK);
        stk_plan_merge_any(p, 3, in);
        stk_plan_sink(p, 4);
        kit_lanes_start(&l, p, &(stk_run_opts){.num_threads = 2, .epoch_ends = true}, 2);
        size_t n[3] = {0};
        while (n[1] < 3 || n[2] < 10) {
            const int64_t id = kit_lanes_next(&l, STK_FOREVER, &diag);
            CHECK(id > 0);
            n[id / 1000]++;
        }
        atomic_store(&gate, 1); /* input 0 comes last, behind the failure */
        while ((end = (stk_err)kit_lanes_next(&l, STK_FOREVER, &diag)) > 0) n[0]++;
        CHECK_EQ(end, STK_ECORRUPT);
        CHECK(strstr(diag.text, "picked 1004"));
        CHECK(n[0] == 10 && n[1] == 3 && n[2] == 10);
        kit_lanes_end(&l);
    }
}

static void merges_by_arrival_keep_epochs(void)
{
    kit_source s[2] = {kit_counting(30), kit_counting(5)};
    stk_plan *in[2], *p;
    kit_lanes l;
    stk_err end;
    for (int i = 0; i < 2; i++) {
        s[i].epochs = 3;
        s[i].first_id = 100 * i;
        in[i] = kit_plan(&s[i], NULL, NULL);
        stk_plan_pipe(
            in[i], kit_hook_op((kit_hook){0}),
            &(stk_stage_opts){.group = 1, .concurrency = 2, .order = STK_ORDER_COMPLETION});
    }
    CHECK_EQ(stk_plan_new(&p), STK_OK);
    stk_plan_merge_any(p, 2, in);
    stk_plan_sink(p, 4);
    kit_lanes_start(&l, p, &(stk_run_opts){.num_threads = 2, .epoch_ends = true}, 3);
    const size_t n = kit_lanes_read(&l, ids, N, &end, NULL);
    CHECK(end == STK_EEND && n == 3 * 36);
    for (size_t i = 0; i < n; i++) CHECK((ids[i] == KIT_EPOCH_END) == (i % 36 == 35));
    kit_lanes_end(&l);
}

/* Nobody reads: the sink, and behind it what is in the making and two more. */
static void windows_grow_only_for_readers(void)
{
    kit_source s = kit_counting(100000);
    picky picks = {0};
    kit_lanes l;
    stk_stats *st;
    stk_plan *p = kit_plan(&s, NULL, NULL);
    stk_plan_pipe(p, kit_hook_op((kit_hook){pick, NULL, &picks}),
                  &(stk_stage_opts){.group = 1, .concurrency = 3});
    stk_plan_sink(p, 5);
    kit_lanes_start(&l, p, NULL, 3);
    for (int i = 0; i < 3; i++) kit_lanes_add(&l, 1);
    for (int64_t before = -1; before != atomic_load(&picks.calls); kit_pause(100000000))
        before = atomic_load(&picks.calls);
    CHECK_EQ(atomic_load(&picks.calls), 5 + 3 + 2);
    CHECK_EQ(stk_run_burst(l.run), 1);
    for (int64_t i = 0; i < 100000; i++) CHECK_EQ(kit_lanes_next(&l, STK_FOREVER, NULL), i);
    CHECK_EQ(stk_run_stats(l.run, &st), STK_OK);
    CHECK(st->queues[1].capacity >= 5 && st->queues[2].capacity == 5);
    stk_stats_free(&st);
    kit_lanes_end(&l);
}

static void sinks_may_be_large(void)
{
    kit_source s = kit_counting(70000);
    kit_lanes l;
    stk_err end;
    stk_plan *p = kit_plan(&s, NULL, NULL), *q = kit_plan(&s, NULL, NULL);
    stk_plan_pipe(p, kit_hook_op((kit_hook){0}), &one);
    stk_plan_sink(p, STK_MAX_SINK);
    stk_plan_sink(q, STK_MAX_SINK + 1);
    CHECK_EQ(stk_plan_check(q, NULL), STK_EINVAL);
    stk_plan_free(&q);
    kit_lanes_start(&l, p, NULL, 1);
    kit_lanes_add(&l, 1);
    for (uint64_t items = 0; items < 70000; sched_yield()) {
        stk_stats *st;
        CHECK_EQ(stk_run_stats(l.run, &st), STK_OK);
        items = st->stages[1].items; /* all of them, although nobody reads */
        stk_stats_free(&st);
    }
    stk_item *items[100];
    size_t n = 0, sum = 0;
    while (!(end = stk_run_next_items(l.run, STK_FOREVER, 100, items, &n, NULL))) {
        for (size_t i = 0; i < n; i++) CHECK_EQ(stk_item_id(items[i]), sum + i);
        stk_items_free(items, n);
        CHECK(!items[0] && !items[n - 1]);
        sum += n;
    }
    CHECK(end == STK_EEND && sum == 70000);
    stk_items_free(items, 0);
    kit_lanes_end(&l);
}

TESTS(TEST(folds_flush_at_ends), TEST(flushes_may_fail), TEST(folds_do_not_substitute),
      TEST(skipped_results_leave_no_trace), TEST(limits_are_shared), TEST(errors_end_the_stage),
      TEST(ops_choose_paths), TEST(routes_look_ahead), TEST(failures_before_routes_end_the_run),
      TEST(merges_let_the_others_finish), TEST(merges_by_arrival_keep_epochs),
      TEST(windows_grow_only_for_readers), TEST(sinks_may_be_large))
