#include "transform/blur.h"

#include <math.h>

#include "base/alloc.h"
#include "tests/check.h"
#include "transform/border.h"

enum { MOST = 40 * 50 * 3 };

static void fill(uint8_t *p, size_t n, uint32_t seed)
{
    for (size_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        p[i] = (uint8_t)(seed >> 24);
    }
}

static void run(const stk_blur_kernels *k, const stk_blur *b, const stk_raster *src,
                const stk_raster *dst)
{
    const size_t bytes = stk_blur_scratch(b, src);
    uint8_t *scratch = stk_alloc_aligned(64, bytes);
    CHECK(scratch);
    memset(scratch, 0xA5, bytes);
    stk_blur_run(k, b, src, dst, scratch);
    stk_free(scratch);
}

static void weights(int32_t size, double sigma, double *w)
{
    double sum = 0;
    for (int32_t i = 0; i < size; i++) {
        const double x = i - size / 2;
        sum += w[i] = exp(-x * x / (2 * sigma * sigma));
    }
    for (int32_t i = 0; i < size; i++) w[i] /= sum;
}

/* Every pixel is the weighted sum around it, within 1. */
static void check(const stk_blur_kernels *k, const stk_blur *b, const stk_raster *shape)
{
    uint8_t src[MOST], got[MOST];
    double wx[STK_BLUR_MAX], wy[STK_BLUR_MAX];
    const int32_t h = shape->height, w = shape->width, c = shape->channels;
    const size_t n = stk_raster_frame(shape);
    fill(src, n, (uint32_t)(h * w));
    memcpy(got, src, n);
    stk_raster r = *shape;
    r.data = got;
    run(k, b, &r, &r);
    weights(b->width, b->sigma, wx);
    weights(b->height, b->sigma, wy);
    for (int32_t y = 0; y < h; y++)
        for (int32_t x = 0; x < w * c; x++) {
            double sum = 0;
            for (int32_t i = 0; i < b->height; i++)
                for (int32_t j = 0; j < b->width; j++) {
                    const int32_t row = stk_border_index(STK_PAD_REFLECT, y + i - b->height / 2, h);
                    const int32_t col =
                        stk_border_index(STK_PAD_REFLECT, x / c + j - b->width / 2, w);
                    sum += wy[i] * wx[j] * src[(row * w + col) * c + x % c];
                }
            CHECK(fabs(got[y * w * c + x] - sum) <= 1);
        }
}

static void sums_by_every_table(void)
{
    static const int32_t sizes[][2] = {{1, 1}, {1, 9}, {7, 1}, {5, 6}, {20, 43}};
    static const stk_blur blurs[] = {{1, 1, 1},   {3, 3, 0.5}, {5, 3, 2},     {1, 7, 1.5},
                                     {23, 23, 2}, {9, 21, 50}, {23, 5, 0.01}, {41, 41, 1e6}};
    for (size_t t = 0; stk_blur_kernels_at(t); t++)
        for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
            for (size_t k = 0; k < sizeof(blurs) / sizeof(blurs[0]); k++)
                for (int32_t c = 1; c <= 3; c++)
                    check(stk_blur_kernels_at(t), &blurs[k],
                          &(stk_raster){NULL, 1, sizes[i][0], sizes[i][1], c});
    CHECK(stk_blur_kernels_best()->name);
}

/* Flat stays flat, also with the largest kernels; white does not wrap. */
static void flat_stays_flat(void)
{
    uint8_t p[MOST];
    for (size_t t = 0; stk_blur_kernels_at(t); t++)
        for (int32_t size = 1; size <= STK_BLUR_MAX; size += 14)
            for (double sigma = 0.2; sigma < 200; sigma *= 2.3)
                for (int value = 0; value < 256; value += 51) {
                    memset(p, value, 900);
                    const stk_raster r = {p, 3, 10, 10, 3};
                    run(stk_blur_kernels_at(t), &(stk_blur){size, size, sigma}, &r, &r);
                    for (int i = 0; i < 900; i++) CHECK(abs(p[i] - value) <= 1);
                }
}

/* Frames apart, and from one memory to another. */
static void frames_and_copies(void)
{
    uint8_t clip[MOST], one[MOST], to[MOST];
    const stk_blur b = {7, 9, 1.7};
    for (size_t t = 0; stk_blur_kernels_at(t); t++) {
        const stk_blur_kernels *k = stk_blur_kernels_at(t);
        fill(clip, MOST, 3);
        memcpy(one, clip, MOST);
        run(k, &b, &(stk_raster){clip, 4, 10, 50, 3}, &(stk_raster){to, 4, 10, 50, 3});
        CHECK(!memcmp(clip, one, MOST));
        run(k, &b, &(stk_raster){clip, 4, 10, 50, 3}, &(stk_raster){clip, 4, 10, 50, 3});
        for (size_t i = 0; i < 4; i++) {
            const stk_raster r = {one + i * MOST / 4, 1, 10, 50, 3};
            run(&stk_blur_plain, &b, &r, &r);
        }
        CHECK(!memcmp(clip, one, MOST) && !memcmp(clip, to, MOST));
    }
}

TESTS(TEST(sums_by_every_table), TEST(flat_stays_flat), TEST(frames_and_copies))
