#include <math.h>

#include <stoker/augment.h>

#include "base/alloc.h"
#include "tests/op_run.h"

enum { H = 12, W = 20, N = H * W * 3, SAMPLES = 5 };

static op_run pictures(void)
{
    return (op_run){.samples = SAMPLES, .labels = true, .spec = {{STK_UINT8, 3, {H, W, 3}}}};
}

static float lam_of(const op_run *r)
{
    const stk_tensor t = op_run_field(r, "lam");
    CHECK(t.dtype == STK_FLOAT32 && t.ndim == 1 && t.shape[0] == SAMPLES);
    const float *lam = t.data;
    for (int i = 1; i < SAMPLES; i++) CHECK(lam[i] == lam[0]);
    return lam[0];
}

static void check_partners(const op_run *r, int64_t first)
{
    const stk_tensor a = op_run_field(r, "label"), b = op_run_field(r, "label_b");
    CHECK(b.dtype == STK_INT64 && b.ndim == 1);
    for (int64_t i = 0; i < SAMPLES; i++) {
        CHECK_EQ(((const int64_t *)a.data)[i], (first + i) % 10);
        CHECK_EQ(((const int64_t *)b.data)[i], (first + (i + SAMPLES - 1) % SAMPLES) % 10);
    }
}

/* Each sample with the one before it, wherever the arrays were, and in every batch another share.
 */
static void mixes_by_lam(void)
{
    uint8_t a[N], b[N];
    float lam[3];
    for (int where = OP_RUN_SLOT; where <= OP_RUN_STRIDED; where++)
        for (int64_t index = 0; index < 3; index++) {
            op_run r = pictures();
            r.where = (op_run_where)where;
            r.index = index;
            CHECK_EQ(op_run_go(&r, stk_op_mixup(NULL, NULL)), STK_OK);
            const double share = lam[index] = lam_of(&r);
            const uint8_t *got = op_run_field(&r, "image").data;
            CHECK(share > 0 && share < 1);
            for (int64_t i = 0; i < SAMPLES; i++) {
                op_run_fill(index * SAMPLES + i, 0, a, N);
                op_run_fill(index * SAMPLES + (i + SAMPLES - 1) % SAMPLES, 0, b, N);
                for (int k = 0; k < N; k++)
                    CHECK(fabs(*got++ - share * a[k] - (1 - share) * b[k]) <= 1);
            }
            check_partners(&r, index * SAMPLES);
            op_run_end(&r);
        }
    CHECK(lam[0] != lam[1] && lam[1] != lam[2]);
}

/* A box of the one before, whose area lam says. */
static void cuts_by_lam(void)
{
    uint8_t a[N], b[N];
    int boxes = 0;
    for (uint64_t seed = 0; seed < 20; seed++) {
        op_run r = pictures();
        r.seed = seed;
        r.where = (op_run_where)(seed % 4);
        CHECK_EQ(op_run_go(&r, stk_op_cutmix(NULL, NULL)), STK_OK);
        const uint8_t *got = op_run_field(&r, "image").data;
        const long left = lround((1 - (double)lam_of(&r)) * H * W);
        for (int64_t i = 0; i < SAMPLES; i++, got += N) {
            op_run_fill(i, 0, a, N);
            op_run_fill((i + SAMPLES - 1) % SAMPLES, 0, b, N);
            long other = 0;
            for (int k = 0; k < N; k += 3) {
                const bool cut = memcmp(got + k, a + k, 3) != 0;
                CHECK(!cut || !memcmp(got + k, b + k, 3));
                other += cut;
            }
            CHECK(other <= left && other >= left - 2); /* where both had the same pixel */
            boxes += other > 0;
        }
        check_partners(&r, 0);
        op_run_end(&r);
    }
    CHECK(boxes > 50);
}

static void shares_of_classes(void)
{
    op_run r = pictures();
    CHECK_EQ(op_run_go(&r, stk_op_mixup(&(stk_mix_opts){.num_classes = 7}, NULL)), STK_OK);
    const stk_tensor t = op_run_field(&r, "label");
    const float lam = lam_of(&r), *row = t.data;
    CHECK(t.dtype == STK_FLOAT32 && t.ndim == 2 && t.shape[1] == 7);
    CHECK(stk_batch_find(r.batch, "label_b") < 0);
    for (int i = 0; i < SAMPLES; i++, row += 7)
        for (int k = 0; k < 7; k++) {
            const float want = k == i ? lam : k == (i + SAMPLES - 1) % SAMPLES ? 1 - lam : 0;
            CHECK(fabsf(row[k] - want) < 1e-6f);
        }
    op_run_end(&r);
    op_run_refused(&r, stk_op_cutmix(&(stk_mix_opts){.num_classes = 3}, NULL),
                   "sample 4 of the batch has 4, but there are 3 classes");
}

