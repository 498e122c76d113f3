#include "transform/mix.h"

#include <math.h>

#include "tests/check.h"

/* Every pair of bytes, by any share: within 1, and equal ones stay. */
static void bytes(void)
{
    uint8_t a[65536], b[65536], got[65536];
    for (size_t i = 0; i < sizeof(a); i++) a[i] = (uint8_t)i, b[i] = (uint8_t)(i >> 8);
    for (double share = 0; share <= 1; share += 0.03125 * 0.9) {
        stk_mix_bytes(share, a, b, got, sizeof(a));
        for (size_t i = 0; i < sizeof(a); i++) {
            CHECK(fabs(got[i] - share * a[i] - (1 - share) * b[i]) <= 0.53);
            CHECK(a[i] != b[i] || got[i] == a[i]);
        }
        stk_mix_bytes(share, a, b, a, sizeof(a)); /* in place */
        CHECK(!memcmp(a, got, sizeof(a)));
        for (size_t i = 0; i < sizeof(a); i++) a[i] = (uint8_t)i;
    }
}

static void floats(void)
{
    const float a[] = {1, -2, 1e10f}, b[] = {3, 4, 0};
    float got[3];
    stk_mix_floats(0.25, a, b, got, 3);
    CHECK(got[0] == 2.5f && got[1] == 2.5f && got[2] == 2.5e9f);
}

/* Two planes of 3 x 4 pixels of 2 bytes. */
static void boxes(void)
{
    const stk_planes p = {.count = 2, .height = 3, .width = 4, .unit = 2};
    uint8_t src[48], dst[48];
    for (int64_t y0 = 0; y0 <= 3; y0++)
        for (int64_t x0 = 0; x0 <= 4; x0++)
            for (int64_t y1 = 0; y1 <= 3; y1++)
                for (int64_t x1 = 0; x1 <= 4; x1++) {
                    memset(src, 1, sizeof(src));
                    memset(dst, 0, sizeof(dst));
                    stk_mix_box(&p, &(stk_box){x0, y0, x1, y1}, src, dst);
                    for (int64_t i = 0; i < 48; i++) {
                        const int64_t x = i / 2 % 4, y = i / 8 % 3;
                        CHECK_EQ(dst[i], x >= x0 && x < x1 && y >= y0 && y < y1);
                    }
                }
}

TESTS(TEST(bytes), TEST(floats), TEST(boxes))
