/* Every table of kernels gives the same bits as the scalar one.  Stands alone (src/base and
 * src/transform only), so that it can be built for another processor and run under qemu-user. */
#include "base/alloc.h"
#include "base/rng.h"
#include "tests/check.h"
#include "transform/kernels.h"
#include "transform/resample_impl.h"

static uint64_t seed = 1;

static uint32_t any(void)
{
    return (uint32_t)(stk_mix64(seed++) >> 32);
}

/* From low to high, both included. */
static int32_t between(int32_t low, int32_t high)
{
    return low + (int32_t)(any() % (uint32_t)(high - low + 1));
}

static void *make(size_t count, size_t size)
{
    void *p = stk_alloc_zero(count, size);
    CHECK(p != NULL);
    return p;
}

static void fill(uint8_t *p, size_t size)
{
    const uint32_t kind = any() % 4; /* noise, black, white, extremes */
    for (size_t i = 0; i < size; i++) {
        const uint8_t v = (uint8_t)any();
        p[i] = kind == 0 ? v : kind == 1 ? 0 : kind == 2 ? 255 : v & 1 ? 255 : 0;
    }
}

/* `n` weights of any sign, whose sum is 1 << precision, as an axis makes them. */
static void fill_weights(int16_t *w, int32_t n, int32_t precision)
{
    int32_t left = 1 << precision;
    for (int32_t i = 0; i + 1 < n; i++) {
        const int32_t mean = left / (n - i);
        w[i] = (int16_t)between(mean - 2000 > -3000 ? mean - 2000 : -3000, mean + 2000);
        left -= w[i];
    }
    w[n - 1] = (int16_t)(left > INT16_MAX ? INT16_MAX : left < INT16_MIN ? INT16_MIN : left);
}

static stk_horizontal_fn *pick(const stk_kernels *k, int32_t channels)
{
    return channels == 1 ? k->horizontal1 : channels == 3 ? k->horizontal3 : k->horizontal4;
}

static void set_weight(int16_t *block, int32_t channels, int32_t pixel, int32_t tap, int16_t w)
{
    for (int32_t i = 0; i < (channels == 1 ? 1 : 4); i++)
        block[STK_KERNEL_WEIGHT(channels, pixel, tap) + 2 * i] = w;
}

static void try_horizontal(const stk_kernels *k)
{
    const int32_t channels = (int32_t[]){1, 3, 4}[any() % 3];
    stk_horizontal h = {.groups = between(1, 40), .steps = between(1, 5)};
    h.fraction = between(0, 7);
    const int32_t precision = between(12, 14), reads = STK_KERNEL_READS(channels, h.steps);
    h.shift = precision - h.fraction;
    const size_t pixels = (size_t)h.groups * 4, values = pixels * (size_t)channels;
    const size_t size = (size_t)between(reads, reads + 600);
    uint8_t *src = make(size, 1);
    int32_t *offset = make(pixels, sizeof(*offset));
    const size_t block = (size_t)STK_KERNEL_BLOCK(channels);
    int16_t *coef = make((size_t)(h.groups * h.steps) * block, sizeof(*coef));
    int16_t *got = make(values + 8, sizeof(*got)), *want = make(values + 8, sizeof(*want));

    fill(src, size);
    for (size_t i = 0; i < pixels; i++) {
        int16_t w[20];
        offset[i] = between(0, (int32_t)size - reads);
        fill_weights(w, h.steps * 4, precision);
        for (int32_t t = 0; t < h.steps * 4; t++)
            set_weight(coef + (i / 4 * (size_t)h.steps + (size_t)t / 4) * block, channels,
                       (int32_t)(i % 4), t % 4, w[t]);
    }
    h.offset = offset;
    h.coef = coef;
    pick(k, channels)(&h, src, got);
    pick(&stk_kernels_scalar, channels)(&h, src, want);
    CHECK(!memcmp(got, want, values * sizeof(*got)));

    stk_free(src);
    stk_free(offset);
    stk_free(coef);
    stk_free(got);
    stk_free(want);
}

