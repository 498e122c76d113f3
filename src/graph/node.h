/*
 * Nodes: what a run is made of, and what each kind keeps.
 *
 * Threads: the run's lock guards everything except what is said to never change, and what a
 *          claimed task owns.
 */
#ifndef STK_GRAPH_NODE_H
#define STK_GRAPH_NODE_H

#include <stoker/run.h>
#include <stoker/stats.h>

#include "base/thread.h"
#include "graph/edge.h"
#include "graph/plan.h"

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
    size_t num_added; /* parts that ops up to it have put behind those of the source */
    struct added {
        stk_op *op;   /* borrowed */
        size_t index; /* among those of the op */
    } added[STK_MAX_PARTS];

    uint64_t items, failed, substituted, bytes;
    int64_t busy_ns, wait_in_ns, wait_out_ns;
    stk_times times;
    uint64_t judged, judged_failed; /* in order: what max_failures looks at */
    struct failure *latest;         /* of those that are not among the run's first */
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
    NODE_PORT,
    NODE_PASS, /* moves results on, so that they need not be made when there is room again */
} node_kind;

typedef struct node {
    node_kind kind; /* never changes, as all down to the next comment */
    struct stk_run *run;
    stage *stages; /* fused: consecutive in run->stages */
    size_t num_stages;
    edge *in, *out;
    bool blocking;  /* runs on I/O threads */
    uint32_t group; /* of foreign threads that run it; 0: threads of the run's own */
    bool in_turn;   /* takes the oldest place only */
    stk_order order;
    int32_t concurrency; /* tasks at once */
    size_t num_edges;    /* route: outputs; join, merge: inputs */
    edge *edges[STK_MAX_PATHS];
    struct node *twin; /* of a route its join, and back */
    size_t depth;      /* of any: how many routes that rejoin in input order it is in */
    stk_source *source;
    const stk_plan *plan; /* of a merge */
    size_t batch_size;
    stage *binder; /* makes the arrays of this batch node in their slots */

    int32_t running;    /* tasks */
    double cost_ns;     /* of one item; rises at once, falls slowly; < 0: unknown */
    int64_t since;      /* when the oldest task that runs began, about */
    bool closed;        /* its outputs are */
    bool failed;        /* a failure of its own ends the run: it takes nothing more */
    bool flushed;       /* of a fold: what it held before the mark or end at its input is out */
    uint32_t lost;      /* merges, joins, ports: inputs that have failed */
    stk_item *failure;  /* of merges, joins: of the first of them, and with it of the others */
    stk_item *returned; /* begun places given back by a task that was slow */
    union {
        struct {
            void *cursor;
            int64_t epoch; /* touched by the source's task alone */
            bool waiting, woken, ended;
        } src;
        struct { /* map that folds: whom it put last; id -1: nobody */
            int64_t id, epoch;
            stk_source *source;
        } fold;
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
            size_t waiting, turn;  /* turn: join, the path that is emptied up to its mark */
            uint8_t *tickets;      /* join, input order: the paths, in order, or MARK_TICKET */
            uint64_t first, last;
        } route;
        struct {
            bool done, told, want_out, holds; /* no more puts; of the end; room; gaps in order */
            uint32_t want_in;                 /* bit k: input k */
            uint64_t num_held, taken, returned;
            stk_item *head, *tail, *error; /* held; of an input, for the output's end */
        } port;
        struct {
            bool marked[STK_MAX_PATHS]; /* inputs at the end of their epoch */
            size_t turn;
            uint64_t draws;
        } merge;
    };
} node;

#endif /* STK_GRAPH_NODE_H */
