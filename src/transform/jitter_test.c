#include "transform/jitter.h"

#include <math.h>

#include "tests/check.h"

enum { MOST = 3 * 5000 };

static const stk_tile_kernels *kernels; /* that are tested */

static uint8_t noise(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return (uint8_t)(*state >> 24);
}

/* Colours of all kinds: noise, grays, and the corners of the cube. */
static void fill(uint8_t *p, size_t n, uint32_t seed)
{
    for (size_t i = 0; i < n; i++) p[i] = noise(&seed);
    for (size_t i = 0; i + 3 <= n && i < 300; i += 3)
        for (size_t c = 0; c < 3; c++)
            p[i + c] = i < 24 ? (uint8_t)(i / 3 >> c & 1 ? 255 : 0) : p[i];
}

static double clip(double v)
{
    return v < 0 ? 0 : v > 255 ? 255 : v;
}

static double luma_of(const uint8_t *p, int channels)
{
    return channels == 1 ? p[0] : 0.2989 * p[0] + 0.587 * p[1] + 0.114 * p[2];
}

/* HSV there and back, after Smith: "Color gamut transform pairs", SIGGRAPH 1978. */
static void turn(const uint8_t *p, double by, double out[3])
{
    const double r = p[0], g = p[1], b = p[2];
    const double v = fmax(r, fmax(g, b)), x = fmin(r, fmin(g, b)), c = v - x;
    double h = 0;
    if (c > 0) h = v == r ? (g - b) / c : v == g ? 2 + (b - r) / c : 4 + (r - g) / c;
    h = fmod(h + 6 * by + 12, 6);
    const int i = (int)h;
    const double f = h - i, up = x + c * f, down = v - c * f;
    const double table[6][3] = {{v, up, x},   {down, v, x}, {x, v, up},
                                {x, down, v}, {up, x, v},   {v, x, down}};
    memcpy(out, table[i], sizeof(table[i]));
}

/* One step by its formula. */
static void by_formula(stk_jitter_step s, const uint8_t *src, double *dst, size_t pixels,
                       int channels)
{
    double mean = 0;
    for (size_t i = 0; i < pixels; i++)
        mean += luma_of(src + i * (size_t)channels, channels) / (double)pixels;
    for (size_t i = 0; i < pixels; i++) {
        const uint8_t *p = src + i * (size_t)channels;
        double *out = dst + i * (size_t)channels;
        double other = s.kind == STK_JITTER_BRIGHTNESS ? 0
                       : s.kind == STK_JITTER_CONTRAST ? mean
                                                       : luma_of(p, channels);
        for (int c = 0; c < channels; c++) out[c] = clip(s.factor * p[c] + (1 - s.factor) * other);
        if (s.kind == STK_JITTER_HUE) turn(p, s.factor, out);
    }
}

static const int32_t sizes[][2] = {{1, 1}, {1, 7}, {3, 1}, {1, 511}, {1, 512}, {2, 300}, {50, 100}};

static void check_step(stk_jitter_step s, int32_t channels)
{
    uint8_t src[MOST], got[MOST];
    double want[MOST];
    for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
        const size_t pixels = (size_t)(sizes[k][0] * sizes[k][1]), n = pixels * (size_t)channels;
        fill(src, n, (uint32_t)k);
        memcpy(got, src, n);
        by_formula(s, src, want, pixels, channels);
        stk_jitter_run(kernels, &s, 1, &(stk_raster){got, 1, sizes[k][0], sizes[k][1], channels});
        for (size_t i = 0; i < n; i++) {
            if (fabs(got[i] - want[i]) > 1)
                fprintf(stderr, "kind %d, factor %g: %d, not %g\n", (int)s.kind, s.factor, got[i],
                        want[i]);
            CHECK(fabs(got[i] - want[i]) <= 1);
        }
    }
}

static void steps_are_their_formulas(void)
{
    static const double factors[] = {0,   0.001, 0.3,    0.5, 0.99, 1, 1.01, 1.4, 1.9999,
                                     2.0, 2.6,   3.9999, 4,   7.5,  8, 12.3, 16};
    for (size_t i = 0; i < sizeof(factors) / sizeof(factors[0]); i++)
        for (int32_t c = 1; c <= 3; c += 2) {
            check_step((stk_jitter_step){STK_JITTER_BRIGHTNESS, factors[i]}, c);
            check_step((stk_jitter_step){STK_JITTER_CONTRAST, factors[i]}, c);
            if (c == 3) check_step((stk_jitter_step){STK_JITTER_SATURATION, factors[i]}, c);
        }
    for (double turns = -1; turns <= 1; turns += 0.0625)
        check_step((stk_jitter_step){STK_JITTER_HUE, turns}, 3);
    check_step((stk_jitter_step){STK_JITTER_HUE, 1e-20}, 3);
    check_step((stk_jitter_step){STK_JITTER_HUE, -1e-20}, 3);
}

