/*
 * stk_lane: a thread of another runtime (Python, say) that runs stages of a run.
 *
 *     stk_lane_new ──► work ─► nothing is ready ─► wait ─► work ... ─► the end ──► stk_lane_free
 *
 * A stage whose options name a group is run by lanes of that group only, and never by the threads
 * of the run: what its op calls happens on threads that the other runtime made.  A lane runs ready
 * work in bursts; one that takes longer than expected is taken apart by whoever waits, so that an
 * op may wait for what another op, or the reader, does.  It may also block: STK_OP_BLOCKING means
 * nothing there.
 *
 * Threads: a lane belongs to the thread that made it.  In a child of fork every call says
 * STK_EFORK.
 */
#ifndef STK_LANE_H
#define STK_LANE_H

#include <stoker/run.h>

STK_BEGIN

typedef struct stk_lane stk_lane;

/* Told, without any lock held, inside stk_lane_work, that one more lane of `group` would have
 * something to do.  A reader is told by STK_EAGAIN. */
typedef void stk_lane_grow_fn(uint32_t group, void *ctx);

/* Begins with no work.  `grow` may be NULL.  STK_EINVAL: the plan has no such group;
 * STK_ECANCELLED: the run has ended. */
STK_API STK_NODISCARD stk_err stk_lane_new(stk_run *run, uint32_t group, stk_lane_grow_fn *grow,
                                           void *ctx, stk_lane **out);

/* Told inside stk_lane_work, without any lock held, which stage the lane begins to run: a text of
 * the plan's, the same each time. */
typedef void stk_lane_stage_fn(const char *stage, void *ctx);

/* Before the lane's first work.  NULL: nobody is told. */
STK_API void stk_lane_on_stage(stk_lane *lane, stk_lane_stage_fn *fn, void *ctx);

/* The lanes of this group hold a lock while they run, Python's say, so that only one does unless an
 * op gives it up: while one is at quick work another is woken only for a millisecond of it. */
STK_API void stk_lane_exclusive(stk_lane *lane);

/* Runs one task, if there is one.  STK_EAGAIN: nothing is ready; STK_ECANCELLED: the run has ended,
 * and the lane should. */
STK_API STK_NODISCARD stk_err stk_lane_work(stk_lane *lane);

/* Waits until something may be ready.  STK_ETIMEOUT; STK_ECANCELLED as above. */
STK_API STK_NODISCARD stk_err stk_lane_wait(stk_lane *lane, int64_t timeout);

/* &(stk_lane *){NULL} is fine. */
STK_API void stk_lane_free(stk_lane **lane);

/* The groups of which one more lane would have something to do: bit g stands for group g. */
STK_API uint64_t stk_run_short_groups(stk_run *run);

STK_END

#endif /* STK_LANE_H */
