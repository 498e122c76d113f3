#include <stoker/error.h>

#include <errno.h>

#include "tests/check.h"

static void texts(void)
{
    CHECK(!strcmp(stk_err_str(STK_OK), "success"));
#define X(name, value, text)     \
    CHECK_EQ(STK_##name, value); \
    CHECK(!strcmp(stk_err_str(STK_##name), text));
    STK_ERR_MAP(X)
#undef X
    CHECK(!strcmp(stk_err_str((stk_err)-9999), "unknown error"));
    CHECK(!strcmp(stk_err_str((stk_err)1), "unknown error"));
}

static void sets(void)
{
    stk_diag d = {.os_error = 5};
    CHECK_EQ(stk_diag_set(&d, STK_ECORRUPT, "%s: bad magic %d", "x.png", 7), STK_ECORRUPT);
    CHECK_EQ(d.err, STK_ECORRUPT);
    CHECK_EQ(d.os_error, 0);
    CHECK(!strcmp(d.text, "x.png: bad magic 7"));
    CHECK_EQ(stk_diag_set(NULL, STK_EINVAL, "nobody reads this"), STK_EINVAL);
}

static void errnos(void)
{
    stk_diag d;
    CHECK_EQ(stk_diag_errno(&d, ENOENT, "open %s", "a"), STK_ENOTFOUND);
    CHECK_EQ(d.err, STK_ENOTFOUND);
    CHECK_EQ(d.os_error, ENOENT);
    CHECK(!strcmp(d.text, "open a: No such file or directory"));
    CHECK_EQ(stk_diag_errno(&d, ENOTDIR, "open"), STK_ENOTFOUND);
    CHECK_EQ(stk_diag_errno(&d, ENOMEM, "open"), STK_ENOMEM);
    CHECK_EQ(stk_diag_errno(&d, EACCES, "open"), STK_EIO);
    CHECK(strstr(d.text, "Permission denied"));
    CHECK_EQ(stk_diag_errno(NULL, EACCES, "open"), STK_EIO);
}

static void prefixes(void)
{
    stk_diag d;
    CHECK_EQ(stk_diag_errno(&d, EIO, "read"), STK_EIO);
    stk_diag_prefix(&d, "sample %d", 812);
    CHECK(!strcmp(d.text, "sample 812: read: Input/output error"));
    CHECK_EQ(d.err, STK_EIO);
    CHECK_EQ(d.os_error, EIO);
    stk_diag_prefix(NULL, "nobody");
}

/* Too long is cut, at whatever length of the parts, and always ends. */
static void cuts(void)
{
    stk_diag d;
    char longer[sizeof(d.text) + 100];
    memset(longer, 'x', sizeof(longer));
    for (int n = (int)sizeof(d.text) / 2; n < (int)sizeof(longer); n++) {
        CHECK_EQ(stk_diag_set(&d, STK_EIO, "%.*s", n, longer), STK_EIO);
        CHECK_EQ(strlen(d.text), n < (int)sizeof(d.text) ? n : (int)sizeof(d.text) - 1);
        CHECK_EQ(stk_diag_errno(&d, EIO, "%.*s", n, longer), STK_EIO);
        CHECK(strlen(d.text) < sizeof(d.text));
        stk_diag_prefix(&d, "%.*s", n, longer);
        CHECK_EQ(strlen(d.text), sizeof(d.text) - 1);
    }
}

TESTS(TEST(texts), TEST(sets), TEST(errnos), TEST(prefixes), TEST(cuts))
