#include "ops/normalize.h"

#include <math.h>

#include "base/alloc.h"
#include "data/batch.h"
#include "tests/check.h"

/* A batch of n samples with a field "image" (n, 2, 3, channels), whose values count up. */
static stk_batch *make_batch(size_t n, int64_t channels, stk_dtype dtype)
{
    static const char *const words[] = {"a", "b", "c", "d"};
    stk_batch *b;
    stk_buffer *mem;
    stk_slab_pool *pool;
    CHECK_EQ(stk_slab_pool_new(4, &pool), STK_OK);
    const stk_spec spec = {.dtype = dtype, .ndim = 4, .shape = {(int64_t)n, 2, 3, channels}};
    size_t bytes;
    CHECK_EQ(stk_batch_new(&(stk_batch_params){.capacity = n, .pool = pool}, &b), STK_OK);
    for (size_t i = 0; i < n; i++)
        CHECK_EQ(stk_batch_add_sample(b, NULL, (int64_t)i, false), STK_OK);
    CHECK_EQ(stk_spec_bytes(&spec, &bytes), STK_OK);
    CHECK_EQ(stk_slab_take(pool, bytes, &mem), STK_OK);
    uint8_t *p = stk_buffer_writable(mem);
    const size_t size = stk_dtype_size(dtype);
    memset(p, 0, bytes);
    for (size_t i = 0; i < bytes / size; i++) {
        const float v = (float)(i % 256);
        if (dtype == STK_FLOAT32)
            memcpy(p + 4 * i, &v, sizeof(v));
        else
            p[i * size] = (uint8_t)i;
    }
    CHECK_EQ(stk_batch_add_array(b, "image", &spec, &mem, NULL), STK_OK);
    CHECK_EQ(stk_batch_add_strings(b, "word", words, NULL), STK_OK);
    stk_slab_pool_unref(&pool); /* the batch has a reference of its own */
    return b;
}

static const double MEAN[] = {0.485, 0.456, 0.406}, STD[] = {0.229, 0.224, 0.225};

static float at(const stk_tensor *t, int64_t i)
{
    return ((const float *)t->data)[i];
}

static void is_torchvisions_formula(stk_dtype dtype)
{
    stk_op *op = stk_op_normalize(
        &(stk_normalize_opts){
            .num_channels = 3, .mean = MEAN, .std = STD, .layout = STK_LAYOUT_NCHW},
        NULL);
    stk_batch *b = make_batch(4, 3, dtype);
    stk_tensor t;
    CHECK(op);
    CHECK_EQ(stk_normalize_batch(stk_op_params(op), b, NULL), STK_OK);
    CHECK_EQ(stk_batch_array(b, 0, &t, NULL), STK_OK);
    CHECK(t.dtype == STK_FLOAT32 && t.ndim == 4 && stk_tensor_contiguous(&t));
    CHECK(t.shape[0] == 4 && t.shape[1] == 3 && t.shape[2] == 2 && t.shape[3] == 3);
    for (int64_t i = 0; i < 4 * 18; i++) {
        const int64_t image = i / 18, c = i / 6 % 3, pixel = i % 6;
        const double x = (double)((image * 6 + pixel) * 3 + c);
        CHECK(fabs(at(&t, i) - (x / 255 - MEAN[c]) / STD[c]) < 1e-6);
    }
    stk_batch_unref(&b);
    stk_op_unref(&op);
}

static void both_inputs(void)
{
    is_torchvisions_formula(STK_UINT8);
    is_torchvisions_formula(STK_FLOAT32);
}

static void defaults_and_print(void)
{
    char text[100];
    stk_tensor t;
    stk_op *op = stk_op_normalize(NULL, NULL);
    stk_batch *b = make_batch(2, 5, STK_UINT8); /* one factor serves any number of channels */
    CHECK(op);
    CHECK_EQ(stk_normalize_batch(stk_op_params(op), b, NULL), STK_OK);
    CHECK_EQ(stk_batch_array(b, 0, &t, NULL), STK_OK);
    CHECK(t.shape[3] == 5 && fabsf(at(&t, 51) - 0.2f) < 1e-7f);
    stk_op_get_class(op)->print(stk_op_params(op), text, sizeof(text));
    CHECK(!strcmp(text, "normalize(image, float32, NHWC)"));
    stk_batch_unref(&b);
    stk_op_unref(&op);
}

static void check_refused(const stk_normalize_opts *opts, stk_batch *b, const char *text)
{
    stk_diag diag = {0};
    stk_op *op = stk_op_normalize(opts, NULL);
    CHECK(op);
    CHECK_EQ(stk_normalize_batch(stk_op_params(op), b, &diag), STK_EINVAL);
    if (!strstr(diag.text, text)) fprintf(stderr, "\"%s\", not \"%s\"\n", diag.text, text);
    CHECK(strstr(diag.text, text));
    CHECK_EQ(stk_normalize_batch(stk_op_params(op), b, NULL), STK_EINVAL);
    stk_op_unref(&op);
}

