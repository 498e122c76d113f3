#include "transform/kernels.h"

#if defined(__aarch64__)

#include <arm_neon.h>
#include <string.h>

#define INLINE __attribute__((always_inline)) static inline

/* Two neighbouring taps of one pixel, colour by colour, widened to 16 bits. */
INLINE uint8x16_t tap_bytes(int channels, int tap)
{
    enum { NONE = 255 }; /* reads as zero */
    uint8_t index[16];
    for (int i = 0; i < 8; i++) {
        const int colour = i % 4;
        const int at = (tap + i / 4) * channels + colour;
        index[2 * i] = (uint8_t)(colour < channels ? at : NONE);
        index[2 * i + 1] = NONE;
    }
    return vld1q_u8(index);
}

/* One pixel's sums, a colour in each lane. */
INLINE int32x4_t sum_taps(const stk_horizontal *h, const uint8_t *p, const int16_t *coef,
                          int channels, uint8x16_t taps01, uint8x16_t taps23)
{
    int32x4_t sum = vdupq_n_s32(1 << (h->shift - 1));
    for (int32_t s = 0; s < h->steps; s++, p += 4 * channels, coef += STK_KERNEL_BLOCK(3)) {
        const uint8x16_t bytes = vld1q_u8(p);
        const int16x4_t c01 = vld1_s16(coef), c23 = vld1_s16(coef + 16);
        const int16x8_t v01 = vreinterpretq_s16_u8(vqtbl1q_u8(bytes, taps01));
        const int16x8_t v23 = vreinterpretq_s16_u8(vqtbl1q_u8(bytes, taps23));
        sum = vmlal_lane_s16(sum, vget_low_s16(v01), c01, 0);
        sum = vmlal_lane_s16(sum, vget_high_s16(v01), c01, 1);
        sum = vmlal_lane_s16(sum, vget_low_s16(v23), c23, 0);
        sum = vmlal_lane_s16(sum, vget_high_s16(v23), c23, 1);
    }
    return sum;
}

INLINE uint16x4_t clip_sums(int32x4_t sum, int32x4_t shift, uint16x4_t max)
{
    return vmin_u16(vqmovun_s32(vshlq_s32(sum, shift)), max);
}

INLINE void horizontal(const stk_horizontal *h, const uint8_t *src, int16_t *dst, int channels)
{
    const uint8x16_t taps01 = tap_bytes(channels, 0), taps23 = tap_bytes(channels, 2);
    const int32x4_t shift = vdupq_n_s32(-h->shift);
    const uint16x4_t max = vdup_n_u16((uint16_t)(255 << h->fraction));
    const int16_t *coef = h->coef;
    const int32_t *o = h->offset;
    for (int32_t g = 0; g < h->groups; g++, o += 4, coef += STK_KERNEL_BLOCK(3) * h->steps)
        for (int j = 0; j < 4; j++, dst += channels) {
            const int16_t *weights = coef + STK_KERNEL_WEIGHT(3, j, 0);
            const int32x4_t sum = sum_taps(h, src + o[j], weights, channels, taps01, taps23);
            vst1_s16(dst, vreinterpret_s16_u16(clip_sums(sum, shift, max)));
        }
}

static void horizontal3(const stk_horizontal *h, const uint8_t *src, int16_t *dst)
{
    horizontal(h, src, dst, 3);
}

static void horizontal4(const stk_horizontal *h, const uint8_t *src, int16_t *dst)
{
    horizontal(h, src, dst, 4);
}

