/*
 * Runs an op over arrays that a test makes: source, `make`, the op, batch.
 *
 * Values are noise, keyed by sample and part, so a test knows what each op was given.
 */
#ifndef STK_TESTS_OP_RUN_H
#define STK_TESTS_OP_RUN_H

#include <stoker/run.h>

#include "tests/check.h"

typedef enum op_run_where {
    OP_RUN_SLOT = 0, /* arrays are made in their slots of the batch */
    OP_RUN_OWN,      /* in memory of their own */
    OP_RUN_SHARED,   /* in memory that others refer to, too: `kept` */
    OP_RUN_STRIDED,  /* in memory of their own, whose rows are not contiguous */
} op_run_where;

typedef struct op_run {
    int64_t samples; /* of one batch */
    uint64_t seed;
    size_t parts;     /* 0: 1 */
    stk_spec spec[2]; /* of each part */
    op_run_where where;
    bool labels;      /* int64: the id % 10 */
    int32_t threads;  /* 0: 2 */
    int64_t index;    /* of the batch to look at: `samples` each */
    stk_buffer *kept; /* SHARED: what sample 0's first part was made in; the test's */
    stk_batch *batch; /* what came; the test's */
    stk_diag diag;    /* or why nothing did */
    int64_t position; /* of the source */
} op_run;

/* What part `part` of sample `id` is made of. */
void op_run_fill(int64_t id, size_t part, uint8_t *dst, size_t n);

/* Takes `op`, of samples or of batches.  Leaves r->batch, or r->diag. */
stk_err op_run_go(op_run *r, stk_op *op);
void op_run_end(op_run *r);

/* A field of the batch. */
stk_tensor op_run_field(const op_run *r, const char *name);

/* The op fails, with these words in the text. */
void op_run_refused(op_run *r, stk_op *op, const char *words);

/* In TORTURE: runs and ends it; STK_OK only once no allocation is left to fail. */
stk_err op_run_torture(op_run *r, stk_op *op);

#endif /* STK_TESTS_OP_RUN_H */
