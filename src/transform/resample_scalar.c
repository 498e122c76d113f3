#include "transform/kernels.h"

#define INLINE __attribute__((always_inline)) static inline

static int32_t clip(int32_t v, int32_t max)
{
    return v < 0 ? 0 : v > max ? max : v;
}

INLINE void horizontal(const stk_horizontal *h, const uint8_t *src, int16_t *dst, int channels)
{
    const int32_t half = 1 << (h->shift - 1), max = 255 << h->fraction;
    const int16_t *coef = h->coef;
    const int block = STK_KERNEL_BLOCK(channels);
    for (int32_t g = 0; g < h->groups; g++, coef += block * h->steps)
        for (int j = 0; j < STK_KERNEL_GROUP; j++, dst += channels) {
            const uint8_t *from = src + h->offset[g * STK_KERNEL_GROUP + j];
            int32_t sum[4] = {half, half, half, half};
            for (int32_t s = 0; s < h->steps; s++)
                for (int t = 0; t < STK_KERNEL_STEP; t++, from += channels) {
                    const int32_t c = coef[s * block + STK_KERNEL_WEIGHT(channels, j, t)];
                    for (int i = 0; i < channels; i++) sum[i] += c * from[i];
                }
            for (int i = 0; i < channels; i++) dst[i] = (int16_t)clip(sum[i] >> h->shift, max);
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

static void narrow(const stk_narrow *n, const uint8_t *src, int16_t *dst)
{
    const uint8_t *shuffle = n->shuffle;
    const int8_t *coef = n->coef;
    const int32_t size = 32 * n->pairs;
    for (int32_t g = 0; g < n->count; g++, shuffle += size, coef += size, dst += 16)
        for (int i = 0; i < 16; i++) {
            const uint8_t *from = src + n->base[g * 2 + i / 8];
            int32_t sum = 0;
            for (int32_t k = 2 * i; k < size; k += 32)
                sum += from[shuffle[k]] * coef[k] + from[shuffle[k + 1]] * coef[k + 1];
            dst[i] = (int16_t)sum;
        }
}

/* Sums are made piece by piece, row after row: loops that compilers turn into vectors. */
enum { PIECE = 64 };

static int32_t piece_at(int32_t x, int32_t count)
{
    return count - x < PIECE ? count - x : PIECE;
}

static void vertical(const int16_t *const *rows, const int16_t *coef, int32_t n, int32_t count,
                     int32_t shift, uint8_t *dst)
{
    for (int32_t x = 0; x < count; x += PIECE) {
        const int32_t size = piece_at(x, count);
        int32_t sums[PIECE] = {0};
        for (int32_t i = 0; i < n; i++) {
            const int16_t *row = rows[i] + x;
            const int16_t c = coef[i];
            for (int32_t k = 0; k < size; k++) sums[k] += row[k] * c;
        }
        for (int32_t k = 0; k < size; k++)
            dst[x + k] = (uint8_t)clip((sums[k] + (1 << (shift - 1))) >> shift, 255);
    }
}

static void blend(const int16_t *const *rows, const int16_t *coef, int32_t n, int32_t count,
                  uint8_t *dst)
{
    enum { HALF = 1 << (STK_KERNEL_BLEND - 1) };
    for (int32_t x = 0; x < count; x += PIECE) {
        const int32_t size = piece_at(x, count);
        int32_t sums[PIECE] = {0};
        for (int32_t i = 0; i < n; i++) {
            const int16_t *row = rows[i] + x;
            const int16_t c = coef[i];
            for (int32_t k = 0; k < size; k++) sums[k] += (row[k] * c + (1 << 14)) >> 15;
        }
        for (int32_t k = 0; k < size; k++)
            dst[x + k] = (uint8_t)clip((sums[k] + HALF) >> STK_KERNEL_BLEND, 255);
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
    .narrow = narrow,
    .vertical = vertical,
    .blend = blend,
    .accumulate = accumulate,
    .finish = finish,
    .ycc_to_rgb = stk_color_ycc_to_rgb_scalar,
};
