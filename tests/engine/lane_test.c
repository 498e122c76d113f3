/* Stages that foreign threads run: who runs what, who waits for whom, and the end. */
#include "tests/engine/lanes.h"

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/thread.h"

#define N 20000
#define LATE_NS INT64_C(20000000000) /* of what should take milliseconds: then it is stuck */

static int64_t ids[N];

static stk_plan *one_stage(kit_source *s, stk_op *op, stk_stage_opts o, size_t sink)
{
    stk_plan *p = kit_plan(s, op, &o);
    stk_plan_sink(p, sink);
    return p;
}

static void check_count(size_t n, int64_t count)
{
    CHECK_EQ(n, count);
    for (int64_t i = 0; i < count; i++) CHECK_EQ(ids[i], i);
}

/* Waits for a condition that another thread brings about; spins, so that it takes its lane. */
static bool await(_Atomic int64_t *value, int64_t least)
{
    const int64_t late = stk_clock_ns() + LATE_NS;
    while (atomic_load(value) < least) {
        if (stk_clock_ns() > late) return false;
        sched_yield();
    }
    return true;
}

static _Thread_local bool on_lane;

static stk_err check_lane(void *ctx, stk_item *item, stk_diag *diag)
{
    (void)item, (void)diag;
    _Atomic int64_t *most = ctx;
    const int64_t n = atomic_fetch_add(&most[0], 1) + 1;
    if (n > atomic_load(&most[1])) atomic_store(&most[1], n);
    CHECK(!on_lane);
    on_lane = true; /* one item at a time on a thread */
    sched_yield();
    on_lane = false;
    atomic_fetch_sub(&most[0], 1);
    return STK_OK;
}

static void results_keep_their_order(void)
{
    for (int lanes = 1; lanes <= 4; lanes++) {
        kit_source s = kit_counting(500);
        kit_lanes l;
        stk_err end;
        _Atomic int64_t most[2] = {0};
        kit_lanes_start(&l,
                        one_stage(&s, kit_hook_op((kit_hook){check_lane, NULL, most}),
                                  (stk_stage_opts){.group = 1, .concurrency = 3}, 2),
                        NULL, lanes);
        const size_t n = kit_lanes_read(&l, ids, N, &end, NULL);
        CHECK_EQ(end, STK_EEND);
        check_count(n, 500);
        CHECK(most[1] <= 3);
        CHECK(l.made[1] >= 1 && l.made[1] <= lanes);
        kit_lanes_end(&l);
    }
}

static void blocking_ops_run_on_lanes(void)
{
    kit_source s = kit_counting(50);
    kit_lanes l;
    stk_err end;
    stk_stats *st;
    kit_lanes_start(&l,
                    one_stage(&s, kit_blocking_hook_op((kit_hook){0}),
                              (stk_stage_opts){.group = 1, .concurrency = 2}, 2),
                    NULL, 2);
    check_count(kit_lanes_read(&l, ids, N, &end, NULL), 50);
    CHECK_EQ(stk_run_stats(l.run, &st), STK_OK);
    CHECK_EQ(st->num_io_threads, 0);
    stk_stats_free(&st);
    kit_lanes_end(&l);
}

static _Atomic int64_t opened, closed;

static stk_err state_open(const void *params, void **state, stk_diag *diag)
{
    (void)params, (void)diag;
    atomic_fetch_add(&opened, 1);
    *state = &opened;
    return STK_OK;
}

static void state_close(void *state)
{
    CHECK(state == &opened);
    atomic_fetch_add(&closed, 1);
}

static stk_err state_run(const void *params, void *state, stk_item *item, stk_diag *diag)
{
    (void)params, (void)item, (void)diag;
    CHECK(state == &opened);
    return STK_OK;
}

static void lanes_close_their_states(void)
{
    static const stk_op_class cls = {
        .name = "state", .open = state_open, .close = state_close, .run = state_run};
    kit_source s = kit_counting(200);
    kit_lanes l;
    stk_err end;
    kit_lanes_start(
        &l,
        one_stage(&s, stk_op_new(&cls, NULL), (stk_stage_opts){.group = 1, .concurrency = 2}, 2),
        NULL, 2);
    check_count(kit_lanes_read(&l, ids, N, &end, NULL), 200);
    kit_lanes_end(&l);
    CHECK(atomic_load(&opened) >= 1);
    CHECK_EQ(atomic_load(&opened), atomic_load(&closed));
}

