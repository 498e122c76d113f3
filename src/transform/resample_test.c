#include "transform/resample.h"

#include <math.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "tests/check.h"

static uint64_t seed = 11;

static uint32_t any(void)
{
    return (uint32_t)(stk_mix64(seed++) >> 32);
}

static int32_t between(int32_t low, int32_t high)
{
    return low + (int32_t)(any() % (uint32_t)(high - low + 1));
}

static const stk_resample_params GOOD = {.src_width = 40,
                                         .src_height = 30,
                                         .x1 = 40,
                                         .y1 = 30,
                                         .dst_width = 16,
                                         .dst_height = 12,
                                         .channels = 3};

static void check_plan(stk_resample_params p, stk_err want)
{
    stk_resample *r;
    CHECK_EQ(stk_resample_new(&r), STK_OK);
    CHECK_EQ(stk_resample_plan(r, &p), want);
    stk_resample_free(&r);
    CHECK(r == NULL);
    stk_resample_free(&r);
}

#define REFUSED(...)                  \
    do {                              \
        stk_resample_params p = GOOD; \
        __VA_ARGS__;                  \
        check_plan(p, STK_EINVAL);    \
    } while (0)

static void refuses_what_it_cannot(void)
{
    check_plan(GOOD, STK_OK);
    REFUSED(p.src_width = 0);
    REFUSED(p.src_height = 65536);
    REFUSED(p.dst_width = 0);
    REFUSED(p.dst_height = 65536);
    REFUSED(p.dst_height = -1);
    REFUSED(p.x0 = -0.5);
    REFUSED(p.x1 = 40.5);
    REFUSED(p.y0 = p.y1);
    REFUSED(p.y0 = 20; p.y1 = 10);
    REFUSED(p.x0 = NAN);
    REFUSED(p.y1 = NAN);
    REFUSED(p.y1 = INFINITY);
    REFUSED(p.channels = 2);
    REFUSED(p.channels = 0);
    REFUSED(p.channels = 1; p.ycc_to_rgb = true);
    REFUSED(p.filter = (stk_filter)5);
    REFUSED(p.filter = (stk_filter)-1);
    REFUSED(p.full_width = 16); /* the other is 0 */
    REFUSED(p.full_width = 15; p.full_height = 12);
    REFUSED(p.full_width = 16; p.full_height = 12; p.dst_x = 1);
    REFUSED(p.full_width = 16; p.full_height = 12; p.dst_y = -1);
    REFUSED(p.full_width = 16; p.full_height = (1 << 24) + 1);
    REFUSED(p.dst_x = INT32_MAX);
}

/* Feeds rows of one value; they are exactly as long as they are said to be, and so is `dst`. */
static void feed_flat(stk_resample *r, const stk_resample_params *p, uint8_t value)
{
    const size_t row_bytes = (size_t)p->src_width * (size_t)p->channels;
    const size_t dst_bytes = (size_t)p->dst_width * (size_t)p->dst_height * (size_t)p->channels;
    uint8_t *row = stk_alloc(row_bytes), *dst = stk_alloc(dst_bytes);
    int32_t first, end, left, right;
    CHECK(row && dst);
    memset(row, value, row_bytes);
    memset(dst, (uint8_t)~value, dst_bytes);

    stk_resample_rows(r, &first, &end);
    stk_resample_columns(r, &left, &right);
    CHECK(first >= 0 && first < end && end <= p->src_height);
    CHECK(left >= 0 && left < right && right <= p->src_width);
    const int32_t from = first > 0 && any() % 2 ? first - 1 : first;
    stk_resample_start(r, dst, (ptrdiff_t)p->dst_width * p->channels, from);
    for (int32_t y = from; y < end; y++) {
        CHECK(!stk_resample_done(r));
        CHECK_EQ(stk_resample_row(r, row), y + 1 < end);
    }
    CHECK(stk_resample_done(r));
    CHECK(!stk_resample_row(r, row)); /* once more does no harm */
    for (size_t i = 0; i < dst_bytes; i++) CHECK(dst[i] == value);
    stk_free(row);
    stk_free(dst);
}

