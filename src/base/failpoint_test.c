#include "base/failpoint.h"

#include <errno.h>
#include <stdatomic.h>

#include "base/thread.h"
#include "tests/check.h"

static void every_hit(void)
{
    CHECK(stk_failpoints_set("a=EIO"));
    for (int i = 0; i < 3; i++) {
        errno = 0;
        CHECK(stk_failpoint("a"));
        CHECK_EQ(errno, EIO);
    }
    CHECK(!stk_failpoint("ab"));
    CHECK(!stk_failpoint(""));
    CHECK(stk_failpoints_set(NULL));
    CHECK(!stk_failpoint("a"));
}

static void counted_hits(void)
{
    CHECK(stk_failpoints_set("a=ENOENT@2;b=EMFILE@2+"));
    const bool a[] = {false, true, false, false}, b[] = {false, true, true, true};
    for (int i = 0; i < 4; i++) {
        CHECK_EQ(stk_failpoint("a"), a[i]);
        CHECK_EQ(stk_failpoint("b"), b[i]);
        if (b[i]) CHECK_EQ(errno, EMFILE);
    }
    CHECK(stk_failpoints_set(""));
    CHECK(!stk_failpoint("b"));
}

static void all_names(void)
{
    CHECK(stk_failpoints_set("a=EACCES;b=ENOMEM;c=ENOSPC;d=EAGAIN"));
    CHECK(stk_failpoint("a") && errno == EACCES);
    CHECK(stk_failpoint("b") && errno == ENOMEM);
    CHECK(stk_failpoint("c") && errno == ENOSPC);
    CHECK(stk_failpoint("d") && errno == EAGAIN);
    CHECK(stk_failpoints_set(NULL));
}

static void bad_text(void)
{
    static const char *const bad[] = {"a",       "=EIO",    "a=",       "a=EWHAT",  "a=EIO@",
                                      "a=EIO@0", "a=EIO@x", "a=EIO@1-", "a=EIO@2++"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) CHECK(!stk_failpoints_set(bad[i]));
    CHECK(!stk_failpoints_set("an.incredibly.long.name.that.does.not.fit.into.a.point=EIO"));
    CHECK(stk_failpoints_set("x=EIO;x=EIO;x=EIO;x=EIO;x=EIO;x=EIO;x=EIO;x=EIO;"
                             "x=EIO;x=EIO;x=EIO;x=EIO;x=EIO;x=EIO;x=EIO;x=EIO"));
    CHECK(!stk_failpoints_set("x=EIO;x=EIO;x=EIO;x=EIO;x=EIO;x=EIO;x=EIO;x=EIO;"
                              "x=EIO;x=EIO;x=EIO;x=EIO;x=EIO;x=EIO;x=EIO;x=EIO;x=EIO"));
    CHECK(stk_failpoints_set(NULL));
}

static atomic_int passed;

static void *visitor(void *arg)
{
    CHECK(!stk_failpoint(arg)); /* let go: not a failure */
    atomic_fetch_add(&passed, 1);
    return NULL;
}

static void holds(void)
{
    CHECK(stk_failpoints_set("gate=hold"));
    stk_thread t[2] = {0};
    for (int i = 0; i < 2; i++) CHECK_EQ(stk_thread_start(&t[i], "visitor", visitor, "gate"), 0);
    stk_failpoint_await("gate");
    CHECK_EQ(passed, 0);
    CHECK(stk_failpoints_set(NULL));
    for (int i = 0; i < 2; i++) stk_thread_join(&t[i]);
    CHECK_EQ(passed, 2);
}

TESTS(TEST(every_hit), TEST(counted_hits), TEST(all_names), TEST(bad_text), TEST(holds))