static void try_narrow(const stk_kernels *k)
{
    enum { MOST = 12 };
    uint8_t shuffle[MOST * 64], src[300];
    int8_t coef[MOST * 64];
    int32_t base[MOST * 2];
    int16_t got[MOST * 16 + 1] = {0}, want[MOST * 16 + 1] = {0};
    const stk_narrow n = {.base = base,
                          .shuffle = shuffle,
                          .coef = coef,
                          .count = between(1, MOST),
                          .pairs = between(1, 2)};
    const int32_t size = between(16, (int32_t)sizeof(src)), bytes = 32 * n.pairs;
    fill(src + sizeof(src) - size, (size_t)size);
    for (int32_t i = 0; i < 2 * n.count; i++) base[i] = between(0, size - 16);
    for (int32_t i = 0; i < n.count * bytes; i++) shuffle[i] = (uint8_t)between(0, 15);
    for (int32_t i = 0; i < n.count * 16; i++) {
        int32_t left = 64;
        for (int32_t tap = 0; tap < 2 * n.pairs; tap++) {
            const int32_t w = any() % 4 ? between(0, left) : left;
            coef[i / 16 * bytes + tap / 2 * 32 + i % 16 * 2 + tap % 2] = (int8_t)w;
            left -= w;
        }
    }
    k->narrow(&n, src + sizeof(src) - size, got);
    stk_kernels_scalar.narrow(&n, src + sizeof(src) - size, want);
    CHECK(!memcmp(got, want, sizeof(got)));
}

enum { MOST_ROWS = 16, MOST_VALUES = 700, GUARD = 0xA7 };

typedef struct sheet {
    int16_t pixels[MOST_ROWS][MOST_VALUES + STK_KERNEL_LANES];
    const int16_t *rows[MOST_ROWS];
    int16_t weights[MOST_ROWS];
    int32_t count, fraction, precision;
} sheet;

static void fill_sheet(sheet *s, int32_t n, int32_t fraction)
{
    s->count = between(1, MOST_VALUES);
    s->fraction = fraction;
    s->precision = 14;
    for (int32_t i = 0; i < n; i++) {
        for (int32_t x = 0; x < MOST_VALUES; x++)
            s->pixels[i][x] = (int16_t)(any() % 5 ? any() % (uint32_t)((255 << s->fraction) + 1)
                                                  : 255u << s->fraction);
        s->rows[i] = s->pixels[any() % 8 ? i : 0];
    }
    fill_weights(s->weights, n, s->precision);
}

static void try_vertical(const stk_kernels *k)
{
    static sheet s;
    uint8_t got[MOST_VALUES + 64], want[MOST_VALUES + 64];
    const int32_t n = 2 * between(1, MOST_ROWS / 2);
    fill_sheet(&s, n, between(0, 7));
    memset(got, GUARD, sizeof(got));
    memset(want, GUARD, sizeof(want));
    const int32_t shift = s.precision + s.fraction;
    k->vertical(s.rows, s.weights, n, s.count, shift, got);
    stk_kernels_scalar.vertical(s.rows, s.weights, n, s.count, shift, want);
    CHECK(!memcmp(got, want, sizeof(got)));
    CHECK_EQ(want[s.count], GUARD);
}

static void try_blend(const stk_kernels *k)
{
    static sheet s;
    uint8_t got[MOST_VALUES + 64], want[MOST_VALUES + 64];
    const int32_t n = between(1, MOST_ROWS);
    fill_sheet(&s, n, STK_KERNEL_BLEND);
    int32_t left = INT16_MAX;
    for (int32_t i = 0; i < n; i++) {
        s.weights[i] = (int16_t)(i + 1 < n ? between(0, left) : left);
        left -= s.weights[i];
    }
    memset(got, GUARD, sizeof(got));
    memset(want, GUARD, sizeof(want));
    k->blend(s.rows, s.weights, n, s.count, got);
    stk_kernels_scalar.blend(s.rows, s.weights, n, s.count, want);
    CHECK(!memcmp(got, want, sizeof(got)));
    CHECK_EQ(want[s.count], GUARD);
}

