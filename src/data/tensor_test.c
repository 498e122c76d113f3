#include <stoker/tensor.h>

#include "tests/check.h"

static void dtypes(void)
{
#define X(name, value, bytes, text)                  \
    CHECK_EQ(STK_##name, value);                     \
    CHECK_EQ(stk_dtype_size(STK_##name), bytes);     \
    CHECK(!strcmp(stk_dtype_str(STK_##name), text)); \
    CHECK_EQ(stk_dtype_parse(text), STK_##name);
    STK_DTYPE_MAP(X)
#undef X
    CHECK_EQ(stk_dtype_size(STK_DTYPE_NONE), 0);
    CHECK_EQ(stk_dtype_size((stk_dtype)99), 0);
    CHECK(!strcmp(stk_dtype_str(STK_DTYPE_NONE), "none"));
    CHECK(!strcmp(stk_dtype_str((stk_dtype)99), "none"));
    CHECK_EQ(stk_dtype_parse("none"), STK_DTYPE_NONE);
    CHECK_EQ(stk_dtype_parse("float"), STK_DTYPE_NONE);
    CHECK_EQ(stk_dtype_parse(""), STK_DTYPE_NONE);
}

static void bytes_of_specs(void)
{
    size_t n = 1;
    stk_spec spec = {.dtype = STK_FLOAT32, .ndim = 3, .shape = {2, 3, 5}};
    CHECK_EQ(stk_spec_bytes(&spec, &n), STK_OK);
    CHECK_EQ(n, 120);
    spec.shape[1] = 0;
    CHECK_EQ(stk_spec_bytes(&spec, &n), STK_OK);
    CHECK_EQ(n, 0);
    CHECK_EQ(stk_spec_bytes(&(stk_spec){.dtype = STK_INT64}, &n), STK_OK);
    CHECK_EQ(n, 8);
}

static void bad_specs(void)
{
    size_t n = 1;
    CHECK_EQ(stk_spec_bytes(&(stk_spec){.ndim = 1, .shape = {1}}, &n), STK_EINVAL);
    CHECK_EQ(n, 0);
    CHECK_EQ(stk_spec_bytes(&(stk_spec){.dtype = (stk_dtype)99}, &n), STK_EINVAL);
    CHECK_EQ(stk_spec_bytes(&(stk_spec){.dtype = STK_UINT8, .ndim = -1}, &n), STK_EINVAL);
    CHECK_EQ(stk_spec_bytes(&(stk_spec){.dtype = STK_UINT8, .ndim = 9}, &n), STK_EINVAL);
    CHECK_EQ(stk_spec_bytes(&(stk_spec){.dtype = STK_UINT8, .ndim = 1, .shape = {-1}}, &n),
             STK_EINVAL);
    /* Negative wins over too large, wherever it stands. */
    CHECK_EQ(
        stk_spec_bytes(&(stk_spec){.dtype = STK_UINT16, .ndim = 2, .shape = {INT64_MAX, -1}}, &n),
        STK_EINVAL);
}

static void limits(void)
{
    size_t n = 1;
    stk_spec spec = {.dtype = STK_UINT8, .ndim = 1, .shape = {INT64_MAX}};
    CHECK_EQ(stk_spec_bytes(&spec, &n), STK_OK);
    CHECK_EQ(n, SIZE_MAX / 2);
    spec.dtype = STK_UINT16;
    CHECK_EQ(stk_spec_bytes(&spec, &n), STK_ELIMIT);
    CHECK_EQ(n, 0);
    spec = (stk_spec){.dtype = STK_UINT8, .ndim = 3, .shape = {1 << 30, 1 << 30, 1 << 30}};
    CHECK_EQ(stk_spec_bytes(&spec, &n), STK_ELIMIT);
    spec = (stk_spec){.dtype = STK_UINT8, .ndim = 3, .shape = {0, INT64_MAX, INT64_MAX}};
    CHECK_EQ(stk_spec_bytes(&spec, &n), STK_ELIMIT);
}

static void equality(void)
{
    const stk_spec a = {.dtype = STK_UINT8, .ndim = 2, .shape = {2, 3}};
    stk_spec b = a;
    b.shape[5] = 77; /* beyond ndim: not looked at */
    CHECK(stk_spec_equal(&a, &b));
    b.shape[1] = 4;
    CHECK(!stk_spec_equal(&a, &b));
    b = a, b.ndim = 1;
    CHECK(!stk_spec_equal(&a, &b));
    b = a, b.dtype = STK_INT8;
    CHECK(!stk_spec_equal(&a, &b));
}

static void views(void)
{
    float data[30];
    const stk_spec spec = {.dtype = STK_FLOAT32, .ndim = 3, .shape = {2, 3, 5}};
    stk_tensor t = stk_tensor_over(data, &spec);
    CHECK(t.data == data);
    CHECK_EQ(t.strides[0], 60);
    CHECK_EQ(t.strides[1], 20);
    CHECK_EQ(t.strides[2], 4);
    CHECK(stk_tensor_contiguous(&t));
    stk_spec back = stk_tensor_spec(&t);
    CHECK(stk_spec_equal(&spec, &back));

    t.shape[2] = 4; /* a window of each row */
    CHECK(!stk_tensor_contiguous(&t));
    t.shape[0] = t.shape[1] = 1; /* of one row */
    CHECK(stk_tensor_contiguous(&t));
    t.strides[2] = 8;
    CHECK(!stk_tensor_contiguous(&t));
    t.shape[1] = 0;
    CHECK(stk_tensor_contiguous(&t));
    t = stk_tensor_over(data, &(stk_spec){.dtype = STK_FLOAT32});
    CHECK(stk_tensor_contiguous(&t));
}

/* The elements in the order of their indices, whatever the strides. */
static void packing(void)
{
    static const stk_dtype widths[] = {STK_UINT8, STK_INT16, STK_FLOAT32, STK_INT64};
    for (size_t k = 0; k < 4; k++) {
        const size_t item = stk_dtype_size(widths[k]);
        uint8_t src[24 * 8], dst[24 * 8] = {0};
        for (size_t i = 0; i < sizeof(src); i++) src[i] = (uint8_t)i;
        const stk_spec spec = {.dtype = widths[k], .ndim = 3, .shape = {2, 3, 4}};
        const stk_tensor t = stk_tensor_over(src, &spec);
        stk_tensor_pack(&t, dst);
        CHECK(!memcmp(src, dst, 24 * item));

        /* Transposed and mirrored: [c][1 - a][b] */
        stk_tensor u = {.data = src + 12 * item, .dtype = t.dtype, .ndim = 3, .shape = {4, 2, 3}};
        u.strides[0] = t.strides[2], u.strides[1] = -t.strides[0], u.strides[2] = t.strides[1];
        stk_tensor_pack(&u, dst);
        for (size_t i = 0; i < 24; i++) {
            const size_t c = i / 6, a = 1 - i / 3 % 2, b = i % 3;
            CHECK(!memcmp(dst + i * item, src + (a * 12 + b * 4 + c) * item, item));
        }
    }
    uint8_t one = 7, two[2] = {0};
    stk_tensor_pack(&(stk_tensor){.data = &one, .dtype = STK_UINT8}, two);
    CHECK(two[0] == 7 && two[1] == 0);
    const stk_tensor empty = {.data = &one, .dtype = STK_UINT8, .ndim = 2, .shape = {3, 0}};
    stk_tensor_pack(&empty, two + 1);
    CHECK_EQ(two[1], 0);
}

TESTS(TEST(packing), TEST(dtypes), TEST(bytes_of_specs), TEST(bad_specs), TEST(limits),
      TEST(equality), TEST(views))
