/*
 * stk_lone: an item without a run, for an op that is called by itself, in another process say.
 *
 *     run's item ── stk_item_origin ──► stk_lone_begin ──► bytes in, cls->run, arrays out
 *
 * Its arrays are made in memory of their own.  It has no key, no columns, and is never cancelled.
 *
 * Threads: one at a time.
 */
#ifndef STK_GRAPH_LONE_H
#define STK_GRAPH_LONE_H

#include <stoker/item.h>

typedef struct stk_lone stk_lone;

/* What the random numbers of an item depend on, in the stage that it is in. */
typedef struct stk_origin {
    uint64_t seed;  /* of its source */
    uint64_t stage; /* by the name of the op and its ordinal among its likes */
    int64_t id, epoch, index;
} stk_origin;

stk_origin stk_item_origin(const stk_item *item);

STK_NODISCARD stk_err stk_lone_new(stk_lone **out);
void stk_lone_free(stk_lone **lone);

/* The item, which holds nothing: `parts` (1 to STK_MAX_PARTS) of a sample with those random
 * numbers.  Borrowed until the next begin. */
stk_item *stk_lone_begin(stk_lone *lone, const stk_origin *origin, size_t parts);

/* Memory for bytes of a part, which is used again once nobody refers to it. */
STK_NODISCARD stk_err stk_lone_memory(stk_lone *lone, size_t size, stk_buffer **out);

#endif /* STK_GRAPH_LONE_H */
