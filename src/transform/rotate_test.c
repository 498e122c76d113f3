#include "transform/rotate.h"

#include <math.h>

#include "tests/check.h"

enum { MOST = 60 * 60 * 3 };

static void fill(uint8_t *p, size_t n, uint32_t seed)
{
    for (size_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        p[i] = (uint8_t)(seed >> 24);
    }
}

static double at(const stk_raster *r, double y, double x, int c, uint8_t beyond)
{
    if (y < 0 || x < 0 || y >= r->height || x >= r->width) return beyond;
    return r->data[((size_t)y * (size_t)r->width + (size_t)x) * (size_t)r->channels + (size_t)c];
}

/* Bilinear, in real numbers. */
static double mixed(const stk_raster *r, double y, double x, int c, uint8_t beyond)
{
    const double left = floor(x - 0.5), top = floor(y - 0.5);
    const double right = x - 0.5 - left, down = y - 0.5 - top;
    const double above =
        at(r, top, left, c, beyond) * (1 - right) + at(r, top, left + 1, c, beyond) * right;
    const double below =
        at(r, top + 1, left, c, beyond) * (1 - right) + at(r, top + 1, left + 1, c, beyond) * right;
    return above * (1 - down) + below * down;
}

static void check(const stk_rotate *r, const stk_raster *src, const stk_raster *dst)
{
    const double angle = r->degrees * 3.14159265358979323846 / 180;
    stk_rotate_run(r, src, dst);
    size_t wrong = 0;
    for (int32_t y = 0; y < dst->height; y++)
        for (int32_t x = 0; x < dst->width; x++) {
            const double dx = x + 0.5 - r->to_x, dy = y + 0.5 - r->to_y;
            const double sx = cos(angle) * dx - sin(angle) * dy + r->x;
            const double sy = sin(angle) * dx + cos(angle) * dy + r->y;
            for (int c = 0; c < dst->channels; c++) {
                const double got = at(dst, y, x, c, 0);
                const double want = r->bilinear ? mixed(src, sy, sx, c, r->fill[c])
                                                : at(src, floor(sy), floor(sx), c, r->fill[c]);
                if (r->bilinear) CHECK(fabs(got - want) <= 1);
                wrong += !r->bilinear && fabs(got - want) > 0;
            }
        }
    /* Centres that fall between two pixels, but for rounding, may be either. */
    CHECK(wrong * 100 <= (size_t)(dst->width * dst->height * dst->channels));
}

static void every_angle(void)
{
    static const int32_t sizes[][2] = {{1, 1}, {1, 20}, {17, 1}, {20, 31}, {33, 33}};
    static const uint8_t colour[] = {10, 200, 90};
    uint8_t from[MOST], to[MOST];
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        for (double degrees = -400; degrees < 400; degrees += 17.3)
            for (int kind = 0; kind < 4; kind++)
                for (int32_t c = 1; c <= 3; c++) {
                    const stk_raster src = {from, 1, sizes[i][0], sizes[i][1], c};
                    stk_raster dst = src;
                    dst.data = to;
                    fill(from, stk_raster_frame(&src), 7);
                    stk_rotate r = {.degrees = degrees,
                                    .x = kind & 1 ? 3.7 : src.width / 2.0,
                                    .y = kind & 1 ? -2.2 : src.height / 2.0,
                                    .bilinear = kind & 2,
                                    .fill = colour};
                    r.to_x = r.x, r.to_y = r.y;
                    check(&r, &src, &dst);
                }
}

/* Quarters only move pixels, whatever the filter, and expanded ones all of them. */
static void quarters(void)
{
    enum { H = 7, W = 4 };
    static const uint8_t none[3];
    uint8_t from[H * W * 3], to[H * W * 3];
    const stk_raster src = {from, 1, H, W, 3};
    fill(from, sizeof(from), 1);
    for (int quarter = -8; quarter <= 8; quarter++)
        for (int bilinear = 0; bilinear < 2; bilinear++) {
            double width, height;
            stk_rotate_extent(90 * quarter, W, H, &width, &height);
            const bool upright = quarter % 2 == 0;
            CHECK(width == (upright ? W : H) && height == (upright ? H : W));
            const stk_raster dst = {to, 1, (int32_t)height, (int32_t)width, 3};
            const stk_rotate r = {.degrees = 90 * quarter,
                                  .x = W / 2.0,
                                  .y = H / 2.0,
                                  .to_x = width / 2,
                                  .to_y = height / 2,
                                  .bilinear = bilinear,
                                  .fill = none};
            stk_rotate_run(&r, &src, &dst);
            for (int y = 0; y < H; y++)
                for (int x = 0; x < W; x++) {
                    int at_y = y, at_x = x; /* counter-clockwise: the right edge becomes the top */
                    if ((quarter & 3) == 1) at_y = W - 1 - x, at_x = y;
                    if ((quarter & 3) == 2) at_y = H - 1 - y, at_x = W - 1 - x;
                    if ((quarter & 3) == 3) at_y = x, at_x = H - 1 - y;
                    CHECK(!memcmp(from + (y * W + x) * 3, to + (at_y * dst.width + at_x) * 3, 3));
                }
        }
}

static void extents(void)
{
    static const struct {
        double degrees;
        int32_t from[2], to[2];
    } pillow[] = {
        {45, {10, 10}, {16, 16}}, {30, {100, 1}, {88, 51}},  {60, {7, 4}, {7, 10}},
        {30, {64, 48}, {80, 74}}, {-33, {60, 40}, {74, 68}}, {45, {1, 1}, {3, 3}},
        {90, {7, 4}, {4, 7}},     {-450, {7, 4}, {4, 7}},    {90.0000001, {7, 4}, {5, 8}},
        {540, {7, 4}, {7, 4}},    {1e-15, {7, 4}, {7, 4}},   {1e-9, {100, 50}, {102, 52}},
    };
    for (size_t i = 0; i < sizeof(pillow) / sizeof(pillow[0]); i++) {
        double width, height;
        stk_rotate_extent(pillow[i].degrees, pillow[i].from[0], pillow[i].from[1], &width, &height);
        CHECK(width == pillow[i].to[0] && height == pillow[i].to[1]);
    }
}

TESTS(TEST(every_angle), TEST(quarters), TEST(extents))
