#include "av/decoder.h"
#include "base/alloc.h"
#include "tests/video_make.h"

enum { WIDTH = 64, HEIGHT = 48, PICTURE = WIDTH * HEIGHT * 3 };

#define TEXT "format=pix_fmts=rgb24"

static const size_t third = 2, first = 0;
static const stk_frames_wanted one = {
    .numbers = &third, .num = 1, .pick = &first, .n = 1, .width = WIDTH, .height = HEIGHT};

static stk_packets *packets_of(size_t width, size_t height)
{
    char head[64];
    static const char frame[] = "FRAME\n";
    const size_t bytes = width * height * 3 / 2;
    const int n =
        snprintf(head, sizeof(head), "YUV4MPEG2 W%zu H%zu F25:1 Ip A1:1 C420jpeg\n", width, height);
    static bool started;
    stk_buffer *all;
    stk_demuxer *demuxer;
    stk_packets *packets;
    if (!started) stk_av_call_start();
    started = true;
    CHECK_EQ(stk_buffer_new((size_t)n + VIDEO_FRAMES * (6 + bytes), &all), STK_OK);
    uint8_t *at = stk_buffer_writable(all);
    memcpy(at, head, (size_t)n);
    at += n;
    for (size_t i = 0; i < VIDEO_FRAMES; i++) {
        memcpy(at, frame, 6);
        at += 6;
        for (size_t k = 0; k < bytes; k++) *at++ = (uint8_t)(i * 29 + k * k / 7);
    }
    CHECK_EQ(mod_demuxer_open(&(stk_av_input){.bytes = all}, NULL, &demuxer, NULL), STK_OK);
    CHECK_EQ(mod_demuxer_read(demuxer, STK_MEDIA_VIDEO, NULL, NULL, &packets, NULL), STK_OK);
    mod_demuxer_free(&demuxer);
    stk_buffer_unref(&all);
    return packets;
}

static stk_err fill(stk_packets *packets, const char *filter, const stk_frames_wanted *how,
                    uint8_t *dst, size_t size, stk_diag *diag)
{
    stk_decoder *d;
    const stk_decode_opts opts = {.filter = filter, .strict = true};
    stk_err err = mod_decoder_new(packets->codec, &opts, &d, diag);
    if (!err) err = mod_decoder_fill(d, packets, how, dst, size, diag);
    if (!err) err = mod_decoder_fill(d, packets, how, dst, size, diag); /* it began anew */
    mod_decoder_free(&d);
    return err;
}

/* All frames, by the filters. */
static void expect(stk_packets *packets, uint8_t out[VIDEO_FRAMES * PICTURE])
{
    stk_decoder *d;
    stk_frames *frames;
    const stk_decode_opts opts = {.filter = "null," TEXT};
    CHECK_EQ(mod_decoder_new(packets->codec, &opts, &d, NULL), STK_OK);
    CHECK_EQ(mod_decoder_decode(d, packets, true, &frames, NULL), STK_OK);
    CHECK_EQ(mod_frames_copy(&(const stk_frames *){frames}, 1, out, VIDEO_FRAMES * PICTURE, NULL),
             STK_OK);
    mod_frames_unref(&frames);
    mod_decoder_free(&d);
}

static void wanted_frames_as_often_as_they_are_wanted(void)
{
    static uint8_t all[VIDEO_FRAMES * PICTURE];
    _Alignas(16) static uint8_t got[5 * PICTURE];
    static const size_t pick[] = {0, 1, 1, 2, 2};
    static const size_t at[] = {1, 4, 8};
    static const int64_t times[] = {1, 4, 8};
    stk_packets *packets = packets_of(WIDTH, HEIGHT);
    const stk_frames_wanted ways[] = {{at, times, 3, pick, 5, WIDTH, HEIGHT},
                                      {at, NULL, 3, pick, 5, WIDTH, HEIGHT}};
    stk_diag diag = {0};
    expect(packets, all);
    for (int i = 0; i < 2; i++) {
        const stk_err err = fill(packets, TEXT, &ways[i], got, sizeof(got), &diag);
        CHECK_EQ(err, COMPAT_SCALE_ALONE ? STK_OK : STK_EUNSUPPORTED);
        for (int k = 0; k < 5 && !err; k++)
            CHECK(!memcmp(got + k * PICTURE, all + at[pick[k]] * PICTURE, PICTURE));
    }
    mod_packets_unref(&packets);
}