/* A side: mostly small, at times as long as can be. */
static int32_t any_side(void)
{
    const uint32_t kind = any() % 8;
    return kind == 0   ? 65535
           : kind == 1 ? between(1000, 65535)
           : kind < 5  ? between(1, 9)
                       : between(1, 300);
}

static double any_corner(double low, double high)
{
    const uint32_t kind = any() % 4;
    const double v = low + (high - low) * stk_unit(any());
    return kind == 0 ? low : kind == 1 ? high : kind == 2 ? floor(v) : v;
}

static stk_resample_params any_params(void)
{
    stk_resample_params p = {.src_width = any_side(), .src_height = any_side()};
    do {
        p.x0 = any_corner(0, p.src_width);
        p.x1 = any_corner(p.x0, p.src_width);
        p.y0 = any_corner(0, p.src_height);
        p.y1 = any_corner(p.y0, p.src_height);
    } while (p.x0 >= p.x1 || p.y0 >= p.y1);
    p.full_width = any_side();
    p.full_height = any_side();
    p.dst_x = between(0, p.full_width - 1);
    p.dst_y = between(0, p.full_height - 1);
    p.dst_width = between(1, p.full_width - p.dst_x);
    p.dst_height = between(1, p.full_height - p.dst_y);
    p.channels = (int32_t[]){1, 3, 4}[any() % 3];
    p.filter = (stk_filter)(any() % 5);
    p.outside = any() % 2;
    p.mirror = any() % 2;
    p.upside_down = any() % 2;
    p.from_right = any() % 2;
    p.from_bottom = any() % 2;
    p.transposed = any() % 2;
    return p;
}

/* How many values pass through, about: for keeping the tests short. */
static double work_of(const stk_resample_params *p)
{
    const double wide = p->dst_width > p->src_width ? p->dst_width : p->src_width;
    return wide * p->channels * (p->src_height + 4.0 * p->dst_height);
}

/* Whatever the shape: nothing is read or written outside, and a flat image stays flat. */
static void any_shape_stays_flat(void)
{
    stk_resample *r;
    CHECK_EQ(stk_resample_new(&r), STK_OK); /* one object for all: scratch grows and shrinks */
    for (int i = 0; i < 800; i++) {
        const stk_resample_params p = any_params();
        if (work_of(&p) > 6e5) continue;
        CHECK_EQ(stk_resample_plan(r, &p), STK_OK);
        feed_flat(r, &p, (uint8_t)any());
        if (any() % 4 == 0) feed_flat(r, &p, 255); /* the same plan again */
    }
    stk_resample_free(&r);
}

static void extreme_shapes_stay_flat(void)
{
    static const int32_t sides[][4] = {{65535, 1, 1, 1},     {1, 65535, 1, 1}, {65535, 1, 1, 65535},
                                       {1, 99, 65535, 1},    {1, 1, 65535, 1}, {1, 1, 1, 65535},
                                       {65535, 2, 32000, 1}, {2, 65535, 2, 3}, {65535, 3, 24, 24}};
    stk_resample *r;
    CHECK_EQ(stk_resample_new(&r), STK_OK);
    for (size_t i = 0; i < sizeof(sides) / sizeof(sides[0]); i++)
        for (int filter = 0; filter <= STK_FILTER_NEAREST; filter++) {
            const int32_t *s = sides[i];
            const stk_resample_params p = {.src_width = s[0],
                                           .src_height = s[1],
                                           .x1 = s[0],
                                           .y1 = s[1],
                                           .dst_width = s[2],
                                           .dst_height = s[3],
                                           .channels = (int32_t[]){1, 3, 4}[any() % 3],
                                           .filter = (stk_filter)filter};
            CHECK_EQ(stk_resample_plan(r, &p), STK_OK);
            feed_flat(r, &p, (uint8_t)any());
        }
    stk_resample_free(&r);
}

