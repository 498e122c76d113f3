#include "ops/geometry.h"

#include <math.h>

#include "base/rng.h"
#include "tests/check.h"

static void draw(void *ctx, uint32_t n, uint32_t out[4])
{
    const uint32_t key[2] = {*(uint32_t *)ctx, 0}, counter[4] = {n, 0, 0, 0};
    stk_philox(key, counter, out);
}

static stk_image_opts checked(stk_image_opts o)
{
    stk_image_opts out;
    stk_diag diag;
    CHECK_EQ(stk_image_opts_check(&o, &out, &diag), STK_OK);
    return out;
}

static void check_refused(stk_image_opts o)
{
    stk_image_opts out;
    stk_diag diag = {0};
    CHECK_EQ(stk_image_opts_check(&o, &out, &diag), STK_EINVAL);
    CHECK(diag.err == STK_EINVAL && diag.text[0]);
}

static void options(void)
{
    stk_image_opts o = checked((stk_image_opts){0});
    CHECK(o.scale[0] == 0.08 && o.ratio[1] == 4.0 / 3 && o.max_side == 65500);
    o = checked((stk_image_opts){.width = 224, .height = 224, .crop = STK_CROP_CENTER});
    CHECK_EQ(o.resize, 256);
    o = checked((stk_image_opts){.width = 10, .height = 9, .crop = STK_CROP_CENTER, .resize = 10});
    CHECK_EQ(o.resize, 10);
    check_refused((stk_image_opts){.width = 5});
    check_refused((stk_image_opts){.width = -5, .height = -5});
    check_refused((stk_image_opts){.width = 70000, .height = 1});
    check_refused((stk_image_opts){.crop = STK_CROP_RANDOM_RESIZED});
    check_refused((stk_image_opts){.width = 9, .height = 9, .crop = STK_CROP_CENTER, .resize = 8});
    check_refused((stk_image_opts){.flip = 1.5});
    check_refused((stk_image_opts){.flip = NAN});
    check_refused((stk_image_opts){.scale = {0.5, 0.25}});
    check_refused((stk_image_opts){.scale = {-1, 1}});
    check_refused((stk_image_opts){.ratio = {1, INFINITY}});
    check_refused((stk_image_opts){.ratio = {NAN, 1}});
    check_refused((stk_image_opts){.max_side = -1});
    check_refused((stk_image_opts){.filter = (stk_filter)9});
}

/* Area and ratio are distributed as they should be, boxes lie inside, flips are fair. */
static void random_boxes(void)
{
    const stk_image_opts o = checked((stk_image_opts){
        .width = 224, .height = 224, .crop = STK_CROP_RANDOM_RESIZED, .flip = 0.25});
    enum { N = 20000, W = 500, H = 375 };
    double area = 0, log_ratio = 0, x = 0, y = 0;
    int flips = 0;
    for (uint32_t seed = 0; seed < N; seed++) {
        stk_geometry g, again;
        stk_geometry_draw(&o, W, H, draw, &seed, &g);
        stk_geometry_draw(&o, W, H, draw, &seed, &again);
        CHECK(g.x0 == again.x0 && g.y1 == again.y1 && g.mirror == again.mirror);
        const double w = g.x1 - g.x0, h = g.y1 - g.y0;
        CHECK(g.x0 >= 0 && g.y0 >= 0 && g.x1 <= W && g.y1 <= H && w >= 1 && h >= 1);
        CHECK(g.x0 == floor(g.x0) && g.x1 == floor(g.x1) && g.y0 == floor(g.y0));
        CHECK(w * h > 0.079 * W * H && w / h > 0.74 && w / h < 1.35);
        area += w * h / (W * H), log_ratio += log(w / h);
        x += (g.x0 + g.x1) / 2 / W, y += (g.y0 + g.y1) / 2 / H;
        flips += g.mirror;
    }
    CHECK(fabs(x / N - 0.5) < 0.01 && fabs(y / N - 0.5) < 0.01);
    CHECK(fabs((double)flips / N - 0.25) < 0.015);
    /* The means of 200,000 boxes of torchvision's algorithm for this size; large squares do not
     * fit, so both are off those of the bare distribution. */
    CHECK(fabs(area / N - 0.4323) < 0.007 && fabs(log_ratio / N - 0.0307) < 0.005);
}

