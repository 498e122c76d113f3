#include "source/runs.h"

#include "base/alloc.h"

#define FIRST 64 /* folders of chunk 0 */

/* Run i is number i + FIRST - start of the chunk whose start is the highest bit of i + FIRST. */
static size_t chunk_of(size_t i, size_t *at)
{
    const size_t n = i + FIRST;
    const size_t bit = (size_t)(63 - __builtin_clzll(n));
    *at = n - ((size_t)1 << bit);
    return bit - 6;
}

void stk_runs_fini(stk_runs *runs)
{
    for (size_t k = 0; k < STK_RUN_CHUNKS; k++) {
        stk_free(runs->chunks[k]);
        runs->chunks[k] = NULL;
    }
    atomic_store_explicit(&runs->num, 0, memory_order_relaxed);
}

stk_err stk_runs_add(stk_runs *runs, const stk_folder *f)
{
    const size_t i = atomic_load_explicit(&runs->num, memory_order_relaxed);
    size_t at;
    const size_t k = chunk_of(i, &at);
    if (k >= STK_RUN_CHUNKS) return STK_ELIMIT;
    if (!runs->chunks[k]) {
        runs->chunks[k] = stk_alloc_zero((size_t)FIRST << k, sizeof(*runs->chunks[k]));
        if (!runs->chunks[k]) return STK_ENOMEM;
    }
    runs->chunks[k][at] = f;
    atomic_store_explicit(&runs->num, i + 1, memory_order_release);
    return STK_OK;
}

static const stk_folder *get(const stk_runs *runs, size_t i)
{
    size_t at;
    const size_t k = chunk_of(i, &at);
    return runs->chunks[k][at];
}

const stk_folder *stk_runs_find(const stk_runs *runs, int64_t id)
{
    size_t low = 0, high = atomic_load_explicit(&runs->num, memory_order_acquire);
    while (low < high) { /* the first run that begins behind `id` */
        const size_t middle = low + (high - low) / 2;
        if (get(runs, middle)->first <= id)
            low = middle + 1;
        else
            high = middle;
    }
    if (!low || id < 0) return NULL;
    const stk_folder *f = get(runs, low - 1);
    return id - f->first < (int64_t)f->files.num ? f : NULL;
}

size_t stk_runs_memory(const stk_runs *runs)
{
    const size_t num = atomic_load_explicit(&runs->num, memory_order_acquire);
    size_t at, bytes = 0;
    const size_t used = num ? chunk_of(num - 1, &at) + 1 : 0;
    for (size_t k = 0; k < used; k++) bytes += ((size_t)FIRST << k) * sizeof(*runs->chunks[k]);
    return bytes;
}