static void ones_change_nothing(void)
{
    uint8_t src[MOST], got[MOST];
    fill(src, MOST, 5);
    memcpy(got, src, MOST);
    const stk_jitter_step ones[] = {{STK_JITTER_CONTRAST, 1},
                                    {STK_JITTER_SATURATION, 1},
                                    {STK_JITTER_BRIGHTNESS, 1},
                                    {STK_JITTER_HUE, 0}};
    stk_jitter_run(kernels, ones, 4, &(stk_raster){got, 1, 50, 100, 3});
    CHECK(!memcmp(got, src, MOST));
    stk_jitter_run(kernels, ones, 0, &(stk_raster){got, 1, 50, 100, 3});
    CHECK(!memcmp(got, src, MOST));
}

/* Each step works on what the one before it made, also where they share a pass. */
static void steps_follow_each_other(void)
{
    const stk_jitter_step all[] = {{STK_JITTER_BRIGHTNESS, 1.2},
                                   {STK_JITTER_CONTRAST, 0.7},
                                   {STK_JITTER_SATURATION, 1.5},
                                   {STK_JITTER_HUE, 0.2}};
    uint8_t once[MOST], apart[MOST];
    for (int order = 0; order < 256; order++) {
        stk_jitter_step steps[4];
        for (int i = 0; i < 4; i++) steps[i] = all[order >> (2 * i) & 3];
        fill(once, MOST, 9);
        memcpy(apart, once, MOST);
        stk_jitter_run(kernels, steps, 4, &(stk_raster){once, 1, 50, 100, 3});
        for (int i = 0; i < 4; i++)
            stk_jitter_run(kernels, &steps[i], 1, &(stk_raster){apart, 1, 50, 100, 3});
        CHECK(!memcmp(once, apart, MOST));
    }
}

/* Contrast is about the mean of each frame. */
static void frames_are_pictures(void)
{
    const stk_jitter_step s = {STK_JITTER_CONTRAST, 0.2};
    uint8_t clip_of[MOST], one[MOST];
    fill(clip_of, MOST, 3);
    memset(clip_of + MOST / 5, 40, MOST / 5);
    memcpy(one, clip_of, MOST);
    stk_jitter_run(kernels, &s, 1, &(stk_raster){clip_of, 5, 10, 100, 3});
    for (size_t i = 0; i < 5; i++)
        stk_jitter_run(kernels, &s, 1, &(stk_raster){one + i * MOST / 5, 1, 10, 100, 3});
    CHECK(!memcmp(clip_of, one, MOST));
    CHECK_EQ(clip_of[MOST / 5], 40);
}

static void gray(void)
{
    uint8_t src[MOST], got[MOST];
    fill(src, MOST, 1);
    memcpy(got, src, MOST);
    stk_jitter_gray(kernels, &(stk_raster){got, 5, 10, 100, 3});
    for (size_t i = 0; i < MOST; i += 3) {
        CHECK(fabs(got[i] - luma_of(src + i, 3)) <= 0.52);
        CHECK(got[i] == got[i + 1] && got[i] == got[i + 2]);
    }
    CHECK(got[0] == 0 && got[21] == 255);
    memcpy(got, src, MOST);
    stk_jitter_gray(kernels, &(stk_raster){got, 1, 150, 100, 1});
    CHECK(!memcmp(got, src, MOST));
}

/* Every table gives the same bits. */
static void tables_agree(void)
{
    const stk_jitter_step steps[] = {{STK_JITTER_SATURATION, 1.7},
                                     {STK_JITTER_CONTRAST, 5.5},
                                     {STK_JITTER_HUE, 0.37},
                                     {STK_JITTER_BRIGHTNESS, 2.2}};
    uint8_t want[MOST], got[MOST];
    for (size_t i = 0; (kernels = stk_tile_kernels_at(i)); i++)
        for (int32_t pixels = 1; pixels < 1100; pixels += 37) {
            const size_t n = 3 * (size_t)pixels;
            fill(want, n, 2);
            fill(got, n, 2);
            got[n] = 77;
            stk_jitter_run(&stk_tile_plain, steps, 4, &(stk_raster){want, 1, 1, pixels, 3});
            stk_jitter_run(kernels, steps, 4, &(stk_raster){got, 1, 1, pixels, 3});
            CHECK(!memcmp(want, got, n) && got[n] == 77);
        }
    CHECK(stk_tile_kernels_best()->name);
}

static void with_every_table(void)
{
    for (size_t i = 0; (kernels = stk_tile_kernels_at(i)); i++) {
        steps_are_their_formulas();
        ones_change_nothing();
        steps_follow_each_other();
        frames_are_pictures();
        gray();
    }
}

TESTS(TEST(with_every_table), TEST(tables_agree))