static void try_sums(const stk_kernels *k)
{
    static sheet s;
    static int32_t got[MOST_VALUES + STK_KERNEL_LANES], want[MOST_VALUES + STK_KERNEL_LANES];
    uint8_t got8[MOST_VALUES + 64], want8[MOST_VALUES + 64];
    fill_sheet(&s, STK_KERNEL_ROWS, between(0, 7));
    for (size_t i = 0; i < sizeof(got) / sizeof(got[0]); i++)
        got[i] = want[i] = between(-(1 << 20), 1 << 20);
    k->accumulate(s.rows, s.weights, s.count, got);
    stk_kernels_scalar.accumulate(s.rows, s.weights, s.count, want);
    CHECK(!memcmp(got, want, (size_t)s.count * sizeof(got[0])));

    memset(got8, GUARD, sizeof(got8));
    memset(want8, GUARD, sizeof(want8));
    k->finish(got, s.count, s.precision + s.fraction, got8);
    stk_kernels_scalar.finish(want, s.count, s.precision + s.fraction, want8);
    CHECK(!memcmp(got8, want8, sizeof(got8)));
    CHECK_EQ(want8[s.count], GUARD);
}

/* All 2^24 colours, and every length of row; in place as well. */
static void try_colors(const stk_kernels *k)
{
    enum { MOST = 256 };
    uint8_t src[MOST * 3], got[MOST * 3 + 1], want[MOST * 3];
    for (int32_t y = 0; y < 256; y++)
        for (int32_t cb = 0; cb < 256; cb++) {
            for (int32_t cr = 0; cr < 256; cr++) {
                src[3 * cr] = (uint8_t)y;
                src[3 * cr + 1] = (uint8_t)cb;
                src[3 * cr + 2] = (uint8_t)cr;
            }
            k->ycc_to_rgb(src, got, 256);
            stk_kernels_scalar.ycc_to_rgb(src, want, 256);
            CHECK(!memcmp(got, want, sizeof(want)));
        }
    for (int32_t n = 0; n < MOST; n++) {
        fill(src, sizeof(src));
        memcpy(got, src, sizeof(src));
        got[3 * n] = GUARD;
        stk_kernels_scalar.ycc_to_rgb(src, want, n);
        k->ycc_to_rgb(got, got, n);
        CHECK(!memcmp(got, want, (size_t)n * 3));
        CHECK_EQ(got[3 * n], GUARD);
    }
}

static stk_resample_params random_params(void)
{
    stk_resample_params p = {.src_width = between(1, 150), .src_height = between(1, 150)};
    p.x1 = between(1, p.src_width);
    p.x0 = between(0, (int32_t)p.x1 - 1) + (any() % 2 ? 0.25 : 0.0);
    p.y1 = between(1, p.src_height);
    p.y0 = between(0, (int32_t)p.y1 - 1) + (any() % 2 ? 0.375 : 0.0);
    p.full_width = between(1, 90);
    p.full_height = between(1, 90);
    p.dst_x = between(0, p.full_width - 1);
    p.dst_y = between(0, p.full_height - 1);
    p.dst_width = between(1, p.full_width - p.dst_x);
    p.dst_height = between(1, p.full_height - p.dst_y);
    p.channels = (int32_t[]){1, 3, 4}[any() % 3];
    p.filter = (stk_filter)(any() % 5);
    p.coarse = any() % 2;
    p.outside = any() % 2;
    p.mirror = any() % 2;
    p.upside_down = any() % 2;
    p.ycc_to_rgb = p.channels == 3 && any() % 2;
    return p;
}

/* `narrow`: rows hold no more than the pixels that are needed. */
static void run(const stk_kernels *k, stk_resample_params p, bool narrow, const uint8_t *src,
                uint8_t *dst)
{
    stk_resample *r;
    int32_t first, end;
    CHECK_EQ(stk_resample_new(&r), STK_OK);
    stk_resample_use_kernels(r, k);
    CHECK_EQ(stk_resample_plan(r, &p), STK_OK);
    if (narrow) {
        stk_resample_columns(r, &first, &end);
        p.row_x = first;
        p.row_width = end - first;
        CHECK_EQ(stk_resample_plan(r, &p), STK_OK);
    }
    stk_resample_rows(r, &first, &end);
    stk_resample_start(r, dst, (ptrdiff_t)p.dst_width * p.channels, first);
    for (int32_t y = first; y < end; y++) {
        CHECK(!stk_resample_done(r));
        const uint8_t *row = src + ((ptrdiff_t)y * p.src_width + p.row_x) * p.channels;
        CHECK_EQ(stk_resample_row(r, row), y + 1 < end);
    }
    CHECK(stk_resample_done(r));
    stk_resample_free(&r);
}

