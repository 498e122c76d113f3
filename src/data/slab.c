#include "data/slab.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/thread.h"
#include "data/buffer.h"

struct stk_slab_pool {
    size_t max_free;     /* these two never change */
    unsigned generation; /* of the process that made it */

    stk_mutex lock;    /* guards everything below */
    size_t owners;     /* at 0 the pool keeps nothing */
    size_t live;       /* slabs that are handed out */
    size_t num_free;   /* entries of idle */
    stk_buffer **idle; /* room for max_free, oldest first */
    size_t *capacity;  /* of each: searching touches no slab */
    stk_slab_stats stats;
};

/* With nobody else left, and nothing idle. */
static void pool_free(stk_slab_pool *pool)
{
    assert(!pool->num_free && !pool->stats.live_bytes);
    stk_mutex_fini(&pool->lock);
    stk_free(pool->capacity);
    stk_free(pool->idle);
    stk_free(pool);
}

stk_err stk_slab_pool_new(size_t max_free, stk_slab_pool **out)
{
    stk_slab_pool *pool = *out = stk_alloc_zero(1, sizeof(*pool));
    if (!pool) return STK_ENOMEM;
    pool->max_free = max_free;
    pool->generation = stk_fork_generation();
    pool->owners = 1;
    pool->idle = stk_alloc_zero(max_free, sizeof(*pool->idle));
    pool->capacity = stk_alloc_zero(max_free, sizeof(*pool->capacity));

    stk_err err = pool->idle && pool->capacity ? STK_OK : STK_ENOMEM;
    if (!err) err = stk_mutex_init(&pool->lock);
    if (!err) return STK_OK;
    *out = NULL;
    pool_free(pool);
    return err;
}

/* After fork a child owns a copy of the memory, but the lock may be held by a thread that
 * does not exist there. */
static bool forked(const stk_slab_pool *pool)
{
    return pool->generation != stk_fork_generation();
}

stk_slab_pool *stk_slab_pool_ref(stk_slab_pool *pool)
{
    if (forked(pool)) return pool;
    stk_mutex_lock(&pool->lock);
    assert(pool->owners);
    pool->owners++;
    stk_mutex_unlock(&pool->lock);
    return pool;
}

/* Takes the i-th idle slab out. */
static stk_buffer *remove_locked(stk_slab_pool *pool, size_t i) STK_REQUIRES(pool->lock)
{
    stk_buffer *slab = pool->idle[i];
    const size_t after = --pool->num_free - i;
    pool->stats.free_bytes -= pool->capacity[i];
    memmove(&pool->idle[i], &pool->idle[i + 1], after * sizeof(*pool->idle));
    memmove(&pool->capacity[i], &pool->capacity[i + 1], after * sizeof(*pool->capacity));
    return slab;
}

/* The smallest idle slab of [least, most] bytes, the most recent of equals; or NULL. */
static stk_buffer *find_locked(stk_slab_pool *pool, size_t least, size_t most)
    STK_REQUIRES(pool->lock)
{
    size_t best = SIZE_MAX;
    for (size_t i = pool->num_free; i-- > 0;) {
        if (pool->capacity[i] < least || pool->capacity[i] > most) continue;
        if (best == SIZE_MAX || pool->capacity[i] < pool->capacity[best]) best = i;
    }
    return best == SIZE_MAX ? NULL : remove_locked(pool, best);
}

/* Freeing large memory unmaps it: not under the lock. */
static void free_idle_locked(stk_slab_pool *pool) STK_REQUIRES(pool->lock)
{
    while (pool->num_free) {
        stk_buffer *slab = remove_locked(pool, pool->num_free - 1);
        stk_mutex_unlock(&pool->lock);
        stk_free(slab);
        stk_mutex_lock(&pool->lock);
    }
}

void stk_slab_pool_drain(stk_slab_pool *pool)
{
    if (forked(pool)) return;
    stk_mutex_lock(&pool->lock);
    pool->max_free = 0;
    free_idle_locked(pool);
    stk_mutex_unlock(&pool->lock);
}

void stk_slab_pool_unref(stk_slab_pool **ppool)
{
    stk_slab_pool *pool = *ppool;
    *ppool = NULL;
    if (!pool || forked(pool)) return;

    stk_mutex_lock(&pool->lock);
    assert(pool->owners);
    /* The last owner empties the pool before it lets go: a slab that comes back meanwhile must
     * not be the end of it. */
    if (pool->owners == 1) free_idle_locked(pool);
    pool->owners--;
    const bool last = !pool->owners && !pool->live;
    stk_mutex_unlock(&pool->lock);
    if (last) pool_free(pool);
}

static void slab_recycle(stk_buffer *slab)
{
    stk_slab_pool *pool = slab->ctx;
    const size_t capacity = slab->capacity;
    stk_buffer *excess = slab;
    if (forked(pool)) {
        stk_free(slab);
        return;
    }

    stk_mutex_lock(&pool->lock);
    pool->stats.live_bytes -= capacity;
    if (pool->owners && pool->max_free) {
        /* The oldest goes when there are too many: sizes that nobody asks for any more must not
         * keep the pool full. */
        excess = pool->num_free == pool->max_free ? remove_locked(pool, 0) : NULL;
        pool->idle[pool->num_free] = slab;
        pool->capacity[pool->num_free++] = capacity;
        pool->stats.free_bytes += capacity;
    }
    pool->live--;
    const bool last = !pool->owners && !pool->live;
    stk_mutex_unlock(&pool->lock);

    stk_free(excess);
    if (last) pool_free(pool);
}

/* Rounds up by at most an eighth, so that slabs of similar files are interchangeable.
 * 0: cannot be. */
static size_t size_class(size_t size)
{
    if (size > SIZE_MAX / 4) return 0;
    size_t step = 512;
    while (step < size / 16) step *= 2;
    return size ? (size + step - 1) / step * step : step;
}

stk_err stk_slab_take(stk_slab_pool *pool, size_t size, stk_buffer **out)
{
    *out = NULL;
    const size_t capacity = size_class(size);
    if (!capacity) return STK_ENOMEM;
    if (forked(pool)) return stk_buffer_new(size, out);

    const size_t most = capacity > size * 2 ? capacity : size * 2;

    stk_mutex_lock(&pool->lock);
    assert(pool->owners);
    stk_buffer *slab = find_locked(pool, size, most);
    pool->live++;
    pool->stats.reused += slab != NULL;
    if (slab) pool->stats.live_bytes += slab->capacity;
    stk_mutex_unlock(&pool->lock);

    if (!slab) {
        slab = stk_buffer_alloc(capacity);
        stk_mutex_lock(&pool->lock);
        if (!slab) pool->live--;
        if (slab) pool->stats.made++;
        if (slab) pool->stats.live_bytes += capacity;
        stk_mutex_unlock(&pool->lock);
        if (!slab) return STK_ENOMEM;
        slab->recycle = slab_recycle;
        slab->ctx = pool;
    }
    slab->size = size;
    atomic_store_explicit(&slab->refs, 1, memory_order_relaxed); /* nobody else knows it yet */
    *out = slab;
    return STK_OK;
}

stk_slab_stats stk_slab_pool_get_stats(stk_slab_pool *pool)
{
    if (forked(pool)) return (stk_slab_stats){0};
    stk_mutex_lock(&pool->lock);
    const stk_slab_stats stats = pool->stats;
    stk_mutex_unlock(&pool->lock);
    return stats;
}
