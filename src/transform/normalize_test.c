#include "transform/normalize.h"

#include <math.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "tests/check.h"
#include "transform/half.h"

static uint64_t seed = 7;

static uint32_t any(void)
{
    return (uint32_t)(stk_mix64(seed++) >> 32);
}

static float float_of(uint32_t bits)
{
    float v;
    memcpy(&v, &bits, sizeof(v));
    return v;
}

typedef struct job {
    stk_normalize n;
    int64_t images, pixels;
    size_t in_bytes, out_bytes;
    uint8_t *src, *got, *want;
} job;

enum { GUARD = 0xA7, MARGIN = 32 };

static void make_job(job *j, stk_dtype in, stk_dtype out, stk_layout layout)
{
    stk_normalize *n = &j->n;
    *j = (job){.n = {.in = in, .out = out, .layout = layout}, .images = any() % 4};
    n->channels = (int32_t)(any() % 6) + 1;
    n->factors = n->channels > 4 || any() % 3 == 0 ? 1 : n->channels;
    for (int32_t c = 0; c < n->factors; c++) {
        n->a[c] = ((float)(any() % 2000) - 1000.0f) / 300.0f;
        n->b[c] = ((float)(any() % 2000) - 1000.0f) / 77.0f;
    }
    j->pixels = any() % 2 ? any() % 40 : any() % 1500;
    const size_t values = (size_t)(j->images * j->pixels * n->channels);
    j->in_bytes = values * stk_dtype_size(in);
    j->out_bytes = values * stk_dtype_size(out);
    j->src = stk_alloc(j->in_bytes);
    j->got = stk_alloc(j->out_bytes + MARGIN);
    j->want = stk_alloc(j->out_bytes + MARGIN);
    CHECK(j->src && j->got && j->want);
    for (size_t i = 0; i < values; i++) {
        const uint32_t v = any();
        if (in == STK_UINT8) {
            j->src[i] = (uint8_t)v;
            continue;
        }
        const float f = v % 9 == 0 ? float_of(any()) : ((float)(v % 70000) - 35000.0f) / 64.0f;
        memcpy(j->src + 4 * i, &f, sizeof(f));
    }
    memset(j->got, GUARD, j->out_bytes + MARGIN);
    memset(j->want, GUARD, j->out_bytes + MARGIN);
}

static void free_job(job *j)
{
    stk_free(j->src);
    stk_free(j->got);
    stk_free(j->want);
}

/* The formula, value by value. */
static void by_definition(const job *j)
{
    const stk_normalize *n = &j->n;
    for (int64_t i = 0; i < j->images * j->pixels * n->channels; i++) {
        const int64_t c = i % n->channels, at = i / n->channels;
        const int64_t to = n->layout == STK_LAYOUT_NHWC
                               ? i
                               : (at / j->pixels * n->channels + c) * j->pixels + at % j->pixels;
        float x;
        if (n->in == STK_UINT8)
            x = j->src[i];
        else
            memcpy(&x, j->src + 4 * i, sizeof(x));
        const int64_t f = n->factors == 1 ? 0 : c;
        const float v = x * n->a[f] + n->b[f];
        const uint16_t h =
            n->out == STK_FLOAT16 ? stk_half_from_float(v) : stk_bfloat16_from_float(v);
        if (n->out == STK_UINT8)
            j->want[to] = stk_uint8_from_float(v);
        else if (n->out == STK_FLOAT32)
            memcpy(j->want + 4 * to, &v, sizeof(v));
        else
            memcpy(j->want + 2 * to, &h, sizeof(h));
    }
}

static bool near(float a, float b)
{
    if (isnan(a) || isnan(b)) return isnan(a) && isnan(b);
    return a == b || nextafterf(a, b) == b; /* 1 unit in the last place: fused or not */
}

static void compare(const job *j)
{
    if (j->n.out != STK_FLOAT32) {
        CHECK(!memcmp(j->got, j->want, j->out_bytes + MARGIN));
        return;
    }
    for (size_t i = 0; i < j->out_bytes; i += 4) {
        float a, b;
        memcpy(&a, j->got + i, sizeof(a));
        memcpy(&b, j->want + i, sizeof(b));
        CHECK(near(a, b));
    }
    CHECK(!memcmp(j->got + j->out_bytes, j->want + j->out_bytes, MARGIN));
}

static void every_kind_is_the_formula(void)
{
    static const stk_dtype ins[] = {STK_UINT8, STK_FLOAT32};
    static const stk_dtype outs[] = {STK_UINT8, STK_FLOAT32, STK_FLOAT16, STK_BFLOAT16};
    const stk_normalize_kernels *k;
    for (int i = 0; i < 16 * 60; i++) {
        job j;
        make_job(&j, ins[i % 2], outs[i / 2 % 4], i / 8 % 2 ? STK_LAYOUT_NCHW : STK_LAYOUT_NHWC);
        by_definition(&j);
        for (size_t t = 0; (k = stk_normalize_kernels_at(t)); t++) {
            memset(j.got, GUARD, j.out_bytes + MARGIN);
            CHECK_EQ(stk_normalize_run_by(k, &j.n, j.src, j.got, j.images, j.pixels), STK_OK);
            compare(&j);
        }
        CHECK_EQ(stk_normalize_run(&j.n, j.src, j.got, j.images, j.pixels), STK_OK);
        compare(&j);
        free_job(&j);
    }
}

static void says_no(void)
{
    const stk_normalize good = {
        .in = STK_UINT8, .out = STK_FLOAT32, .channels = 3, .factors = 3, .a = {1, 1, 1}};
    uint8_t src[3] = {1, 2, 3};
    float dst[3];
    CHECK_EQ(stk_normalize_run(&good, src, dst, 1, 1), STK_OK);
    CHECK(dst[0] == 1 && dst[1] == 2 && dst[2] == 3);
    stk_normalize n = good;
    n.in = STK_INT64;
    CHECK_EQ(stk_normalize_run(&n, src, dst, 1, 1), STK_EINVAL);
    n = good;
    n.out = STK_FLOAT64;
    CHECK_EQ(stk_normalize_run(&n, src, dst, 1, 1), STK_EINVAL);
    n = good;
    n.factors = 2;
    CHECK_EQ(stk_normalize_run(&n, src, dst, 1, 1), STK_EINVAL);
    n = good;
    n.channels = n.factors = 5;
    CHECK_EQ(stk_normalize_run(&n, src, dst, 1, 1), STK_EINVAL);
    CHECK_EQ(stk_normalize_run(&good, src, dst, 1, -1), STK_EINVAL);
}

TESTS(TEST(every_kind_is_the_formula), TEST(says_no))