/* The same through the whole of stk_resample; nothing is written outside of the destination. */
static void try_resample(const stk_kernels *k)
{
    const stk_resample_params p = random_params();
    const size_t pixel = (size_t)p.channels;
    const size_t size = (size_t)p.src_width * (size_t)p.src_height * pixel;
    const size_t made = (size_t)p.dst_width * (size_t)p.dst_height * pixel;
    uint8_t *src = make(size, 1), *got = make(made + 64, 1), *want = make(made + 64, 1);
    fill(src, size);
    memset(got, GUARD, made + 64);
    memset(want, GUARD, made + 64);
    run(k, p, any() % 2, src, got + 32);
    run(&stk_kernels_scalar, p, false, src, want + 32);
    CHECK(!memcmp(got, want, made + 64));
    for (size_t i = 0; i < 32; i++) CHECK(want[i] == GUARD && want[made + 32 + i] == GUARD);
    stk_free(src);
    stk_free(got);
    stk_free(want);
}

/* Six bits of weight, rounded as a running sum: each boundary between taps is 1/128 off at most. */
static bool try_coarse(const stk_kernels *k)
{
    bool differs = false;
    stk_resample_params p = random_params();
    p.channels = 1;
    p.filter = STK_FILTER_BILINEAR;
    p.ycc_to_rgb = p.coarse = false;
    p.twice_x = any() % 2;
    const size_t size = (size_t)p.src_width * (size_t)p.src_height;
    const size_t made = (size_t)p.dst_width * (size_t)p.dst_height;
    uint8_t *src = make(size, 1), *got = make(made, 1), *want = make(made, 1);
    fill(src, size);
    run(&stk_kernels_scalar, p, false, src, want);
    p.coarse = true;
    run(k, p, any() % 2, src, got);
    for (size_t i = 0; i < made; i++) {
        const int32_t d = got[i] - want[i];
        CHECK(d >= -7 && d <= 7); /* 255 * 3 / 128, and rounding */
        differs |= d != 0;
    }
    stk_free(src);
    stk_free(got);
    stk_free(want);
    return differs;
}

/* Every table but the scalar one; on a processor without any, there is nothing to compare. */
static void each(void (*check)(const stk_kernels *), int32_t times)
{
    const stk_kernels *k;
    for (size_t i = 1; (k = stk_kernels_at(i)); i++)
        for (int32_t n = 0; n < times; n++) check(k);
}

static void horizontal_is_the_same(void)
{
    each(try_horizontal, 4000);
}

static void vertical_is_the_same(void)
{
    each(try_vertical, 2000);
}

static void blending_is_the_same(void)
{
    each(try_blend, 2000);
}

static void sums_are_the_same(void)
{
    each(try_sums, 2000);
}

static void colors_are_the_same(void)
{
    each(try_colors, 1);
}

static void resampling_is_the_same(void)
{
    each(try_resample, 3000);
}

static void narrow_is_the_same(void)
{
    each(try_narrow, 4000);
}

static void coarse_is_close(void)
{
    const stk_kernels *k;
    for (size_t i = 0; (k = stk_kernels_at(i)); i++) {
        int32_t differ = 0;
        for (int32_t n = 0; n < 1000; n++) differ += try_coarse(k);
        CHECK(differ > 0); /* it was made another way */
    }
}

static void best_is_the_last(void)
{
    size_t n = 0;
    while (stk_kernels_at(n)) n++;
    CHECK(n >= 1);
    CHECK(stk_kernels_at(0) == &stk_kernels_scalar);
    CHECK(stk_kernels_best() == stk_kernels_at(n - 1));
    fprintf(stderr, "fastest kernels here: %s\n", stk_kernels_best()->name);
}

TESTS(TEST(best_is_the_last), TEST(horizontal_is_the_same), TEST(narrow_is_the_same),
      TEST(vertical_is_the_same), TEST(blending_is_the_same), TEST(sums_are_the_same),
      TEST(colors_are_the_same), TEST(resampling_is_the_same), TEST(coarse_is_close))
