/* The engine's functions, file by file. */
#ifndef STK_GRAPH_STEPS_H
#define STK_GRAPH_STEPS_H

#include "graph/engine.h"

extern stk_mutex run_role; /* of the run at hand, for clang: ways to one run look like many locks */
void run_lock(struct stk_run *run) STK_ACQUIRES(run_role);
void run_unlock(struct stk_run *run) STK_RELEASES(run_role);
bool run_wait(struct stk_run *run, stk_cond *c, int64_t deadline) STK_REQUIRES(run_role);

static inline bool run_cancelled(const struct stk_run *run)
{
    return atomic_load_explicit(&run->cancelled, memory_order_relaxed);
}

/* lower.c */
STK_NODISCARD stk_err run_lower(struct stk_run *run, stk_diag *diag);

/* parts.c: names of parts */
void stage_set_parts(stage *s, const edge *in); /* of what flows into it, and what it adds */
const char *stage_part_name(const stage *s, stk_source *source, size_t i); /* NULL: no such part */
void stage_part_spec(const stage *s, const stage *binder, stk_source *source, size_t i,
                     stk_spec *out); /* of a part that has a name */

/* pool.c: items and failures */
stk_item *run_item_get(struct stk_run *run) STK_REQUIRES(run_role); /* NULL: no memory */
void run_item_put(struct stk_run *run, stk_item **item) STK_REQUIRES(run_role);
void run_item_drop(stk_item **item); /* the same without the pool: takes no lock */

/* judge.c: failures, in order */
const char *stage_name(const stage *s); /* for people */
failure *failure_new(stage *s, const stk_item *item, const stk_diag *diag);
void run_judge(struct stk_run *run, stk_item *item) STK_REQUIRES(run_role);
/* At the sink; makes it an error where epochs without results would follow for ever. */
void run_judge_epoch(struct stk_run *run, stk_item *mark) STK_REQUIRES(run_role);
void run_fail(stk_item *item, stage *s, const stk_diag *diag);
void run_fail_or_skip(stk_item *item, stage *s, const stk_diag *diag); /* skip: it is a gap */
/* Takes the error of one input more: the first goes on, and says what the others were. */
void run_fail_too(struct stk_run *run, stk_item **first, stk_item *item) STK_REQUIRES(run_role);

/* batch.c */
void batch_plan_slot(node *batch, stk_item *item) STK_REQUIRES(run_role);
bool batch_collect(node *n) STK_REQUIRES(run_role);
void batch_finalize(task *t);
void batch_finish(task *t) STK_REQUIRES(run_role);
void batch_retire(node *n) STK_REQUIRES(run_role);
void assembly_unref(assembly **a) STK_REQUIRES(run_role);
stk_err assembly_slot(assembly *a, size_t part, size_t slot, const stk_spec *spec, void **out);

/* expand.c */
bool expand_claim(node *n, task *t) STK_REQUIRES(run_role);
size_t expand_ready(const node *n) STK_REQUIRES(run_role);
void expand_exec(lane *l, task *t);
void expand_finish(task *t) STK_REQUIRES(run_role);
bool expand_settle(node *n) STK_REQUIRES(run_role);
void expand_add_output(expansion *x, stk_item *item);
void expand_end_cursors(node *n); /* of a run in which no task runs: without the lock */
void expand_retire(node *n) STK_REQUIRES(run_role);

/* route.c */
void route_exec(task *t);
void route_finish(task *t) STK_REQUIRES(run_role);
bool route_settle(node *n) STK_REQUIRES(run_role);
bool join_settle(node *n) STK_REQUIRES(run_role);
stk_err route_open(node *join, stk_diag *diag);
void route_close(node *join);
void route_retire(node *n) STK_REQUIRES(run_role);

/* merge.c */
bool merge_settle(node *n) STK_REQUIRES(run_role);
bool merge_as_they_come(node *n) STK_REQUIRES(run_role); /* a failure last */

/* exec.c: without the lock */
void task_exec(lane *l, task *t);
void tally_took(tally *y, int64_t ns, size_t num); /* each of `num` items took that long */
void *lane_state(lane *l, stage *s, stk_err *err, stk_diag *diag);