static void kept_ones_stay(void)
{
    uint8_t a[N];
    op_run r = pictures();
    const stk_mix_opts o = {.keep = 1};
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(op_run_go(&r, i ? stk_op_cutmix(&o, NULL) : stk_op_mixup(&o, NULL)), STK_OK);
        op_run_fill(0, 0, a, N);
        CHECK(!memcmp(op_run_field(&r, "image").data, a, N) && lam_of(&r) == 1);
        CHECK_EQ(((const int64_t *)op_run_field(&r, "label_b").data)[2], 2);
        op_run_end(&r);
    }
}

static void refuses_what_it_cannot(void)
{
    op_run r = pictures();
    op_run_refused(&r, stk_op_mixup(&(stk_mix_opts){.field = "mask"}, NULL),
                   "field \"mask\": the batch has none of that name");
    op_run_refused(&r, stk_op_mixup(&(stk_mix_opts){.num_classes = 5, .label = "y"}, NULL),
                   "field \"y\": num_classes is given");
    r.spec[0] = (stk_spec){STK_INT16, 3, {H, W, 3}};
    op_run_refused(&r, stk_op_mixup(NULL, NULL),
                   "needs uint8 or float32, found (5, 12, 20, 3) int16");
    r.spec[0] = (stk_spec){STK_UINT8, 2, {H, W}};
    op_run_refused(&r, stk_op_cutmix(NULL, NULL), "found (5, 12, 20) uint8");
    r.spec[0] = (stk_spec){STK_UINT8, 3, {3, H, W}};
    op_run_refused(&r, stk_op_cutmix(NULL, NULL),
                   "(5, 3, 12, 20) uint8 has 20 channels if its "
                   "layout is NHWC: say layout=\"NCHW\" if they "
                   "are the 3");
    r.spec[0] = (stk_spec){STK_UINT8, 4, {2, H, W, 4}};
    op_run_refused(&r, stk_op_cutmix(&(stk_mix_opts){.layout = STK_LAYOUT_NCHW}, NULL),
                   "(5, 2, 12, 20, 4) uint8 has 12 channels if its layout is NCHW: say "
                   "layout=\"NHWC\" if they are the 4");
}

static void check_options(const stk_mix_opts *o, const char *words)
{
    stk_diag diag = {0};
    CHECK(!stk_op_mixup(o, &diag) && diag.err == STK_EINVAL);
    if (!strstr(diag.text, words)) fprintf(stderr, "%s\n", diag.text);
    CHECK(strstr(diag.text, words) && !stk_op_cutmix(o, NULL));
}

static void options(void)
{
    check_options(&(stk_mix_opts){.alpha = -1}, "mixup: alpha is -1");
    check_options(&(stk_mix_opts){.keep = 2}, "mixup: keep is 2");
    check_options(&(stk_mix_opts){.num_classes = -1}, "-1 classes");
    check_options(&(stk_mix_opts){.layout = (stk_layout)3}, "layout 3");
    char text[100];
    stk_op *op = stk_op_cutmix(&(stk_mix_opts){.num_classes = 10}, NULL);
    stk_op_get_class(op)->print(stk_op_params(op), text, sizeof(text));
    CHECK(!strcmp(text, "cutmix(image, alpha=1, p=1, num_classes=10)"));
    stk_op_unref(&op);
}

static void no_memory(void)
{
    stk_err err;
    for (int i = 0; i < 3; i++) {
        const stk_mix_opts o = {.num_classes = i == 1 ? 10 : 0};
        TORTURE (err) {
            op_run r = pictures();
            r.threads = 1;
            err = op_run_torture(&r, i == 2 ? stk_op_cutmix(&o, NULL) : stk_op_mixup(&o, NULL));
        }
        stk_fault_arm(-1);
    }
}

TESTS(TEST(mixes_by_lam), TEST(cuts_by_lam), TEST(shares_of_classes), TEST(kept_ones_stay),
      TEST(refuses_what_it_cannot), TEST(options), TEST(no_memory))
