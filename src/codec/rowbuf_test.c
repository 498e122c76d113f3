#include "codec/rowbuf.h"

#include "base/alloc.h"
#include "tests/check.h"

static void grows_and_stays(void)
{
    stk_rowbuf buf = {0};
    CHECK_EQ(stk_rowbuf_reserve(&buf, 0), STK_OK);
    CHECK(!buf.data);
    CHECK_EQ(stk_rowbuf_reserve(&buf, 100), STK_OK);
    CHECK(buf.data && buf.size >= 100 && (uintptr_t)buf.data % 64 == 0);
    memset(buf.data, 1, buf.size);
    uint8_t *data = buf.data;
    CHECK_EQ(stk_rowbuf_reserve(&buf, 1), STK_OK);
    CHECK_EQ(stk_rowbuf_reserve(&buf, 100), STK_OK);
    CHECK(buf.data == data);
    CHECK_EQ(stk_rowbuf_reserve(&buf, 100000), STK_OK);
    CHECK(buf.size >= 100000 && (uintptr_t)buf.data % 64 == 0);
    memset(buf.data, 2, buf.size);
    stk_rowbuf_fini(&buf);
    CHECK(!buf.data && !buf.size);
    stk_rowbuf_fini(&buf);
}

static void keeps_only_what_is_small(void)
{
    stk_rowbuf buf = {0};
    stk_rowbuf_trim(&buf);
    CHECK_EQ(stk_rowbuf_reserve(&buf, STK_ROWBUF_KEEP), STK_OK);
    stk_rowbuf_trim(&buf);
    CHECK_EQ(buf.size, STK_ROWBUF_KEEP);
    CHECK_EQ(stk_rowbuf_reserve(&buf, STK_ROWBUF_KEEP + 1), STK_OK);
    stk_rowbuf_trim(&buf);
    CHECK(!buf.data && !buf.size);
}

static void no_memory(void)
{
    stk_err err = STK_OK;
    TORTURE (err) {
        stk_rowbuf buf = {0};
        err = stk_rowbuf_reserve(&buf, 10);
        if (!err) err = stk_rowbuf_reserve(&buf, 1000);
        CHECK(!err || (err == STK_ENOMEM && !buf.data && !buf.size));
        if (err) CHECK_EQ(stk_rowbuf_reserve(&buf, 10), STK_OK); /* nothing is held against it */
        stk_rowbuf_fini(&buf);
    }
}

/* As the definition says, rounded; and no colour leaves the range. */
static void luma_is_the_formula(void)
{
    for (int r = 0; r < 256; r += 3) {
        for (int g = 0; g < 256; g += 5) {
            for (int b = 0; b < 256; b += 15) {
                const uint8_t rgb[3] = {(uint8_t)r, (uint8_t)g, (uint8_t)b};
                const double luma = 0.299 * r + 0.587 * g + 0.114 * b;
                const double off = stk_gray_of(rgb) - luma;
                CHECK(off < 0.51 && off > -0.51);
            }
        }
    }
    for (int v = 0; v < 256; v++) /* the weights are 1 together */
        CHECK_EQ(stk_gray_of((const uint8_t[3]){(uint8_t)v, (uint8_t)v, (uint8_t)v}), v);
    CHECK_EQ(stk_gray_of((const uint8_t[3]){255, 0, 0}), 76);
    CHECK_EQ(stk_gray_of((const uint8_t[3]){0, 255, 0}), 150);
    CHECK_EQ(stk_gray_of((const uint8_t[3]){0, 0, 255}), 29);
}

static void rows_in_place(void)
{
    enum { COUNT = 37 };
    uint8_t rgb[COUNT * 3], want[COUNT];
    for (int i = 0; i < COUNT * 3; i++) rgb[i] = (uint8_t)(i * 71 + 13);
    stk_gray_row(rgb, COUNT, want);
    for (int i = 0; i < COUNT; i++) CHECK_EQ(want[i], stk_gray_of(rgb + 3 * i));
    stk_gray_row(rgb, COUNT, rgb);
    CHECK(!memcmp(rgb, want, COUNT));
    stk_gray_row(rgb, 0, rgb);
    CHECK(!memcmp(rgb, want, COUNT));
}

TESTS(TEST(grows_and_stays), TEST(keeps_only_what_is_small), TEST(no_memory),
      TEST(luma_is_the_formula), TEST(rows_in_place))
