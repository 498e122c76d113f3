#include "transform/kernels.h"

#if defined(__x86_64__)

#include <immintrin.h>
#include <string.h>

#define AVX2 __attribute__((target("avx2")))
#define INLINE AVX2 __attribute__((always_inline)) static inline

INLINE __m128i load16(const void *p)
{
    return _mm_loadu_si128((const __m128i *)p);
}

INLINE __m256i load32(const void *p)
{
    return _mm256_loadu_si256((const __m256i *)p);
}

/* 16 bytes from each of two places. */
INLINE __m256i load_pair(const uint8_t *low, const uint8_t *high)
{
    return _mm256_inserti128_si256(_mm256_castsi128_si256(load16(low)), load16(high), 1);
}

/* For one pixel in each half: pairs of taps (0, 1) or (2, 3), colour by colour, widened to 16
 * bits, so that one multiply-add makes a 32-bit sum for each colour. */
INLINE __m256i tap_pairs(int channels, int tap)
{
    const char z = -1, a = (char)(tap * channels), b = (char)(a + channels);
    const char w = channels == 4 ? (char)(a + 3) : z, v = channels == 4 ? (char)(b + 3) : z;
    return _mm256_broadcastsi128_si256(_mm_setr_epi8(a, z, b, z, (char)(a + 1), z, (char)(b + 1), z,
                                                     (char)(a + 2), z, (char)(b + 2), z, w, z, v,
                                                     z));
}

/* Four pixels at a time: one accumulator holds pixels 0 and 2, the other 1 and 3, so that packing
 * them gives 0 1 | 2 3. */
INLINE void horizontal(const stk_horizontal *h, const uint8_t *src, int16_t *dst, int channels,
                       int steps)
{
    const __m256i taps01 = tap_pairs(channels, 0), taps23 = tap_pairs(channels, 2);
    const __m256i half = _mm256_set1_epi32(1 << (h->shift - 1));
    const __m256i max = _mm256_set1_epi16((short)(255 << h->fraction));
    const __m256i drop4th = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, 1, 2, 3, 4, 5, 8, 9, 10, 11, 12, 13, -1, -1, -1, -1));
    const __m256i close_up = _mm256_setr_epi32(0, 1, 2, 4, 5, 6, 3, 7);
    const __m128i shift = _mm_cvtsi32_si128(h->shift);
    const int16_t *coef = h->coef;
    const int32_t *o = h->offset, *const end = o + 4 * (ptrdiff_t)h->groups;

    for (; o < end; o += 4) {
        __m256i even = half, odd = half;
        const uint8_t *p = src;
        for (int s = 0; s < steps; s++, p += 4 * channels, coef += 64) {
            const __m256i e = load_pair(p + o[0], p + o[2]);
            const __m256i d = load_pair(p + o[1], p + o[3]);
            const __m256i e01 = _mm256_madd_epi16(_mm256_shuffle_epi8(e, taps01), load32(coef));
            const __m256i e23 =
                _mm256_madd_epi16(_mm256_shuffle_epi8(e, taps23), load32(coef + 16));
            const __m256i d01 =
                _mm256_madd_epi16(_mm256_shuffle_epi8(d, taps01), load32(coef + 32));
            const __m256i d23 =
                _mm256_madd_epi16(_mm256_shuffle_epi8(d, taps23), load32(coef + 48));
            even = _mm256_add_epi32(even, _mm256_add_epi32(e01, e23));
            odd = _mm256_add_epi32(odd, _mm256_add_epi32(d01, d23));
        }
        even = _mm256_sra_epi32(even, shift);
        odd = _mm256_sra_epi32(odd, shift);
        __m256i v = _mm256_min_epu16(_mm256_packus_epi32(even, odd), max);
        if (channels == 3)
            v = _mm256_permutevar8x32_epi32(_mm256_shuffle_epi8(v, drop4th), close_up);
        _mm256_storeu_si256((__m256i *)dst, v);
        dst += 4 * channels;
    }
}