/* Boxes so thin that no pixel's centre is inside. */
static void thin_boxes_stay_flat(void)
{
    stk_resample *r;
    CHECK_EQ(stk_resample_new(&r), STK_OK);
    for (int i = 0; i < 400; i++) {
        stk_resample_params p = GOOD;
        p.x0 = between(0, 39) + (any() % 2 ? 0.0 : 0.999999);
        p.x1 = any() % 2 ? nextafter(p.x0, 41) : p.x0 + 1e-9;
        p.y1 = between(1, 30);
        p.y0 = nextafter(p.y1, 0);
        p.filter = (stk_filter)(any() % 5);
        p.outside = any() % 2;
        p.from_right = any() % 2;
        p.from_bottom = any() % 2;
        CHECK_EQ(stk_resample_plan(r, &p), STK_OK);
        feed_flat(r, &p, (uint8_t)any());
    }
    stk_resample_free(&r);
}

static void same_size_is_a_copy(void)
{
    stk_resample *r;
    uint8_t src[7 * 5 * 3], dst[7 * 5 * 3];
    int32_t first, end;
    for (size_t i = 0; i < sizeof(src); i++) src[i] = (uint8_t)any();
    CHECK_EQ(stk_resample_new(&r), STK_OK);
    for (int filter = 0; filter <= STK_FILTER_NEAREST; filter++)
        for (int turned = 0; turned < 4; turned++) {
            const stk_resample_params p = {.src_width = 7,
                                           .src_height = 5,
                                           .x1 = 7,
                                           .y1 = 5,
                                           .dst_width = 7,
                                           .dst_height = 5,
                                           .channels = 3,
                                           .filter = (stk_filter)filter,
                                           .mirror = turned & 1,
                                           .upside_down = turned & 2};
            CHECK_EQ(stk_resample_plan(r, &p), STK_OK);
            stk_resample_rows(r, &first, &end);
            CHECK(first == 0 && end == 5);
            stk_resample_start(r, dst, 21, 0);
            for (int y = 0; y < 5; y++) CHECK_EQ(stk_resample_row(r, src + 21 * y), y < 4);
            for (int i = 0; i < 105; i++) {
                const int y = i / 21, x = i / 3 % 7;
                const int from = (p.upside_down ? 4 - y : y) * 21 + (p.mirror ? 6 - x : x) * 3;
                CHECK_EQ(dst[i], src[from + i % 3]);
            }
        }
    stk_resample_free(&r);
}

/* One row or column of an image of one channel. */
static void run_line(stk_resample *r, stk_resample_params p, bool down, const uint8_t *src,
                     uint8_t *dst)
{
    if (down) {
        p.src_height = p.src_width, p.y1 = p.x1, p.dst_height = p.dst_width;
        p.full_height = p.full_width, p.dst_y = p.dst_x, p.y0 = p.x0;
        p.upside_down = p.mirror, p.from_bottom = p.from_right;
        p.src_width = p.dst_width = p.full_width = 1;
        p.x0 = 0, p.x1 = 1, p.dst_x = 0;
        p.mirror = p.from_right = false;
    }
    int32_t first, end;
    CHECK_EQ(stk_resample_plan(r, &p), STK_OK);
    stk_resample_rows(r, &first, &end);
    stk_resample_start(r, dst, p.dst_width, first);
    for (int32_t y = first; y < end; y++) stk_resample_row(r, src + y);
    CHECK(stk_resample_done(r));
}

/* What is counted from the far side is what the mirrored source gives, bit for bit. */
static void far_side_decides_ties(void)
{
    enum { MOST = 70 };
    stk_resample *r;
    CHECK_EQ(stk_resample_new(&r), STK_OK);
    for (int i = 0; i < 4000; i++) {
        uint8_t src[MOST], turned[MOST], want[MOST] = {0}, got[MOST] = {0};
        const int32_t n = between(1, MOST), full = between(1, MOST);
        const int32_t from = between(0, full - 1), count = between(1, full - from);
        const int32_t step = any() % 2 ? 1 : 4; /* whole pixels, or parts: exact in binary */
        const int32_t x0 = between(0, n * step - 1), x1 = between(x0 + 1, n * step);
        for (int k = 0; k < n; k++) src[k] = turned[n - 1 - k] = (uint8_t)any();
        stk_resample_params p = {.src_width = n,
                                 .src_height = 1,
                                 .x0 = (double)x0 / step,
                                 .x1 = (double)x1 / step,
                                 .y1 = 1,
                                 .full_width = full,
                                 .full_height = 1,
                                 .dst_x = from,
                                 .dst_width = count,
                                 .dst_height = 1,
                                 .channels = 1,
                                 .filter = (stk_filter)(any() % 5),
                                 .outside = any() % 2,
                                 .mirror = any() % 2};
        const bool down = any() % 2;
        run_line(r, p, down, src, want);
        p.x0 = (double)(n * step - x1) / step;
        p.x1 = (double)(n * step - x0) / step;
        p.dst_x = full - from - count;
        p.mirror = !p.mirror;
        p.from_right = true;
        run_line(r, p, down, turned, got);
        CHECK(!memcmp(want, got, (size_t)count));
    }
    stk_resample_free(&r);
}

