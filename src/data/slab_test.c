#include "data/slab.h"

#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "tests/check.h"

static stk_buffer *take(stk_slab_pool *pool, size_t size)
{
    stk_buffer *b;
    CHECK_EQ(stk_slab_take(pool, size, &b), STK_OK);
    CHECK_EQ(stk_buffer_size(b), size);
    CHECK_EQ((uintptr_t)stk_buffer_data(b) % STK_BUFFER_ALIGN, 0);
    memset(stk_buffer_writable(b), 1, size); /* the sanitizer sees that it fits */
    return b;
}

static void reuses(void)
{
    stk_slab_pool *pool;
    CHECK_EQ(stk_slab_pool_new(2, &pool), STK_OK);
    stk_buffer *a = take(pool, 10000);
    const void *where = stk_buffer_data(a);
    stk_slab_stats s = stk_slab_pool_get_stats(pool);
    CHECK(s.live_bytes >= 10000 && s.live_bytes <= 11250 && s.free_bytes == 0);
    stk_buffer_unref(&a);
    s = stk_slab_pool_get_stats(pool);
    CHECK(s.live_bytes == 0 && s.free_bytes >= 10000);

    a = take(pool, 9000);
    CHECK(stk_buffer_data(a) == where);
    stk_buffer *b = take(pool, 9000);
    CHECK(stk_buffer_data(b) != where);
    stk_buffer_unref(&a);
    a = take(pool, 4000); /* would waste more than half */
    CHECK(stk_buffer_data(a) != where);
    s = stk_slab_pool_get_stats(pool);
    CHECK_EQ(s.made, 3);
    CHECK_EQ(s.reused, 1);
    stk_buffer_unref(&a);
    stk_buffer_unref(&b);
    stk_slab_pool_unref(&pool);
    CHECK(!pool);
    stk_slab_pool_unref(&pool);
}

static void referred_to_is_not_reused(void)
{
    stk_slab_pool *pool;
    stk_buffer *slice;
    CHECK_EQ(stk_slab_pool_new(4, &pool), STK_OK);
    stk_buffer *a = take(pool, 1000);
    CHECK_EQ(stk_buffer_slice(a, 10, 10, &slice), STK_OK);
    const void *where = stk_buffer_data(a);
    stk_buffer_unref(&a);
    a = take(pool, 1000);
    CHECK(stk_buffer_data(a) != where);
    memset(stk_buffer_writable(a), 9, 1000);
    CHECK_EQ(stk_buffer_data(slice)[0], 1);
    stk_buffer_unref(&slice);
    stk_buffer *b = take(pool, 1000);
    CHECK(stk_buffer_data(b) == where);
    stk_buffer_unref(&a);
    stk_buffer_unref(&b);
    stk_slab_pool_unref(&pool);
}

static void keeps_the_newest(void)
{
    stk_slab_pool *pool;
    CHECK_EQ(stk_slab_pool_new(2, &pool), STK_OK);
    stk_buffer *b[3] = {take(pool, 600), take(pool, 6000), take(pool, 60000)};
    for (int i = 0; i < 3; i++) stk_buffer_unref(&b[i]);
    const size_t sizes[] = {60000, 6000, 600};
    for (int i = 0; i < 3; i++) {
        b[i] = take(pool, sizes[i]);
        CHECK_EQ(stk_slab_pool_get_stats(pool).reused, i < 2 ? i + 1 : 2);
    }
    CHECK_EQ(stk_slab_pool_get_stats(pool).made, 4);
    for (int i = 0; i < 3; i++) stk_buffer_unref(&b[i]);
    stk_slab_pool_unref(&pool);

    CHECK_EQ(stk_slab_pool_new(0, &pool), STK_OK);
    for (int i = 0; i < 2; i++) {
        b[0] = take(pool, 0);
        stk_buffer_unref(&b[0]);
        CHECK_EQ(stk_slab_pool_get_stats(pool).free_bytes, 0);
    }
    CHECK_EQ(stk_slab_pool_get_stats(pool).made, 2);
    stk_slab_pool_unref(&pool);
}

static void slabs_outlive_the_pool(void)
{
    stk_slab_pool *pool;
    CHECK_EQ(stk_slab_pool_new(2, &pool), STK_OK);
    stk_buffer *a = take(pool, 5000), *b = take(pool, 5000), *c = take(pool, 5000);
    stk_buffer_unref(&c);
    stk_slab_pool_unref(&pool);
    memset(stk_buffer_writable(a), 2, 5000);
    stk_buffer_unref(&a);
    stk_buffer_unref(&b);
}

static void many_owners(void)
{
    stk_slab_pool *pool, *again;
    CHECK_EQ(stk_slab_pool_new(2, &pool), STK_OK);
    again = stk_slab_pool_ref(pool);
    stk_slab_pool_unref(&pool);
    stk_buffer *a = take(again, 100);
    stk_buffer_unref(&a);
    a = take(again, 100);
    CHECK_EQ(stk_slab_pool_get_stats(again).reused, 1);
    stk_slab_pool_unref(&again);
    stk_buffer_unref(&a);
}