static void horizontal1(const stk_horizontal *h, const uint8_t *src, int16_t *dst)
{
    const int32x4_t shift = vdupq_n_s32(-h->shift), half = vdupq_n_s32(1 << (h->shift - 1));
    const uint16x4_t max = vdup_n_u16((uint16_t)(255 << h->fraction));
    const int16_t *coef = h->coef;
    const int32_t *o = h->offset;
    for (int32_t g = 0; g < h->groups; g++, o += 4, coef += 16 * h->steps, dst += 4) {
        int32x4_t sums[4];
        for (int j = 0; j < 4; j++) {
            sums[j] = vdupq_n_s32(0);
            for (int32_t s = 0; s < h->steps; s++) {
                uint32_t four;
                memcpy(&four, src + o[j] + 4 * s, sizeof(four));
                const uint16x8_t wide = vmovl_u8(vcreate_u8(four));
                const int16x4_t v = vget_low_s16(vreinterpretq_s16_u16(wide));
                sums[j] = vmlal_s16(sums[j], v, vld1_s16(coef + 16 * s + 4 * j));
            }
        }
        const int32x4_t sum =
            vpaddq_s32(vpaddq_s32(sums[0], sums[1]), vpaddq_s32(sums[2], sums[3]));
        vst1_s16(dst, vreinterpret_s16_u16(clip_sums(vaddq_s32(sum, half), shift, max)));
    }
}

static void narrow(const stk_narrow *n, const uint8_t *src, int16_t *dst)
{
    const uint8_t *shuffle = n->shuffle;
    const int8_t *coef = n->coef;
    const ptrdiff_t size = 32 * (ptrdiff_t)n->pairs;
    for (int32_t i = 0; i < 2 * n->count; i++, dst += 8) {
        const ptrdiff_t half = i / 2 * size + i % 2 * 16;
        const uint8x16_t bytes = vld1q_u8(src + n->base[i]);
        uint16x8_t sum = vdupq_n_u16(0);
        for (ptrdiff_t k = half; k < half + size; k += 32) {
            const uint8x16_t v = vqtbl1q_u8(bytes, vld1q_u8(shuffle + k));
            const uint8x16_t c = vreinterpretq_u8_s8(vld1q_s8(coef + k));
            sum = vaddq_u16(
                sum, vpaddq_u16(vmull_u8(vget_low_u8(v), vget_low_u8(c)), vmull_high_u8(v, c)));
        }
        vst1q_s16(dst, vreinterpretq_s16_u16(sum));
    }
}

/* 8 values: shifted, clipped, `count` of them stored. */
INLINE void store8(uint8_t *dst, int32x4_t low, int32x4_t high, int32x4_t shift, int32_t count)
{
    const int16x4_t a = vqmovn_s32(vshlq_s32(low, shift)), b = vqmovn_s32(vshlq_s32(high, shift));
    const uint8x8_t v = vqmovun_s16(vcombine_s16(a, b));
    if (count >= 8) {
        vst1_u8(dst, v);
        return;
    }
    uint8_t bytes[8];
    vst1_u8(bytes, v);
    memcpy(dst, bytes, (size_t)count);
}

static void vertical(const int16_t *const *rows, const int16_t *coef, int32_t n, int32_t count,
                     int32_t shift_by, uint8_t *dst)
{
    const int32x4_t half = vdupq_n_s32(1 << (shift_by - 1)), shift = vdupq_n_s32(-shift_by);
    for (int32_t x = 0; x < count; x += 8) {
        int32x4_t low = half, high = half;
        for (int32_t i = 0; i < n; i++) {
            const int16x8_t v = vld1q_s16(rows[i] + x);
            low = vmlal_n_s16(low, vget_low_s16(v), coef[i]);
            high = vmlal_n_s16(high, vget_high_s16(v), coef[i]);
        }
        store8(dst + x, low, high, shift, count - x);
    }
}

static void blend(const int16_t *const *rows, const int16_t *coef, int32_t n, int32_t count,
                  uint8_t *dst)
{
    for (int32_t x = 0; x < count; x += 8) {
        int16x8_t sum = vdupq_n_s16(0);
        for (int32_t i = 0; i < n; i++)
            sum = vaddq_s16(sum, vqrdmulhq_n_s16(vld1q_s16(rows[i] + x), coef[i]));
        const uint8x8_t v = vqrshrun_n_s16(sum, STK_KERNEL_BLEND);
        uint8_t bytes[8];
        vst1_u8(bytes, v);
        if (count - x >= 8)
            vst1_u8(dst + x, v);
        else
            memcpy(dst + x, bytes, (size_t)(count - x));
    }
}

