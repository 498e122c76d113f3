#include <stoker/augment.h>

#include "base/alloc.h"
#include "tests/op_run.h"

enum { H = 20, W = 30, N = H * W * 3 };

static op_run pictures(int64_t samples)
{
    return (op_run){.samples = samples,
                    .spec = {{STK_UINT8, 3, {H, W, 3}}, {STK_UINT8, 3, {H, W, 1}}}};
}

static void the_same_wherever_the_array_is(void)
{
    uint8_t want[4 * N], src[N];
    for (int where = OP_RUN_SLOT; where <= OP_RUN_STRIDED; where++) {
        op_run r = pictures(4);
        r.where = (op_run_where)where;
        CHECK_EQ(op_run_go(&r, stk_op_blur(&(stk_blur_opts){.width = 5}, NULL)), STK_OK);
        const stk_tensor t = op_run_field(&r, "image");
        if (where == OP_RUN_SLOT) memcpy(want, t.data, sizeof(want));
        CHECK(!memcmp(t.data, want, sizeof(want)));
        op_run_fill(0, 0, src, N);
        if (where == OP_RUN_SHARED) CHECK(!memcmp(stk_buffer_data(r.kept), src, N));
        CHECK(memcmp(want, src, N));
        op_run_end(&r);
    }
}

static void masks_and_kept_ones_stay(void)
{
    uint8_t src[N];
    op_run r = pictures(2);
    r.parts = 2;
    CHECK_EQ(op_run_go(&r, stk_op_blur(&(stk_blur_opts){.height = 3}, NULL)), STK_OK);
    op_run_fill(1, 1, src, H * W);
    CHECK(!memcmp((const uint8_t *)op_run_field(&r, "mask").data + H * W, src, H * W));
    op_run_end(&r);
    CHECK_EQ(op_run_go(&r, stk_op_blur(&(stk_blur_opts){.width = 3, .keep = 1}, NULL)), STK_OK);
    op_run_fill(1, 0, src, N);
    CHECK(!memcmp((const uint8_t *)op_run_field(&r, "image").data + N, src, N));
    op_run_end(&r);
}

static void check_options(const stk_blur_opts *o, const char *words)
{
    stk_diag diag = {0};
    CHECK(!stk_op_blur(o, &diag) && diag.err == STK_EINVAL);
    if (!strstr(diag.text, words)) fprintf(stderr, "%s\n", diag.text);
    CHECK(strstr(diag.text, words));
}

static void options(void)
{
    op_run r = pictures(1);
    check_options(NULL, "a kernel of 0 x 0: odd sizes from 1 to 255");
    check_options(&(stk_blur_opts){.width = 4}, "4 x 4");
    check_options(&(stk_blur_opts){.width = 3, .height = 257}, "3 x 257");
    check_options(&(stk_blur_opts){.width = 3, .sigma = {0, 1}}, "sigma is 0 to 1");
    check_options(&(stk_blur_opts){.width = 3, .keep = 2}, "blur: keep is 2");
    r.spec[0] = (stk_spec){STK_UINT8, 2, {H, W}};
    op_run_refused(&r, stk_op_blur(&(stk_blur_opts){.width = 3}, NULL), "found (20, 30) uint8");
    char text[100];
    stk_op *op = stk_op_blur(&(stk_blur_opts){.width = 5, .height = 3}, NULL);
    stk_op_get_class(op)->print(stk_op_params(op), text, sizeof(text));
    CHECK(!strcmp(text, "blur(5x3, sigma=0.1..2, p=1)"));
    stk_op_unref(&op);
}

static void no_memory(void)
{
    stk_err err;
    TORTURE (err) {
        op_run r = pictures(1);
        r.where = OP_RUN_SHARED;
        r.threads = 1;
        err = op_run_torture(&r, stk_op_blur(&(stk_blur_opts){.width = 3}, NULL));
    }
    stk_fault_arm(-1);
}

TESTS(TEST(the_same_wherever_the_array_is), TEST(masks_and_kept_ones_stay), TEST(options),
      TEST(no_memory))