static void drained_pools_keep_nothing(void)
{
    stk_slab_pool *pool;
    CHECK_EQ(stk_slab_pool_new(2, &pool), STK_OK);
    stk_buffer *a = take(pool, 100), *b = take(pool, 100);
    stk_buffer_unref(&a);
    CHECK(stk_slab_pool_get_stats(pool).free_bytes > 0);
    stk_slab_pool_drain(pool);
    CHECK_EQ(stk_slab_pool_get_stats(pool).free_bytes, 0);
    stk_buffer_unref(&b);
    a = take(pool, 100);
    stk_buffer_unref(&a);
    CHECK_EQ(stk_slab_pool_get_stats(pool).free_bytes, 0);
    CHECK_EQ(stk_slab_pool_get_stats(pool).reused, 0);
    stk_slab_pool_unref(&pool);
}

static void after_fork(void)
{
    stk_slab_pool *pool;
    CHECK_EQ(stk_slab_pool_new(2, &pool), STK_OK);
    stk_buffer *a = take(pool, 100), *b;
    pid_t child = fork();
    if (child == 0) {
        CHECK_EQ(stk_slab_take(pool, 100, &b), STK_OK);
        memset(stk_buffer_writable(b), 2, stk_buffer_size(b));
        stk_buffer_unref(&b);
        CHECK_EQ(stk_buffer_data(a)[0], 1);
        stk_buffer_unref(&a);
        stk_slab_pool_unref(&pool);
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    stk_buffer_unref(&a);
    CHECK_EQ(stk_slab_pool_get_stats(pool).live_bytes, 0);
    stk_slab_pool_unref(&pool);
}

static void too_large(void)
{
    stk_slab_pool *pool;
    stk_buffer *b;
    CHECK_EQ(stk_slab_pool_new(1, &pool), STK_OK);
    CHECK_EQ(stk_slab_take(pool, SIZE_MAX, &b), STK_ENOMEM);
    CHECK(!b);
    CHECK_EQ(stk_slab_pool_get_stats(pool).live_bytes, 0);
    stk_slab_pool_unref(&pool);
}

static void out_of_memory(void)
{
    stk_err err;
    TORTURE (err) {
        stk_slab_pool *pool;
        stk_buffer *a = NULL, *b = NULL;
        err = stk_slab_pool_new(2, &pool);
        if (!err) err = stk_slab_take(pool, 100, &a);
        if (!err) err = stk_slab_take(pool, 100, &b);
        CHECK(err == STK_OK || (err == STK_ENOMEM && !b));
        stk_buffer_unref(&a);
        stk_slab_pool_unref(&pool);
        stk_buffer_unref(&b);
    }
}

struct share {
    stk_slab_pool *pool;
    unsigned seed;
    stk_buffer *kept;
};

/* Writes its own mark into each slab: another owner of the same one would be a race and a
 * wrong mark. */
static void *churn(void *arg)
{
    struct share *s = arg;
    unsigned x = s->seed;
    for (int i = 0; i < 2000; i++) {
        x = x * 1664525u + 1013904223u;
        const size_t size = 1 + (x >> 16) % 5000;
        stk_buffer *b;
        CHECK_EQ(stk_slab_take(s->pool, size, &b), STK_OK);
        memset(stk_buffer_writable(b), (int)s->seed, size);
        stk_buffer *other = stk_buffer_ref(b);
        stk_buffer_unref(&b);
        CHECK_EQ(stk_buffer_data(other)[size - 1], s->seed);
        if (i == 1999)
            s->kept = other;
        else
            stk_buffer_unref(&other);
    }
    return NULL;
}

static void *drop(void *arg)
{
    struct share *s = arg;
    CHECK_EQ(stk_buffer_data(s->kept)[0], s->seed);
    stk_buffer_unref(&s->kept);
    return NULL;
}

/* The pool is given up while other threads drop their slabs. */
static void threads(void)
{
    for (int round = 0; round < 10; round++) {
        stk_slab_pool *pool;
        CHECK_EQ(stk_slab_pool_new(3, &pool), STK_OK);
        struct share s[4];
        pthread_t t[4];
        for (unsigned i = 0; i < 4; i++) {
            s[i] = (struct share){.pool = pool, .seed = i + 1};
            pthread_create(&t[i], NULL, churn, &s[i]);
        }
        for (int i = 0; i < 4; i++) pthread_join(t[i], NULL);
        stk_slab_stats stats = stk_slab_pool_get_stats(pool);
        CHECK_EQ(stats.made + stats.reused, 8000);
        CHECK(stats.live_bytes > 0);
        for (int i = 0; i < 4; i++) pthread_create(&t[i], NULL, drop, &s[i]);
        stk_slab_pool_unref(&pool);
        for (int i = 0; i < 4; i++) pthread_join(t[i], NULL);
    }
}

TESTS(TEST(reuses), TEST(referred_to_is_not_reused), TEST(keeps_the_newest),
      TEST(slabs_outlive_the_pool), TEST(many_owners), TEST(drained_pools_keep_nothing),
      TEST(after_fork), TEST(too_large), TEST(out_of_memory), TEST(threads))
