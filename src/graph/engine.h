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
 * Threads: `lock` guards everything except what is said to never change and what a claimed task
 * owns.
 */
#ifndef STK_GRAPH_ENGINE_H
#define STK_GRAPH_ENGINE_H

#include <stdatomic.h>

#include <stoker/run.h>

#include "base/thread.h"
#include "data/batch.h"
#include "exec/pool.h"
#include "graph/edge.h"
#include "graph/plan.h"

#define MAX_BURST 64
#define MAX_KEPT_FAILURES 10

/* One stage of the plan in this run: its op and its counters. */
typedef struct stage {
    const char *kind;
    const stage_plan *plan; /* never changes, as all down to the next comment */
    stk_op *op;             /* borrowed from the plan; NULL where the engine does the work */
    uint32_t index;         /* in run->stages */
    uint64_t rng_key;
    bool binds;           /* its arrays are made in their slots */
    struct stage *before; /* of a chain of maps that begins at a source; NULL at its first */
    struct node *source;  /* of that chain; NULL: there is none, no substitutes */
    int32_t concurrency;

    uint64_t items, failed, substituted, bytes;
    int64_t busy_ns, wait_in_ns, wait_out_ns;
    uint64_t judged, judged_failed; /* in order: what max_failures looks at */
} stage;

/* Samples on their way into one batch. */
typedef struct assembly {
    struct assembly *link;
    struct node *node;
    size_t refs; /* items that have a slot in it, and its node */
    int64_t epoch, index;
    size_t planned;   /* places so far */
    size_t values;    /* of those: with a sample */
    stk_item **items; /* [planned], room for the node's n */

    stk_mutex lock; /* guards the slots' memory; taken without the run's lock */
    struct slots {
        stk_spec spec;   /* of one sample */
        stk_buffer *mem; /* n of them; NULL: nobody asked yet */
    } slots[STK_MAX_PARTS];
} assembly;

/* One input of an expand stage and what it has become so far. */
typedef struct expansion {
    struct expansion *link;
    stk_item *in;
    void *cursor;
    int64_t index; /* the next output */
    bool running, done;
    size_t len;
    stk_item *head, *tail; /* outputs that wait for room */
} expansion;

typedef enum node_kind {
    NODE_SOURCE,
    NODE_MAP,
    NODE_EXPAND,
    NODE_BATCH,
    NODE_ROUTE,
    NODE_JOIN,
    NODE_MERGE,
} node_kind;

typedef struct node {
    node_kind kind; /* never changes, as all down to the next comment */
    struct stk_run *run;
    stage *stages; /* fused: consecutive in run->stages */
    size_t num_stages;
    edge *in, *out;
    bool blocking; /* runs on I/O threads */
    bool in_turn;  /* takes the oldest place only */
    stk_order order;
    int32_t concurrency; /* tasks at once */
    size_t num_edges;    /* route: outputs; join, merge: inputs */
    edge *edges[STK_MAX_PATHS];
    struct node *twin; /* of a route its join, and back */
    stk_source *source;
    const stk_plan *plan; /* of a merge */
    size_t batch_size;
    stage *binder; /* makes the arrays of this batch node in their slots */

    int32_t running;    /* tasks */
    double cost_ns;     /* of one item; rises at once, falls slowly; < 0: unknown */
    int64_t since;      /* when the oldest task that runs began, about */
    bool closed;        /* its outputs are */
    stk_item *returned; /* begun places given back by a task that was slow */
    union {
        struct {
            void *cursor;
            int64_t epoch; /* touched by the source's task alone */
            bool waiting, woken, ended;
        } src;
        struct {
            assembly *collecting, *planning; /* of the reader's side, of the slots' side */
            assembly *submitted, *submitted_tail;
            size_t slots_planned;
            int64_t index; /* within its epoch, of the next batch */
        } batch;
        struct {
            expansion *head, *tail;
            int32_t open;
        } expand;
        struct {
            stk_item *head, *tail; /* routed, waiting for room on their path */
            uint8_t *tickets;      /* join, input order: the paths, in order */
            uint64_t first, last;
        } route;
        struct {
            bool marked[STK_MAX_PATHS]; /* inputs at the end of their epoch */
            size_t turn;
            uint64_t draws;
        } merge;
    };
} node;

/* What a thread keeps for a run: op states, and room for a task. */
typedef struct tally {
    uint64_t items, failed, substituted, bytes;
    int64_t busy_ns;
} tally;

typedef struct lane {
    struct stk_run *run;
    stk_thread thread; /* I/O lanes only */
    bool blocking;
    void **states; /* [num_stages] */
    bool *opened;
    tally *tally; /* [num_stages], likewise */
} lane;

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
} task;

