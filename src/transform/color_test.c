#include "transform/color.h"

#include <math.h>
#include <stdlib.h>

#include "tests/check.h"

/* libjpeg's formula, rounded: all 2^24 colours are within 1. */
static void ycc_is_jfif(void)
{
    uint8_t src[256 * 3], dst[256 * 3];
    for (int y = 0; y < 256; y++)
        for (int cb = 0; cb < 256; cb++) {
            for (int cr = 0; cr < 256; cr++) {
                src[3 * cr] = (uint8_t)y;
                src[3 * cr + 1] = (uint8_t)cb;
                src[3 * cr + 2] = (uint8_t)cr;
            }
            stk_color_ycc_to_rgb(src, dst, 256);
            for (int cr = 0; cr < 256; cr++) {
                const double b = cb - 128, r = cr - 128;
                const double want[3] = {y + 1.402 * r, y - 0.344136286 * b - 0.714136286 * r,
                                        y + 1.772 * b};
                for (int c = 0; c < 3; c++) {
                    const double v = want[c] < 0 ? 0 : want[c] > 255 ? 255 : want[c];
                    CHECK(fabs(dst[3 * cr + c] - v) < 0.55);
                }
            }
        }
}

/* Three planes become the same as one row, however long. */
static void planes_are_the_same(void)
{
    uint8_t y[100], cb[100], cr[100], row[300], want[300], got[301];
    const uint8_t *const planes[3] = {y, cb, cr};
    for (int i = 0; i < 100; i++) {
        row[3 * i] = y[i] = (uint8_t)(i * 37);
        row[3 * i + 1] = cb[i] = (uint8_t)(i * 91 + 5);
        row[3 * i + 2] = cr[i] = (uint8_t)(i * 171 + 11);
    }
    for (int n = 0; n <= 100; n++) {
        got[3 * n] = 0xA7;
        stk_color_ycc_to_rgb(row, want, n);
        stk_color_planes_to_rgb(planes, got, n);
        CHECK(!memcmp(got, want, (size_t)n * 3));
        CHECK_EQ(got[3 * n], 0xA7);
    }
}

static void grey_has_no_colour(void)
{
    uint8_t grey[256], rgb[256 * 3], back[256];
    for (int i = 0; i < 256; i++) grey[i] = (uint8_t)i;
    stk_color_gray_to_rgb(grey, rgb, 256);
    for (int i = 0; i < 256 * 3; i++) CHECK_EQ(rgb[i], i / 3);
    stk_color_rgb_to_gray(rgb, back, 256);
    CHECK(!memcmp(grey, back, sizeof(grey)));
    const uint8_t primaries[9] = {255, 0, 0, 0, 255, 0, 0, 0, 255};
    stk_color_rgb_to_gray(primaries, back, 3);
    CHECK(back[0] == 76 && back[1] == 150 && back[2] == 29); /* as Pillow's convert("L") */
}

static void cmyk_is_ink_on_paper(void)
{
    uint8_t cmyk[4], rgb[3], inverted[4], same[3];
    for (int ink = 0; ink < 256; ink++)
        for (int black = 0; black < 256; black++) {
            cmyk[0] = (uint8_t)ink;
            cmyk[1] = 0;
            cmyk[2] = 255;
            cmyk[3] = (uint8_t)black;
            for (int i = 0; i < 4; i++) inverted[i] = (uint8_t)(255 - cmyk[i]);
            stk_color_cmyk_to_rgb(cmyk, rgb, 1, false);
            stk_color_cmyk_to_rgb(inverted, same, 1, true);
            CHECK(!memcmp(rgb, same, 3));
            CHECK(fabs(rgb[0] - (255 - ink) * (255 - black) / 255.0) <= 0.5);
            CHECK(rgb[1] == 255 - black && rgb[2] == 0);
        }
    stk_color_cmyk_to_rgb(cmyk, cmyk, 1, false); /* where it is: pixels shrink */
    CHECK(!memcmp(cmyk, rgb, 3));
}

static void mirrors(void)
{
    for (int channels = 1; channels <= 4; channels++)
        for (int n = 0; n < 9; n++) {
            uint8_t row[40];
            for (int i = 0; i < 40; i++) row[i] = (uint8_t)i;
            stk_color_mirror(row, n, channels);
            for (int i = 0; i < 40; i++) {
                const int x = i / channels;
                CHECK_EQ(row[i], x < n ? (n - 1 - x) * channels + i % channels : i);
            }
        }
}

TESTS(TEST(ycc_is_jfif), TEST(planes_are_the_same), TEST(grey_has_no_colour),
      TEST(cmyk_is_ink_on_paper), TEST(mirrors))
