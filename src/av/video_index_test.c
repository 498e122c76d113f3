#include "av/video_index.h"
#include "base/alloc.h"
#include "tests/check.h"

typedef struct made {
    int64_t pts;
    int flags, size;
} made;

enum { KEY = AV_PKT_FLAG_KEY, VP8_HIDDEN = 0x00 };

/* I0 P4 b2 | I8 b6 (shown before its key frame) P12 b10 */
static const made OPEN[] = {{0, KEY, 1}, {4, 0, 1},  {2, 0, 1}, {8, KEY, 1},
                            {6, 0, 1},   {12, 0, 1}, {10, 0, 1}};

static stk_err make(const made *list, size_t n, enum AVCodecID codec, av_index *x)
{
    uint8_t data[1] = {VP8_HIDDEN};
    AVPacket *packet = av_packet_alloc();
    CHECK(packet);
    stk_err err = STK_OK;
    *x = (av_index){0};
    for (size_t i = 0; i < n && !err; i++) {
        *packet = (AVPacket){.pts = list[i].pts,
                             .dts = (int64_t)i,
                             .flags = list[i].flags,
                             .data = data,
                             .size = list[i].size};
        err = av_index_add(x, packet, codec, true);
    }
    *packet = (AVPacket){0};
    av_packet_free(&packet);
    return err ? err : av_index_finish(x);
}

/* Three parts of a picture, of which the first has the key flag. */
static void a_gradual_refresh_is_no_key_frame(void)
{
    static uint8_t idr[] = {0, 0, 1, 0x65, 1},
                   part[] = {0, 0, 1, 6, 6, 1, 0x60, 0x80, 0, 0, 1, 0x41};
    av_index x = {.refresh = av_refresh_of(AV_CODEC_ID_H264, NULL, 0)};
    AVPacket *packet = av_packet_alloc();
    CHECK(packet);
    for (int i = 0; i < 4; i++) {
        *packet = (AVPacket){.pts = i, .dts = i, .flags = KEY, .data = part, .size = sizeof(part)};
        if (i % 3 == 0) packet->data = idr, packet->size = sizeof(idr);
        CHECK_EQ(av_index_add(&x, packet, AV_CODEC_ID_H264, true), STK_OK);
        CHECK_EQ(x.list[i].key, (size_t)(i / 3 * 3));
    }
    *packet = (AVPacket){0};
    av_packet_free(&packet);
    av_index_fini(&x);
}

static void which_packet_and_where_it_begins(void)
{
    static const size_t at[] = {0, 2, 1, 4, 3, 6, 5}, begin[] = {0, 0, 0, 0, 3, 3, 3};
    av_index x;
    CHECK_EQ(make(OPEN, 7, AV_CODEC_ID_H264, &x), STK_OK);
    CHECK(x.n == 7 && x.num_shown == 7 && !x.untold);
    for (size_t i = 0; i < 7; i++) {
        CHECK_EQ(x.shown[i].time, 2 * (int64_t)i);
        CHECK_EQ(x.shown[i].at, at[i]);
        CHECK_EQ(av_index_begin(&x, &x.shown[i]), begin[i]);
        CHECK_EQ(av_index_find(&x, 2 * (int64_t)i), i);
        CHECK_EQ(av_index_find(&x, 2 * (int64_t)i + 1), i + 1);
    }
    av_index_fini(&x);
    av_index_fini(&x);
}

static void what_times_do_not_tell(void)
{
    av_index x;
    const made twice[] = {{0, KEY, 1}, {2, 0, 1}, {2, 0, 1}};
    CHECK_EQ(make(twice, 3, AV_CODEC_ID_H264, &x), STK_OK);
    CHECK(x.untold && x.num_shown == 3);
    av_index_fini(&x);
    const made none[] = {{0, KEY, 1}, {AV_NOPTS_VALUE, 0, 1}};
    CHECK_EQ(make(none, 2, AV_CODEC_ID_H264, &x), STK_OK);
    CHECK(x.untold && x.num_shown == 2);
    av_index_fini(&x);
    const made early[] = {{4, KEY, 1}, {2, 0, 1}}; /* refers to what is not there */
    CHECK_EQ(make(early, 2, AV_CODEC_ID_H264, &x), STK_OK);
    CHECK(x.untold);
    av_index_fini(&x);
}

static void what_is_no_picture(void)
{
    av_index x;
    const made empty[] = {{0, KEY, 1}, {2, 0, 0}, {4, 0, 1}};
    CHECK_EQ(make(empty, 3, AV_CODEC_ID_H264, &x), STK_OK);
    CHECK(x.n == 3 && x.num_shown == 2 && !x.untold);
    av_index_fini(&x);
    CHECK_EQ(make(empty, 3, AV_CODEC_ID_VP8, &x), STK_OK);
    CHECK(x.n == 3 && x.num_shown == 0); /* its bit show_frame is not set */
    av_index_fini(&x);
}

static void memory_may_run_out(void)
{
    stk_err err;
    TORTURE (err) {
        av_index x;
        err = make(OPEN, 7, AV_CODEC_ID_H264, &x);
        av_index_fini(&x);
    }
}

TESTS(TEST(a_gradual_refresh_is_no_key_frame), TEST(which_packet_and_where_it_begins),
      TEST(what_times_do_not_tell), TEST(what_is_no_picture), TEST(memory_may_run_out))