AVX2 static void horizontal3(const stk_horizontal *h, const uint8_t *src, int16_t *dst)
{
    if (h->steps == 1)
        horizontal(h, src, dst, 3, 1);
    else if (h->steps == 2)
        horizontal(h, src, dst, 3, 2);
    else
        horizontal(h, src, dst, 3, h->steps);
}

AVX2 static void horizontal4(const stk_horizontal *h, const uint8_t *src, int16_t *dst)
{
    horizontal(h, src, dst, 4, h->steps);
}

INLINE int load4(const uint8_t *p)
{
    int v;
    memcpy(&v, p, sizeof(v));
    return v;
}

AVX2 static void horizontal1_quick(const stk_horizontal *h, const uint8_t *src, int16_t *dst)
{
    const __m256i half = _mm256_set1_epi32(1 << (h->shift - 1)), zero = _mm256_setzero_si256();
    const __m128i max = _mm_set1_epi16((short)(255 << h->fraction));
    const __m128i shift = _mm_cvtsi32_si128(h->shift);
    const int32_t *base = h->quick.base;
    const uint8_t *shuffle = h->quick.shuffle;
    const int16_t *coef = h->quick.coef;
    for (int32_t g = 0; g < h->groups; g += 2, base += 2, shuffle += 32, coef += 32, dst += 8) {
        const __m256i bytes =
            _mm256_shuffle_epi8(load_pair(src + base[0], src + base[1]), load32(shuffle));
        const __m256i a = _mm256_madd_epi16(_mm256_unpacklo_epi8(bytes, zero), load32(coef));
        const __m256i b = _mm256_madd_epi16(_mm256_unpackhi_epi8(bytes, zero), load32(coef + 16));
        __m256i sum = _mm256_add_epi32(_mm256_add_epi32(a, b), half);
        sum = _mm256_sra_epi32(sum, shift);
        sum = _mm256_permute4x64_epi64(_mm256_packus_epi32(sum, sum), 0x08);
        _mm_storeu_si128((__m128i *)dst, _mm_min_epu16(_mm256_castsi256_si128(sum), max));
    }
}

AVX2 static void horizontal1(const stk_horizontal *h, const uint8_t *src, int16_t *dst)
{
    if (h->quick.base) {
        horizontal1_quick(h, src, dst);
        return;
    }
    const __m256i half = _mm256_set1_epi32(1 << (h->shift - 1));
    const __m128i max = _mm_set1_epi16((short)(255 << h->fraction));
    const __m128i shift = _mm_cvtsi32_si128(h->shift);
    const int16_t *coef = h->coef;
    const int32_t *o = h->offset;

    for (int32_t g = 0; g < h->groups; g++, o += 4, dst += 4) {
        __m256i sum = _mm256_setzero_si256();
        const uint8_t *p = src;
        for (int32_t s = 0; s < h->steps; s++, p += 4, coef += 16) {
            const __m128i bytes =
                _mm_setr_epi32(load4(p + o[0]), load4(p + o[1]), load4(p + o[2]), load4(p + o[3]));
            sum =
                _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_cvtepu8_epi16(bytes), load32(coef)));
        }
        sum = _mm256_add_epi32(_mm256_hadd_epi32(sum, sum), half); /* 0 1 0 1 | 2 3 2 3 */
        sum = _mm256_sra_epi32(_mm256_permute4x64_epi64(sum, 0x08), shift);
        const __m128i v = _mm256_castsi256_si128(sum);
        _mm_storel_epi64((__m128i *)dst, _mm_min_epu16(_mm_packus_epi32(v, v), max));
    }
}

