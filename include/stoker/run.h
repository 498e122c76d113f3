/*
 * stk_run: one execution of a plan.
 *
 *     start ──► next, next, ... ──► STK_EEND | an error
 *       └─ close: no more samples begin, those in flight still arrive
 *       └─ cancel: now; every waiting or later read says STK_ECANCELLED
 *
 * Threads: all functions, any thread, except that stk_run_free must be the last call.
 *          In a child of fork every call says STK_EFORK, and free does nothing.
 */
#ifndef STK_RUN_H
#define STK_RUN_H

#include <stoker/executor.h>
#include <stoker/plan.h>
#include <stoker/stats.h>

STK_BEGIN

typedef struct stk_run stk_run;

#define STK_MAX_IO_THREADS 64 /* of one run */

typedef struct stk_run_opts {
    stk_executor *executor; /* shared (one more reference); NULL: one of its own */
    int32_t num_threads;    /* of its own executor; 0: as in stk_executor_opts */
    bool epoch_ends;        /* true: reads say STK_EEPOCH at each end of an epoch */
} stk_run_opts;

/* Checks the plan and starts.  `opts` may be NULL.  The plan may be freed after it. */
STK_API STK_NODISCARD stk_err stk_run_start(stk_plan *plan, const stk_run_opts *opts, stk_run **out,
                                            stk_diag *diag);

/* Gives the next batch.  STK_EEND: that was all; STK_EEPOCH: see epoch_ends; STK_ETIMEOUT: nothing
 * lost; STK_EAGAIN: nothing yet, but see stk_run_short_groups (plans with groups only); STK_EINVAL:
 * the plan's results are no batches.  A failure of the run is reported after everything that came
 * before it, and by every later read.  One such failure: without epoch_ends, an endless source
 * gives nothing in two epochs in a row (STK_ETOOMANY where samples failed, else STK_EINVAL); where
 * foreign threads run stages, only if it has given no sample at all. */
STK_API STK_NODISCARD stk_err stk_run_next(stk_run *run, int64_t timeout, stk_batch **out,
                                           stk_diag *diag);

/* The same for results of any kind, up to `max` at once: waits for the first, then takes what is
 * there.  *n is at least 1 on STK_OK; max 0: looks, and takes nothing.  Give each back with
 * stk_item_free, before or after the run's end. */
STK_API STK_NODISCARD stk_err stk_run_next_items(stk_run *run, int64_t timeout, size_t max,
                                                 stk_item **items, size_t *n, stk_diag *diag);

/* How many results a reader that hands them on one by one may take at once, so that its look-ahead
 * stays small: 1, or more where they cost so little that the engine made its own windows wide. */
STK_API size_t stk_run_burst(stk_run *run);

/* No op begins any more: its end was read, it failed, or it was cancelled. */
STK_API bool stk_run_ended(const stk_run *run);

/* Idempotent. */
STK_API void stk_run_close(stk_run *run);
STK_API void stk_run_cancel(stk_run *run);

/* Cancels, and takes up to `max` results that were there at that moment; NULL among them: the end
 * of an epoch.  Other reads get what came before them.  A failure behind them is what later reads
 * say. */
STK_API STK_NODISCARD stk_err stk_run_last_items(stk_run *run, size_t max, stk_item **items,
                                                 size_t *n);

/* Cancels, waits until no op is running, and ends the threads.  STK_ETIMEOUT: *diag names the stage
 * that still runs; the run ends by itself when it does.  So it does where a source on a foreign
 * lane is in `next` for more than half a second, which is not waited for longer than that: see
 * stk_run_is_over. */
STK_API STK_NODISCARD stk_err stk_run_stop(stk_run *run, int64_t timeout, stk_diag *diag);

/* Nothing of it runs any more. */
STK_API STK_NODISCARD bool stk_run_is_over(stk_run *run);

/* Cancels, waits at most 5 s for running ops (what is late is given back when it ends), sets
 * *run to NULL.  &(stk_run *){NULL} is fine. */
STK_API void stk_run_free(stk_run **run);

/* A consistent picture of this moment; free it with stk_stats_free. */
STK_API STK_NODISCARD stk_err stk_run_stats(stk_run *run, stk_stats **out);

/* The failures of samples that were kept: the first ten of the run; of those that one stage had in
 * one epoch with one key and text, the first.  Gives copies. */
STK_API STK_NODISCARD stk_err stk_run_failures(stk_run *run, stk_failure **out, size_t *n);

/* What a read has reported, as data: [0] is the failure that ended the run.  What led to it
 * follows: of STK_ETOOMANY the failures that its text lists, and, last, the latest of that stage,
 * which was one too many; else the substitutes that failed, too.  Where other inputs of a merge in
 * order of arrival have failed, too, the same of each of them.  *n is 0 where no read has failed,
 * and where there was no memory to keep it.  Gives copies. */
STK_API STK_NODISCARD stk_err stk_run_causes(stk_run *run, stk_failure **out, size_t *n);
/* Of either. */
STK_API void stk_failures_free(stk_failure **failures, size_t n);

STK_END

#endif /* STK_RUN_H */