static void falls_back_to_the_middle(void)
{
    const stk_image_opts o = checked((stk_image_opts){
        .width = 8, .height = 8, .crop = STK_CROP_RANDOM_RESIZED, .scale = {0.9, 1}});
    uint32_t seed = 1;
    stk_geometry g;
    stk_geometry_draw(&o, 1000, 10, draw, &seed, &g);
    CHECK(g.y0 == 0 && g.y1 == 10 && g.x0 == 493 && g.x1 == 506); /* 13 = round(10 * 4 / 3) */
    stk_geometry_draw(&o, 10, 1000, draw, &seed, &g);
    CHECK(g.x0 == 0 && g.x1 == 10 && g.y0 == 493 && g.y1 == 506);
    stk_geometry_draw(&o, 1, 1, draw, &seed, &g);
    CHECK(g.x0 == 0 && g.x1 == 1 && g.y0 == 0 && g.y1 == 1);
}

static void center(void)
{
    const stk_image_opts o =
        checked((stk_image_opts){.width = 224, .height = 224, .crop = STK_CROP_CENTER});
    stk_geometry g;
    stk_geometry_draw(&o, 500, 375, NULL, NULL, &g);
    /* 375 becomes 256, 500 becomes 341 (of 341.33); cut at 58 (of 58.5, to even) and 16 */
    CHECK(fabs(g.x0 - 58 * 500.0 / 341) < 1e-9 && fabs(g.x1 - 282 * 500.0 / 341) < 1e-9);
    CHECK(fabs(g.y0 - 16 * 375.0 / 256) < 1e-9 && fabs(g.y1 - 240 * 375.0 / 256) < 1e-9);
    CHECK(g.outside && !g.mirror && g.width == 224 && g.height == 224);

    stk_placement p;
    stk_geometry_place(&g, 1, 500, 375, &p);
    const stk_rect r = stk_placement_rect(&p, 2, 500, 375);
    CHECK_EQ(r.x, (int)floor(g.x0 - 2 * 500.0 / 341 - 1));
    CHECK_EQ(r.x + r.width, (int)ceil(g.x1 + 2 * 500.0 / 341 + 1));
}

enum { STORED_W = 7, STORED_H = 5 };

/* The stored pixel (column + 100 * row) that people see at (x, y). */
static int seen(int orientation, int x, int y)
{
    switch (orientation) {
    case 1: return x + 100 * y;
    case 2: return STORED_W - 1 - x + 100 * y;
    case 3: return STORED_W - 1 - x + 100 * (STORED_H - 1 - y);
    case 4: return x + 100 * (STORED_H - 1 - y);
    case 5: return y + 100 * x;
    case 6: return y + 100 * (STORED_H - 1 - x);
    case 7: return STORED_W - 1 - y + 100 * (STORED_H - 1 - x);
    default: return STORED_W - 1 - y + 100 * x;
    }
}

static void orientations(void)
{
    for (int n = 0; n < 16; n++) {
        const int orientation = 1 + n % 8;
        stk_geometry g = {.x0 = 1, .y0 = 2, .x1 = 4, .y1 = 4, .width = 3, .height = 2};
        g.mirror = n >= 8;
        stk_placement p;
        stk_geometry_place(&g, orientation, STORED_W, STORED_H, &p);
        const stk_rect r = stk_placement_rect(&p, 1, STORED_W, STORED_H);
        CHECK(r.x == p.x0 && r.y == p.y0 && r.width == p.width && r.height == p.height);
        for (int y = 0; y < 2; y++) {
            for (int x = 0; x < 3; x++) {
                int col = p.transposed ? y : x, row = p.transposed ? x : y;
                if (p.mirror) col = p.width - 1 - col;
                if (p.upside_down) row = p.height - 1 - row;
                CHECK_EQ(r.x + col + 100 * (r.y + row),
                         seen(orientation, g.mirror ? 3 - x : 1 + x, 2 + y));
            }
        }
    }
}

TESTS(TEST(options), TEST(random_boxes), TEST(falls_back_to_the_middle), TEST(center),
      TEST(orientations))