/* Items up to WARM are quick, so that what follows travels in bursts. */
#define WARM 300

typedef struct waits {
    _Atomic int64_t begun, got; /* highest id that an op has seen, that was read */
    int64_t every;              /* ids from WARM on that it divides wait... */
    bool for_reader;            /* for the one before to be read, else for the one after to begin */
    _Atomic int64_t waited_ns, waits;
} waits;

static stk_err wait_for_other(void *ctx, stk_item *item, stk_diag *diag)
{
    waits *w = ctx;
    const int64_t id = stk_item_id(item);
    int64_t before = atomic_load(&w->begun);
    while (before < id && !atomic_compare_exchange_weak(&w->begun, &before, id)) continue;
    if (id < WARM || id % w->every) return STK_OK;
    const int64_t begin = stk_clock_ns();
    const bool came = w->for_reader ? await(&w->got, id - 1) : await(&w->begun, id + 1);
    atomic_fetch_add(&w->waited_ns, stk_clock_ns() - begin);
    atomic_fetch_add(&w->waits, 1);
    return came ? STK_OK : stk_diag_set(diag, STK_EIO, "item %d is stuck", (int)id);
}

/* Reads one by one, and says so. */
static void read_for(kit_lanes *l, waits *w, int64_t count)
{
    stk_diag diag;
    for (int64_t i = 0; i < count; i++) {
        const int64_t id = kit_lanes_next(l, STK_FOREVER, &diag);
        if (id < 0) fprintf(stderr, "%s\n", diag.text);
        CHECK(id >= 0);
        atomic_store(&w->got, id);
    }
    CHECK_EQ(kit_lanes_next(l, STK_FOREVER, NULL), STK_EEND);
    const int64_t each = atomic_load(&w->waited_ns) / atomic_load(&w->waits);
    fprintf(stderr, "  %d waits of %d us\n", (int)w->waits, (int)(each / 1000));
    CHECK(each < 100000000); /* a few milliseconds; here machines may be slow */
}

static void items_wait_for_others_of_their_burst(void)
{
    for (int order = 0; order < 2; order++) {
        kit_source s = kit_counting(WARM + 200);
        waits w = {.begun = -1, .got = -1, .every = 10};
        kit_lanes l;
        kit_lanes_start(
            &l,
            one_stage(&s, kit_hook_op((kit_hook){wait_for_other, NULL, &w}),
                      (stk_stage_opts){
                          .group = 1, .concurrency = 2, .order = (stk_order)order, .capacity = 512},
                      600),
            NULL, 2);
        read_for(&l, &w, WARM + 200);
        kit_lanes_end(&l);
    }
}

static void items_wait_for_the_reader(void)
{
    for (int order = 0; order < 2; order++) {
        kit_source s = kit_counting(WARM + 200);
        waits w = {.begun = -1, .got = -1, .every = 7, .for_reader = true};
        kit_lanes l;
        kit_lanes_start(
            &l,
            one_stage(&s, kit_hook_op((kit_hook){wait_for_other, NULL, &w}),
                      (stk_stage_opts){
                          .group = 1, .concurrency = 1, .order = (stk_order)order, .capacity = 512},
                      600),
            NULL, 1);
        read_for(&l, &w, WARM + 200);
        kit_lanes_end(&l);
    }
}

/* A source that waits for what became of its last item, and one that tells it. */
typedef struct coupled {
    int64_t next, count;
    waits *w;
} coupled;

static stk_err coupled_open(void *params, const stk_source_env *env, void **cursor, stk_diag *diag)
{
    (void)env, (void)diag;
    *cursor = params;
    return STK_OK;
}

static void coupled_close(void *cursor)
{
    (void)cursor;
}

static stk_err coupled_next(void *cursor, stk_item *item, stk_diag *diag)
{
    coupled *c = cursor;
    if (c->next == c->count) return STK_EEND;
    stk_item_set_id(item, c->next++, 0);
    return wait_for_other(c->w, item, diag);
}

static const stk_source_class coupled_class = {
    .name = "coupled", .open = coupled_open, .close = coupled_close, .next = coupled_next};

