/*
 * stk_stats: what each stage and queue of a run did, and where it waited.
 *
 * A snapshot: a plain value that nobody changes.  Times are in nanoseconds.
 */
#ifndef STK_STATS_H
#define STK_STATS_H

#include <stoker/foreign.h>

STK_BEGIN

#define STK_NAME_SIZE 48 /* of a stage, with its NUL */

/* How many durations there were of each length, in steps of at most a quarter.  stk_times_quantile
 * reads it. */
#define STK_TIMES_SIZE 128

typedef struct stk_times {
    uint64_t num[STK_TIMES_SIZE];
    double sum_ns;
} stk_times;

/* The duration in ns that a share `q` of them does not exceed, within a quarter; 0: there are none.
 * `zeros`: so many more that took no time. */
STK_API double stk_times_quantile(const stk_times *t, uint64_t zeros, double q);

/* Their mean in ns; 0: there are none. */
STK_API double stk_times_mean(const stk_times *t);

typedef struct stk_stage_stats {
    char name[STK_NAME_SIZE];
    const char *kind; /* "source", "map", "expand", "batch", "unbatch", "route", "merge", "sink" */
    int32_t concurrency;  /* items at once, at most */
    bool blocking;        /* runs on I/O threads, not on the CPU workers */
    int32_t running;      /* items at this moment */
    uint64_t items;       /* done well */
    uint64_t failed;      /* failures of the op, retried or replaced ones included */
    uint64_t substituted; /* of those: replaced by another sample */
    uint64_t bytes;       /* of the results, where they are bytes or arrays */
    int64_t busy_ns;      /* summed over threads */
    int64_t wait_in_ns;   /* time in which it could have taken more, and had no input */
    int64_t wait_out_ns;  /* time in which it had input, and no room for results */
    stk_times times;      /* of single items that were done well; a sample of them where the op
                             takes little time */
} stk_stage_stats;

/* Between two stages; stages that are fused into one hop have none between them. */
typedef struct stk_queue_stats {
    char name[2 * STK_NAME_SIZE]; /* "read -> decode_image" */
    size_t stage; /* index of the stage that fills it; of the last queue: the sink */
    size_t capacity;
    size_t len;                     /* at this moment */
    uint64_t puts;                  /* of results, and of what stands for those that were dropped */
    uint64_t gets;                  /* of results */
    int64_t put_wait_ns;            /* time in which nothing could be put, for it was full */
    int64_t get_wait_ns;            /* time in which something was wanted, and it was empty */
    stk_times put_waits, get_waits; /* of each such time */
    double occupancy;               /* mean share of the capacity in use, 0 to 1, over time */
    double full;                    /* share of the time in which it was full */
    double empty;                   /* share of the time in which it was empty */
} stk_queue_stats;

typedef struct stk_stats {
    int64_t elapsed_ns;      /* since the start, to the end if the run has ended */
    int64_t first_result_ns; /* from the start; -1: none yet */
    uint64_t results;        /* handed to the reader */
    int32_t num_threads;     /* CPU workers, at most: they start when there is work for them */
    int32_t threads_refused; /* of those: the system had none to give; the verdict says so, too */
    int32_t num_io_threads;  /* created so far */
    size_t num_stages;
    stk_stage_stats *stages; /* upstream first; the reader is the last, "sink" */
    size_t num_queues;
    stk_queue_stats *queues;
    int32_t bottleneck; /* index of a stage; that of the sink: the reader; -1: too early to say */
    char verdict[256];  /* one sentence */
} stk_stats;

STK_API void stk_stats_free(stk_stats **stats);

/* What happened between two snapshots of one run: counters, times and shares of the time, and
 * elapsed_ns; all else is as in `now`.  STK_EINVAL: of two runs; STK_ENOMEM. */
STK_API STK_NODISCARD stk_err stk_stats_since(const stk_stats *now, const stk_stats *before,
                                              stk_stats **out);

/* A sample that failed. */
typedef struct stk_failure {
    char stage[STK_NAME_SIZE];
    size_t index;  /* of the stage, in stk_stats */
    int64_t id;    /* the sample's; -1 where a source failed */
    bool is_batch; /* behind a batch stage: id is the batch's number */
    int64_t epoch; /* -1 where a source failed */
    char *key;     /* path of the file that failed; "" where there is none */
    stk_diag diag;
    stk_foreign *cause; /* STK_EFOREIGN: what the op of another runtime raised; else NULL */
    bool also; /* of stk_run_causes: another failure that ended the run begins, of another input */
} stk_failure;

STK_END

#endif /* STK_STATS_H */
