/* From bytes to rows, by the module's functions and, where it is loaded, by the codecs above it. */
#include <stoker/image.h>

#include "av/call.h"
#include "av/module.h"
#include "base/alloc.h"
#include "tests/check.h"
#include "tests/jpeg_make.h"
#include "tests/still_make.h"

enum { WIDTH = 4, HEIGHT = 2 };

typedef struct rows {
    uint8_t *data;
    size_t bytes, n, stop_after;
} rows;

static bool push(void *ctx, const uint8_t *row)
{
    rows *r = ctx;
    memcpy(r->data + r->n++ * r->bytes, row, r->bytes);
    return r->n != r->stop_after;
}

static stk_picture_decoder *decoder(const char *codec)
{
    static bool started;
    stk_picture_decoder *d;
    if (!started) stk_av_call_start();
    started = true;
    CHECK_EQ(mod_picture_decoder_new(codec, &d, NULL), STK_OK);
    return d;
}

static stk_picture whole(const still_file *f)
{
    return (stk_picture){.data = f->data,
                         .size = f->size,
                         .width = WIDTH,
                         .height = HEIGHT,
                         .columns = WIDTH,
                         .rows = HEIGHT};
}

static void rows_of_rgb(void)
{
    stk_picture_decoder *d = decoder("bmp");
    const still_file f = still_bmp();
    uint8_t out[WIDTH * HEIGHT * 4];
    stk_picture p = whole(&f);
    for (int again = 0; again < 2; again++) {
        rows r = {.data = out, .bytes = WIDTH * 3};
        CHECK_EQ(mod_picture_decode(d, &p, push, &r, NULL), STK_OK);
        CHECK_EQ(r.n, HEIGHT);
        for (int i = 0; i < WIDTH * HEIGHT; i++)
            CHECK(out[3 * i] == i % 4 * 10 && out[3 * i + 1] == i / 4 * 100 && out[3 * i + 2] == 7);
    }
    p.x = 1, p.y = 1, p.columns = 2, p.rows = 1, p.alpha = true;
    rows r = {.data = out, .bytes = 2 * 4};
    CHECK_EQ(mod_picture_decode(d, &p, push, &r, NULL), STK_OK);
    CHECK(r.n == 1 && !memcmp(out, (uint8_t[]){10, 100, 7, 255, 20, 100, 7, 255}, 8));
    mod_picture_decoder_free(&d);
}

static void what_is_wrong(void)
{
    stk_picture_decoder *d = decoder("bmp");
    const still_file f = still_bmp();
    uint8_t out[WIDTH * HEIGHT * 3];
    rows r = {.data = out, .bytes = WIDTH * 3};
    stk_diag diag;
    stk_picture p = whole(&f);
    p.width = 5;
    CHECK_EQ(mod_picture_decode(d, &p, push, &r, &diag), STK_ECORRUPT);
    CHECK(strstr(diag.text, "4 x 2") && strstr(diag.text, "5 x 2"));
    p = whole(&f);
    p.x = 1;
    CHECK_EQ(mod_picture_decode(d, &p, push, &r, &diag), STK_EINVAL);
    p = whole(&f);
    p.size = 0;
    CHECK_EQ(mod_picture_decode(d, &p, push, &r, &diag), STK_ELIMIT);
    p.size = f.size - 1;
    CHECK_EQ(mod_picture_decode(d, &p, push, &r, &diag), STK_ECORRUPT);
    CHECK_EQ(r.n, 0);
    p = whole(&f);
    CHECK_EQ(mod_picture_decode(d, &p, push, &r, &diag), STK_OK); /* it goes on */
    mod_picture_decoder_free(&d);
    CHECK_EQ(mod_picture_decoder_new("none of these", &d, &diag), STK_EUNSUPPORTED);
    CHECK(!d && strstr(diag.text, "none of these"));
    mod_picture_decoder_free(&d);
}

/* No memory is taken for a picture that is larger than said. */
static void larger_than_said(void)
{
    stk_picture_decoder *d = decoder("bmp");
    still_file f = still_bmp();
    uint8_t out[WIDTH * HEIGHT * 3];
    rows r = {.data = out, .bytes = WIDTH * 3};
    stk_diag diag;
    const stk_picture p = whole(&f);
    f.data[18 + 1] = f.data[22 + 1] = 64; /* 16,388 x 16,386 */
    CHECK_EQ(mod_picture_decode(d, &p, push, &r, &diag), STK_ECORRUPT);
    CHECK(!r.n && !strstr(diag.text, "4 x 2"));
    mod_picture_decoder_free(&d);
}