static void sources_wait_for_the_reader(void)
{
    waits w = {.begun = -1, .got = -1, .every = 9, .for_reader = true};
    coupled c = {.count = WARM + 200, .w = &w};
    kit_lanes l;
    stk_plan *p;
    CHECK_EQ(stk_plan_new(&p), STK_OK);
    stk_plan_foreign_source(p, stk_source_new(&coupled_class, &c), 1);
    stk_plan_pipe(p, kit_hook_op((kit_hook){0}), &(stk_stage_opts){.group = 2, .concurrency = 1});
    stk_plan_sink(p, 600);
    kit_lanes_start(&l, p, NULL, 1);
    read_for(&l, &w, c.count);
    kit_lanes_end(&l);
}

static stk_err many(const void *params, void *state, void **cursor, stk_item *in, int64_t index,
                    stk_item *out, stk_diag *diag)
{
    (void)state, (void)cursor, (void)in;
    const kit_hook *h = params;
    if (index == WARM + 200) return STK_EEND;
    stk_item_set_id(out, index, 0);
    return wait_for_other(h->ctx, out, diag);
}

static void expansions_wait_for_the_reader(void)
{
    static const stk_op_class cls = {.name = "many", .expand = many};
    waits w = {.begun = -1, .got = -1, .every = 9, .for_reader = true};
    kit_hook params = {.ctx = &w};
    kit_source s = kit_counting(1);
    kit_lanes l;
    kit_lanes_start(&l,
                    one_stage(&s, stk_op_new(&cls, &params),
                              (stk_stage_opts){.group = 1, .concurrency = 1}, 600),
                    NULL, 1);
    read_for(&l, &w, WARM + 200);
    kit_lanes_end(&l);
}

/* An item comes while the only lane that works has begun the one before, which waits for it: the
 * lane that is idle has to be woken, or made, although the busy one is expected back soon. */
static void work_is_not_left_to_a_lane_that_waits(void)
{
    for (int made = 1; made <= 2; made++) {
        waits w = {.begun = -1, .got = -1, .every = 2};
        kit_source s = kit_counting(WARM + 2);
        kit_lanes l;
        s.hold_at = WARM + 1;
        kit_lanes_start(&l,
                        one_stage(&s, kit_hook_op((kit_hook){wait_for_other, NULL, &w}),
                                  (stk_stage_opts){.group = 1, .concurrency = 2}, 600),
                        NULL, 2);
        for (int i = 0; i < made; i++) kit_lanes_add(&l, 1);
        for (int64_t i = 0; i < WARM; i++) CHECK_EQ(kit_lanes_next(&l, STK_FOREVER, NULL), i);
        CHECK(await(&w.begun, WARM)); /* it waits for WARM + 1, which the source holds */
        kit_release(&s);
        CHECK_EQ(kit_lanes_next(&l, STK_FOREVER, NULL), WARM);
        CHECK_EQ(kit_lanes_next(&l, STK_FOREVER, NULL), WARM + 1);
        CHECK_EQ(kit_lanes_next(&l, STK_FOREVER, NULL), STK_EEND);
        kit_lanes_end(&l);
    }
}

/* One lane, several stages: what only passes a stage makes the next one ready. */
static void ends_of_epochs_pass_with_one_lane(void)
{
    for (int round = 0; round < 20; round++) {
        kit_source s = kit_counting(round % 4);
        s.epochs = 100;
        kit_lanes l;
        stk_err end;
        stk_plan *p = kit_plan(&s, NULL, NULL);
        for (int i = 0; i < 3; i++)
            stk_plan_pipe(p, kit_hook_op((kit_hook){0}),
                          &(stk_stage_opts){.group = 1,
                                            .concurrency = 1 + round % 2,
                                            .order = STK_ORDER_COMPLETION});
        stk_plan_sink(p, 1);
        kit_lanes_start(&l, p, &(stk_run_opts){.num_threads = 1, .epoch_ends = true}, 1);
        const size_t n = kit_lanes_read(&l, ids, N, &end, NULL);
        CHECK_EQ(end, STK_EEND);
        CHECK_EQ(n, 100 * (round % 4 + 1));
        for (size_t i = 0; i < n; i++)
            CHECK((ids[i] == KIT_EPOCH_END) == (i % (size_t)(round % 4 + 1) == (size_t)round % 4));
        kit_lanes_end(&l);
    }
}

