/*
 * Foreign lanes for tests: threads that run a group of a run until it ends, and ops that call a
 * function of the test.
 */
#ifndef STK_TESTS_ENGINE_LANES_H
#define STK_TESTS_ENGINE_LANES_H

#include <pthread.h>

#include <stoker/lane.h>

#include "tests/engine/kit.h"

#define KIT_MAX_LANES 64

/* The threads of one run. */
typedef struct kit_lanes {
    stk_run *run;
    int limit; /* threads of a group, at most */
    pthread_mutex_t lock;
    int made[STK_MAX_GROUPS], num;
    pthread_t threads[KIT_MAX_LANES];
} kit_lanes;

/* Starts the plan, which it gives up.  No lane runs: kit_lanes_add, or kit_lanes_next, makes
 * them. */
stk_run *kit_lanes_start(kit_lanes *l, stk_plan *plan, const stk_run_opts *opts, int limit);
/* The same for a plan that may fail. */
stk_err kit_lanes_try(kit_lanes *l, stk_plan *plan, const stk_run_opts *opts, int limit,
                      stk_diag *diag);
void kit_lanes_add(kit_lanes *l, uint32_t group);
/* One more lane for each group that is short of them and has fewer than the limit. */
void kit_lanes_grow(kit_lanes *l);
/* Reads one item, and makes lanes that are asked for.  The id, or the code of the end. */
int64_t kit_lanes_next(kit_lanes *l, int64_t timeout, stk_diag *diag);
/* Reads to the end: ids, or -100 for the end of an epoch.  Returns how many, and *end. */
size_t kit_lanes_read(kit_lanes *l, int64_t *ids, size_t max, stk_err *end, stk_diag *diag);
/* Frees the run and waits for the threads. */
void kit_lanes_end(kit_lanes *l);

/* Map: `run` on each item.  Fold: `flush`, too.  They are passed `ctx`. */
typedef struct kit_hook {
    stk_err (*run)(void *ctx, stk_item *item, stk_diag *diag);
    stk_err (*flush)(void *ctx, stk_item *out, stk_diag *diag);
    void *ctx;
} kit_hook;

stk_op *kit_hook_op(kit_hook hook);
stk_op *kit_fold_op(kit_hook hook);
/* The same with the flag STK_OP_BLOCKING. */
stk_op *kit_blocking_hook_op(kit_hook hook);

#define KIT_EPOCH_END (-100)

#endif /* STK_TESTS_ENGINE_LANES_H */
