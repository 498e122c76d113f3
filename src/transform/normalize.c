#include "transform/normalize.h"

#include <string.h>

#include "transform/half.h"

#if defined(__x86_64__)
#include <cpuid.h>

/* Compilers differ in whether they know F16C by name. */
static bool has_f16c(void)
{
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}
#endif

enum {
    LANES = 8,
    CHUNK = 512, /* pixels that are split into planes at a time: these stay in cache */
};

static float load(stk_dtype in, const uint8_t *src, int64_t i)
{
    if (in == STK_UINT8) return src[i];
    float v;
    memcpy(&v, src + i * 4, sizeof(v));
    return v;
}

static void store(stk_dtype out, uint8_t *dst, int64_t i, float v)
{
    if (out == STK_FLOAT32) {
        memcpy(dst + i * 4, &v, sizeof(v));
        return;
    }
    if (out == STK_UINT8) {
        dst[i] = stk_uint8_from_float(v);
        return;
    }
    const uint16_t h = out == STK_FLOAT16 ? stk_half_from_float(v) : stk_bfloat16_from_float(v);
    memcpy(dst + i * 2, &h, sizeof(h));
}

static void affine(stk_dtype in, stk_dtype out, const void *src, void *dst, int64_t n,
                   const float *a, const float *b, int32_t period)
{
    int32_t at = 0;
    for (int64_t i = 0; i < n; i++) {
        store(out, dst, i, load(in, src, i) * a[at] + b[at]);
        if (++at == period) at = 0;
    }
}

static void split3(const uint8_t *src, uint8_t *const planes[3], int64_t pixels)
{
    for (int64_t i = 0; i < pixels; i++, src += 3)
        for (int c = 0; c < 3; c++) planes[c][i] = src[c];
}

const stk_normalize_kernels stk_normalize_scalar = {
    .name = "scalar",
    .affine = affine,
    .split3 = split3,
};

const stk_normalize_kernels *stk_normalize_kernels_at(size_t i)
{
    if (i == 0) return &stk_normalize_scalar;
#if defined(__x86_64__)
    if (i == 1 && __builtin_cpu_supports("avx2") && has_f16c()) return &stk_normalize_avx2;
#endif
    return NULL;
}

/* The values of one channel, side by side. */
static void split(const stk_normalize *n, const uint8_t *src, uint8_t *plane, int64_t pixels)
{
    if (n->in == STK_UINT8) {
        for (int64_t i = 0; i < pixels; i++) plane[i] = src[i * n->channels];
        return;
    }
    const size_t step = sizeof(float) * (size_t)n->channels;
    for (int64_t i = 0; i < pixels; i++, src += step) memcpy(plane + i * 4, src, sizeof(float));
}

typedef struct pass {
    const stk_normalize_kernels *kernels;
    const stk_normalize *n;
    float a[STK_NORMALIZE_CHANNELS * LANES], b[STK_NORMALIZE_CHANNELS * LANES];
} pass;

/* Same layout: one run over everything, channels following each other in the factors. */
static void run_nhwc(pass *p, const void *src, void *dst, int64_t values)
{
    const int32_t period = p->n->factors * LANES;
    for (int32_t i = 0; i < period; i++) {
        p->a[i] = p->n->a[i % p->n->factors];
        p->b[i] = p->n->b[i % p->n->factors];
    }
    p->kernels->affine(p->n->in, p->n->out, src, dst, values, p->a, p->b, period);
}

/* One channel of one chunk. */
static void run_plane(pass *p, int32_t channel, const void *plane, void *dst, int64_t values)
{
    const int32_t factor = p->n->factors == 1 ? 0 : channel;
    for (int32_t i = 0; i < LANES; i++) {
        p->a[i] = p->n->a[factor];
        p->b[i] = p->n->b[factor];
    }
    p->kernels->affine(p->n->in, p->n->out, plane, dst, values, p->a, p->b, LANES);
}

static void run_nchw(pass *p, const uint8_t *src, uint8_t *dst, int64_t pixels)
{
    const stk_normalize *n = p->n;
    const size_t from = stk_dtype_size(n->in) * (size_t)n->channels, to = stk_dtype_size(n->out);
    _Alignas(32) uint8_t chunk[3][CHUNK * sizeof(float)];
    uint8_t *const planes[3] = {chunk[0], chunk[1], chunk[2]};
    const bool colours = n->in == STK_UINT8 && n->channels == 3;

    for (int64_t at = 0; at < pixels; at += CHUNK) {
        const int64_t count = pixels - at < CHUNK ? pixels - at : CHUNK;
        const uint8_t *part = src + (size_t)at * from;
        if (colours) p->kernels->split3(part, planes, count);
        for (int32_t c = 0; c < n->channels; c++) {
            const uint8_t *plane = planes[colours ? c : 0];
            if (!colours) split(n, part + (size_t)c * stk_dtype_size(n->in), planes[0], count);
            run_plane(p, c, plane, dst + (size_t)(c * pixels + at) * to, count);
        }
    }
}

static bool known(const stk_normalize *n)
{
    const bool in = n->in == STK_UINT8 || n->in == STK_FLOAT32;
    const bool out = n->out == STK_UINT8 || n->out == STK_FLOAT32 || n->out == STK_FLOAT16 ||
                     n->out == STK_BFLOAT16;
    const bool factors =
        n->factors == 1 || (n->factors == n->channels && n->channels <= STK_NORMALIZE_CHANNELS);
    return in && out && n->channels >= 1 && factors;
}

stk_err stk_normalize_run_by(const stk_normalize_kernels *k, const stk_normalize *n,
                             const void *src, void *dst, int64_t images, int64_t pixels)
{
    if (!known(n) || images < 0 || pixels < 0) return STK_EINVAL;
    pass p = {.kernels = k, .n = n};
    if (n->layout == STK_LAYOUT_NHWC || n->channels == 1) {
        run_nhwc(&p, src, dst, images * pixels * n->channels);
        return STK_OK;
    }
    const size_t values = (size_t)pixels * (size_t)n->channels;
    const uint8_t *from = src;
    uint8_t *to = dst;
    for (int64_t i = 0; i < images; i++) {
        run_nchw(&p, from, to, pixels);
        from += values * stk_dtype_size(n->in);
        to += values * stk_dtype_size(n->out);
    }
    return STK_OK;
}

stk_err stk_normalize_run(const stk_normalize *n, const void *src, void *dst, int64_t images,
                          int64_t pixels)
{
    const stk_normalize_kernels *simd = stk_normalize_kernels_at(1);
    return stk_normalize_run_by(simd ? simd : &stk_normalize_scalar, n, src, dst, images, pixels);
}
