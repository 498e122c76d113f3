#include <stoker/augment.h>

#include "base/alloc.h"
#include "tests/op_run.h"
#include "transform/border.h"

enum { H = 5, W = 4, LEFT = 3, TOP = 7, RIGHT = 0, BOTTOM = 1 };
enum { OUT_W = LEFT + W + RIGHT, OUT_H = TOP + H + BOTTOM };

/* What pixel (y, x) of the result is, one channel of a frame. */
static uint8_t want_at(stk_pad_mode mode, const uint8_t *src, int y, int x, int c, int channels,
                       uint8_t fill)
{
    y -= TOP;
    x -= LEFT;
    const bool inside = y >= 0 && y < H && x >= 0 && x < W;
    if (!inside && mode == STK_PAD_CONSTANT) return fill;
    if (!inside) y = stk_border_index(mode, y, H), x = stk_border_index(mode, x, W);
    return src[(y * W + x) * channels + c];
}

static void check_part(const op_run *r, const char *name, stk_pad_mode mode, const uint8_t *fill)
{
    const stk_tensor t = op_run_field(r, name);
    const int part = !strcmp(name, "mask"), frames = part ? 1 : 2, channels = part ? 1 : 3;
    uint8_t src[2 * H * W * 3];
    const uint8_t *got = t.data;
    const int32_t d = t.ndim - 3;
    CHECK(t.ndim == (part ? 4 : 5) && t.shape[d] == OUT_H && t.shape[d + 1] == OUT_W);
    CHECK_EQ(t.shape[d + 2], channels);
    for (int64_t id = 0; id < r->samples; id++) {
        op_run_fill(id, (size_t)part, src, (size_t)(frames * H * W * channels));
        for (int f = 0; f < frames; f++)
            for (int y = 0; y < OUT_H; y++)
                for (int x = 0; x < OUT_W; x++)
                    for (int c = 0; c < channels; c++)
                        CHECK_EQ(*got++, want_at(mode, src + f * H * W * channels, y, x, c,
                                                 channels, fill[c]));
    }
}

static const stk_pad_opts sides = {.left = LEFT,
                                   .top = TOP,
                                   .right = RIGHT,
                                   .bottom = BOTTOM,
                                   .fill = {3, {1, 2, 3}},
                                   .mask_parts = 2,
                                   .mask_fill = {1, {255}}};

/* Each mode, wherever the arrays are, of a clip and its mask. */
static void every_mode(void)
{
    for (int where = OP_RUN_SLOT; where <= OP_RUN_STRIDED; where++)
        for (int mode = STK_PAD_CONSTANT; mode <= STK_PAD_SYMMETRIC; mode++) {
            op_run r = {.samples = 3,
                        .parts = 2,
                        .where = (op_run_where)where,
                        .spec = {{STK_UINT8, 4, {2, H, W, 3}}, {STK_UINT8, 3, {H, W, 1}}}};
            stk_pad_opts o = sides;
            o.mode = (stk_pad_mode)mode;
            CHECK_EQ(op_run_go(&r, stk_op_pad(&o, NULL)), STK_OK);
            check_part(&r, "image", o.mode, o.fill.value);
            check_part(&r, "mask", o.mode, o.mask_fill.value);
            op_run_end(&r);
        }
}

static void refuses_what_it_cannot(void)
{
    op_run r = {
        .samples = 1, .parts = 2, .spec = {{STK_UINT8, 3, {H, W, 3}}, {STK_UINT8, 3, {H, W, 1}}}};
    stk_pad_opts o = sides;
    o.mask_parts = 0;
    op_run_refused(&r, stk_op_pad(&o, NULL), "fill has 3 values, but the array 1 channels");
    r.spec[0].dtype = STK_INT16;
    op_run_refused(&r, stk_op_pad(&sides, NULL), "found (5, 4, 3) int16");
}

static void check_options(const stk_pad_opts *o, const char *words)
{
    stk_diag diag = {0};
    CHECK(!stk_op_pad(o, &diag) && diag.err == STK_EINVAL);
    if (!strstr(diag.text, words)) fprintf(stderr, "%s\n", diag.text);
    CHECK(strstr(diag.text, words));
}

static void options(void)
{
    check_options(&(stk_pad_opts){.left = -1}, "pad: -1 pixels on a side: 0 to 65535");
    check_options(&(stk_pad_opts){.bottom = 65536}, "65536 pixels");
    check_options(&(stk_pad_opts){.mode = (stk_pad_mode)4}, "unknown mode 4");
    check_options(&(stk_pad_opts){.mask_fill = {-1, {0}}}, "a fill of -1 channels");
    char text[100];
    stk_op *op = stk_op_pad(&sides, NULL);
    stk_op_get_class(op)->print(stk_op_params(op), text, sizeof(text));
    CHECK(!strcmp(text, "pad(left=3, top=7, right=0, bottom=1, constant)"));
    stk_op_unref(&op);
}

static void no_memory(void)
{
    stk_err err;
    TORTURE (err) {
        op_run r = {.samples = 1, .threads = 1, .spec = {{STK_UINT8, 3, {H, W, 3}}}};
        err = op_run_torture(&r, stk_op_pad(&sides, NULL));
    }
    stk_fault_arm(-1);
}

TESTS(TEST(every_mode), TEST(refuses_what_it_cannot), TEST(options), TEST(no_memory))
