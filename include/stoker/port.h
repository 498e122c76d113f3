/*
 * stk_port: stages that another runtime runs in its own way, one item at a time: an event loop,
 * say.
 *
 *     input ──take──► the other runtime ──put──► output
 *
 * The engine runs nothing here: it keeps the windows of the inputs and of the output, and tells
 * when a take or a put that found nothing, or no room, would do better (stk_port_notify).  What is
 * taken belongs to the caller until it is put or given back with stk_item_free.
 *
 * A port is named by the index of its stage, as in stk_stats.
 *
 * Threads: any; one at a time for each direction of a port.  STK_ECANCELLED everywhere: the run has
 *          ended, or the stage has failed.
 */
#ifndef STK_PORT_H
#define STK_PORT_H

#include <stoker/run.h>

STK_BEGIN

/* A stage; opts->group must not be 0.  The output has the order of the puts.  opts->order says
 * where samples go that were skipped before the port: STK_ORDER_INPUT: behind the puts of as many
 * items, or their frees, as were taken before them (so the puts should have the order of the takes,
 * one of each, and each end of an epoch that was taken its mark); where more than 32,768 would
 * wait, the first go past.  STK_ORDER_COMPLETION: past those that were taken. */
STK_API void stk_plan_port(stk_plan *plan, const stk_stage_opts *opts);

/* In place of a source: what is put. */
STK_API void stk_plan_port_source(stk_plan *plan, uint32_t group);

/* In place of a source: n plans (taken), whose results are taken from inputs 0 to n - 1. */
STK_API void stk_plan_port_merge(stk_plan *plan, size_t n, stk_plan *const *inputs, uint32_t group);

/* `notify` is called without any lock held, on any thread, once after a take or put of the group
 * said STK_EAGAIN, when it would do better, and when the run ends.  It must only wake somebody up.
 * Group 0 has no ports, and is told of the end, once.
 * Once stk_run_set_notify has returned, the one before is not called any more. */
typedef void stk_port_notify_fn(void *ctx);
STK_API void stk_run_set_notify(stk_run *run, uint32_t group, stk_port_notify_fn *notify,
                                void *ctx);

/* Takes up to `max` items, fewer where they are not cheap.  STK_EAGAIN: none now; STK_EEPOCH: the
 * end of an epoch; STK_EEND: that was all, perhaps because a stage before this one failed. */
STK_API STK_NODISCARD stk_err stk_port_take(stk_run *run, size_t index, size_t input, size_t max,
                                            stk_item **items, size_t *n);

/* A new item for a put, with no data.  NULL: the run has ended; no memory ends it. */
STK_API stk_item *stk_port_item(stk_run *run, size_t index);

/* Takes the first *done of `n` items, those that have room, and sets them to NULL.  `busy` ns were
 * spent on them.  STK_EAGAIN: there was no room for all. */
STK_API STK_NODISCARD stk_err stk_port_put(stk_run *run, size_t index, stk_item **items, size_t n,
                                           int64_t busy, size_t *done);

/* The same for the end of an epoch.  STK_ENOMEM: the run has ended. */
STK_API STK_NODISCARD stk_err stk_port_mark(stk_run *run, size_t index, int64_t epoch);

/* Where one item taken has any number of results, in a route that rejoins in input order: says of a
 * new item that it is one of them, or was held back, and that others may follow; and of the item
 * that was taken, which is put behind them, that it is the end of them, and nothing itself. */
STK_API void stk_port_more(stk_item *item);
STK_API void stk_port_close_results(stk_item *item);

/* Says of an item, before it is put, that there is no result; that the op failed, which the stage's
 * policy decides on; or, where diag->fatal, that the stage did. */
STK_API void stk_port_skip(stk_item *item);
STK_API void stk_port_fail(stk_run *run, size_t index, stk_item *item, const stk_diag *diag);

/* No more puts; what the inputs still have is dropped, and their sources end. */
STK_API void stk_port_close(stk_run *run, size_t index);

STK_END

#endif /* STK_PORT_H */
