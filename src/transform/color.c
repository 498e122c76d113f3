#include "transform/color.h"

#include "transform/kernels.h"

/* The arithmetic of the SIMD kernels, in which each is one instruction: values have 6 bits of
 * fraction, and factors 15. */
enum {
    FRACTION = 6,
    CR_RED = 13173,    /* 1.402 - 1 */
    CB_GREEN = -11277, /* -0.344136 */
    CR_GREEN = -23401, /* -0.714136 */
    CB_BLUE = -7471,   /* 1.772 - 2 */
};

static int32_t scaled(int32_t v, int32_t factor)
{
    return (v * factor + (1 << 14)) >> 15;
}

static uint8_t pixel(int32_t v)
{
    v >>= FRACTION;
    return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
}

static void convert(int32_t y8, int32_t cb8, int32_t cr8, uint8_t *dst)
{
    const int32_t y = (y8 << FRACTION) + (1 << (FRACTION - 1));
    const int32_t cb = (cb8 - 128) * (1 << FRACTION);
    const int32_t cr = (cr8 - 128) * (1 << FRACTION);
    dst[0] = pixel(y + cr + scaled(cr, CR_RED));
    dst[1] = pixel(y + scaled(cb, CB_GREEN) + scaled(cr, CR_GREEN));
    dst[2] = pixel(y + cb + cb + scaled(cb, CB_BLUE));
}

void stk_color_ycc_to_rgb_scalar(const uint8_t *src, uint8_t *dst, int32_t pixels)
{
    for (int32_t i = 0; i < pixels; i++, src += 3, dst += 3) convert(src[0], src[1], src[2], dst);
}

void stk_color_ycc_to_rgb(const uint8_t *src, uint8_t *dst, int32_t pixels)
{
    stk_kernels_best()->ycc_to_rgb(src, dst, pixels);
}

#if !defined(__x86_64__) && !defined(__aarch64__)
int32_t stk_color_planes_to_rgb_simd(const uint8_t *const planes[3], uint8_t *dst, int32_t pixels)
{
    (void)planes, (void)dst, (void)pixels;
    return 0;
}
#endif

void stk_color_planes_to_rgb(const uint8_t *const planes[3], uint8_t *dst, int32_t pixels)
{
    int32_t i = 0;
    if (stk_kernels_best() != &stk_kernels_scalar)
        i = stk_color_planes_to_rgb_simd(planes, dst, pixels);
    for (; i < pixels; i++)
        convert(planes[0][i], planes[1][i], planes[2][i], dst + (ptrdiff_t)i * 3);
}

void stk_color_gray_to_rgb(const uint8_t *src, uint8_t *dst, int32_t pixels)
{
    for (int32_t i = 0; i < pixels; i++, dst += 3) dst[0] = dst[1] = dst[2] = src[i];
}

void stk_color_rgb_to_gray(const uint8_t *src, uint8_t *dst, int32_t pixels)
{
    /* 0.299, 0.587 and 0.114 in 16 bits */
    for (int32_t i = 0; i < pixels; i++, src += 3)
        dst[i] = (uint8_t)((src[0] * 19595 + src[1] * 38470 + src[2] * 7471 + 0x8000) >> 16);
}

/* a * b / 255, rounded. */
static int32_t product(int32_t a, int32_t b)
{
    const int32_t t = a * b + 128;
    return ((t >> 8) + t) >> 8;
}

void stk_color_cmyk_to_rgb(const uint8_t *src, uint8_t *dst, int32_t pixels, bool inverted)
{
    const int32_t flip = inverted ? 0 : 255; /* x ^ 255 is 255 - x: paper left bare */
    for (int32_t i = 0; i < pixels; i++, src += 4, dst += 3) {
        const int32_t bare = src[3] ^ flip;
        for (int32_t c = 0; c < 3; c++) {
            const int32_t v = bare - product(bare, 255 - (src[c] ^ flip));
            dst[c] = (uint8_t)(v < 0 ? 0 : v);
        }
    }
}

void stk_color_mirror(uint8_t *row, int32_t pixels, int32_t channels)
{
    uint8_t *a = row, *b = row + (ptrdiff_t)(pixels - 1) * channels;
    for (; a < b; a += channels, b -= channels)
        for (int32_t c = 0; c < channels; c++) {
            const uint8_t t = a[c];
            a[c] = b[c];
            b[c] = t;
        }
}
