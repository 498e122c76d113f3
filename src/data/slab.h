/*
 * stk_slab_pool: memory of batches and files, used again and again.
 *
 * A slab is an stk_buffer whose last unref brings its memory back to the pool it came from, from
 * any thread, also when the pool was given up meanwhile.  A slab that somebody refers to is never
 * handed out twice.  Fresh memory costs a page fault per 4 KiB; a slab costs them once.
 *
 * Threads: any; after fork, slabs of the parent may be dropped in the child (their memory is freed,
 *          the pool's lock is not touched: stk_fork_generation).
 */
#ifndef STK_DATA_SLAB_H
#define STK_DATA_SLAB_H

#include <stoker/buffer.h>

typedef struct stk_slab_pool stk_slab_pool;

typedef struct stk_slab_stats {
    size_t free_bytes; /* idle in the pool */
    size_t live_bytes; /* handed out */
    uint64_t made, reused;
} stk_slab_stats;

/* Keeps at most `max_free` idle slabs; more are freed. */
STK_NODISCARD stk_err stk_slab_pool_new(size_t max_free, stk_slab_pool **out);
stk_slab_pool *stk_slab_pool_ref(stk_slab_pool *pool);
void stk_slab_pool_unref(stk_slab_pool **pool);

/* Frees the idle slabs, and keeps none from then on. */
void stk_slab_pool_drain(stk_slab_pool *pool);

/* Gives *out one reference to `size` uninitialised bytes, aligned to STK_BUFFER_ALIGN; may be
 * backed by a larger idle slab (at most 2x) but stk_buffer_size says `size`.  The slab keeps the
 * pool's memory, not the pool's will to keep slabs: that ends with the last owner.  In a child of
 * fork, the parent's pool gives memory that belongs to no pool. */
STK_NODISCARD stk_err stk_slab_take(stk_slab_pool *pool, size_t size, stk_buffer **out);

stk_slab_stats stk_slab_pool_get_stats(stk_slab_pool *pool);

#endif /* STK_DATA_SLAB_H */
