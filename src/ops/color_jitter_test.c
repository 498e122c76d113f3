#include <stoker/augment.h>

#include "base/alloc.h"
#include "tests/op_run.h"

enum { H = 20, W = 30, N = H * W * 3 };

static op_run pictures(int64_t samples)
{
    return (op_run){.samples = samples,
                    .spec = {{STK_UINT8, 3, {H, W, 3}}, {STK_UINT8, 3, {H, W, 1}}}};
}

static stk_op *strong(void)
{
    return stk_op_color_jitter(&(stk_color_jitter_opts){.brightness = {-0.5, 0.5},
                                                        .contrast = {-0.5, 0.5},
                                                        .saturation = {-0.5, 0.5},
                                                        .hue = {-0.2, 0.2}},
                               NULL);
}

/* Wherever the array is, the result is the same, and what others refer to stays as it was. */
static void the_same_wherever_the_array_is(void)
{
    uint8_t want[4 * N], src[N];
    for (int where = OP_RUN_SLOT; where <= OP_RUN_STRIDED; where++)
        for (int threads = 1; threads <= 4; threads *= 2) {
            op_run r = pictures(4);
            r.where = (op_run_where)where;
            r.threads = threads;
            CHECK_EQ(op_run_go(&r, strong()), STK_OK);
            const stk_tensor t = op_run_field(&r, "image");
            CHECK(t.ndim == 4 && t.shape[0] == 4 && t.shape[3] == 3 && t.dtype == STK_UINT8);
            if (where == OP_RUN_SLOT && threads == 1) memcpy(want, t.data, sizeof(want));
            CHECK(!memcmp(t.data, want, sizeof(want)));
            op_run_fill(0, 0, src, N);
            if (where == OP_RUN_SHARED) CHECK(!memcmp(stk_buffer_data(r.kept), src, N));
            CHECK(memcmp(want, src, N));
            op_run_end(&r);
        }
}

/* Another seed, or another sample, another change; keep: none. */
static void draws_are_keyed(void)
{
    uint8_t first[N], src[N];
    op_run r = pictures(1);
    CHECK_EQ(op_run_go(&r, strong()), STK_OK);
    memcpy(first, op_run_field(&r, "image").data, N);
    op_run_end(&r);
    r.seed = 1;
    CHECK_EQ(op_run_go(&r, strong()), STK_OK);
    CHECK(memcmp(first, op_run_field(&r, "image").data, N));
    op_run_end(&r);
    stk_color_jitter_opts o = {.brightness = {-1, -1}, .keep = 1};
    CHECK_EQ(op_run_go(&r, stk_op_color_jitter(&o, NULL)), STK_OK);
    op_run_fill(0, 0, src, N);
    CHECK(!memcmp(src, op_run_field(&r, "image").data, N));
    op_run_end(&r);
    o.keep = 0; /* black */
    CHECK_EQ(op_run_go(&r, stk_op_color_jitter(&o, NULL)), STK_OK);
    memset(src, 0, N);
    CHECK(!memcmp(src, op_run_field(&r, "image").data, N));
    op_run_end(&r);
}

/* Some are kept: as many as `keep` says. */
static void chances(void)
{
    enum { SAMPLES = 2000 };
    uint8_t src[3];
    op_run r = {.samples = SAMPLES, .spec = {{STK_UINT8, 3, {1, 1, 3}}}, .seed = 3};
    CHECK_EQ(op_run_go(&r, stk_op_grayscale(&(stk_grayscale_opts){.keep = 0.75}, NULL)), STK_OK);
    const uint8_t *p = op_run_field(&r, "image").data;
    int kept = 0;
    for (int64_t i = 0; i < SAMPLES; i++) {
        op_run_fill(i, 0, src, 3);
        kept += !memcmp(src, p + 3 * i, 3);
    }
    CHECK(kept > 1440 && kept < 1560); /* 1500, and three standard deviations of 19.4 */
    op_run_end(&r);
}

/* The mask stays. */
static void other_parts_stay(void)
{
    uint8_t src[H * W];
    op_run r = pictures(2);
    r.parts = 2;
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(op_run_go(&r, i ? strong() : stk_op_grayscale(NULL, NULL)), STK_OK);
        const uint8_t *mask = op_run_field(&r, "mask").data;
        op_run_fill(1, 1, src, sizeof(src));
        CHECK(!memcmp(src, mask + H * W, sizeof(src)));
        op_run_end(&r);
    }
}