INLINE void narrow_n(const stk_narrow *n, const uint8_t *src, int16_t *dst, int pairs)
{
    const int32_t *base = n->base, *const end = base + 2 * (ptrdiff_t)n->count;
    const uint8_t *shuffle = n->shuffle;
    const int8_t *coef = n->coef;
    for (; base < end; base += 2, dst += 16) {
        const __m256i bytes = load_pair(src + base[0], src + base[1]);
        __m256i sum = _mm256_setzero_si256();
        for (int p = 0; p < pairs; p++, shuffle += 32, coef += 32)
            sum = _mm256_add_epi16(
                sum,
                _mm256_maddubs_epi16(_mm256_shuffle_epi8(bytes, load32(shuffle)), load32(coef)));
        _mm256_storeu_si256((__m256i *)dst, sum);
    }
}

AVX2 static void narrow(const stk_narrow *n, const uint8_t *src, int16_t *dst)
{
    if (n->pairs == 1)
        narrow_n(n, src, dst, 1);
    else
        narrow_n(n, src, dst, 2);
}

/* 16 sums of `n` products each, shifted. */
INLINE __m256i vertical16(const int16_t *const *rows, const int16_t *coef, int32_t n, ptrdiff_t x,
                          __m256i half, __m128i shift)
{
    __m256i low = half, high = half;
    for (int32_t i = 0; i < n; i += 2) {
        const __m256i a = load32(rows[i] + x), b = load32(rows[i + 1] + x);
        int pair;
        memcpy(&pair, coef + i, sizeof(pair));
        const __m256i c = _mm256_set1_epi32(pair);
        low = _mm256_add_epi32(low, _mm256_madd_epi16(_mm256_unpacklo_epi16(a, b), c));
        high = _mm256_add_epi32(high, _mm256_madd_epi16(_mm256_unpackhi_epi16(a, b), c));
    }
    return _mm256_packs_epi32(_mm256_sra_epi32(low, shift), _mm256_sra_epi32(high, shift));
}

INLINE void vertical_n(const int16_t *const *rows, const int16_t *coef, int32_t n, int32_t count,
                       int32_t shift_by, uint8_t *dst)
{
    const __m256i half = _mm256_set1_epi32(1 << (shift_by - 1));
    const __m128i shift = _mm_cvtsi32_si128(shift_by);
    int32_t x = 0;
    for (; x + 32 <= count; x += 32) {
        const __m256i a = vertical16(rows, coef, n, x, half, shift);
        const __m256i b = vertical16(rows, coef, n, x + 16, half, shift);
        const __m256i v = _mm256_permute4x64_epi64(_mm256_packus_epi16(a, b), 0xD8);
        _mm256_storeu_si256((__m256i *)(dst + x), v);
    }
    for (; x < count; x += 16) {
        const __m256i a = vertical16(rows, coef, n, x, half, shift);
        const __m256i v = _mm256_permute4x64_epi64(_mm256_packus_epi16(a, a), 0xD8);
        uint8_t bytes[16];
        _mm_storeu_si128((__m128i *)bytes, _mm256_castsi256_si128(v));
        memcpy(dst + x, bytes, count - x < 16 ? (size_t)(count - x) : 16);
    }
}

AVX2 static void vertical(const int16_t *const *rows, const int16_t *coef, int32_t n, int32_t count,
                          int32_t shift, uint8_t *dst)
{
    if (n == 2)
        vertical_n(rows, coef, 2, count, shift, dst);
    else if (n == 4)
        vertical_n(rows, coef, 4, count, shift, dst);
    else
        vertical_n(rows, coef, n, count, shift, dst);
}

/* 16 sums of `n` products each. */
INLINE __m256i blend16(const int16_t *const *rows, const int16_t *coef, int32_t n, ptrdiff_t x)
{
    __m256i sum = _mm256_set1_epi16(1 << (STK_KERNEL_BLEND - 1));
    for (int32_t i = 0; i < n; i++)
        sum = _mm256_add_epi16(
            sum, _mm256_mulhrs_epi16(load32(rows[i] + x), _mm256_set1_epi16(coef[i])));
    return _mm256_srai_epi16(sum, STK_KERNEL_BLEND);
}

