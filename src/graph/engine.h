/*
 * The engine's own picture of a run: nodes joined by edges.
 *
 *     source ─edge─► map ─edge─► batch ─edge─► map ─edge─► reader
 *
 * Lowering (lower.c) makes it from a plan: neighbouring CPU stages become one map node, so that an
 * item goes on with its next stage while its data is in cache.  Workers (worker.c) repeat: settle
 * what only moves (settle.c), claim the ready work furthest downstream (claim.c), run it without
 * the lock (exec.c), put the results down (settle.c).
 *
 * Threads: `lock` guards all but what is said to never change and what a claimed task owns.
 */
#ifndef STK_GRAPH_ENGINE_H
#define STK_GRAPH_ENGINE_H

#include <stdatomic.h>

#include <stoker/lane.h>
#include <stoker/port.h>

#include "data/batch.h"
#include "exec/pool.h"
#include "graph/node.h"

/* A hand-over of an interpreter's lock costs as much as dozens of cheap items. */
#define MAX_BURST 256
#define MAX_TOOK 16 /* items of a burst that are timed one by one, at most, and one to spare */
#define MAX_KEPT_FAILURES 10

/* What a thread keeps for a run: op states, and room for a task. */
typedef struct tally {
    uint64_t items, failed, substituted, bytes;
    int64_t busy_ns;
    uint32_t num_took; /* the first of them are kept until the lock is held next */
    struct {
        int64_t ns; /* that one item took */
        uint32_t num;
    } took[MAX_TOOK];
} tally;

typedef struct stk_lane {
    struct stk_run *run;
    stk_thread thread; /* I/O lanes only */
    bool blocking;
    void **states; /* [num_stages] */
    bool *opened;
    tally *tally;        /* [num_stages], likewise */
    int64_t now;         /* when the last timed op ended */
    bool timed;          /* ops are, one by one */
    size_t stands_for;   /* items that the one at hand is timed for */
    _Atomic(stage *) at; /* what it runs, and on which item, or -1: for those who wait for it */
    _Atomic int64_t at_id;
    struct task *current; /* guarded by the run's lock; others may take it apart */
    /* Lanes of foreign threads only. */
    uint32_t group;
    struct stk_lane *link; /* of run->lent */
    stk_lane_grow_fn *grow;
    void *grow_ctx;
    stk_lane_stage_fn *on_stage;
    void *on_stage_ctx;
} lane;

/* Foreign threads that run the same stages. */
typedef struct group {
    stk_cond work; /* something may be ready, or the end */
    int32_t waiting, coming, inside;
    bool exclusive, timed;      /* one lane runs at a time, mostly; one looks when queues rested */
    stk_port_notify_fn *notify; /* of ports */
    void *notify_ctx;
} group;

typedef struct task {
    node *node;
    int64_t began;
    size_t num, done;
    stk_item *items[MAX_BURST];
    assembly *assembly;
    stk_batch *batch;
    expansion *expansion;
    stk_err end; /* source: why it stopped; expand: STK_EEND */
    stk_diag diag;

    /* Of foreign lanes, whose ops may wait for one another: see shared.c. */
    bool shared, flush;
    _Atomic uint64_t span;     /* the next item to begin, and above it the end of what is left */
    _Atomic uint32_t finished; /* items that are done */
    size_t collected;          /* of those: taken away by others */
} task;

struct stk_run {
    stk_client client; /* of the executor; first, so that a client is a run */
    stk_executor *executor;
    stk_plan *plan;
    unsigned generation; /* of forks */
    bool epoch_ends, endless;
    int32_t num_threads;
    int32_t processors; /* that this process may use */
    size_t max_parts;
    size_t num_stages, num_nodes, num_edges, depth; /* depth: of the node that is made */
    stage *stages;
    node *nodes; /* upstream first */
    edge *edges;
    edge *sink;
    stk_slab_pool *slabs;
    int64_t started;
    lane *lanes;           /* [num_threads], then STK_MAX_IO_THREADS of I/O */
    atomic_int refs;       /* the user's, the client's, each I/O thread's, each item handed out */
    atomic_bool cancelled; /* set under the lock, read anywhere */

    stk_mutex lock;
    stk_cond reader;  /* a result, or the end */
    stk_cond io;      /* work for I/O threads, or the end */
    stk_cond idle;    /* no task is running any more */
    int32_t active;   /* CPU workers inside */
    int32_t coming;   /* asked for, not there yet */
    int32_t io_lanes; /* threads of its own; their lanes are used one after the other */
    int32_t io_made, io_waiting, io_coming, io_most;
    int32_t tasks;    /* running */
    bool opened;      /* all cursors are */
    bool limited;     /* until the first result edges have limits, and few threads read */
    bool closed;      /* sources stopped */
    bool retiring;    /* one thread is giving everything in flight back */
    bool retired;     /* that is done */
    bool client_gone; /* no worker of the executor is inside */
    int32_t reading;  /* threads waiting in a read */
    lane *lent;       /* of foreign threads */
    group *groups; /* [num_groups]; the first stands for the run's own threads: told of the end */
    size_t num_groups;
    atomic_bool wide;  /* results cost so little that the reader may take many at once */
    int32_t notifying; /* threads inside run_notify */
    bool told_end;     /* group 0 knows that the run has ended */
    uint64_t told;     /* groups whose shortage the foreign side knows of */
    bool tells;        /* a lane can tell it */
    int32_t watching;  /* threads that wait no longer than until a burst is overdue */
    bool watch_asked;  /* one that waits will look at the bursts */
    uint64_t judged, judged_failed; /* stages that share the plan's limit */
    stk_item *pool;                 /* free items */
    int32_t empty_epochs;           /* in a row up to the last mark; -1: a result was read since */
    stk_err result;                 /* sticky end of the reads; STK_OK: none yet */
    stk_diag result_diag;
    failure *result_failure;
    failure *kept, *kept_tail; /* the first failures, in order */
    size_t num_kept;
    uint64_t results;
    int32_t refused; /* stk_executor_refused of the executor that was given up */
    int64_t ticked, first_result, ended;
    int cancel_fd; /* an eventfd, made when an op asks for it; -1: none has */
};

#endif /* STK_GRAPH_ENGINE_H */