static void accumulate(const int16_t *const *rows, const int16_t *coef, int32_t count, int32_t *acc)
{
    for (int32_t x = 0; x < count; x += 8) {
        int32x4_t low = vld1q_s32(acc + x), high = vld1q_s32(acc + x + 4);
        for (int32_t i = 0; i < STK_KERNEL_ROWS; i++) {
            const int16x8_t v = vld1q_s16(rows[i] + x);
            low = vmlal_n_s16(low, vget_low_s16(v), coef[i]);
            high = vmlal_n_s16(high, vget_high_s16(v), coef[i]);
        }
        vst1q_s32(acc + x, low);
        vst1q_s32(acc + x + 4, high);
    }
}

static void finish(const int32_t *acc, int32_t count, int32_t shift_by, uint8_t *dst)
{
    const int32x4_t half = vdupq_n_s32(1 << (shift_by - 1)), shift = vdupq_n_s32(-shift_by);
    for (int32_t x = 0; x < count; x += 8)
        store8(dst + x, vaddq_s32(vld1q_s32(acc + x), half),
               vaddq_s32(vld1q_s32(acc + x + 4), half), shift, count - x);
}

/* 8 values of each colour, as stk_color_ycc_to_rgb_scalar says. */
INLINE uint8x8x3_t convert(uint8x8_t y8, uint8x8_t cb8, uint8x8_t cr8)
{
    const uint8x8_t middle = vdup_n_u8(128);
    const int16x8_t y = vaddq_s16(vreinterpretq_s16_u16(vshll_n_u8(y8, 6)), vdupq_n_s16(32));
    const int16x8_t cb = vshlq_n_s16(vreinterpretq_s16_u16(vsubl_u8(cb8, middle)), 6);
    const int16x8_t cr = vshlq_n_s16(vreinterpretq_s16_u16(vsubl_u8(cr8, middle)), 6);
    const int16x8_t red = vaddq_s16(cr, vqrdmulhq_n_s16(cr, 13173));
    const int16x8_t green = vaddq_s16(vqrdmulhq_n_s16(cb, -11277), vqrdmulhq_n_s16(cr, -23401));
    const int16x8_t blue = vaddq_s16(vaddq_s16(cb, cb), vqrdmulhq_n_s16(cb, -7471));
    uint8x8x3_t rgb;
    rgb.val[0] = vqmovun_s16(vshrq_n_s16(vaddq_s16(y, red), 6));
    rgb.val[1] = vqmovun_s16(vshrq_n_s16(vaddq_s16(y, green), 6));
    rgb.val[2] = vqmovun_s16(vshrq_n_s16(vaddq_s16(y, blue), 6));
    return rgb;
}

void stk_color_ycc_to_rgb_neon(const uint8_t *src, uint8_t *dst, int32_t pixels)
{
    int32_t i = 0;
    for (; i + 8 <= pixels; i += 8, src += 24, dst += 24) {
        const uint8x8x3_t v = vld3_u8(src);
        vst3_u8(dst, convert(v.val[0], v.val[1], v.val[2]));
    }
    if (i == pixels) return;
    uint8_t rest[24] = {0};
    const size_t bytes = (size_t)(pixels - i) * 3;
    memcpy(rest, src, bytes);
    const uint8x8x3_t v = vld3_u8(rest);
    vst3_u8(rest, convert(v.val[0], v.val[1], v.val[2]));
    memcpy(dst, rest, bytes);
}

int32_t stk_color_planes_to_rgb_simd(const uint8_t *const planes[3], uint8_t *dst, int32_t pixels)
{
    int32_t i = 0;
    for (; i + 32 <= pixels; i += 32)
        for (int32_t k = i; k < i + 32; k += 8, dst += 24)
            vst3_u8(dst, convert(vld1_u8(planes[0] + k), vld1_u8(planes[1] + k),
                                 vld1_u8(planes[2] + k)));
    return i;
}

const stk_kernels stk_kernels_neon = {
    .name = "neon",
    .horizontal1 = horizontal1,
    .horizontal3 = horizontal3,
    .horizontal4 = horizontal4,
    .narrow = narrow,
    .vertical = vertical,
    .blend = blend,
    .accumulate = accumulate,
    .finish = finish,
    .ycc_to_rgb = stk_color_ycc_to_rgb_neon,
};

#endif