INLINE void blend_n(const int16_t *const *rows, const int16_t *coef, int32_t n, int32_t count,
                    uint8_t *dst)
{
    int32_t x = 0;
    for (; x + 32 <= count; x += 32) {
        const __m256i v =
            _mm256_packus_epi16(blend16(rows, coef, n, x), blend16(rows, coef, n, x + 16));
        _mm256_storeu_si256((__m256i *)(dst + x), _mm256_permute4x64_epi64(v, 0xD8));
    }
    for (; x < count; x += 16) {
        const __m256i a = blend16(rows, coef, n, x);
        const __m256i v = _mm256_permute4x64_epi64(_mm256_packus_epi16(a, a), 0xD8);
        uint8_t bytes[16];
        _mm_storeu_si128((__m128i *)bytes, _mm256_castsi256_si128(v));
        memcpy(dst + x, bytes, count - x < 16 ? (size_t)(count - x) : 16);
    }
}

AVX2 static void blend(const int16_t *const *rows, const int16_t *coef, int32_t n, int32_t count,
                       uint8_t *dst)
{
    if (n == 2)
        blend_n(rows, coef, 2, count, dst);
    else if (n == 3)
        blend_n(rows, coef, 3, count, dst);
    else if (n == 4)
        blend_n(rows, coef, 4, count, dst);
    else
        blend_n(rows, coef, n, count, dst);
}

AVX2 static void accumulate(const int16_t *const *rows, const int16_t *coef, int32_t count,
                            int32_t *acc)
{
    for (int32_t x = 0; x < count; x += 16) {
        __m256i low = _mm256_setzero_si256(), high = low;
        for (int32_t i = 0; i < STK_KERNEL_ROWS; i += 2) {
            const __m256i a = load32(rows[i] + x), b = load32(rows[i + 1] + x);
            int pair;
            memcpy(&pair, coef + i, sizeof(pair));
            const __m256i c = _mm256_set1_epi32(pair);
            low = _mm256_add_epi32(low, _mm256_madd_epi16(_mm256_unpacklo_epi16(a, b), c));
            high = _mm256_add_epi32(high, _mm256_madd_epi16(_mm256_unpackhi_epi16(a, b), c));
        }
        /* low: 0-3, 8-11; high: 4-7, 12-15 */
        __m256i *p = (__m256i *)(acc + x);
        const __m256i first = _mm256_permute2x128_si256(low, high, 0x20);
        const __m256i second = _mm256_permute2x128_si256(low, high, 0x31);
        _mm256_storeu_si256(p, _mm256_add_epi32(load32(p), first));
        _mm256_storeu_si256(p + 1, _mm256_add_epi32(load32(p + 1), second));
    }
}

AVX2 static void finish(const int32_t *acc, int32_t count, int32_t shift_by, uint8_t *dst)
{
    const __m256i half = _mm256_set1_epi32(1 << (shift_by - 1));
    const __m128i shift = _mm_cvtsi32_si128(shift_by);
    for (int32_t x = 0; x < count; x += 16) {
        const __m256i a = _mm256_sra_epi32(_mm256_add_epi32(load32(acc + x), half), shift);
        const __m256i b = _mm256_sra_epi32(_mm256_add_epi32(load32(acc + x + 8), half), shift);
        const __m256i w = _mm256_permute4x64_epi64(_mm256_packs_epi32(a, b), 0xD8);
        const __m128i v =
            _mm_packus_epi16(_mm256_castsi256_si128(w), _mm256_extracti128_si256(w, 1));
        uint8_t bytes[16];
        _mm_storeu_si128((__m128i *)bytes, v);
        memcpy(dst + x, bytes, count - x < 16 ? (size_t)(count - x) : 16);
    }
}

const stk_kernels stk_kernels_avx2 = {
    .name = "avx2",
    .horizontal1 = horizontal1,
    .horizontal3 = horizontal3,
    .horizontal4 = horizontal4,
    .narrow = narrow,
    .vertical = vertical,
    .blend = blend,
    .accumulate = accumulate,
    .finish = finish,
    .ycc_to_rgb = stk_color_ycc_to_rgb_avx2,
};

#endif
