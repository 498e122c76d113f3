#include "transform/kernels.h"

#if defined(__x86_64__)

#include <immintrin.h>
#include <string.h>

#define AVX2 __attribute__((target("avx2")))
#define INLINE AVX2 __attribute__((always_inline)) static inline

/* Each 128-bit half of three registers holds 48 bytes: 16 pixels.  In the tables, row r says which
 * bytes of register r go where. */
/* clang-format off */
#define Z (-1)
const int8_t stk_kernel_split3[3][3][16] = {
    {{0, 3, 6, 9, 12, 15, Z, Z, Z, Z, Z, Z, Z, Z, Z, Z},
     {Z, Z, Z, Z, Z, Z, 2, 5, 8, 11, 14, Z, Z, Z, Z, Z},
     {Z, Z, Z, Z, Z, Z, Z, Z, Z, Z, Z, 1, 4, 7, 10, 13}},
    {{1, 4, 7, 10, 13, Z, Z, Z, Z, Z, Z, Z, Z, Z, Z, Z},
     {Z, Z, Z, Z, Z, 0, 3, 6, 9, 12, 15, Z, Z, Z, Z, Z},
     {Z, Z, Z, Z, Z, Z, Z, Z, Z, Z, Z, 2, 5, 8, 11, 14}},
    {{2, 5, 8, 11, 14, Z, Z, Z, Z, Z, Z, Z, Z, Z, Z, Z},
     {Z, Z, Z, Z, Z, 1, 4, 7, 10, 13, Z, Z, Z, Z, Z, Z},
     {Z, Z, Z, Z, Z, Z, Z, Z, Z, Z, 0, 3, 6, 9, 12, 15}},
};
static const int8_t join[3][3][16] = {
    {{0, Z, Z, 1, Z, Z, 2, Z, Z, 3, Z, Z, 4, Z, Z, 5},
     {Z, 0, Z, Z, 1, Z, Z, 2, Z, Z, 3, Z, Z, 4, Z, Z},
     {Z, Z, 0, Z, Z, 1, Z, Z, 2, Z, Z, 3, Z, Z, 4, Z}},
    {{Z, Z, 6, Z, Z, 7, Z, Z, 8, Z, Z, 9, Z, Z, 10, Z},
     {5, Z, Z, 6, Z, Z, 7, Z, Z, 8, Z, Z, 9, Z, Z, 10},
     {Z, 5, Z, Z, 6, Z, Z, 7, Z, Z, 8, Z, Z, 9, Z, Z}},
    {{Z, 11, Z, Z, 12, Z, Z, 13, Z, Z, 14, Z, Z, 15, Z, Z},
     {Z, Z, 11, Z, Z, 12, Z, Z, 13, Z, Z, 14, Z, Z, 15, Z},
     {10, Z, Z, 11, Z, Z, 12, Z, Z, 13, Z, Z, 14, Z, Z, 15}},
};
#undef Z
/* clang-format on */

INLINE __m256i pick(const int8_t table[3][16], const __m256i v[3])
{
    __m256i m[3];
    for (int i = 0; i < 3; i++)
        m[i] = _mm256_shuffle_epi8(
            v[i], _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)table[i])));
    return _mm256_or_si256(_mm256_or_si256(m[0], m[1]), m[2]);
}

/* 16 values of each colour, as stk_color_ycc_to_rgb_scalar says. */
INLINE void convert(__m256i y, __m256i cb, __m256i cr, __m256i rgb[3])
{
    const __m256i middle = _mm256_set1_epi16(128);
    y = _mm256_add_epi16(_mm256_slli_epi16(y, 6), _mm256_set1_epi16(32));
    cb = _mm256_slli_epi16(_mm256_sub_epi16(cb, middle), 6);
    cr = _mm256_slli_epi16(_mm256_sub_epi16(cr, middle), 6);
    const __m256i red = _mm256_add_epi16(cr, _mm256_mulhrs_epi16(cr, _mm256_set1_epi16(13173)));
    const __m256i green = _mm256_add_epi16(_mm256_mulhrs_epi16(cb, _mm256_set1_epi16(-11277)),
                                           _mm256_mulhrs_epi16(cr, _mm256_set1_epi16(-23401)));
    const __m256i blue = _mm256_add_epi16(_mm256_add_epi16(cb, cb),
                                          _mm256_mulhrs_epi16(cb, _mm256_set1_epi16(-7471)));
    rgb[0] = _mm256_srai_epi16(_mm256_add_epi16(y, red), 6);
    rgb[1] = _mm256_srai_epi16(_mm256_add_epi16(y, green), 6);
    rgb[2] = _mm256_srai_epi16(_mm256_add_epi16(y, blue), 6);
}

/* 32 pixels in order: 16 in each half of the registers. */
INLINE void convert32(__m256i y, __m256i cb, __m256i cr, uint8_t *dst)
{
    const __m256i zero = _mm256_setzero_si256();
    __m256i low[3], high[3], out[3];
    convert(_mm256_unpacklo_epi8(y, zero), _mm256_unpacklo_epi8(cb, zero),
            _mm256_unpacklo_epi8(cr, zero), low);
    convert(_mm256_unpackhi_epi8(y, zero), _mm256_unpackhi_epi8(cb, zero),
            _mm256_unpackhi_epi8(cr, zero), high);
    for (int i = 0; i < 3; i++) out[i] = _mm256_packus_epi16(low[i], high[i]);
    for (int i = 0; i < 3; i++) {
        const __m256i v = pick(join[i], out);
        _mm_storeu_si128((__m128i *)dst + i, _mm256_castsi256_si128(v));
        _mm_storeu_si128((__m128i *)dst + 3 + i, _mm256_extracti128_si256(v, 1));
    }
}

INLINE void interleaved32(const uint8_t *src, uint8_t *dst)
{
    const __m128i *s = (const __m128i *)src;
    __m256i in[3];
    for (int i = 0; i < 3; i++)
        in[i] = _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128(s + i)),
                                        _mm_loadu_si128(s + 3 + i), 1);
    convert32(pick(stk_kernel_split3[0], in), pick(stk_kernel_split3[1], in),
              pick(stk_kernel_split3[2], in), dst);
}

AVX2 int32_t stk_color_planes_to_rgb_simd(const uint8_t *const planes[3], uint8_t *dst,
                                          int32_t pixels)
{
    int32_t i = 0;
    for (; i + 32 <= pixels; i += 32, dst += 96)
        convert32(_mm256_loadu_si256((const __m256i *)(planes[0] + i)),
                  _mm256_loadu_si256((const __m256i *)(planes[1] + i)),
                  _mm256_loadu_si256((const __m256i *)(planes[2] + i)), dst);
    return i;
}

AVX2 void stk_color_ycc_to_rgb_avx2(const uint8_t *src, uint8_t *dst, int32_t pixels)
{
    int32_t i = 0;
    for (; i + 32 <= pixels; i += 32, src += 96, dst += 96) interleaved32(src, dst);
    if (i == pixels) return;
    uint8_t rest[96] = {0};
    const size_t bytes = (size_t)(pixels - i) * 3;
    memcpy(rest, src, bytes);
    interleaved32(rest, rest);
    memcpy(dst, rest, bytes);
}

#endif
