#include "av/due.h"

#include "tests/check.h"

enum { KEY = AV_PKT_FLAG_KEY };

static av_due due_of(enum AVCodecID codec)
{
    av_due due = {.codec = codec};
    av_due_begin(&due);
    return due;
}

static void sent(av_due *due, int64_t pts, int flags, int size)
{
    const AVPacket p = {.pts = pts, .flags = flags, .size = size};
    av_due_sent(due, &p, true);
}

static void came(av_due *due, int64_t first, int64_t last)
{
    for (int64_t t = first; t <= last; t++) av_due_came(due, t, false);
}

static void what_does_not_come(void)
{
    av_due due = due_of(AV_CODEC_ID_MPEG2VIDEO);
    for (int i = 0; i < 10; i++) sent(&due, i, i ? 0 : KEY, 100);
    came(&due, 0, 4);
    CHECK_EQ(av_due_end(&due), 5);
    CHECK_EQ(av_due_end(&due), 0);
    for (int i = 0; i < 10; i++) sent(&due, i, 0, 100);
    CHECK_EQ(av_due_end(&due), 10); /* no key frame at all */
    for (int i = 0; i < 10; i++) sent(&due, i, 0, 100);
    came(&due, 1000, 1009); /* times that are others: it is as many */
    CHECK_EQ(av_due_end(&due), 0);
}

static void more_than_the_list_holds(void)
{
    av_due due = due_of(AV_CODEC_ID_MPEG2VIDEO);
    for (int i = 0; i < 3 * STK_AV_DUE; i++) sent(&due, i, KEY, 100);
    came(&due, 3 * STK_AV_DUE - 3, 3 * STK_AV_DUE - 1);
    CHECK_EQ(av_due_end(&due), 3 * STK_AV_DUE - 3);
}

static void what_is_not_due(void)
{
    av_due due = due_of(AV_CODEC_ID_MPEG4);
    sent(&due, 5, KEY, 100);
    sent(&due, 3, 0, 100);                   /* leading */
    sent(&due, 6, 0, 7);                     /* not coded */
    sent(&due, 7, AV_PKT_FLAG_DISCARD, 100); /* of an edit list */
    sent(&due, AV_NOPTS_VALUE, 0, 100);      /* times do not tell */
    av_due_sent(&due, &(AVPacket){.pts = 8, .size = 100}, false);
    CHECK_EQ(due.sent, 1);
    sent(&due, 9, 0, 100);
    came(&due, 5, 6);
    av_due_failed(&due); /* that was told already */
    CHECK_EQ(av_due_end(&due), 0);
    due = due_of(AV_CODEC_ID_NONE);
    sent(&due, 0, KEY, 100);
    CHECK_EQ(av_due_end(&due), 0);
}

/* As of a recording that begins between key frames. */
static void what_is_before_the_first_key_frame(void)
{
    av_due due = due_of(AV_CODEC_ID_MPEG2VIDEO);
    for (int i = 0; i < 2 * STK_AV_DUE; i++) sent(&due, i, 0, 100);
    came(&due, 100, 102);
    for (int i = 0; i < 10; i++) sent(&due, 200 + i, i ? 0 : KEY, 100);
    came(&due, 2 * STK_AV_DUE - 4, 2 * STK_AV_DUE - 1); /* late, and they make up for no other */
    came(&due, 200, 205);
    CHECK_EQ(av_due_end(&due), 4);
    for (int i = 0; i < 10; i++) sent(&due, i, 0, 100);
    CHECK_EQ(av_due_end(&due), 10); /* it begins anew */
    for (int i = 0; i < 4; i++) sent(&due, i, i == 3 ? KEY : 0, 100);
    av_due_came(&due, 2, true); /* the key frame is its second field */
    CHECK_EQ(av_due_end(&due), 0);
}

static void second_fields(void)
{
    av_due due = due_of(AV_CODEC_ID_MPEG2VIDEO);
    for (int i = 0; i < 8; i++) sent(&due, i, i ? 0 : KEY, 100);
    for (int i = 0; i < 8; i += 2) av_due_came(&due, i, true);
    CHECK_EQ(av_due_end(&due), 0);
    for (int i = 0; i < 8; i++) sent(&due, i, i ? 0 : KEY, 100);
    for (int i = 0; i < 4; i += 2) av_due_came(&due, i, true);
    CHECK_EQ(av_due_end(&due), 4);
}

/* A packet of parameters alone is no picture. */
static void packets_without_slices(void)
{
    static uint8_t parameters[] = {0, 0, 1, 0x67, 1, 0, 0, 1, 0x68, 1},
                   slice[] = {0, 0, 1, 0x41, 1};
    static uint8_t hevc[] = {0, 0, 1, 0x42, 1, 0, 0, 1, 0x02, 1};
    av_due due = due_of(AV_CODEC_ID_H264);
    due.units = av_refresh_of(AV_CODEC_ID_H264, NULL, 0);
    av_due_sent(&due, &(AVPacket){.data = parameters, .size = sizeof(parameters)}, true);
    CHECK_EQ(due.n, 0);
    av_due_sent(&due, &(AVPacket){.data = slice, .size = sizeof(slice)}, true);
    CHECK_EQ(due.n, 1);
    due.units = av_refresh_of(AV_CODEC_ID_HEVC, NULL, 0);
    av_due_sent(&due, &(AVPacket){.data = hevc, .size = 5}, true);
    CHECK_EQ(due.n, 1);
    av_due_sent(&due, &(AVPacket){.data = hevc, .size = sizeof(hevc)}, true);
    CHECK_EQ(due.n, 2);
}

TESTS(TEST(what_does_not_come), TEST(more_than_the_list_holds), TEST(what_is_not_due),
      TEST(what_is_before_the_first_key_frame), TEST(second_fields), TEST(packets_without_slices))
