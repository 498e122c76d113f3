#include "transform/border.h"

#include "tests/check.h"

/* By walking there and back. */
static int32_t walked(stk_pad_mode mode, int64_t i, int32_t n)
{
    int32_t at = i < 0 ? 0 : n - 1, step = i < 0 ? 1 : -1;
    bool fresh = mode == STK_PAD_SYMMETRIC; /* the pixel at the mirror is there again */
    for (int64_t left = i < 0 ? -i : i - n + 1; left > 0; left--) {
        if (n == 1) return 0;
        if (fresh) {
            fresh = false;
            continue;
        }
        at += step;
        if (at == 0 || at == n - 1) step = -step, fresh = mode == STK_PAD_SYMMETRIC;
    }
    return at;
}

static void every_index(void)
{
    for (int32_t n = 1; n < 7; n++)
        for (int64_t i = -40; i < 40; i++) {
            const bool inside = i >= 0 && i < n;
            CHECK_EQ(stk_border_index(STK_PAD_EDGE, i, n), inside ? i : i < 0 ? 0 : n - 1);
            for (int mode = STK_PAD_REFLECT; mode <= STK_PAD_SYMMETRIC; mode++)
                CHECK_EQ(stk_border_index((stk_pad_mode)mode, i, n),
                         inside ? i : walked((stk_pad_mode)mode, i, n));
        }
    CHECK_EQ(stk_border_index(STK_PAD_REFLECT, INT32_MAX + INT64_C(5), INT32_MAX), INT32_MAX - 7);
}

TESTS(TEST(every_index))