/* 2.5 pixels become one: the one in the middle goes to the side that the picture begins at. */
static void ties_are_pillows(void)
{
    static const uint8_t src[] = {0, 50, 100, 150, 250};
    stk_resample *r;
    stk_resample_params p = {.src_width = 5,
                             .src_height = 1,
                             .x1 = 5,
                             .y1 = 1,
                             .dst_width = 2,
                             .dst_height = 1,
                             .full_width = 2,
                             .full_height = 1,
                             .channels = 1,
                             .filter = STK_FILTER_BOX};
    CHECK_EQ(stk_resample_new(&r), STK_OK);
    for (int down = 0; down < 2; down++) {
        uint8_t dst[2];
        p.from_right = false;
        run_line(r, p, down, src, dst);
        CHECK(dst[0] == 50 && dst[1] == 200);
        p.from_right = true;
        run_line(r, p, down, src, dst);
        CHECK(dst[0] == 25 && dst[1] == 167);
    }
    stk_resample_free(&r);
}

/* Only what the window's filters reach is asked for. */
static void asks_for_no_more_than_it_needs(void)
{
    stk_resample *r;
    int32_t first, end;
    const stk_resample_params p = {.src_width = 400,
                                   .src_height = 300,
                                   .x0 = 100,
                                   .x1 = 300,
                                   .y0 = 50,
                                   .y1 = 250,
                                   .full_width = 100,
                                   .full_height = 100,
                                   .dst_x = 40,
                                   .dst_y = 20,
                                   .dst_width = 10,
                                   .dst_height = 30,
                                   .channels = 1};
    CHECK_EQ(stk_resample_new(&r), STK_OK);
    CHECK_EQ(stk_resample_plan(r, &p), STK_OK);
    stk_resample_columns(r, &first, &end);
    CHECK(first == 100 + 79 && end == 100 + 101); /* two a pixel, and one more on each side */
    stk_resample_rows(r, &first, &end);
    CHECK(first == 50 + 39 && end == 50 + 101);
    stk_resample_free(&r);
}

static void survives_every_failure(void)
{
    static const stk_filter filters[] = {STK_FILTER_BILINEAR, STK_FILTER_LANCZOS,
                                         STK_FILTER_NEAREST};
    stk_err err;
    for (int i = 0; i < 3; i++)
        TORTURE (err) {
            stk_resample *r;
            stk_resample_params p = GOOD;
            p.filter = filters[i];
            err = stk_resample_new(&r);
            CHECK(err == STK_OK || (err == STK_ENOMEM && !r));
            if (!err) err = stk_resample_plan(r, &p);
            CHECK(err == STK_OK || err == STK_ENOMEM);
            stk_fault_arm(-1);
            if (r) { /* after a plan that failed, another one may do */
                CHECK_EQ(stk_resample_plan(r, &p), STK_OK);
                feed_flat(r, &p, 99);
            }
            stk_resample_free(&r);
        }
    stk_fault_arm(-1);
}

TESTS(TEST(refuses_what_it_cannot), TEST(any_shape_stays_flat), TEST(extreme_shapes_stay_flat),
      TEST(thin_boxes_stay_flat), TEST(same_size_is_a_copy), TEST(far_side_decides_ties),
      TEST(ties_are_pillows), TEST(asks_for_no_more_than_it_needs), TEST(survives_every_failure))
