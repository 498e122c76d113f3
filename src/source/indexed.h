/*
 * stk_indexed: a source whose samples have numbers from 0: one cursor for all of them.
 *
 *     params of the source:   [ stk_indexed | what the source keeps of its own ]
 *
 * Such a source supplies stk_indexed_ops, puts an stk_indexed first in its params and fills the
 * functions below into its class; the order, ranks, epochs and substitution are made here.
 *
 * Threads: as stk_source_class; all ops are called from any thread.
 */
#ifndef STK_SOURCE_INDEXED_H
#define STK_SOURCE_INDEXED_H

#include <stoker/source.h>

/* Somebody who wants to know that more samples are there. */
typedef struct stk_watcher {
    void (*wake)(void *ctx); /* called without locks, once for each time it was armed */
    void *ctx;

    /* The source's own; zero at first. */
    struct stk_watcher *next;
    int64_t wanted;
    bool armed;
    int waking; /* calls of `wake` that have not returned */
} stk_watcher;

typedef struct stk_look {
    int64_t available; /* samples [0, available) can be read */
    bool complete;     /* that is all of them: at least 1 */
} stk_look;

typedef struct stk_indexed stk_indexed;

typedef struct stk_indexed_ops {
    /* Begins to look for samples, if that was not done yet. */
    stk_err (*start)(stk_indexed *x, stk_diag *diag);

    /* A reader has come to `wanted`.  STK_OK: so many samples are there, or all.  STK_EAGAIN: not
     * known yet; arms w, unless it is NULL.  Others: the source failed before it had so many.
     * *out is filled in at any rate. */
    stk_err (*look)(stk_indexed *x, int64_t wanted, stk_watcher *w, stk_look *out, stk_diag *diag);

    /* Disarms w and waits for calls of `wake` to return: must not be called from one. */
    void (*forget)(stk_indexed *x, stk_watcher *w);

    /* Waits until the source is complete or has failed. */
    stk_err (*wait)(stk_indexed *x, int64_t *count, stk_diag *diag);

    size_t (*memory)(stk_indexed *x);
} stk_indexed_ops;

struct stk_indexed {
    const stk_indexed_ops *ops;
    stk_order_opts order; /* checked */
    size_t num_parts;     /* of a sample; 0: 1 */
};

/* For the class. */
uint64_t stk_indexed_seed(const void *params);
uint64_t stk_indexed_batch_seed(const void *params); /* rank 0: the same */
stk_err stk_indexed_open(void *params, const stk_source_env *env, void **cursor, stk_diag *diag);
void stk_indexed_close(void *cursor);
stk_err stk_indexed_next(void *cursor, stk_item *item, stk_diag *diag);
stk_err stk_indexed_substitute(void *cursor, stk_item *item, int64_t id, int64_t epoch,
                               int attempt);
int64_t stk_indexed_length(void *params);
int64_t stk_indexed_epochs(void *params);

/* The last two without an item: they give the number of the sample and its epoch. */
stk_err stk_indexed_next_id(void *cursor, int64_t *id, int64_t *epoch, stk_diag *diag);
stk_err stk_indexed_substitute_id(void *cursor, int64_t id, int64_t epoch, int attempt,
                                  int64_t *other);

/* The params of `s` if it is an indexed source, otherwise NULL. */
stk_indexed *stk_indexed_of(const stk_source *s);

/* ", shuffled, rank 1 of 8, 3 epochs": what of the order is not the default. */
void stk_indexed_print(const stk_indexed *x, char *dst, size_t size);

#endif /* STK_SOURCE_INDEXED_H */
