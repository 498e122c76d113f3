/*
 * Random plans, seeded: the same results with one thread and with many, whatever the stages, and
 * nothing left behind when a run is dropped in the middle.
 *
 *     random_test [SEED]     one plan; without it many, from STK_SEED on (default 1).  A failure
 * prints the seed that repeats it.
 */
#include "tests/engine/kit.h"

#include <stdlib.h>

#include "base/rng.h"

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define PLANS 60
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define PLANS 60
#endif
#endif
#ifndef PLANS
#define PLANS 400
#endif

#define MOST 40000

static int64_t want[MOST], got[MOST];
static uint64_t state;

static uint64_t draw(uint64_t below)
{
    return stk_mix64(state++) % below;
}

static int route_three(const stk_item *item, void *ctx)
{
    (void)ctx;
    return (int)((stk_item_id(item) + stk_item_index(item)) % 3);
}

static stk_op *random_op(void)
{
    const kit_op o = {.blocking = draw(3) == 0, .spin_ns = draw(4) ? 0 : (int64_t)draw(20000)};
    switch (draw(3)) {
    case 0: return kit_add(&(kit_op){.spin_ns = o.spin_ns});
    case 1: return kit_random(NULL);
    default: return kit_same(&o);
    }
}

static stk_stage_opts random_opts(void)
{
    return (stk_stage_opts){.concurrency = draw(3) ? 0 : 1 + (int32_t)draw(5),
                            .capacity = draw(3) ? 0 : 1 + (int32_t)draw(20)};
}

static void add_route(stk_plan *p)
{
    stk_plan *paths[3];
    for (int i = 0; i < 3; i++) {
        const stk_stage_opts o = random_opts();
        CHECK_EQ(stk_plan_new(&paths[i]), STK_OK);
        stk_plan_pipe(paths[i], random_op(), &o);
        if (draw(2)) stk_plan_pipe(paths[i], random_op(), NULL);
    }
    stk_plan_route(p, route_three, NULL, 3, paths, NULL);
}

static void add_stage(stk_plan *p)
{
    stk_stage_opts o = random_opts();
    switch (draw(6)) {
    case 0: add_route(p); break;
    case 1: stk_plan_pipe(p, kit_repeat(NULL), &o); break;
    case 2:
        stk_plan_batch(p, 1 + draw(9), &(stk_batch_opts){.drop_last = draw(4) == 0});
        stk_plan_unbatch(p, NULL);
        break;
    case 3:
        o.on_error = STK_SKIP;
        stk_plan_pipe(p, kit_random(&(kit_op){.fail_every = 2 + (int64_t)draw(30)}), &o);
        break;
    default: stk_plan_pipe(p, random_op(), &o);
    }
}

static stk_plan *random_plan(kit_source sources[3])
{
    stk_plan *p = NULL, *in[3];
    const size_t n = 1 + (draw(3) == 0 ? 1 + draw(2) : 0);
    const double weights[] = {1, 2.5, 0.5};
    for (size_t i = 0; i < n; i++) {
        sources[i] = kit_counting((int64_t)draw(150) + 1);
        sources[i].epochs = 1 + (int64_t)draw(3);
        sources[i].first_id = 1 + 1000 * (int64_t)i;
        stk_stage_opts o = random_opts();
        if (draw(3) == 0) o.on_error = STK_SUBSTITUTE;
        const kit_op first = {
            .blocking = draw(2), .fail_every = o.on_error ? 7 : 0, .no_spec = draw(3) == 0};
        in[i] = kit_plan(&sources[i], kit_value(&first), &o);
    }
    if (n == 1) {
        p = in[0];
    }
    else {
        CHECK_EQ(stk_plan_new(&p), STK_OK);
        stk_plan_merge(p, n, in, draw(2) ? weights : NULL, 3);
    }
    for (uint64_t i = draw(5); i > 0; i--) add_stage(p);
    if (draw(2)) stk_plan_batch(p, 1 + draw(9), NULL);
    stk_plan_sink(p, 1 + draw(6));
    return p;
}

static void drop_in_the_middle(stk_plan *p, size_t results)
{
    stk_run *run;
    size_t n, read = 0;
    CHECK_EQ(stk_run_start(p, &(stk_run_opts){.num_threads = 1 + (int32_t)draw(4)}, &run, NULL),
             STK_OK);
    const size_t stop = draw(results / 2 + 1);
    while (read < stop) {
        stk_item *items[3];
        if (stk_run_next_items(run, STK_FOREVER, 3, items, &n, NULL)) break;
        for (size_t i = 0; i < n; i++) stk_item_free(&items[i]);
        read += n;
    }
    if (draw(2)) stk_run_cancel(run);
    stk_run_free(&run);
}

static void one_plan(uint64_t seed)
{
    kit_source sources[3];
    state = stk_mix64(seed);
    stk_plan *p = random_plan(sources);
    size_t n0, n;
    stk_diag diag = {0};
    const uint64_t after = state;
    stk_run *run;
    stk_err err = stk_run_start(p, &(stk_run_opts){.num_threads = 1}, &run, &diag);
    if (err) fprintf(stderr, "seed %" PRIu64 ": %s\n", seed, diag.text);
    CHECK_EQ(err, STK_OK);
    const stk_err end = kit_read(run, want, MOST, &n0, &diag);
    stk_run_free(&run);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(stk_run_start(p, &(stk_run_opts){.num_threads = 2 + (int32_t)draw(7)}, &run, NULL),
                 STK_OK);
        err = kit_read(run, got, MOST, &n, &diag);
        stk_run_free(&run);
        const bool same =
            err == end && n == n0 && n <= MOST && !memcmp(got, want, n * sizeof(*got));
        if (!same)
            fprintf(stderr, "seed %" PRIu64 ": %zu results, %zu with one thread\n", seed, n, n0);
        CHECK(same);
    }
    state = after;
    drop_in_the_middle(p, n0);
    stk_plan_free(&p);
}

int main(int argc, char **argv)
{
    const char *env = getenv("STK_SEED");
    const uint64_t first = strtoull(argc > 1 ? argv[1] : env ? env : "1", NULL, 10);
    const uint64_t count = argc > 1 ? 1 : PLANS;
    for (uint64_t seed = first; seed < first + count; seed++) one_plan(seed);
    fprintf(stderr, "%" PRIu64 " plans from seed %" PRIu64 "\n", count, first);
    return 0;
}