static void refuses_what_it_cannot(void)
{
    const stk_normalize_opts three = {.num_channels = 3, .mean = MEAN, .std = STD};
    stk_batch *b = make_batch(2, 1, STK_UINT8);
    check_refused(&three, b, "\"image\": mean and std have 3 channels, found (2, 2, 3, 1) uint8");
    check_refused(&(stk_normalize_opts){.field = "mask"}, b,
                  "\"mask\": the batch has none of that name; it has \"image\", \"word\"");
    check_refused(&(stk_normalize_opts){.field = "word"}, b, "\"word\": strings");
    stk_batch_unref(&b);

    b = make_batch(2, 3, STK_UINT16);
    check_refused(&three, b, "needs uint8 or float32, found (2, 2, 3, 3) uint16");
    const stk_spec flat = {.dtype = STK_UINT8, .ndim = 1, .shape = {2}};
    stk_buffer *mem;
    CHECK_EQ(stk_buffer_new(2, &mem), STK_OK);
    CHECK_EQ(stk_batch_replace_array(b, 0, &flat, &mem), STK_OK);
    check_refused(&three, b, "height, width, channels), found (2) uint8");
    stk_batch_unref(&b);
}

static void check_option(const stk_normalize_opts *opts, const char *text)
{
    stk_diag diag = {0};
    CHECK(stk_op_normalize(opts, &diag) == NULL);
    CHECK_EQ(diag.err, STK_EINVAL);
    if (!strstr(diag.text, text)) fprintf(stderr, "\"%s\", not \"%s\"\n", diag.text, text);
    CHECK(strstr(diag.text, text));
    CHECK(stk_op_normalize(opts, NULL) == NULL);
}

static void checks_options(void)
{
    const double zero[] = {1, 0, 1}, nan[] = {0, NAN}, tiny[] = {1e-300};
    check_option(&(stk_normalize_opts){.num_channels = 3, .std = zero}, "std[1] is 0");
    check_option(&(stk_normalize_opts){.num_channels = 2, .mean = nan}, "mean[1] is not a finite");
    check_option(&(stk_normalize_opts){.num_channels = 2, .std = nan}, "std[0] is 0");
    check_option(&(stk_normalize_opts){.num_channels = 1, .std = tiny}, "float32");
    check_option(&(stk_normalize_opts){.num_channels = 5, .std = zero}, "5 channels; 1 to 4");
    check_option(&(stk_normalize_opts){.std = zero}, "0 channels");
    check_option(&(stk_normalize_opts){.scale = -1}, "scale is -1");
    check_option(&(stk_normalize_opts){.scale = INFINITY}, "scale is inf");
    check_option(&(stk_normalize_opts){.dtype = STK_INT64}, "dtype int64");
    check_option(&(stk_normalize_opts){.layout = (stk_layout)9}, "layout 9");
}

/* Also one that has no array at all: all of its samples were lost before their shape was known. */
static void empty_batches_pass(void)
{
    static const char *const fields[] = {"image", "mask"};
    for (int i = 0; i < 2; i++) {
        stk_batch *b = make_batch(0, 3, STK_UINT8);
        stk_op *op = stk_op_normalize(&(stk_normalize_opts){.field = fields[i]}, NULL);
        CHECK(op);
        CHECK_EQ(stk_normalize_batch(stk_op_params(op), b, NULL), STK_OK);
        stk_batch_unref(&b);
        stk_op_unref(&op);
    }
}

static void survives_every_failure(void)
{
    stk_err err;
    TORTURE (err) {
        stk_fault_arm(-1);
        stk_batch *b = make_batch(3, 3, STK_UINT8);
        stk_tensor t;
        stk_fault_arm(torture_at);
        stk_diag diag = {0};
        stk_op *op = stk_op_normalize(NULL, &diag);
        err = op ? stk_normalize_batch(stk_op_params(op), b, &diag) : STK_ENOMEM;
        CHECK(err == STK_OK || (err == STK_ENOMEM && diag.err == STK_ENOMEM));
        stk_fault_arm(-1);
        CHECK_EQ(stk_batch_array(b, 0, &t, NULL), STK_OK);
        CHECK_EQ(t.dtype, err ? STK_UINT8 : STK_FLOAT32); /* as it was, or replaced */
        stk_op_unref(&op);
        stk_batch_unref(&b);
    }
    stk_fault_arm(-1);
}

TESTS(TEST(both_inputs), TEST(defaults_and_print), TEST(refuses_what_it_cannot),
      TEST(checks_options), TEST(empty_batches_pass), TEST(survives_every_failure))