static void frames_that_are_not_there(void)
{
    _Alignas(16) static uint8_t got[2 * PICTURE];
    static const size_t pick[] = {0, 1};
    static const size_t beyond[] = {3, VIDEO_FRAMES}, at[] = {3, 6};
    static const int64_t other[] = {3, 5};
    stk_packets *packets = packets_of(WIDTH, HEIGHT);
    const stk_frames_wanted ways[] = {{beyond, NULL, 2, pick, 2, WIDTH, HEIGHT},
                                      {at, other, 2, pick, 2, WIDTH, HEIGHT}};
    static const char *const says[] = {"there is no frame 9, of 9", "frame 1 of 2"};
    for (int i = 0; i < 2 && COMPAT_SCALE_ALONE; i++) {
        stk_diag diag = {0};
        CHECK_EQ(fill(packets, TEXT, &ways[i], got, sizeof(got), &diag), STK_ENOTFOUND);
        CHECK(strstr(diag.text, says[i]));
    }
    mod_packets_unref(&packets);
}

static void what_cannot_be_written_so(void)
{
    _Alignas(16) static uint8_t got[PICTURE + 16];
    stk_packets *packets = packets_of(WIDTH, HEIGHT);
    stk_packets *narrow = packets_of(WIDTH / 8, HEIGHT);
    stk_diag diag;
    CHECK_EQ(fill(packets, NULL, &one, got, PICTURE, &diag), STK_EUNSUPPORTED);
    CHECK_EQ(fill(packets, "vflip," TEXT, &one, got, PICTURE, &diag), STK_EUNSUPPORTED);
    CHECK_EQ(fill(packets, TEXT, &one, got, PICTURE - 1, &diag), STK_EUNSUPPORTED);
    CHECK_EQ(fill(narrow, TEXT, &one, got, PICTURE / 8, &diag), STK_EUNSUPPORTED);
    CHECK(strstr(diag.text, "straight into an array"));
    CHECK_EQ(fill(packets, TEXT, &one, got + 1, PICTURE, &diag), STK_EUNSUPPORTED);
    stk_frames_wanted turned = one;
    turned.width = HEIGHT; /* as many bytes */
    turned.height = WIDTH;
    CHECK_EQ(fill(packets, TEXT, &turned, got, PICTURE, &diag), STK_EUNSUPPORTED);
    stk_frames_wanted none = one, more = one;
    none.n = 0;
    more.num = 2;
    CHECK_EQ(fill(packets, TEXT, &none, got, PICTURE, &diag), STK_EINVAL);
    CHECK_EQ(fill(packets, TEXT, &more, got, PICTURE, &diag), STK_EINVAL);
    mod_packets_unref(&packets);
    mod_packets_unref(&narrow);
}

static void every_allocation_fails(void)
{
    _Alignas(16) static uint8_t got[PICTURE];
    stk_packets *packets = packets_of(WIDTH, HEIGHT);
    stk_err err;
    TORTURE (err) {
        err = fill(packets, TEXT, &one, got, PICTURE, NULL);
        if (!COMPAT_SCALE_ALONE && err == STK_EUNSUPPORTED) err = STK_OK;
        CHECK(!err || err == STK_ENOMEM);
    }
    mod_packets_unref(&packets);
}

TESTS(TEST(wanted_frames_as_often_as_they_are_wanted), TEST(frames_that_are_not_there),
      TEST(what_cannot_be_written_so), TEST(every_allocation_fails))
