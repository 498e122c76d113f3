#include <string.h>

#include <libavutil/intreadwrite.h>

#include "av/call.h"
#include "av/module.h"
#include "av/packet_list.h"
#include "base/alloc.h"
#include "tests/check.h"

typedef struct made {
    int64_t pts;
    int flags;
} made;

enum { KEY = AV_PKT_FLAG_KEY, GONE = AV_PKT_FLAG_DISCARD };

static stk_packets *make(stk_media media, const made *list, size_t n)
{
    stk_packets *p;
    CHECK_EQ(stk_packets_make(media, NULL, (AVRational){1, 10}, NULL, "test", &p), STK_OK);
    AVPacket *packet = av_packet_alloc();
    CHECK(packet);
    for (size_t i = 0; i < n; i++) {
        CHECK(av_new_packet(packet, 4) == 0);
        memset(packet->data, (int)i, 4);
        packet->pts = list[i].pts;
        packet->dts = (int64_t)i;
        packet->flags = list[i].flags;
        packet->duration = 2;
        CHECK_EQ(stk_packets_add(p, packet), STK_OK);
    }
    av_packet_free(&packet);
    return p;
}

/* Which packets the window [start, end) in tenths of a second needs: from the first to behind the
 * last. */
static void check_cut(const stk_packets *p, int64_t start, int64_t end, size_t from, size_t to)
{
    const stk_window w = {{start, 10}, {end, 10}};
    stk_packets *cut;
    stk_packets_info info;
    CHECK_EQ(mod_packets_cut(p, &w, &cut, NULL), STK_OK);
    mod_packets_get_info(cut, &info);
    CHECK(info.windowed && info.total == to - from);
    for (size_t i = from; i < to; i++) {
        CHECK_EQ(cut->list[i - from]->pts, p->list[i]->pts);
        CHECK(cut->list[i - from]->data == p->list[i]->data); /* not copied */
    }
    mod_packets_unref(&cut);
}

/* I0 P4 b2 | I8 b6 (shown before its key frame) P12 b10 */
static const made OPEN[] = {{0, KEY}, {4, 0}, {2, 0}, {8, KEY}, {6, 0}, {12, 0}, {10, 0}};

static void video(void)
{
    stk_packets *p = make(STK_MEDIA_VIDEO, OPEN, 7);
    check_cut(p, 0, 1, 0, 1);
    check_cut(p, 2, 3, 0, 3); /* what b2 refers to is decoded before it */
    check_cut(p, 4, 5, 0, 3);
    check_cut(p, 6, 7, 0, 5); /* of the key frame before */
    check_cut(p, 8, 9, 3, 5); /* b6 comes along: it is shown before 9 */
    check_cut(p, 10, 13, 3, 7);
    check_cut(p, -9, 99, 0, 7);
    check_cut(p, 50, 60, 3, 7);
    mod_packets_unref(&p);
}

/* Its packets are the same: a recovery point after 26 pictures, and a slice. */
static AVPacket *point(uint8_t slice)
{
    const uint8_t data[] = {0, 0, 1, 6, 6, 1, 0x0D, 0x80, 0, 0, 1, slice};
    AVPacket *p = av_packet_alloc();
    CHECK(p && !av_new_packet(p, sizeof(data)));
    memcpy(p->data, data, sizeof(data));
    return p;
}

static void become(AVPacket *p, const AVPacket *like)
{
    CHECK(!av_buffer_replace(&p->buf, like->buf));
    p->data = like->data;
    p->size = like->size;
}

/* Every second packet begins a refresh that is never complete, as no picture is referred to. */
static void refreshes_without_end(void)
{
    made list[200];
    for (int i = 0; i < 200; i++) list[i] = (made){i, i % 2 ? 0 : KEY};
    stk_packets *p = make(STK_MEDIA_VIDEO, list, 200);
    p->codec = stk_alloc_zero(1, sizeof(*p->codec));
    CHECK(p->codec && (p->codec->par = avcodec_parameters_alloc()));
    atomic_init(&p->codec->refs, 1);
    p->codec->par->codec_id = AV_CODEC_ID_H264;
    AVPacket *other = point(0x01), *referred = point(0x41);
    for (int i = 0; i < 200; i++) become(p->list[i], other);
    check_cut(p, 150, 151, 0, 151);
    check_cut(p, 0, 1, 0, 1);
    for (int i = 43; i <= 80; i++) become(p->list[i], referred);
    check_cut(p, 82, 83, 52, 83);
    check_cut(p, 150, 151, 24, 151); /* 52 would do, but not all are looked at */
    p->list[110]->size = 4;          /* a whole picture is found wherever it is */
    check_cut(p, 150, 151, 110, 151);
    av_packet_free(&other);
    av_packet_free(&referred);
    mod_packets_unref(&p);
}

