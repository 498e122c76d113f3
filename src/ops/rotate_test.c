#include <stoker/augment.h>

#include "base/alloc.h"
#include "tests/op_run.h"

enum { H = 20, W = 30, N = H * W * 3 };

static op_run pictures(int64_t samples)
{
    return (op_run){.samples = samples,
                    .parts = 2,
                    .spec = {{STK_UINT8, 4, {2, H, W, 3}}, {STK_UINT8, 3, {H, W, 1}}}};
}

static const stk_rotate_opts any = {
    .degrees = {-180, 180}, .fill = {3, {1, 2, 3}}, .mask_parts = 2, .mask_fill = {1, {255}}};

static void the_same_wherever_the_array_is(void)
{
    uint8_t want[4 * 2 * N], src[2 * N];
    for (int where = OP_RUN_SLOT; where <= OP_RUN_STRIDED; where++) {
        op_run r = pictures(4);
        r.where = (op_run_where)where;
        CHECK_EQ(op_run_go(&r, stk_op_rotate(&any, NULL)), STK_OK);
        const stk_tensor t = op_run_field(&r, "image");
        if (where == OP_RUN_SLOT) memcpy(want, t.data, sizeof(want));
        CHECK(!memcmp(t.data, want, sizeof(want)));
        op_run_fill(0, 0, src, sizeof(src));
        if (where == OP_RUN_SHARED) CHECK(!memcmp(stk_buffer_data(r.kept), src, sizeof(src)));
        CHECK(memcmp(want, src, sizeof(src)));
        op_run_end(&r);
    }
}

/* A mask has its own values, or the fill, where its picture has the other one's. */
static void masks_turn_with_their_pictures(void)
{
    uint8_t src[H * W];
    bool known[256];
    op_run r = pictures(3);
    CHECK_EQ(op_run_go(&r, stk_op_rotate(&any, NULL)), STK_OK);
    const uint8_t *mask = op_run_field(&r, "mask").data, *image = op_run_field(&r, "image").data;
    for (int64_t id = 0; id < 3; id++) {
        memset(known, 0, sizeof(known));
        op_run_fill(id, 1, src, sizeof(src));
        for (int i = 0; i < H * W; i++) known[src[i]] = true;
        known[255] = true;
        size_t both = 0, either = 0;
        for (int i = 0; i < H * W; i++) {
            const bool beyond = mask[id * H * W + i] == 255;
            const bool filled = !memcmp(image + (id * 2 * H * W + i) * 3, any.fill.value, 3);
            CHECK(known[mask[id * H * W + i]]);
            both += beyond && filled, either += beyond || filled;
        }
        CHECK(either == 0 || (both * 10 > either * 6));
    }
    op_run_end(&r);
}

static void expands(void)
{
    op_run r = pictures(2);
    stk_rotate_opts o = any;
    o.degrees[0] = o.degrees[1] = 90;
    o.expand = true;
    for (int where = OP_RUN_SLOT; where <= OP_RUN_STRIDED; where++) {
        r.where = (op_run_where)where;
        CHECK_EQ(op_run_go(&r, stk_op_rotate(&o, NULL)), STK_OK);
        const stk_tensor t = op_run_field(&r, "image"), m = op_run_field(&r, "mask");
        CHECK(t.ndim == 5 && t.shape[1] == 2 && t.shape[2] == W && t.shape[3] == H);
        CHECK(m.shape[1] == W && m.shape[2] == H);
        uint8_t src[2 * N];
        op_run_fill(1, 0, src, sizeof(src));
        const uint8_t *p = (const uint8_t *)t.data + 2 * N; /* the right edge is its top */
        for (int i = 0; i < H; i++) CHECK(!memcmp(p + i * 3, src + (i * W + W - 1) * 3, 3));
        op_run_end(&r);
    }
}

static void check_options(const stk_rotate_opts *o, const char *words)
{
    stk_diag diag = {0};
    CHECK(!stk_op_rotate(o, &diag) && diag.err == STK_EINVAL);
    if (!strstr(diag.text, words)) fprintf(stderr, "%s\n", diag.text);
    CHECK(strstr(diag.text, words));
}

static void options(void)
{
    op_run r = pictures(1);
    check_options(&(stk_rotate_opts){.degrees = {2, 1}}, "degrees is 2 to 1");
    check_options(&(stk_rotate_opts){.filter = STK_FILTER_LANCZOS}, "bilinear and nearest");
    check_options(&(stk_rotate_opts){.expand = true, .off_center = true}, "leave center out");
    check_options(&(stk_rotate_opts){.center = {1e9, 0}}, "center is 0 to 1e+09");
    check_options(&(stk_rotate_opts){.keep = -1}, "rotate: keep is -1");
    check_options(&(stk_rotate_opts){.fill = {9, {0}}}, "a fill of 9 channels");
    op_run_refused(&r, stk_op_rotate(&(stk_rotate_opts){.fill = {3, {0}}}, NULL),
                   "fill has 3 values, but the array 1 channels");
    char text[100];
    stk_op *op = stk_op_rotate(&any, NULL);
    stk_op_get_class(op)->print(stk_op_params(op), text, sizeof(text));
    CHECK(!strcmp(text, "rotate(-180..180, bilinear, p=1)"));
    stk_op_unref(&op);
}

static void no_memory(void)
{
    stk_err err;
    for (int expand = 0; expand < 2; expand++) {
        TORTURE (err) {
            stk_rotate_opts o = any;
            op_run r = pictures(1);
            r.threads = 1;
            o.expand = expand;
            err = op_run_torture(&r, stk_op_rotate(&o, NULL));
        }
        stk_fault_arm(-1);
    }
}

TESTS(TEST(the_same_wherever_the_array_is), TEST(masks_turn_with_their_pictures), TEST(expands),
      TEST(options), TEST(no_memory))
