#include "transform/half.h"

#include <math.h>

#include "tests/check.h"

static float float_of(uint32_t bits)
{
    float v;
    memcpy(&v, &bits, sizeof(v));
    return v;
}

/* What a half means, by its definition. */
static double half_value(uint16_t h)
{
    const int exponent = h >> 10 & 31, mantissa = h & 1023;
    const double size = exponent ? ldexp(1024 + mantissa, exponent - 25) : ldexp(mantissa, -24);
    return h & 0x8000 ? -size : size;
}

/* Every half, and every point between two of them, goes where it is nearest. */
static void halves_are_exact(void)
{
    for (uint16_t h = 0; h < 0x7C00; h++) {
        const double v = half_value(h), next = half_value((uint16_t)(h + 1));
        const float middle = (float)((v + next) / 2);
        CHECK_EQ(stk_half_from_float((float)v), h);
        CHECK_EQ(stk_half_from_float(-(float)v), h | 0x8000);
        CHECK_EQ(stk_half_from_float(middle), h + (h & 1));
        CHECK_EQ(stk_half_from_float(nextafterf(middle, 0)), h);
        CHECK_EQ(stk_half_from_float(nextafterf(middle, INFINITY)), h + 1);
    }
    CHECK_EQ(stk_half_from_float(INFINITY), 0x7C00);
    CHECK_EQ(stk_half_from_float(-1e30f), 0xFC00);
    CHECK_EQ(stk_half_from_float(float_of(0x7FC00000)), 0x7E00);
    CHECK_EQ(stk_half_from_float(float_of(0x7F800001)), 0x7E00); /* not infinity */
}

static void bfloats_are_exact(void)
{
    for (uint32_t h = 0; h < 0x7F80; h++) {
        CHECK_EQ(stk_bfloat16_from_float(float_of(h << 16)), h);
        CHECK_EQ(stk_bfloat16_from_float(float_of(h << 16 | 0x8000)), h + (h & 1));
        CHECK_EQ(stk_bfloat16_from_float(float_of(h << 16 | 0x7FFF)), h);
        CHECK_EQ(stk_bfloat16_from_float(float_of(h << 16 | 0x8001)), h + 1);
    }
    CHECK_EQ(stk_bfloat16_from_float(float_of(0x7F800001)), 0x7FC0);
    CHECK_EQ(stk_bfloat16_from_float(-INFINITY), 0xFF80);
}

static void bytes_are_exact(void)
{
    for (int i = 0; i < 255; i++) {
        const float v = (float)i;
        CHECK_EQ(stk_uint8_from_float(v), i);
        CHECK_EQ(stk_uint8_from_float(v + 0.5f), i + i % 2);
        CHECK_EQ(stk_uint8_from_float(nextafterf(v + 0.5f, 0)), i);
        CHECK_EQ(stk_uint8_from_float(nextafterf(v + 0.5f, 300)), i + 1);
    }
    CHECK_EQ(stk_uint8_from_float(-3.0f), 0);
    CHECK_EQ(stk_uint8_from_float(255.4f), 255);
    CHECK_EQ(stk_uint8_from_float(1e30f), 255);
    CHECK_EQ(stk_uint8_from_float(NAN), 0);
}

/* Where numbers become 0 and infinity, with their sign. */
static void halves_end(void)
{
    CHECK_EQ(stk_half_from_float(-0.0f), 0x8000);
    CHECK_EQ(stk_half_from_float(0x1p-25f), 0); /* a tie between 0 and the smallest */
    CHECK_EQ(stk_half_from_float(nextafterf(0x1p-25f, 1)), 1);
    CHECK_EQ(stk_half_from_float(-0x1p-25f), 0x8000);
    CHECK_EQ(stk_half_from_float(nextafterf(-0x1p-25f, -1)), 0x8001);
    CHECK_EQ(stk_half_from_float(float_of(1)), 0); /* the smallest float */
    CHECK_EQ(stk_half_from_float(0x1p-14f), 0x0400);
    CHECK_EQ(stk_half_from_float(nextafterf(0x1p-14f, 0)), 0x0400); /* the largest subnormal + 1 */
    CHECK_EQ(stk_half_from_float(65504.0f), 0x7BFF);
    CHECK_EQ(stk_half_from_float(nextafterf(65520.0f, 0)), 0x7BFF);
    CHECK_EQ(stk_half_from_float(65520.0f), 0x7C00); /* a tie, to the even one: infinity */
    CHECK_EQ(stk_half_from_float(nextafterf(-65520.0f, 0)), 0xFBFF);
    CHECK_EQ(stk_half_from_float(-65536.0f), 0xFC00);
}

static void bfloats_end(void)
{
    CHECK_EQ(stk_bfloat16_from_float(-0.0f), 0x8000);
    CHECK_EQ(stk_bfloat16_from_float(float_of(1)), 0);
    CHECK_EQ(stk_bfloat16_from_float(float_of(0x8001)), 1); /* subnormal, as in float32 */
    CHECK_EQ(stk_bfloat16_from_float(float_of(0x80008001)), 0x8001);
    CHECK_EQ(stk_bfloat16_from_float(float_of(0x7F7F7FFF)), 0x7F7F);
    CHECK_EQ(stk_bfloat16_from_float(float_of(0x7F7F8000)), 0x7F80); /* a tie with infinity */
    CHECK_EQ(stk_bfloat16_from_float(float_of(0xFF7FFFFF)), 0xFF80);
}

/* Every NaN stays one, and quiet, with its sign and what fits of its payload. */
static void nans_stay(void)
{
    for (uint32_t payload = 1; payload < UINT32_C(1) << 23; payload += 4093) {
        for (uint32_t sign = 0; sign < 2; sign++) {
            const float v = float_of(sign << 31 | UINT32_C(0x7F800000) | payload);
            const uint16_t half = stk_half_from_float(v), b = stk_bfloat16_from_float(v);
            CHECK_EQ(half, sign << 15 | 0x7E00 | payload >> 13);
            CHECK_EQ(b, sign << 15 | 0x7FC0 | payload >> 16);
            CHECK_EQ(stk_uint8_from_float(v), 0);
        }
    }
}

static void bytes_end(void)
{
    CHECK_EQ(stk_uint8_from_float(-0.0f), 0);
    CHECK_EQ(stk_uint8_from_float(float_of(1)), 0);
    CHECK_EQ(stk_uint8_from_float(0.5f), 0); /* a tie */
    CHECK_EQ(stk_uint8_from_float(nextafterf(254.5f, 255)), 255);
    CHECK_EQ(stk_uint8_from_float(254.5f), 254);
    CHECK_EQ(stk_uint8_from_float(INFINITY), 255);
    CHECK_EQ(stk_uint8_from_float(-INFINITY), 0);
}

TESTS(TEST(halves_are_exact), TEST(bfloats_are_exact), TEST(bytes_are_exact), TEST(halves_end),
      TEST(bfloats_end), TEST(nans_stay), TEST(bytes_end))
