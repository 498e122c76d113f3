#include "transform/kernels.h"

static int32_t clip(int32_t v, int32_t max)
{
    return v < 0 ? 0 : v > max ? max : v;
}

static inline void horizontal(const stk_horizontal *h, const uint8_t *src, int16_t *dst,
                              int32_t channels)
{
    const int32_t half = 1 << (h->shift - 1), max = 255 << h->fraction;
    const int16_t *coef = h->coef;
    for (int32_t g = 0; g < h->groups; g++, coef += 16 * h->steps) {
        for (int32_t j = 0; j < STK_KERNEL_GROUP; j++) {
            const uint8_t *from = src + h->offset[g * STK_KERNEL_GROUP + j];
            int32_t sum[4] = {half, half, half, half};
            for (int32_t k = 0; k < h->steps * STK_KERNEL_STEP; k++) {
                const int32_t c = coef[k / 4 * 16 + j * 4 + k % 4];
                for (int32_t i = 0; i < channels; i++) sum[i] += c * from[k * channels + i];
            }
            for (int32_t i = 0; i < channels; i++) *dst++ = (int16_t)clip(sum[i] >> h->shift, max);
        }
    }
}

static void horizontal1(const stk_horizontal *h, const uint8_t *src, int16_t *dst)
{
    horizontal(h, src, dst, 1);
}

static void horizontal3(const stk_horizontal *h, const uint8_t *src, int16_t *dst)
{
    horizontal(h, src, dst, 3);
}

static void horizontal4(const stk_horizontal *h, const uint8_t *src, int16_t *dst)
{
    horizontal(h, src, dst, 4);
}

static void vertical(const int16_t *const *rows, const int16_t *coef, int32_t n, int32_t count,
                     int32_t shift, uint8_t *dst)
{
    const int32_t half = 1 << (shift - 1);
    for (int32_t x = 0; x < count; x++) {
        int32_t sum = half;
        for (int32_t i = 0; i < n; i++) sum += rows[i][x] * coef[i];
        dst[x] = (uint8_t)clip(sum >> shift, 255);
    }
}

static void accumulate(const int16_t *const *rows, const int16_t *coef, int32_t count, int32_t *acc)
{
    for (int32_t i = 0; i < STK_KERNEL_ROWS; i++)
        for (int32_t x = 0; x < count; x++) acc[x] += rows[i][x] * coef[i];
}

static void finish(const int32_t *acc, int32_t count, int32_t shift, uint8_t *dst)
{
    const int32_t half = 1 << (shift - 1);
    for (int32_t x = 0; x < count; x++) dst[x] = (uint8_t)clip((acc[x] + half) >> shift, 255);
}

const stk_kernels stk_kernels_scalar = {
    .name = "scalar",
    .horizontal1 = horizontal1,
    .horizontal3 = horizontal3,
    .horizontal4 = horizontal4,
    .vertical = vertical,
    .accumulate = accumulate,
    .finish = finish,
    .ycc_to_rgb = stk_color_ycc_to_rgb_scalar,
};
