#include "transform/normalize.h"

#if defined(__x86_64__)

#include <immintrin.h>
#include <string.h>

#include "transform/kernels.h"

#define AVX2 __attribute__((target("avx2,f16c")))
#define INLINE AVX2 __attribute__((always_inline)) static inline

enum { LANES = 8 };

INLINE __m256 load8(stk_dtype in, const uint8_t *src)
{
    if (in == STK_FLOAT32) return _mm256_loadu_ps((const float *)(const void *)src);
    return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)src)));
}

/* The upper half of each float, rounded to even; NaN made quiet. */
INLINE __m128i to_bfloat16(__m256 v)
{
    const __m256i u = _mm256_castps_si256(v);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(u, 16), _mm256_set1_epi32(1));
    const __m256i up = _mm256_add_epi32(_mm256_add_epi32(u, _mm256_set1_epi32(0x7FFF)), odd);
    const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q));
    const __m256i quiet = _mm256_or_si256(u, _mm256_set1_epi32(0x400000));
    const __m256i w = _mm256_srli_epi32(_mm256_blendv_epi8(up, quiet, nan), 16);
    return _mm_packus_epi32(_mm256_castsi256_si128(w), _mm256_extracti128_si256(w, 1));
}

INLINE void store8(stk_dtype out, uint8_t *dst, __m256 v)
{
    if (out == STK_FLOAT32) {
        _mm256_storeu_ps((float *)(void *)dst, v);
    }
    else if (out == STK_FLOAT16) {
        _mm_storeu_si128((__m128i *)dst,
                         _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
    }
    else if (out == STK_BFLOAT16) {
        _mm_storeu_si128((__m128i *)dst, to_bfloat16(v));
    }
    else {
        v = _mm256_max_ps(v, _mm256_setzero_ps()); /* NaN gives the second operand */
        const __m256i w = _mm256_cvtps_epi32(_mm256_min_ps(v, _mm256_set1_ps(255.0f)));
        const __m128i s =
            _mm_packus_epi32(_mm256_castsi256_si128(w), _mm256_extracti128_si256(w, 1));
        _mm_storel_epi64((__m128i *)dst, _mm_packus_epi16(s, s));
    }
}

INLINE size_t size_of(stk_dtype dtype)
{
    return dtype == STK_FLOAT32 ? 4 : dtype == STK_UINT8 ? 1 : 2;
}

INLINE void run(stk_dtype in, stk_dtype out, const uint8_t *src, uint8_t *dst, int64_t n,
                const float *a, const float *b, int32_t period)
{
    const size_t from = size_of(in) * LANES, to = size_of(out) * LANES;
    int32_t at = 0;
    for (; n >= LANES; n -= LANES, src += from, dst += to) {
        const __m256 v = _mm256_mul_ps(load8(in, src), _mm256_loadu_ps(a + at));
        store8(out, dst, _mm256_add_ps(v, _mm256_loadu_ps(b + at)));
        at = at + LANES == period ? 0 : at + LANES;
    }
    if (n == 0) return;
    uint8_t rest[LANES * sizeof(float)] = {0}, made[LANES * sizeof(float)];
    memcpy(rest, src, (size_t)n * size_of(in));
    const __m256 v = _mm256_mul_ps(load8(in, rest), _mm256_loadu_ps(a + at));
    store8(out, made, _mm256_add_ps(v, _mm256_loadu_ps(b + at)));
    memcpy(dst, made, (size_t)n * size_of(out));
}

AVX2 static void affine(stk_dtype in, stk_dtype out, const void *src, void *dst, int64_t n,
                        const float *a, const float *b, int32_t period)
{
#define CASE(i, o) \
    if (in == (i) && out == (o)) run(i, o, src, dst, n, a, b, period)
    CASE(STK_UINT8, STK_FLOAT32);
    CASE(STK_UINT8, STK_FLOAT16);
    CASE(STK_UINT8, STK_BFLOAT16);
    CASE(STK_UINT8, STK_UINT8);
    CASE(STK_FLOAT32, STK_FLOAT32);
    CASE(STK_FLOAT32, STK_FLOAT16);
    CASE(STK_FLOAT32, STK_BFLOAT16);
    CASE(STK_FLOAT32, STK_UINT8);
#undef CASE
}

AVX2 static void split3(const uint8_t *src, uint8_t *const planes[3], int64_t pixels)
{
    int64_t i = 0;
    for (; i + 16 <= pixels; i += 16, src += 48) {
        const __m128i *s = (const __m128i *)src;
        const __m128i v[3] = {_mm_loadu_si128(s), _mm_loadu_si128(s + 1), _mm_loadu_si128(s + 2)};
        for (int c = 0; c < 3; c++) {
            __m128i made = _mm_setzero_si128();
            for (int j = 0; j < 3; j++) {
                const __m128i order = _mm_loadu_si128((const __m128i *)stk_kernel_split3[c][j]);
                made = _mm_or_si128(made, _mm_shuffle_epi8(v[j], order));
            }
            _mm_storeu_si128((__m128i *)(planes[c] + i), made);
        }
    }
    for (; i < pixels; i++, src += 3)
        for (int c = 0; c < 3; c++) planes[c][i] = src[c];
}

const stk_normalize_kernels stk_normalize_avx2 = {
    .name = "avx2",
    .affine = affine,
    .split3 = split3,
};

#endif
