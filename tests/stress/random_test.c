/*
 * Random plans, seeded: the same results with one thread and with many, and where foreign lanes run
 * some of the stages, whatever the stages; and nothing left behind when a run is dropped in the
 * middle.
 *
 *     random_test [SEED]     one plan; without it many, from STK_SEED on (default 1).  A failure
 * prints the seed that repeats it.
 */
#include "tests/engine/lanes.h"

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
static bool foreign; /* stages get groups, else as they would be */

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
    const uint32_t g = foreign ? (uint32_t)(stk_mix64(~state) % 4) : 0; /* draws nothing */
    return (stk_stage_opts){.concurrency = draw(3) ? 0 : 1 + (int32_t)draw(5),
                            .capacity = draw(3) ? 0 : 1 + (int32_t)draw(20),
                            .group = g};
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

static void check_same(uint64_t seed, bool same, size_t n, size_t n0)
{
    if (!same) fprintf(stderr, "seed %" PRIu64 ": %zu results, %zu wanted\n", seed, n, n0);
    CHECK(same);
}

/* The same plan with stages on 1 to 4 lanes a group: read, and dropped in the middle. */
static void on_lanes(uint64_t seed, kit_source sources[3], stk_err end, size_t n0)
{
    for (int drop = 0; drop < 2; drop++) {
        kit_lanes l;
        stk_diag diag;
        size_t n = 0;
        state = stk_mix64(seed);
        foreign = true;
        stk_plan *p = random_plan(sources);
        foreign = false;
        const stk_run_opts o = {.num_threads = 1 + (int32_t)draw(3)};
        kit_lanes_start(&l, p, &o, 1 + (int)draw(4));
        for (uint32_t g = 1; g < 4; g++) {
            stk_lane *probe;
            if (stk_lane_new(l.run, g, NULL, NULL, &probe)) continue; /* the plan has none */
            stk_lane_free(&probe);
            kit_lanes_add(&l, g);
        }
        if (!drop) {
            const stk_err err = kit_read(l.run, got, MOST, &n, &diag);
            check_same(seed, err == end && n == n0 && !memcmp(got, want, n * sizeof(*got)), n, n0);
        }
        for (uint64_t i = drop ? draw(n0 / 2 + 1) : 0; i > 0; i--) {
            stk_item *item;
            stk_err err = stk_run_next_items(l.run, STK_FOREVER, 1, &item, &n, NULL);
            if (err == STK_EAGAIN) kit_lanes_grow(&l);
            if (!err) stk_item_free(&item);
        }
        kit_lanes_end(&l);
    }
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
        check_same(seed, err == end && n == n0 && n <= MOST && !memcmp(got, want, n * sizeof(*got)),
                   n, n0);
    }
    state = after;
    drop_in_the_middle(p, n0);
    stk_plan_free(&p);
    on_lanes(seed, sources, end, n0);
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
