/*
 * stk_executor: the threads that do CPU work, shared by any number of runs.
 *
 * Threads: any.  Its threads are named NAME-0, NAME-1..., block all signals, and
 *          sleep while there is nothing to do.
 */
#ifndef STK_EXECUTOR_H
#define STK_EXECUTOR_H

#include <stoker/error.h>

STK_BEGIN

#define STK_MAX_THREADS 1024

typedef struct stk_executor stk_executor;

typedef struct stk_executor_opts {
    int32_t num_threads; /* 0: the number of usable processors; at most STK_MAX_THREADS */
    const int32_t *cpus; /* processors they may use; NULL: all that the process may use */
    size_t num_cpus;
    int32_t nice;     /* added to the process's niceness, 0 to 19 */
    const char *name; /* at most 10 bytes; NULL: "stoker" */
} stk_executor_opts;

/* Starts one thread; others start when there is work and none is idle.  STK_EINVAL: an option;
 * STK_EAGAIN: the system has no thread to give.  If it has none later, those that run go on with
 * what there is to do, and the statistics of the runs say so (stk_stats.threads_refused).
 * Threads begin on the processors, and with the niceness, that the caller has here. */
STK_API STK_NODISCARD stk_err stk_executor_new(const stk_executor_opts *opts, stk_executor **out,
                                               stk_diag *diag);
STK_API stk_executor *stk_executor_ref(stk_executor *ex);

/* The last unref ends and joins the threads; from one of them, they end by themselves. */
STK_API void stk_executor_unref(stk_executor **ex);
STK_API int32_t stk_executor_num_threads(const stk_executor *ex); /* as many as there may be */

STK_END

#endif /* STK_EXECUTOR_H */
