#include <stoker/buffer.h>

#include <pthread.h>

#include "base/alloc.h"
#include "tests/check.h"

static void basics(void)
{
    stk_buffer *b, *s, *t;
    CHECK_EQ(stk_buffer_new(100, &b), STK_OK);
    CHECK_EQ((uintptr_t)stk_buffer_data(b) % STK_BUFFER_ALIGN, 0);
    memset(stk_buffer_writable(b), 7, 100);
    CHECK_EQ(stk_buffer_slice(b, 90, 10, &s), STK_OK);
    CHECK(stk_buffer_writable(b) == NULL);
    CHECK_EQ(stk_buffer_slice(b, 91, 10, &t), STK_EINVAL);
    CHECK_EQ(stk_buffer_slice(b, SIZE_MAX, 10, &t), STK_EINVAL);
    CHECK(t == NULL);
    stk_buffer_unref(&b);
    CHECK(b == NULL);
    CHECK_EQ(stk_buffer_data(s)[9], 7);
    stk_buffer_unref(&s);
    stk_buffer_unref(&s);
}

static int released;
static void on_release(void *data, size_t size, void *ctx)
{
    (void)data, (void)ctx;
    CHECK_EQ(size, 3);
    released++;
}

static void wraps(void)
{
    static char bytes[] = "abc";
    stk_buffer *b, *s;
    CHECK_EQ(stk_buffer_wrap(bytes, 3, on_release, NULL, &b), STK_OK);
    CHECK_EQ(stk_buffer_slice(b, 1, 1, &s), STK_OK);
    stk_buffer_unref(&b);
    CHECK_EQ(released, 0);
    stk_buffer_unref(&s);
    CHECK_EQ(released, 1);
}

static void deep_slices_do_not_recurse(void)
{
    stk_buffer *b, *s;
    CHECK_EQ(stk_buffer_new(1, &b), STK_OK);
    for (int i = 0; i < 200000; i++) {
        CHECK_EQ(stk_buffer_slice(b, 0, 1, &s), STK_OK);
        stk_buffer_unref(&b);
        b = s;
    }
    stk_buffer_unref(&b);
}

static void *share(void *arg)
{
    stk_buffer *b = arg;
    int sum = 0;
    for (int i = 0; i < 1000; i++) {
        stk_buffer *r = stk_buffer_ref(b);
        sum += stk_buffer_data(r)[i % 64];
        stk_buffer_unref(&r);
    }
    stk_buffer_unref(&b);
    return (void *)(intptr_t)sum;
}

static void many_owners(void)
{
    for (int round = 0; round < 50; round++) {
        stk_buffer *b;
        CHECK_EQ(stk_buffer_new(64, &b), STK_OK);
        memset(stk_buffer_writable(b), 1, 64);
        pthread_t t[4];
        for (int i = 0; i < 4; i++) pthread_create(&t[i], NULL, share, stk_buffer_ref(b));
        stk_buffer_unref(&b);
        for (int i = 0; i < 4; i++) {
            void *sum;
            pthread_join(t[i], &sum);
            CHECK_EQ((intptr_t)sum, 1000);
        }
    }
}

static void out_of_memory(void)
{
    stk_err err;
    TORTURE (err) {
        stk_buffer *b, *s = NULL, *w = NULL;
        err = stk_buffer_new(10, &b);
        if (!err) err = stk_buffer_slice(b, 2, 3, &s);
        if (!err) err = stk_buffer_wrap("abc", 3, NULL, NULL, &w);
        CHECK(err == STK_OK || err == STK_ENOMEM);
        CHECK(err == STK_OK || !w);
        stk_buffer_unref(&w);
        stk_buffer_unref(&s);
        stk_buffer_unref(&b);
    }
    stk_buffer *b;
    CHECK_EQ(stk_buffer_new(SIZE_MAX - 8, &b), STK_ENOMEM);
    CHECK(!b);
}

TESTS(TEST(basics), TEST(wraps), TEST(deep_slices_do_not_recurse), TEST(many_owners),
      TEST(out_of_memory))