struct stk_run {
    stk_client client; /* of the executor; first, so that a client is a run */
    stk_executor *executor;
    stk_plan *plan;
    unsigned generation; /* of forks */
    bool epoch_ends;
    int32_t num_threads;
    size_t max_parts;
    size_t num_stages, num_nodes, num_edges;
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
    bool closed;      /* sources stopped */
    bool retiring;    /* one thread is giving everything in flight back */
    bool retired;     /* that is done */
    bool client_gone; /* no worker of the executor is inside */
    int32_t reading;  /* threads waiting in a read */
    stk_item *pool;   /* free items */
    int64_t ticked;
    stk_err result; /* sticky end of the reads; STK_OK: none yet */
    stk_diag result_diag;
    failure *result_failure;
    failure *kept, *kept_tail; /* the first failures, in order */
    size_t num_kept;
    uint64_t results;
    int64_t first_result, ended;
};

/* The lock of the run at hand, for clang's analysis: a thread never holds those of two runs, and
 * the many ways to one run (node, task, item) would look like different locks. */
extern stk_mutex run_role;
void run_lock(struct stk_run *run) STK_ACQUIRES(run_role);
void run_unlock(struct stk_run *run) STK_RELEASES(run_role);
bool run_wait(struct stk_run *run, stk_cond *c, int64_t deadline) STK_REQUIRES(run_role);

/* lower.c */
STK_NODISCARD stk_err run_lower(struct stk_run *run, stk_diag *diag);

/* pool.c: items and failures */
stk_item *run_item_get(struct stk_run *run) STK_REQUIRES(run_role); /* NULL: no memory */
void run_item_put(struct stk_run *run, stk_item **item) STK_REQUIRES(run_role);
void run_item_drop(stk_item **item); /* the same without the pool: takes no lock */

/* judge.c: failures, in order */
failure *failure_new(stage *s, const stk_item *item, const stk_diag *diag);
void run_judge(struct stk_run *run, stk_item *item) STK_REQUIRES(run_role);
void run_fail(struct stk_run *run, stk_item *item, stage *s, stk_err err, const char *text);
bool stage_may_skip(const stage *s);

/* batch.c */
void batch_plan_slot(node *batch, stk_item *item) STK_REQUIRES(run_role);
bool batch_collect(node *n) STK_REQUIRES(run_role);
void batch_finalize(task *t);
void batch_finish(task *t) STK_REQUIRES(run_role);
void batch_retire(node *n) STK_REQUIRES(run_role);
void assembly_unref(struct stk_run *run, assembly **a) STK_REQUIRES(run_role);
stk_err assembly_slot(assembly *a, size_t part, size_t slot, const stk_spec *spec, void **out);

/* expand.c */
bool expand_claim(node *n, task *t) STK_REQUIRES(run_role);
size_t expand_ready(const node *n) STK_REQUIRES(run_role);
void expand_exec(lane *l, task *t);
void expand_finish(task *t) STK_REQUIRES(run_role);
bool expand_settle(node *n) STK_REQUIRES(run_role);
void expand_end_cursors(node *n); /* of a run in which no task runs: without the lock */
void expand_retire(node *n) STK_REQUIRES(run_role);
extern const stk_op_class unbatch_class; /* unbatch.c */

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
bool merge_epoch_end(node *n) STK_REQUIRES(run_role); /* all inputs are at the end of theirs */

/* exec.c: without the lock */
void task_exec(lane *l, task *t);
void exec_stage(lane *l, stage *s, stk_item *item);
void *lane_state(lane *l, stage *s, stk_err *err, stk_diag *diag);

/* claim.c */
bool run_claim(struct stk_run *run, bool blocking, task *t) STK_REQUIRES(run_role);
size_t node_ready(const node *n) STK_REQUIRES(run_role);
void edge_deliver(edge *e, stk_item *item) STK_REQUIRES(run_role); /* append + slots */

/* settle.c */
void run_settle(struct stk_run *run) STK_REQUIRES(run_role);
void run_finish(task *t, lane *l) STK_REQUIRES(run_role);
void run_tick(struct stk_run *run, int64_t now) STK_REQUIRES(run_role);

/* worker.c */
bool run_work(stk_client *client, int32_t worker);
STK_NODISCARD stk_err run_start_io(struct stk_run *run, stk_diag *diag);
/* Settles, unlocks, then wakes whoever has something to do, and retires a run that has ended. */
void run_leave(struct stk_run *run) STK_RELEASES(run_role);

/* end.c */
void run_end(struct stk_run *run) STK_REQUIRES(run_role); /* no task begins any more */
void run_abort(struct stk_run *run, stk_err err, const char *text) STK_REQUIRES(run_role);
void run_retire(struct stk_run *run); /* gives everything back that is in flight: no lock */
void run_gone(stk_client *client);
void run_unref(struct stk_run *run, int n);

/* verdict.c */
void stats_verdict(stk_stats *s);

#endif /* STK_GRAPH_ENGINE_H */
