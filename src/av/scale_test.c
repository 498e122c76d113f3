/* What av_scale makes of pictures is what FFmpeg's filters make of them, to the bit. */
#include "av/scale.h"

#include <libavutil/pixdesc.h>

#include "av/filter.h"
#include "av/module.h"
#include "base/alloc.h"
#include "tests/check.h"

enum { GUARD = 64, MOST_BYTES = 128 * 64 * 4, WIDTH = 101, HEIGHT = 59 };

static void start(void)
{
    static bool started;
    if (!started) stk_av_call_start();
    started = true;
}

/* Any pixels. */
static AVFrame *make_picture(enum AVPixelFormat format)
{
    AVFrame *f = av_frame_alloc();
    CHECK(f);
    f->format = format;
    f->width = WIDTH;
    f->height = HEIGHT;
    f->pts = 0;
    CHECK_EQ(av_frame_get_buffer(f, 0), 0);
    const bool wide = av_pix_fmt_desc_get(format)->comp[0].depth > 8;
    uint32_t word = 1;
    for (int i = 0; i < AV_NUM_DATA_POINTERS && f->buf[i]; i++)
        for (size_t k = 0; k < (size_t)f->buf[i]->size; k++) {
            word = word * 1664525 + 1013904223; /* Numerical Recipes */
            f->buf[i]->data[k] = (uint8_t)(wide && k % 2 ? word >> 30 : word >> 24);
        }
    return f;
}

/* By the filters; "null" keeps av_scale from taking their place. */
static size_t expect(const AVFrame *f, const char *text, uint8_t *out)
{
    char all[160];
    stk_diag diag = {0};
    stk_av_call call;
    stk_frames *made;
    av_filter filter = {0};
    snprintf(all, sizeof(all), "null,%s", text);
    const av_filter_input input = {all, false, {1, 25}, {25, 1}};
    AVFrame *same = av_frame_clone(f);
    CHECK_EQ(stk_frames_make(STK_MEDIA_VIDEO, &made), STK_OK);
    stk_av_enter(&call, &diag);
    CHECK_EQ(av_filter_put(&filter, &input, same, &call), STK_OK);
    CHECK_EQ(av_filter_finish(&filter, &input, made, &call), STK_OK);
    stk_av_leave(&call);
    CHECK_EQ(made->n, 1);
    const uint8_t *end = stk_picture_copy(made->list[0], out);
    CHECK(end);
    const size_t bytes = (size_t)(end - out);
    av_filter_fini(&filter);
    av_frame_free(&same);
    mod_frames_unref(&made);
    return bytes;
}

static bool fits(const char *text, enum AVPixelFormat format)
{
    av_scale s;
    AVFrame *f = make_picture(format);
    av_scale_init(&s, text);
    const bool is = av_scale_fits_array(&s, f);
    CHECK(is || !av_scale_fits(&s, f));
    av_scale_fini(&s);
    av_frame_free(&f);
    return is;
}

/* The bytes behind the picture belong to somebody else. */
static void compare(const char *text, enum AVPixelFormat format)
{
    static uint8_t want[MOST_BYTES];
    _Alignas(64) static uint8_t got[GUARD + MOST_BYTES + GUARD];
    stk_diag diag = {0};
    stk_av_call call;
    av_scale s;
    AVFrame *f = make_picture(format);
    const size_t bytes = expect(f, text, want);
    CHECK(bytes < MOST_BYTES);
    for (size_t at = GUARD; at > 0; at -= AV_SCALE_ALIGN) {
        av_scale_init(&s, text);
        CHECK(av_scale_fits_array(&s, f));
        memset(got, 0xA5, sizeof(got));
        stk_av_enter(&call, &diag);
        CHECK_EQ(av_scale_into(&s, f, got + at, &call), STK_OK);
        stk_av_leave(&call);
        if (memcmp(got + at, want, bytes)) fprintf(stderr, "%s\n", text);
        CHECK(!memcmp(got + at, want, bytes));
        for (size_t i = 0; i < sizeof(got); i++)
            CHECK((i >= at && i < at + bytes) || got[i] == 0xA5);
        av_scale_fini(&s);
    }
    av_frame_free(&f);
}