static void readers_are_asked_for_the_first_lane(void)
{
    kit_source s = kit_counting(3);
    stk_plan *p = one_stage(&s, kit_hook_op((kit_hook){0}),
                            (stk_stage_opts){.group = 63, .concurrency = 1}, 1);
    kit_lanes l;
    stk_item *item;
    size_t n;
    s.hold_at = 0;
    kit_lanes_start(&l, p, NULL, 1);
    CHECK_EQ(stk_run_next_items(l.run, 0, 1, &item, &n, NULL), STK_ETIMEOUT);
    CHECK_EQ(stk_run_short_groups(l.run), 0);
    kit_release(&s);
    CHECK_EQ(stk_run_next_items(l.run, STK_FOREVER, 1, &item, &n, NULL), STK_EAGAIN);
    CHECK(stk_run_short_groups(l.run) == UINT64_C(1) << 63);
    CHECK_EQ(stk_run_next_items(l.run, 1000000, 1, &item, &n, NULL), STK_ETIMEOUT);
    kit_lanes_add(&l, 63);
    for (int i = 0; i < 3; i++) CHECK_EQ(kit_lanes_next(&l, STK_FOREVER, NULL), i);
    CHECK_EQ(kit_lanes_next(&l, STK_FOREVER, NULL), STK_EEND);
    kit_lanes_end(&l);
}

/* Group 63 again, by lanes: the source's asks for the stage's. */
static void lanes_ask_for_lanes(void)
{
    waits w = {.begun = -1, .every = N};
    coupled c = {.count = 100, .w = &w};
    kit_lanes l;
    stk_plan *p;
    CHECK_EQ(stk_plan_new(&p), STK_OK);
    stk_plan_foreign_source(p, stk_source_new(&coupled_class, &c), 1);
    stk_plan_pipe(p, kit_hook_op((kit_hook){0}), &(stk_stage_opts){.group = 63, .concurrency = 1});
    stk_plan_sink(p, 200);
    kit_lanes_start(&l, p, NULL, 1);
    kit_lanes_add(&l, 1);
    while (stk_run_burst(l.run) == 1) { /* nobody reads */
        stk_stats *st;
        CHECK_EQ(stk_run_stats(l.run, &st), STK_OK);
        const bool all = st->stages[1].items == 100;
        stk_stats_free(&st);
        if (all) break;
        sched_yield();
    }
    CHECK_EQ(l.made[63], 1);
    kit_lanes_end(&l);
}

static void bad_lanes(void)
{
    kit_source s = kit_counting(3);
    stk_plan *p = one_stage(&s, kit_hook_op((kit_hook){0}),
                            (stk_stage_opts){.group = 2, .concurrency = 1}, 1);
    stk_run *run;
    stk_lane *lane = NULL;
    CHECK_EQ(stk_run_start(p, NULL, &run, NULL), STK_OK);
    CHECK_EQ(stk_lane_new(run, 0, NULL, NULL, &lane), STK_EINVAL);
    CHECK_EQ(stk_lane_new(run, 3, NULL, NULL, &lane), STK_EINVAL);
    CHECK_EQ(stk_lane_new(run, 1, NULL, NULL, &lane), STK_OK); /* a group without a stage */
    CHECK_EQ(stk_lane_work(lane), STK_EAGAIN);
    CHECK_EQ(stk_lane_wait(lane, 1000000), STK_ETIMEOUT);
    CHECK_EQ(stk_lane_wait(lane, 0), STK_ETIMEOUT);
    const pid_t pid = fork();
    if (pid == 0) {
        stk_lane *none;
        int bad = stk_lane_work(lane) != STK_EFORK || stk_lane_wait(lane, 0) != STK_EFORK;
        bad |= stk_lane_new(run, 1, NULL, NULL, &none) != STK_EFORK || none;
        bad |= stk_run_short_groups(run) != 0;
        stk_lane_free(&lane);
        stk_plan_free(&p);
        _exit(bad);
    }
    int status;
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK_EQ(status, 0);
    stk_run_cancel(run);
    CHECK_EQ(stk_lane_work(lane), STK_ECANCELLED);
    CHECK_EQ(stk_lane_wait(lane, STK_FOREVER), STK_ECANCELLED);
    stk_lane *late = lane;
    CHECK_EQ(stk_lane_new(run, 2, NULL, NULL, &late), STK_ECANCELLED);
    CHECK(!late);
    stk_run_free(&run); /* a lane may outlive it */
    CHECK_EQ(stk_lane_work(lane), STK_ECANCELLED);
    stk_lane_free(&lane);
    CHECK(!lane);
    stk_lane_free(&lane);
    stk_plan_free(&p);
}

