/*
 * What engine tests share: a source that counts, and small ops.
 *
 * The value of a sample is an int64 array of shape (1,), made by `kit_value` from its id.
 */
#ifndef STK_TESTS_ENGINE_KIT_H
#define STK_TESTS_ENGINE_KIT_H

#include <stdatomic.h>

#include <stoker/run.h>

#include "tests/check.h"

typedef struct kit_source {
    int64_t samples, epochs; /* epochs -1: endless */
    int64_t first_id;        /* ids are first_id, first_id + 1, ... */
    int64_t fail_at;         /* the position whose `next` fails, -1: none */
    int64_t gap_at;          /* the position without a sample, -1: none */
    stk_err fail_with;
    int64_t spin_ns;          /* each `next` works for this long */
    int64_t hold_at;          /* the position before which it says STK_EAGAIN once, -1: none */
    _Atomic(void *) held_ctx; /* set while it holds: pass it to kit_release */
    void (*held_wake)(void *);
} kit_source;

/* A source over *params, which must outlive it. */
stk_source *kit_source_new(kit_source *params);
/* n samples, one epoch, no trouble: change what the test is about. */
kit_source kit_counting(int64_t n);

/* Waits until the source holds, then lets it go on. */
void kit_release(kit_source *s);

typedef struct kit_op {
    int64_t fail_every; /* ids that it divides fail; 0: none */
    int64_t fail_id;    /* this id fails; 0: none */
    bool fatal;         /* ... the whole stage */
    bool blocking;
    bool reads;            /* `value` only: blocking, and waits for no other item */
    bool no_spec;          /* its array is not known beforehand */
    int64_t spin_ns;       /* work for this long */
    int64_t sleep_ns;      /* wait for this long */
    _Atomic int64_t *gate; /* waits until it is not 0, or the item is cancelled */
    bool stubborn;         /* ... and does not look whether it is */
    _Atomic int64_t *calls;
    _Atomic int64_t *at_once, *at_once_max;
} kit_op;

/* Map ops.  `value`: a key becomes an array with id * 10.  `same`: passes on what it gets.
 * `add`: array in place, + 1.  `random`: array in place, + a keyed random number below 1000.
 * `batch_sum`: a batch op that reads and leaves the batch. */
stk_op *kit_value(const kit_op *o);
stk_op *kit_same(const kit_op *o);
stk_op *kit_add(const kit_op *o);
stk_op *kit_random(const kit_op *o);
stk_op *kit_batch(const kit_op *o);
/* Expand: an array of value v becomes id % 4 arrays v, v + 1, ... */
stk_op *kit_repeat(const kit_op *o);

/* A plan: source, the op `value` and its options; the caller adds the rest. */
stk_plan *kit_plan(kit_source *source, stk_op *op, const stk_stage_opts *opts);

/* Reads a run to its end: the values of all results in order, at most `max`; batches one after
 * the other, each begun by -1 - (its size).  Returns the last code. */
stk_err kit_read(stk_run *run, int64_t *values, size_t max, size_t *n, stk_diag *diag);

/* Starts the plan with that many threads, reads it to its end, frees both. */
stk_err kit_run(stk_plan *plan, int32_t threads, int64_t *values, size_t max, size_t *n,
                stk_diag *diag);

/* Does nothing for less than a second. */
void kit_pause(int64_t ns);

#endif /* STK_TESTS_ENGINE_KIT_H */
