/*
 * stk_plan: what to run: a source, stages, a sink.
 *
 *     source ──► pipe ──► pipe ──► batch ──► pipe ──► sink
 *
 * A plan is built, then checked as a whole when it is first run or by stk_plan_check, and
 * never changes from then on; it can be run many times, also at once.  The functions that
 * build return nothing: a plan keeps the first error and stk_run_start reports it, so that
 * building reads like a list.  Constructors of sources and ops may therefore fail inline:
 * a NULL op or source becomes such an error.
 *
 * A plan without a sink is a path of stk_plan_route, one without a sink but with a source an
 * input of stk_plan_merge.
 *
 * Threads: building: one thread.  A checked plan: any.
 */
#ifndef STK_PLAN_H
#define STK_PLAN_H

#include <stoker/op.h>
#include <stoker/source.h>

STK_BEGIN

typedef struct stk_plan stk_plan;

#define STK_MAX_STAGES 64 /* of one plan, paths and inputs included */
#define STK_MAX_PATHS 16  /* of one route or merge */
#define STK_MAX_CONCURRENCY 1024
#define STK_MAX_CAPACITY 512 /* of one queue */
#define STK_MAX_SINK 1048576
#define STK_MAX_BATCH 1048576

typedef enum stk_order {
    STK_ORDER_INPUT = 0,  /* results leave in the order in which their inputs came */
    STK_ORDER_COMPLETION, /* results leave as they are done */
} stk_order;

typedef enum stk_on_error {
    STK_RAISE = 0,  /* what came before is delivered, then the read fails */
    STK_SKIP,       /* counted; its place in the batch stays empty */
    STK_SUBSTITUTE, /* another sample of the same shard takes its place */
} stk_on_error;

#define STK_UNLIMITED INT64_C(-1)
#define STK_MAX_GROUPS 64 /* of foreign threads, see stoker/lane.h */

typedef struct stk_stage_opts {
    const char *name;    /* NULL: the op's; copied */
    int32_t concurrency; /* items at once; 0: as many as the run has threads (blocking: 16) */
    stk_order order;
    int32_t capacity; /* results that may wait for the next stage; 0: chosen by the engine */
    stk_on_error on_error;
    int64_t
        max_failures; /* skip: more than this end the run; 0: STK_UNLIMITED; < 0: none allowed */
    double max_failure_rate; /* skip: in (0, 1], from the 100th item on; 0: no limit */
    bool shared_limit; /* skip: counted together with the others that say so: stk_plan_limit */
    uint32_t group;    /* of foreign threads that run it; 0: threads of the run */
} stk_stage_opts;

typedef struct stk_batch_opts {
    bool drop_last;  /* a batch planned smaller than n, at an epoch's end, is left out */
    bool keep_empty; /* a batch whose positions were all skipped, or gaps, is delivered: size 0,
                        without parts whose shape is not known beforehand */
    const char *name;
    int32_t
        capacity; /* finished batches that may wait for the next stage; 0: chosen by the engine */
} stk_batch_opts;

/* Chooses the path of an item: [0, n).  Anything else is a failure of the route stage.
 * Called from any worker, one at a time, in input order. */
typedef int stk_router_fn(const stk_item *item, void *ctx);

STK_API STK_NODISCARD stk_err stk_plan_new(stk_plan **out);

/* One more reference, for stk_plan_free to give up. */
STK_API stk_plan *stk_plan_ref(stk_plan *plan);

/* Gives the plan up; runs of it go on. */
STK_API void stk_plan_free(stk_plan **plan);

/* Takes the source. */
STK_API void stk_plan_source(stk_plan *plan, stk_source *source);

/* The same for a source whose `next` runs on the lanes of a group of foreign threads, and may
 * block there. */
STK_API void stk_plan_foreign_source(stk_plan *plan, stk_source *source, uint32_t group);

/* The limit of all stages with shared_limit, as in stk_stage_opts. */
STK_API void stk_plan_limit(stk_plan *plan, int64_t max_failures, double max_failure_rate);

/* Takes the op.  `opts` may be NULL.  An op with `expand` makes an expand stage. */
STK_API void stk_plan_pipe(stk_plan *plan, stk_op *op, const stk_stage_opts *opts);

/* Groups n samples by planned position: a skipped sample leaves its batch shorter, and no batch
 * spans two epochs.  Behind it, the item is the batch. */
STK_API void stk_plan_batch(stk_plan *plan, size_t n, const stk_batch_opts *opts);

/* Turns each batch into its samples again: arrays that share the batch's memory. */
STK_API void stk_plan_unbatch(stk_plan *plan, const stk_stage_opts *opts);

/* Sends each item through one of n paths (plans without source and sink; taken), then rejoins: in
 * input order where opts->order says so (the default).  Without a router the op before it names the
 * path (stk_item_set_path), and in input order the caller answers for one result an item on each
 * path, or those of an expand stage or of a port (stk_port_more).  In order of completion up to 32
 * items wait for room on their path while those behind them go on. */
STK_API void stk_plan_route(stk_plan *plan, stk_router_fn *router, void *ctx, size_t n,
                            stk_plan *const *paths, const stk_stage_opts *opts);

/* In place of a source: n plans with a source and no sink (taken), interleaved by a fixed rule:
 * round robin, or with weights (n numbers > 0) at random by `seed`.  An input whose epoch has
 * ended waits for the others; an epoch ends when all of them did. */
STK_API void stk_plan_merge(stk_plan *plan, size_t n, stk_plan *const *inputs,
                            const double *weights, uint64_t seed);

/* The same in order of arrival: which input comes first depends on who is quick.  The failure of an
 * input ends the run when the others are through, or at the end of an epoch. */
STK_API void stk_plan_merge_any(stk_plan *plan, size_t n, stk_plan *const *inputs);

/* How many results may wait for the reader, at least 1.  A plan has one sink, at its end. */
STK_API void stk_plan_sink(stk_plan *plan, size_t buffer_size);

/* The first error of building, or of the whole: kinds of the ends that do not fit, capacities,
 * nothing to read from.  Changes nothing else. */
STK_API STK_NODISCARD stk_err stk_plan_check(stk_plan *plan, stk_diag *diag);

/* Gives *out a text for people, a line a stage; says what is not reproducible, and why.
 * Free it with stk_text_free. */
STK_API STK_NODISCARD stk_err stk_plan_print(stk_plan *plan, char **out);
STK_API void stk_text_free(char **text);

/* Batches (or items) planned for one epoch, the same on all ranks; -1 where the plan does not know.
 * Those without a sample count, but come with keep_empty alone. */
STK_API int64_t stk_plan_length(stk_plan *plan);

STK_END

#endif /* STK_PLAN_H */
