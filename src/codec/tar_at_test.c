#include <stoker/tar.h>

#include "base/alloc.h"
#include "tests/tar_make.h"

static stk_err read_place(void *ctx, uint64_t offset, void *dst, size_t size, stk_diag *diag)
{
    (void)diag;
    size_t *total = ctx;
    CHECK(offset + size <= ar.size);
    memcpy(dst, ar.data + offset, size);
    *total += size;
    return STK_OK;
}

static void put_large(int n)
{
    ar.size = 0;
    for (int i = 0; i < n; i++) {
        put_header("large", '0', 12000);
        memset(ar.data + ar.size, 'x', 12288);
        ar.size += 12288;
    }
    put_end();
}

/* How many members there are, or what is wrong. */
static stk_err count(size_t *total, int *members)
{
    stk_tar *t;
    stk_tar_member m;
    stk_diag diag;
    stk_err err = stk_tar_at(read_place, total, ar.size, NULL, &t);
    for (*members = 0; !err;) {
        err = stk_tar_next(t, &m, &diag);
        *members += !err;
        if (err == STK_EAGAIN) err = stk_tar_fill(t, &diag);
    }
    stk_tar_free(&t);
    return err;
}

/* The data of members that nobody wants stays where it is. */
static void skipped_data_is_not_read(void)
{
    size_t total = 0;
    int members;
    put_large(4);
    CHECK_EQ(count(&total, &members), STK_EEND);
    CHECK_EQ(members, 4);
    CHECK(total <= (size_t)5 * 8192 && ar.size > total);
}

static void without_memory(void)
{
    stk_err err = STK_OK;
    put_large(2);
    TORTURE (err) {
        size_t total = 0;
        int members;
        err = count(&total, &members);
        if (err == STK_EEND) err = STK_OK;
    }
}

TESTS(TEST(skipped_data_is_not_read), TEST(without_memory))
