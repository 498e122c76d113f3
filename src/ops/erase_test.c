#include <math.h>

#include <stoker/augment.h>

#include "base/alloc.h"
#include "tests/op_run.h"

enum { H = 40, W = 50, N = H * W * 3, SAMPLES = 400 };

static op_run pictures(int64_t samples)
{
    return (op_run){.samples = samples,
                    .spec = {{STK_UINT8, 3, {H, W, 3}}, {STK_UINT8, 3, {H, W, 1}}}};
}

typedef struct box {
    int x0, y0, x1, y1, changed;
} box;

/* Where a picture differs from what it was. */
static box find_box(const uint8_t *now, const uint8_t *was)
{
    box b = {W, H, 0, 0, 0};
    for (int y = 0; y < H; y++)
        for (int x = 0; x < W; x++) {
            if (!memcmp(now + (y * W + x) * 3, was + (y * W + x) * 3, 3)) continue;
            b.x0 = x < b.x0 ? x : b.x0, b.x1 = x + 1 > b.x1 ? x + 1 : b.x1;
            b.y0 = y < b.y0 ? y : b.y0, b.y1 = y + 1 > b.y1 ? y + 1 : b.y1;
            b.changed++;
        }
    return b;
}

/* Each sample has one rectangle of the colour, within the ranges; the rest stays. */
static void a_rectangle_in_each(void)
{
    const stk_erase_opts o = {.scale = {0.1, 0.2}, .ratio = {0.5, 2}, .fill = {3, {9, 8, 7}}};
    uint8_t was[N];
    op_run r = pictures(SAMPLES);
    CHECK_EQ(op_run_go(&r, stk_op_erase(&o, NULL)), STK_OK);
    const uint8_t *p = op_run_field(&r, "image").data;
    for (int64_t i = 0; i < SAMPLES; i++, p += N) {
        op_run_fill(i, 0, was, N);
        const box b = find_box(p, was);
        const double width = b.x1 - b.x0, height = b.y1 - b.y0;
        CHECK(b.changed >= 0.98 * width * height); /* the noise may have had the colour */
        CHECK(fabs(width * height / (H * W) - 0.15) < 0.065);
        CHECK(height / width > 0.42 && height / width < 2.4);
        for (int y = b.y0; y < b.y1; y++)
            for (int x = b.x0; x < b.x1; x++) CHECK(!memcmp(p + (y * W + x) * 3, o.fill.value, 3));
    }
    op_run_end(&r);
}

/* What does not fit is not erased. */
static void too_large(void)
{
    uint8_t was[N];
    op_run r = pictures(2);
    CHECK_EQ(op_run_go(&r, stk_op_erase(&(stk_erase_opts){.scale = {1, 1}}, NULL)), STK_OK);
    op_run_fill(1, 0, was, N);
    CHECK(!memcmp((const uint8_t *)op_run_field(&r, "image").data + N, was, N));
    op_run_end(&r);
    r.spec[0] = (stk_spec){STK_UINT8, 3, {1, 1, 3}};
    CHECK_EQ(op_run_go(&r, stk_op_erase(NULL, NULL)), STK_OK);
    op_run_end(&r);
}

/* Noise is uniform, another in each sample and the same in all frames of a clip. */
static void noise(void)
{
    op_run r = {.samples = 2, .spec = {{STK_UINT8, 4, {3, 300, 300, 3}}}};
    const stk_erase_opts o = {.scale = {0.5, 0.5}, .ratio = {1, 1}, .random = true};
    const size_t frame = 300 * 300 * 3;
    uint8_t *was = malloc(6 * frame);
    CHECK(was);
    for (int where = 0; where <= OP_RUN_STRIDED; where++) {
        r.where = (op_run_where)where;
        CHECK_EQ(op_run_go(&r, stk_op_erase(&o, NULL)), STK_OK);
        const uint8_t *p = op_run_field(&r, "image").data;
        op_run_fill(0, 0, was, 3 * frame);
        op_run_fill(1, 0, was + 3 * frame, 3 * frame);
        size_t changed = 0, same = 0, apart = 0;
        double sum = 0;
        for (size_t i = 0; i < frame; i++) {
            if (p[i] == was[i]) continue;
            changed++, sum += p[i];
            same += p[i] == p[i + frame] && p[i] == p[i + 2 * frame];
            apart += p[i] != p[i + 3 * frame];
        }
        CHECK(changed * 100 > 49 * frame && changed * 100 < 51 * frame && same == changed);
        CHECK(fabs(sum / (double)changed - 127.5) < 1 && apart > changed / 2);
        op_run_end(&r);
    }
    free(was);
}

static void refuses_what_it_cannot(void)
{
    op_run r = pictures(1);
    op_run_refused(&r, stk_op_erase(&(stk_erase_opts){.fill = {2, {0}}}, NULL),
                   "fill has 2 values, but the array 3 channels");
    r.spec[0] = (stk_spec){STK_UINT8, 3, {H, W, 65}};
    op_run_refused(&r, stk_op_erase(NULL, NULL), "65 channels: at most 64");
    r.spec[0] = (stk_spec){STK_UINT8, 1, {H}};
    op_run_refused(&r, stk_op_erase(NULL, NULL), "found (40) uint8");
}

static void check_options(const stk_erase_opts *o, const char *words)
{
    stk_diag diag = {0};
    CHECK(!stk_op_erase(o, &diag) && diag.err == STK_EINVAL);
    if (!strstr(diag.text, words)) fprintf(stderr, "%s\n", diag.text);
    CHECK(strstr(diag.text, words));
}

static void options(void)
{
    check_options(&(stk_erase_opts){.keep = -1}, "erase: keep is -1");
    check_options(&(stk_erase_opts){.scale = {0.5, 1.5}}, "scale is 0.5 to 1.5");
    check_options(&(stk_erase_opts){.ratio = {0, 1}}, "ratio is 0 to 1");
    check_options(&(stk_erase_opts){.fill = {5, {0}}}, "a fill of 5 channels");
    char text[100];
    stk_op *op = stk_op_erase(NULL, NULL);
    stk_op_get_class(op)->print(stk_op_params(op), text, sizeof(text));
    CHECK(!strcmp(text, "erase(p=1, scale=0.02..0.33, ratio=0.3..3.3)"));
    stk_op_unref(&op);
}

static void no_memory(void)
{
    stk_err err;
    TORTURE (err) {
        op_run r = pictures(1);
        r.where = OP_RUN_SHARED;
        r.threads = 1;
        err = op_run_torture(&r, stk_op_erase(NULL, NULL));
    }
    stk_fault_arm(-1);
}

TESTS(TEST(a_rectangle_in_each), TEST(too_large), TEST(noise), TEST(refuses_what_it_cannot),
      TEST(options), TEST(no_memory))
