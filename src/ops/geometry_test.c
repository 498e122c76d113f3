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
        CHECK(!memcmp(&g, &again, sizeof(g)));
        const double w = g.box_width, h = g.box_height;
        CHECK(g.x >= 0 && g.y >= 0 && g.x + w <= W && g.y + h <= H && w >= 1 && h >= 1);
        CHECK(w * h > 0.079 * W * H && w / h > 0.74 && w / h < 1.35);
        CHECK(g.full_width == 224 && g.full_height == 224 && g.left == 0 && g.top == 0);
        area += w * h / (W * H), log_ratio += log(w / h);
        x += (g.x + w / 2) / W, y += (g.y + h / 2) / H;
        flips += g.mirror;
    }
    CHECK(fabs(x / N - 0.5) < 0.01 && fabs(y / N - 0.5) < 0.01);
    CHECK(fabs((double)flips / N - 0.25) < 0.015);
    /* The means of 200,000 boxes of torchvision's algorithm for this size; large squares do not
     * fit, so both are off those of the bare distribution. */
    CHECK(fabs(area / N - 0.4323) < 0.007 && fabs(log_ratio / N - 0.0307) < 0.005);
}

static void check_box(const stk_geometry *g, int x, int y, int width, int height)
{
    CHECK_EQ(g->x, x);
    CHECK_EQ(g->y, y);
    CHECK_EQ(g->box_width, width);
    CHECK_EQ(g->box_height, height);
}

static void falls_back_to_the_middle(void)
{
    const stk_image_opts o = checked((stk_image_opts){
        .width = 8, .height = 8, .crop = STK_CROP_RANDOM_RESIZED, .scale = {0.9, 1}});
    uint32_t seed = 1;
    stk_geometry g;
    stk_geometry_draw(&o, 1000, 10, draw, &seed, &g);
    check_box(&g, 493, 0, 13, 10); /* 13 = round(10 * 4 / 3) */
    stk_geometry_draw(&o, 10, 1000, draw, &seed, &g);
    check_box(&g, 0, 493, 10, 13);
    stk_geometry_draw(&o, 1, 1, draw, &seed, &g);
    check_box(&g, 0, 0, 1, 1);
}

static void center(void)
{
    const stk_image_opts o =
        checked((stk_image_opts){.width = 224, .height = 224, .crop = STK_CROP_CENTER});
    stk_geometry g;
    stk_geometry_draw(&o, 500, 375, NULL, NULL, &g);
    /* 375 becomes 256, 500 becomes 341 (of 341.33); cut at 58 (of 58.5, to even) and 16 */
    check_box(&g, 0, 0, 500, 375);
    CHECK(g.full_width == 341 && g.full_height == 256 && g.left == 58 && g.top == 16);
    CHECK(!g.mirror && g.width == 224 && g.height == 224);

    stk_placement p;
    stk_geometry_place(&g, 1, 500, 375, &p);
    const stk_rect r = stk_placement_rect(&p, 2, false);
    CHECK_EQ(r.x, (int)floor((58 - 2) * 500.0 / 341 - 1));
    CHECK_EQ(r.x + r.width, (int)ceil((58 + 224 + 2) * 500.0 / 341 + 1));
    stk_geometry_draw(&o, 10, 60000, NULL, NULL, &g);
    CHECK(g.full_width == 256 && g.full_height == 256 * 6000 && g.top == 767888);
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
    for (int n = 0; n < 32; n++) {
        const int orientation = 1 + n % 8;
        stk_geometry g = {.x = 1, .y = 2, .box_width = 3, .box_height = 2};
        if (n >= 16) /* the same pixels as a cut of the whole */
            g = (stk_geometry){.box_width = orientation < 5 ? STORED_W : STORED_H,
                               .box_height = orientation < 5 ? STORED_H : STORED_W,
                               .left = 1,
                               .top = 2};
        g.full_width = g.box_width, g.full_height = g.box_height;
        g.width = 3, g.height = 2;
        g.mirror = n % 16 >= 8;
        stk_placement p;
        stk_geometry_place(&g, orientation, STORED_W, STORED_H, &p);
        CHECK_EQ(p.from_right, STORED_W - 1 == seen(orientation, 0, 0) % 100);
        CHECK_EQ(p.from_bottom, STORED_H - 1 == seen(orientation, 0, 0) / 100);
        const int x0 = p.x + p.left, y0 = p.y + p.top;
        const stk_rect r = stk_placement_rect(&p, 0, n % 3 == 0);
        CHECK(r.x <= x0 && r.y <= y0 && r.x + r.width >= x0 + p.width);
        CHECK(r.y + r.height >= y0 + p.height && r.x >= p.x && r.width <= p.box_width);
        for (int y = 0; y < 2; y++) {
            for (int x = 0; x < 3; x++) {
                int col = p.transposed ? y : x, row = p.transposed ? x : y;
                if (p.mirror) col = p.width - 1 - col;
                if (p.upside_down) row = p.height - 1 - row;
                CHECK_EQ(x0 + col + 100 * (y0 + row),
                         seen(orientation, g.mirror ? 3 - x : 1 + x, 2 + y));
            }
        }
    }
}

TESTS(TEST(options), TEST(random_boxes), TEST(falls_back_to_the_middle), TEST(center),
      TEST(orientations))