static void audio(void)
{
    made list[20];
    for (int i = 0; i < 20; i++) list[i] = (made){2 * i, KEY};
    stk_packets *p = make(STK_MEDIA_AUDIO, list, 20);
    check_cut(p, 0, 4, 0, 2);
    check_cut(p, 20, 30, 8, 15); /* a quarter of a second is three tenths, rounded */
    mod_packets_unref(&p);
}

static void shown_times(void)
{
    int64_t times[7], end;
    stk_ratio tb;
    stk_packets *p = make(STK_MEDIA_VIDEO, OPEN, 7);
    CHECK_EQ(mod_packets_shown(p, &tb, &end, times, 7), 7);
    CHECK(tb.num == 1 && tb.den == 10 && end == 14);
    for (int i = 0; i < 7; i++) CHECK_EQ(times[i], 2 * i);
    p->list[6]->flags |= GONE;
    CHECK_EQ(mod_packets_shown(p, &tb, &end, times, 7), 6);
    CHECK_EQ(times[5], 12);
    p->list[0]->pts = AV_NOPTS_VALUE;
    CHECK_EQ(mod_packets_shown(p, &tb, &end, times, 7), 0);
    stk_packets *cut;
    stk_diag diag = {0};
    CHECK_EQ(mod_packets_cut(p, &(stk_window){{0, 1}, {1, 1}}, &cut, &diag), STK_EUNSUPPORTED);
    CHECK(!cut && strstr(diag.text, "test: the stream has no times"));
    mod_packets_unref(&p);
}

static void put_skip(AVPacket *packet, uint32_t before, uint32_t behind)
{
    uint8_t *data = av_packet_new_side_data(packet, AV_PKT_DATA_SKIP_SAMPLES, 10);
    CHECK(data);
    AV_WL32(data, before);
    AV_WL32(data + 4, behind);
    data[8] = data[9] = 0;
}

/* Of 100 samples a second in tenths of one. */
static void what_encoders_put_around(void)
{
    const made list[] = {{-2, KEY}, {0, KEY}, {2, KEY}, {4, KEY}};
    int64_t times[4], end;
    stk_ratio tb;
    stk_packets *p = make(STK_MEDIA_AUDIO, list, 4);
    p->codec = stk_alloc_zero(1, sizeof(*p->codec));
    CHECK(p->codec && (p->codec->par = avcodec_parameters_alloc()));
    atomic_init(&p->codec->refs, 1);
    CHECK_EQ(mod_packets_shown(p, &tb, &end, times, 4), 4);
    CHECK(times[0] == -2 && end == 6);
    put_skip(p->list[0], 31, 0);
    put_skip(p->list[3], 0, 9);
    CHECK_EQ(mod_packets_shown(p, &tb, &end, times, 4), 4);
    CHECK(times[0] == -2 && end == 6); /* no rate: it cannot be told */
    p->codec->par->sample_rate = 100;
    CHECK_EQ(mod_packets_shown(p, &tb, &end, times, 4), 4);
    CHECK(times[0] == 2 && times[1] == 2 && times[2] == 2 && times[3] == 4 && end == 5);
    put_skip(p->list[3], 0, UINT32_MAX);
    CHECK_EQ(mod_packets_shown(p, &tb, &end, times, 4), 4);
    CHECK_EQ(end, 4);
    mod_packets_unref(&p);
}

static void refusals(void)
{
    stk_packets *p = make(STK_MEDIA_VIDEO, OPEN, 7), *cut, *again;
    CHECK_EQ(mod_packets_cut(p, &(stk_window){{2, 1}, {1, 1}}, &cut, NULL), STK_EINVAL);
    CHECK_EQ(mod_packets_cut(p, &(stk_window){{0, 0}, {1, 1}}, &cut, NULL), STK_EINVAL);
    CHECK_EQ(mod_packets_cut(p, &(stk_window){{0, 1}, {1, 1}}, &cut, NULL), STK_OK);
    CHECK_EQ(mod_packets_cut(cut, &(stk_window){{0, 1}, {1, 1}}, &again, NULL), STK_EINVAL);
    CHECK(!again);
    mod_packets_unref(&cut);
    mod_packets_unref(&p);
}

static void memory_may_run_out(void)
{
    stk_packets *p = make(STK_MEDIA_VIDEO, OPEN, 7), *cut;
    stk_err err;
    TORTURE (err) {
        err = mod_packets_cut(p, &(stk_window){{0, 1}, {2, 1}}, &cut, NULL);
        CHECK(!err == !!cut);
        mod_packets_unref(&cut);
    }
    mod_packets_unref(&p);
}

TESTS(TEST(video), TEST(refreshes_without_end), TEST(audio), TEST(shown_times),
      TEST(what_encoders_put_around), TEST(refusals), TEST(memory_may_run_out))
