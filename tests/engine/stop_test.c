/* Stops that leave something behind: what they wait for, and what they say. */
#include "tests/engine/lanes.h"

#include <sched.h>
#include <string.h>

/* A source and an op that wait for the test at item 1 and item 0. */
typedef struct blocked {
    _Atomic int64_t in_next, in_op, gate, op_gate;
    int64_t given;
} blocked;

static stk_err blocked_open(void *params, const stk_source_env *env, void **cursor, stk_diag *diag)
{
    (void)env, (void)diag;
    *cursor = params;
    return STK_OK;
}

static void blocked_close(void *cursor)
{
    (void)cursor;
}

static stk_err blocked_next(void *cursor, stk_item *item, stk_diag *diag)
{
    (void)diag;
    blocked *b = cursor;
    stk_item_set_id(item, b->given++, 0);
    if (b->given == 1) return STK_OK;
    atomic_store(&b->in_next, 1);
    while (!atomic_load(&b->gate)) sched_yield();
    return STK_EEND;
}

static const stk_source_class blocked_class = {
    .name = "blocked", .open = blocked_open, .close = blocked_close, .next = blocked_next};

static stk_err wait_in_op(void *ctx, stk_item *item, stk_diag *diag)
{
    (void)item, (void)diag;
    blocked *b = ctx;
    atomic_store(&b->in_op, 1);
    while (!atomic_load(&b->op_gate)) sched_yield();
    return STK_OK;
}

static void start(kit_lanes *l, blocked *b)
{
    stk_plan *p;
    CHECK_EQ(stk_plan_new(&p), STK_OK);
    stk_plan_foreign_source(p, stk_source_new(&blocked_class, b), 1);
    stk_plan_pipe(p, kit_hook_op((kit_hook){wait_in_op, NULL, b}),
                  &(stk_stage_opts){.group = 2, .concurrency = 1});
    stk_plan_sink(p, 2);
    kit_lanes_start(l, p, NULL, 1);
    kit_lanes_add(l, 1);
    kit_lanes_add(l, 2);
    while (!atomic_load(&b->in_next) || !atomic_load(&b->in_op)) sched_yield();
}

static void end(kit_lanes *l, blocked *b)
{
    CHECK(!stk_run_is_over(l->run));
    atomic_store(&b->gate, 1);
    while (!stk_run_is_over(l->run)) sched_yield();
    CHECK_EQ(stk_run_stop(l->run, STK_FOREVER, NULL), STK_OK);
    kit_lanes_end(l);
}

static void a_blocked_source_is_not_waited_for(void)
{
    blocked b = {.op_gate = 1};
    kit_lanes l;
    start(&l, &b);
    CHECK_EQ(stk_run_stop(l.run, STK_FOREVER, NULL), STK_OK);
    CHECK_EQ(stk_run_stop(l.run, STK_FOREVER, NULL), STK_OK);
    end(&l, &b);
}

static void an_op_beside_it_is(void)
{
    blocked b = {0};
    kit_lanes l;
    stk_diag diag;
    start(&l, &b);
    CHECK_EQ(stk_run_stop(l.run, 1000000, &diag), STK_ETIMEOUT);
    CHECK(strstr(diag.text, "stage 'hook' is still running item 0 (since "));
    atomic_store(&b.op_gate, 1);
    CHECK_EQ(stk_run_stop(l.run, STK_FOREVER, NULL), STK_OK);
    end(&l, &b);
}

static void its_run_can_be_freed(void)
{
    blocked b = {.op_gate = 1};
    kit_lanes l;
    start(&l, &b);
    stk_run *run = l.run;
    CHECK_EQ(stk_run_stop(run, STK_FOREVER, NULL), STK_OK);
    stk_run_free(&l.run); /* the lane keeps what it needs */
    atomic_store(&b.gate, 1);
    for (int i = 0; i < l.num; i++) CHECK_EQ(pthread_join(l.threads[i], NULL), 0);
    pthread_mutex_destroy(&l.lock);
}

TESTS(TEST(a_blocked_source_is_not_waited_for), TEST(an_op_beside_it_is),
      TEST(its_run_can_be_freed))