static const char *const crops[] = {"", "crop=w=80:h=40:x=6:y=4:exact=1,",
                                    "crop=w=64:h=31:x=7:y=5:exact=1,"};
static const enum AVPixelFormat formats[] = {
    AV_PIX_FMT_YUV420P, AV_PIX_FMT_YUVJ420P, AV_PIX_FMT_YUV422P, AV_PIX_FMT_YUV444P,
    AV_PIX_FMT_YUV410P, AV_PIX_FMT_GRAY8,    AV_PIX_FMT_GBRP,    AV_PIX_FMT_YUVA420P};
enum { NUM_FORMATS = sizeof(formats) / sizeof(*formats) };

static void scaled(void)
{
    static const char *const scales[] = {"w=16:h=16:flags=bilinear",  "w=48:h=21:flags=bicubic",
                                         "w=112:h=56:flags=bilinear", "w=80:h=33:flags=area",
                                         "w=96:h=20:flags=lanczos",   "w=32:h=32:flags=neighbor"};
    static const char *const ends[] = {"rgb24", "rgb24,hflip", "bgr24", "rgba,hflip", "bgra"};
    if (!COMPAT_SCALE_ALONE) return;
    start();
    for (size_t i = 0; i < 3 * 6 * 5 * NUM_FORMATS; i++) {
        char text[128];
        snprintf(text, sizeof(text), "%sscale=%s,format=pix_fmts=%s", crops[i % 3],
                 scales[i / 3 % 6], ends[i / 18 % 5]);
        compare(text, formats[i / 90]);
    }
}

static void of_the_size_that_it_has(void)
{
    if (!COMPAT_SCALE_ALONE) return;
    start();
    for (size_t i = 0; i < 2 * NUM_FORMATS; i++) {
        char text[128];
        snprintf(text, sizeof(text), "%sformat=pix_fmts=rgb24,hflip", crops[1 + i % 2]);
        compare(text, formats[i / 2]);
    }
    CHECK(!fits("format=pix_fmts=rgb24", AV_PIX_FMT_YUV420P)); /* rows of 101 pixels */
}

static void what_is_left_to_the_filters(void)
{
    static const char *const texts[] = {
        "scale=w=40:h=16:flags=bilinear,format=pix_fmts=rgb24",
        "crop=w=80:h=40:x=22:y=0:exact=1,format=pix_fmts=rgb24",
        "crop=w=80:h=40:x=0:y=20:exact=1,format=pix_fmts=rgb24",
        "crop=w=80:h=40:x=0:y=0,format=pix_fmts=rgb24",
        "crop=w=0:h=40:x=0:y=0:exact=1,format=pix_fmts=rgb24",
        "crop=w=80:h=40:x=:y=0:exact=1,format=pix_fmts=rgb24",
        "scale=w=48:h=16:flags=bilinear,format=pix_fmts=rgb24,vflip",
        "scale=w=48:h=16:flags=bilinear,format=pix_fmts=rgb24,hflip,hflip",
        "scale=w=48:h=16:flags=bilinear,format=pix_fmts=gray",
        "scale=w=48:h=16:flags=bilinear,format=pix_fmts=rgb24|bgr24",
        "scale=w=48:h=16,format=pix_fmts=rgb24",
        "hflip",
        ""};
    static const char crop[] = "crop=w=64:h=16:x=7:y=0:exact=1,format=pix_fmts=rgb24";
    start();
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
        CHECK(!fits(texts[i], AV_PIX_FMT_YUV420P));
    CHECK(!fits(crop, AV_PIX_FMT_NV12)); /* where do two halves of a pair begin? */
    CHECK(!fits(crop, AV_PIX_FMT_YUV420P10));
    CHECK(!fits(crop, AV_PIX_FMT_YUYV422));
    CHECK(!fits(crop, AV_PIX_FMT_PAL8));
    CHECK_EQ(fits(crop, AV_PIX_FMT_YUV420P), COMPAT_SCALE_ALONE);
}

TESTS(TEST(scaled), TEST(of_the_size_that_it_has), TEST(what_is_left_to_the_filters))
