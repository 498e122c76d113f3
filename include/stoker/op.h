/*
 * stk_op: what a stage does to an item.
 *
 * An op is a class (functions) and its parameters.  One op may be used by many plans
 * and runs at once, so parameters never change after stk_op_new.  Whatever a thread
 * needs for itself (a decoder, scratch memory) is its state: made by `open` when the
 * thread first runs the stage, given back by `close` at the end of the run.
 *
 * Threads: `run` and `expand` on many threads at once, each with a state of its own.
 */
#ifndef STK_OP_H
#define STK_OP_H

#include <stoker/item.h>

STK_BEGIN

typedef enum stk_op_flags {
    STK_OP_BLOCKING = 1, /* waits for disk or network: runs on threads of its own */
    STK_OP_IN_PLACE = 2, /* array ops: changes the array where it is, never its spec */
    STK_OP_ALONE = 4,    /* waits for no other item: others may be held back for its sake */
    /* right behind a route in input order: also runs on an item without data, whose path is the
     * number of paths, where the results on the last path end with one that was skipped */
    STK_OP_ENDS = 8,
} stk_op_flags;

typedef struct stk_op stk_op;

typedef struct stk_op_class {
    const char *name; /* static storage: "decode_image" */
    uint32_t flags;
    stk_kind in, out;

    /* Per-thread state; both NULL when there is none.  `close` accepts NULL. */
    stk_err (*open)(const void *params, void **state, stk_diag *diag);
    void (*close)(void *state);

    /* Map: replaces the item's data.  On failure the item's data does not matter.
     * STK_ESKIP: there is no result, which is no failure: the item's place stays empty. */
    stk_err (*run)(const void *params, void *state, stk_item *item, stk_diag *diag);

    /* Fold: `run` consumes items and leaves a result in some of them (STK_ESKIP: in none), and
     * `flush` gives what is left at the end of an epoch and of the input in `out`, which has the
     * identity of the last item.  STK_ESKIP: nothing.  A fold runs one item after the other. */
    stk_err (*flush)(const void *params, void *state, stk_item *out, stk_diag *diag);

    /* Expand (instead of run): makes output number `index` (0, 1, ...) of `in` in `out`, which
     * has in's identity and no data.  STK_EEND: there are no more; STK_ESKIP: none now.
     * *cursor starts NULL, is the op's own, and goes to `expand_end` when the input is done, also
     * after failures. */
    stk_err (*expand)(const void *params, void *state, void **cursor, stk_item *in, int64_t index,
                      stk_item *out, stk_diag *diag);
    void (*expand_end)(const void *params, void *cursor);

    /* Bit i: `run` makes part i an array, and leaves the others as they are, for another op.  The
     * engine has all parts decoded once, before what takes arrays.  Only where `in` is bytes and
     * `out` arrays; 0, or NULL: all parts. */
    uint32_t (*takes)(const void *params);

    /* The array that `part` will be, where that is known beforehand: what lets it be made in
     * its slot of the batch.  NULL: never known. */
    void (*spec)(const void *params, size_t part, stk_spec *out);

    /* Parts that `run` puts behind those that the item has (stk_item_set_num_parts), to every item
     * the same: the name of number `i` of them, which becomes a field of the batch, and in *spec
     * (zeros before) its array, where that is known beforehand.  NULL: there are no more.  Maps of
     * samples only; the names live as long as params.  May be NULL: it adds none. */
    const char *(*adds)(const void *params, size_t i, stk_spec *spec);

    /* Gives back params when the op is dropped; also when stk_op_new fails.  May be NULL. */
    void (*fini)(void *params);

    /* Writes "decode_image(224x224, crop=random_resized)" for people; NULL: the name. */
    void (*print)(const void *params, char *dst, size_t size);
} stk_op_class;

/* Takes `params` (heap or static, whatever `fini` undoes).  NULL: no memory. */
STK_API stk_op *stk_op_new(const stk_op_class *cls, void *params);
STK_API stk_op *stk_op_ref(stk_op *op);
STK_API void stk_op_unref(stk_op **op);
STK_API const stk_op_class *stk_op_get_class(const stk_op *op);
STK_API const void *stk_op_params(const stk_op *op);

STK_END

#endif /* STK_OP_H */