static void refuses_what_it_cannot(void)
{
    op_run r = pictures(1);
    r.spec[0].shape[2] = 4;
    op_run_refused(&r, strong(), "needs 1 or 3 channels (gray or RGB), found 4");
    op_run_refused(&r, stk_op_grayscale(NULL, NULL), "found 4");
    r.spec[0] = (stk_spec){STK_FLOAT32, 3, {H, W, 3}};
    op_run_refused(&r, strong(), "needs uint8 (height, width, channels)");
    op_run_refused(&r, strong(), "found (20, 30, 3) float32");
    r.spec[0] = (stk_spec){STK_UINT8, 2, {H, W}};
    op_run_refused(&r, stk_op_grayscale(NULL, NULL), "found (20, 30) uint8");
    r.spec[0] = (stk_spec){STK_UINT8, 3, {H, 0, 3}};
    op_run_refused(&r, strong(), "without pixels");
}

static void check_options(const stk_color_jitter_opts *o, const char *words)
{
    stk_diag diag = {0};
    CHECK(!stk_op_color_jitter(o, &diag));
    CHECK_EQ(diag.err, STK_EINVAL);
    if (!strstr(diag.text, words)) fprintf(stderr, "%s\n", diag.text);
    CHECK(strstr(diag.text, words));
    CHECK(!stk_op_color_jitter(o, NULL));
}

static void options(void)
{
    const double nan = strtod("nan", NULL);
    check_options(&(stk_color_jitter_opts){.brightness = {-1.5, 0}}, "brightness is -0.5 to 1");
    check_options(&(stk_color_jitter_opts){.contrast = {0.2, 0.1}}, "contrast is 1.2 to 1.1");
    check_options(&(stk_color_jitter_opts){.saturation = {0, 15.5}}, "range from 0 to 16");
    check_options(&(stk_color_jitter_opts){.hue = {-0.6, 0}}, "hue is -0.6 to 0");
    check_options(&(stk_color_jitter_opts){.hue = {nan, 0}}, "hue is");
    check_options(&(stk_color_jitter_opts){.keep = 1.5}, "keep is 1.5, not a probability");
    stk_diag diag = {0};
    CHECK(!stk_op_grayscale(&(stk_grayscale_opts){.keep = nan}, &diag));
    CHECK(diag.err == STK_EINVAL && strstr(diag.text, "grayscale: keep"));

    char text[200];
    stk_op *op = strong();
    stk_op_get_class(op)->print(stk_op_params(op), text, sizeof(text));
    CHECK(!strcmp(text, "color_jitter(brightness=0.5..1.5, contrast=0.5..1.5, "
                        "saturation=0.5..1.5, hue=-0.2..0.2, p=1)"));
    for (size_t size = 1; size < 100; size += 7)
        stk_op_get_class(op)->print(stk_op_params(op), text, size);
    stk_op_unref(&op);
    op = stk_op_grayscale(&(stk_grayscale_opts){.keep = 0.75}, NULL);
    stk_op_get_class(op)->print(stk_op_params(op), text, sizeof(text));
    CHECK(!strcmp(text, "grayscale(p=0.25)"));
    stk_op_unref(&op);
}

/* Without memory the run fails; nothing leaks. */
static void no_memory(void)
{
    stk_err err;
    TORTURE (err) {
        op_run r = pictures(2);
        r.where = OP_RUN_SHARED;
        r.threads = 1;
        err = op_run_torture(&r, strong());
    }
    stk_fault_arm(-1);
    TORTURE (err) {
        stk_diag diag = {0};
        stk_op *op = stk_op_grayscale(NULL, &diag);
        err = diag.err;
        CHECK(!op == (err == STK_ENOMEM));
        stk_op_unref(&op);
    }
    stk_fault_arm(-1);
}

TESTS(TEST(the_same_wherever_the_array_is), TEST(draws_are_keyed), TEST(chances),
      TEST(other_parts_stay), TEST(refuses_what_it_cannot), TEST(options), TEST(no_memory))