static void note_stage(const char *stage, void *ctx)
{
    snprintf(ctx, STK_NAME_SIZE, "%s", stage);
}

static void stages_are_told(void)
{
    kit_source s = kit_counting(3);
    stk_plan *p = one_stage(&s, kit_hook_op((kit_hook){0}),
                            (stk_stage_opts){.name = "theirs", .group = 1}, 1);
    stk_run *run;
    stk_lane *lane;
    char told[STK_NAME_SIZE] = "";
    CHECK_EQ(stk_run_start(p, NULL, &run, NULL), STK_OK);
    CHECK_EQ(stk_lane_new(run, 1, NULL, NULL, &lane), STK_OK);
    stk_lane_on_stage(lane, note_stage, told);
    while (!*told)
        if (stk_lane_work(lane) == STK_EAGAIN) CHECK_EQ(stk_lane_wait(lane, STK_FOREVER), STK_OK);
    CHECK(!strcmp(told, "theirs"));
    stk_lane_free(&lane);
    stk_run_free(&run);
    stk_plan_free(&p);
}

static stk_plan *all_kinds(coupled *c, kit_source *s)
{
    stk_plan *p = NULL, *in[2] = {NULL}, *path[2] = {NULL};
    if (stk_plan_new(&p)) return NULL;
    if (!stk_plan_new(&in[0])) stk_plan_foreign_source(in[0], stk_source_new(&coupled_class, c), 1);
    in[1] = kit_plan(s, NULL, NULL);
    for (int i = 0; i < 2; i++)
        if (in[i]) stk_plan_pipe(in[i], kit_hook_op((kit_hook){0}), &(stk_stage_opts){.group = 2});
    stk_plan_merge_any(p, 2, in);
    for (int i = 0; i < 2; i++)
        if (!stk_plan_new(&path[i]))
            stk_plan_pipe(path[i], i ? kit_fold_op((kit_hook){0}) : kit_hook_op((kit_hook){0}),
                          &(stk_stage_opts){.group = 2});
    stk_plan_route(p, NULL, NULL, 2, path, &(stk_stage_opts){.order = STK_ORDER_COMPLETION});
    stk_plan_pipe(p, kit_same(&(kit_op){.fail_every = 5}),
                  &(stk_stage_opts){.group = 2, .on_error = STK_SKIP, .max_failures = 100});
    stk_plan_sink(p, 2);
    return p;
}

static void out_of_memory(void)
{
    stk_err err = STK_OK;
    int faults = 0;
    TORTURE (err) {
        waits w = {.begun = -1, .every = N};
        coupled c = {.count = 12, .w = &w};
        kit_source s = kit_counting(6);
        kit_lanes l;
        stk_diag diag;
        s.epochs = 2;
        stk_plan *p = all_kinds(&c, &s);
        err = p ? kit_lanes_try(&l, p, NULL, 2, &diag) : STK_ENOMEM;
        if (!err) {
            (void)kit_lanes_read(&l, ids, N, &err, &diag);
            kit_lanes_end(&l);
        }
        if (err == STK_EEND) err = STK_OK;
        CHECK(!err || !stk_fault_armed());
        if (!err && !stk_fault_armed()) err = STK_ENOMEM; /* it was borne */
        faults++;
    }
    CHECK(faults > 50);
}

TESTS(TEST(results_keep_their_order), TEST(blocking_ops_run_on_lanes),
      TEST(lanes_close_their_states), TEST(items_wait_for_others_of_their_burst),
      TEST(items_wait_for_the_reader), TEST(sources_wait_for_the_reader),
      TEST(expansions_wait_for_the_reader), TEST(work_is_not_left_to_a_lane_that_waits),
      TEST(ends_of_epochs_pass_with_one_lane), TEST(readers_are_asked_for_the_first_lane),
      TEST(lanes_ask_for_lanes), TEST(stages_are_told), TEST(bad_lanes), TEST(out_of_memory))
