#include "codec/limits.h"

#include "tests/check.h"

static stk_err check(const stk_image_limits *limits, int64_t width, int64_t height, stk_diag *diag)
{
    return stk_image_limits_check(limits, "PNG", width, height, diag);
}

static void sides(void)
{
    const stk_image_limits limits = {.max_pixels = INT64_MAX, .max_side = 100};
    stk_diag diag = {0};
    CHECK_EQ(check(&limits, 100, 100, &diag), STK_OK);
    CHECK_EQ(check(&limits, 100, 101, &diag), STK_ELIMIT);
    CHECK(!strcmp(diag.text, "PNG of 100 x 101 pixels: a side is over the limit of 100"));
    CHECK_EQ(check(&limits, 101, 1, &diag), STK_ELIMIT);
    CHECK(strstr(diag.text, "101 x 1 pixels"));
    CHECK_EQ(check(&limits, INT64_MAX, INT64_MAX, NULL), STK_ELIMIT);
    CHECK_EQ(check(&limits, 1, UINT32_MAX, NULL), STK_ELIMIT);
}

static void pixels(void)
{
    const stk_image_limits limits = {.max_pixels = 1000, .max_side = INT32_MAX};
    stk_diag diag = {0};
    CHECK_EQ(check(&limits, 1000, 1, &diag), STK_OK);
    CHECK_EQ(check(&limits, 1, 1000, &diag), STK_OK);
    CHECK_EQ(check(&limits, 31, 32, &diag), STK_OK);     /* 992 */
    CHECK_EQ(check(&limits, 40, 25, &diag), STK_OK);     /* 1000 */
    CHECK_EQ(check(&limits, 7, 143, &diag), STK_ELIMIT); /* 1001 */
    CHECK(!strcmp(diag.text, "PNG of 7 x 143 pixels: over the limit of 1000"));
    CHECK_EQ(check(&limits, 1001, 1, &diag), STK_ELIMIT);
    CHECK_EQ(check(&limits, 0, 0, &diag), STK_OK); /* what is empty is for others to refuse */
    CHECK_EQ(check(&limits, 5, 0, &diag), STK_OK);
}

/* Products beyond 64 bits, of sides that a header can claim. */
static void products_do_not_overflow(void)
{
    const stk_image_limits limits = {.max_pixels = INT64_MAX, .max_side = INT32_MAX};
    CHECK_EQ(check(&limits, INT32_MAX, INT32_MAX, NULL), STK_OK); /* below 2^62 */
    const stk_image_limits few = {.max_pixels = 1, .max_side = INT32_MAX};
    CHECK_EQ(check(&few, INT32_MAX, INT32_MAX, NULL), STK_ELIMIT);
    CHECK_EQ(check(&few, 2, 1, NULL), STK_ELIMIT);
    CHECK_EQ(check(&few, 1, 1, NULL), STK_OK);
}

TESTS(TEST(sides), TEST(pixels), TEST(products_do_not_overflow))
