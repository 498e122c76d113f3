/*
 * stk_mixing: what mixup and cutmix have in common: the draw, the labels, the new fields.
 *
 * Threads: params: any; a pass: one.
 */
#ifndef STK_OPS_MIXING_H
#define STK_OPS_MIXING_H

#include "data/batch.h"
#include "ops/augment.h"

typedef struct stk_mixing {
    stk_mix_opts o;    /* names are those behind it */
    const char *other; /* "label_b" */
    char names[];
} stk_mixing;

/* A batch on its way. */
typedef struct stk_mixing_pass {
    stk_batch *batch;
    stk_draws draws;
    bool mixes;
    double lam;
    size_t field, n;
    stk_tensor t;    /* the field, to be read; contiguous */
    uint8_t *dst;    /* and to be written: the same memory, or new one, in which nothing is yet */
    stk_buffer *mem; /* that new one, or NULL */
} stk_mixing_pass;

/* An op of such a class, whose params are an stk_mixing. */
stk_op *stk_mixing_op(const stk_op_class *cls, const stk_mix_opts *opts, stk_diag *diag);

/* Draws lam and finds the field, if the batch is to be mixed.  End it either way. */
STK_NODISCARD stk_err stk_mixing_begin(const stk_mixing *m, stk_item *item, stk_mixing_pass *p,
                                       stk_diag *diag);

/* Puts the new array in the place of the old one, and labels and lam into the batch, where `err` is
 * none; gives it, or what went wrong then. */
STK_NODISCARD stk_err stk_mixing_end(const stk_mixing *m, stk_mixing_pass *p, stk_err err,
                                     stk_diag *diag);

void stk_mixing_print(const char *name, const stk_mixing *m, char *dst, size_t size);

#endif /* STK_OPS_MIXING_H */