/* YCbCr: each rectangle equals that part of the whole. */
static void windows(bool exact, int h, int v)
{
    enum { W = 61, H = 47 };
    stk_picture_decoder *d = decoder("mjpeg");
    uint8_t *jpeg;
    const size_t size =
        jpeg_make_file(&(jpeg_make){.width = W, .height = H, .h = h, .v = v}, &jpeg);
    uint8_t *all = malloc(W * H * 3), *part = malloc(W * H * 3);
    stk_picture p = {jpeg, size, W, H, 0, 0, W, H, .exact = exact};
    rows r = {.data = all, .bytes = W * 3};
    CHECK_EQ(mod_picture_decode(d, &p, push, &r, NULL), STK_OK);
    for (int n = 0; n < 40; n++) {
        p.x = n * 7 % (W - 2), p.y = n * 5 % (H - 2);
        p.columns = 1 + n * 11 % (W - p.x), p.rows = 1 + n * 13 % (H - p.y);
        r = (rows){.data = part, .bytes = (size_t)p.columns * 3, .stop_after = n % 4 ? 0 : 1};
        CHECK_EQ(mod_picture_decode(d, &p, push, &r, NULL), STK_OK);
        CHECK_EQ(r.n, n % 4 ? p.rows : 1);
        for (size_t y = 0; y < r.n; y++)
            CHECK(!memcmp(part + y * r.bytes, all + ((p.y + y) * W + (size_t)p.x) * 3, r.bytes));
    }
    free(part);
    free(all);
    free(jpeg);
    mod_picture_decoder_free(&d);
}

static void windows_of_ycbcr(void)
{
    for (int exact = 0; exact < 2; exact++) {
        windows(exact, 1, 1);
        windows(exact, 2, 1);
        windows(exact, 2, 2);
    }
}

static void memory_may_run_out(void)
{
    const still_file f = still_bmp();
    const stk_picture p = whole(&f);
    stk_err err;
    mod_picture_decoder_free(&(stk_picture_decoder *){decoder("bmp")});
    TORTURE (err) {
        uint8_t out[WIDTH * HEIGHT * 3];
        rows r = {.data = out, .bytes = WIDTH * 3};
        stk_picture_decoder *d = NULL;
        err = mod_picture_decoder_new("bmp", &d, NULL);
        if (!err) err = mod_picture_decode(d, &p, push, &r, NULL);
        CHECK(!err || err == STK_ENOMEM);
        mod_picture_decoder_free(&d);
    }
}

/* Through the public functions, which load the module; STOKER_AV_MODULE says where it is. */
static void by_content(void)
{
    static const uint8_t indices[] = {0, 1, 2, 3, 3, 2, 1, 0};
    const still_file files[] = {still_bmp(), still_gif(), still_tiff()};
    const stk_image_opts opts = {.quality = STK_QUALITY_EXACT, .ignore_orientation = true};
    for (int k = 0; k < 3; k++) {
        stk_err err;
        TORTURE (err) {
            stk_tensor t;
            stk_buffer *mem;
            stk_diag diag;
            err = stk_image_decode(files[k].data, files[k].size, &opts, 0, &t, &mem, &diag);
            if (err && err != STK_ENOMEM) fprintf(stderr, "  %s\n", diag.text);
            CHECK(!err || err == STK_ENOMEM);
            const uint8_t *p = err ? NULL : stk_buffer_data(mem);
            for (int i = 0; p && i < WIDTH * HEIGHT; i++, p += 3) {
                const int x = i % WIDTH, y = i / WIDTH, c = indices[i], g = 30 * x + 100 * y;
                if (k == 0) CHECK(p[0] == 10 * x && p[1] == 100 * y && p[2] == 7);
                if (k == 1) CHECK(p[0] == 50 * c && p[1] == 60 * c && p[2] == 70 * c);
                if (k == 2) CHECK(p[0] == g && p[1] == g && p[2] == g);
            }
            stk_buffer_unref(&mem);
        }
    }
}

TESTS(TEST(rows_of_rgb), TEST(what_is_wrong), TEST(larger_than_said), TEST(windows_of_ycbcr),
      TEST(memory_may_run_out), TEST(by_content))
