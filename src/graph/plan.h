/* The inside of stk_plan, for the engine alone. */
#ifndef STK_GRAPH_PLAN_H
#define STK_GRAPH_PLAN_H

#include <stoker/plan.h>
#include <stoker/stats.h>

#include <stdatomic.h>

#include "base/thread.h"

typedef enum stage_kind {
    STAGE_MAP,
    STAGE_EXPAND,
    STAGE_BATCH,
    STAGE_UNBATCH,
    STAGE_ROUTE,
    STAGE_PORT,
} stage_kind;

typedef struct stage_plan {
    stage_kind kind;
    char name[STK_NAME_SIZE];
    stk_op *op;          /* map, expand, unbatch */
    stk_stage_opts opts; /* name is above */
    size_t batch_size;   /* batch */
    stk_batch_opts batch;
    stk_router_fn *router; /* route */
    void *router_ctx;
    size_t num_paths;
    stk_plan *paths[STK_MAX_PATHS];
} stage_plan;

struct stk_plan {
    atomic_int refs;
    stk_err err; /* the first of building */
    stk_diag diag;
    stk_source *source;
    uint32_t source_group;
    bool ported;       /* what another runtime puts, in place of a source or merge */
    size_t num_inputs; /* of a merge, in place of a source */
    stk_plan *inputs[STK_MAX_PATHS];
    double weights[STK_MAX_PATHS];
    bool weighted;
    bool arrival; /* of a merge: takes what is there */
    uint64_t merge_seed;
    size_t num_stages;
    stage_plan stages[STK_MAX_STAGES];
    size_t sink;          /* buffer size; 0: none yet */
    int64_t max_failures; /* of the stages that share a limit, as is the next */
    double max_failure_rate;
};

extern const stk_op_class unbatch_class; /* unbatch.c */

/* parts.c: the names of the parts that samples of a source have; NULL: none is known. */
const char *const *source_parts(stk_source *source, size_t *n);

/* Bit i: op makes part i an array; of n parts. */
uint32_t op_takes(const stk_op *op, size_t n);

/* parts.c: whether ops that add parts can do so. */
STK_NODISCARD stk_err plan_check_parts(const stk_plan *plan, stk_diag *diag);

/* What flows into stage i (i == num_stages: what the reader gets). */
stk_kind plan_kind_at(const stk_plan *plan, size_t i);

/* The paths of a route keep one result for each input, in a place that is known. */
bool plan_is_one_to_one(const stk_plan *path);

/* Rejoins in input order. */
bool stage_in_order(const stage_plan *s);

/* The first source, through merges. */
stk_source *plan_first_source(const stk_plan *plan);

#endif /* STK_GRAPH_PLAN_H */