/* port.c */
bool port_settle(node *n) STK_REQUIRES(run_role);
bool port_returned(stk_item *item) STK_REQUIRES(run_role); /* true: what was held may go on */
void port_retire(node *n) STK_REQUIRES(run_role);
uint64_t run_port_news(struct stk_run *run) STK_REQUIRES(run_role); /* groups to notify */
void run_notify(struct stk_run *run, uint64_t groups);

/* claim.c */
size_t node_burst(const node *n);
void edge_widen(edge *e);
bool run_claim(struct stk_run *run, const lane *l, task *t) STK_REQUIRES(run_role);
size_t node_ready(const node *n) STK_REQUIRES(run_role);
void edge_deliver(edge *e, stk_item *item) STK_REQUIRES(run_role); /* append + slots */

/* shared.c: bursts of foreign lanes */
void shared_begin(task *t);
bool shared_next(task *t, size_t *i);
size_t shared_rest(task *t); /* the end of what nobody has begun, which it leaves empty */
/* Says when to look again.  *news: leave the run, and look for work: with `can_tell`, or tell. */
int64_t run_take_apart(struct stk_run *run, bool can_tell, bool *news) STK_REQUIRES(run_role);
void run_watch(struct stk_run *run, stk_cond *c, int64_t due, int64_t deadline)
    STK_REQUIRES(run_role);
void run_ask_watcher(struct stk_run *run) STK_REQUIRES(run_role);

/* late.c: what waits are for */
void lane_begins(lane *l, const task *t) STK_REQUIRES(run_role);
bool node_is_foreign_source(const node *n);
/* STK_ETIMEOUT: who runs what longest.  `with_sources`: it may be a foreign source. */
stk_err run_say_late(struct stk_run *run, bool with_sources, stk_diag *diag) STK_REQUIRES(run_role);

/* lent.c */
uint64_t run_short_groups(struct stk_run *run) STK_REQUIRES(run_role);
void run_wake_groups(struct stk_run *run) STK_REQUIRES(run_role);
uint64_t lane_shortage(lane *l) STK_REQUIRES(run_role); /* which the caller then tells */
void lane_tell(lane *l, uint64_t shortage);

/* settle.c */
void put_result(node *n, stk_item *item) STK_REQUIRES(run_role);
void put_back(node *n, stk_item **items, size_t begin, size_t end);
bool node_folds(const node *n);
void node_learn(node *n, double cost);
void edge_end_sources(const edge *e) STK_REQUIRES(run_role); /* no more samples begin upstream */
void run_settle(struct stk_run *run) STK_REQUIRES(run_role);
void run_finish(task *t, lane *l) STK_REQUIRES(run_role);
void run_tick(struct stk_run *run, int64_t now) STK_REQUIRES(run_role);

/* worker.c */
bool run_work(stk_client *client, int32_t worker);
bool lane_step(struct stk_run *run, lane *l, task *t) STK_REQUIRES(run_role);
bool reader_has_news(struct stk_run *run) STK_REQUIRES(run_role);
bool group_is_ready(struct stk_run *run, uint32_t g) STK_REQUIRES(run_role);
/* Results wait for the reader, who does something else. */
bool run_is_ahead(const struct stk_run *run) STK_REQUIRES(run_role);
/* When queues that were left alone, since they held enough, are filled; STK_NEVER: they are not. */
int64_t group_rests_until(const struct stk_run *run, uint32_t g) STK_REQUIRES(run_role);
bool group_wants_lane(struct stk_run *run, uint32_t g) STK_REQUIRES(run_role);
STK_NODISCARD stk_err run_start_io(struct stk_run *run, stk_diag *diag);
/* Settles, unlocks, then wakes whoever has something to do, and retires a run that has ended. */
void run_leave(struct stk_run *run) STK_RELEASES(run_role);

/* end.c */
void run_end(struct stk_run *run) STK_REQUIRES(run_role); /* no task begins any more */
void run_abort(struct stk_run *run, stk_err err, const char *text) STK_REQUIRES(run_role);
void run_retire(struct stk_run *run); /* gives everything back that is in flight: no lock */
void run_gone(stk_client *client);
void lane_close(lane *l); /* its ops' states: without the lock */
void run_unref(struct stk_run *run, int n);

/* verdict.c */
void stats_verdict(stk_stats *s, bool over); /* over: all results were read */

#endif /* STK_GRAPH_STEPS_H */
