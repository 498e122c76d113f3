#include "av/refresh.h"

#include <string.h>

#include "tests/check.h"

static AVPacket packet(const uint8_t *data, int size)
{
    return (AVPacket){.data = (uint8_t *)data, .size = size};
}

#define PACKET(...) packet((const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))

/* A message of one byte of another type, then a recovery point in one byte. */
#define SEI(count) 0x06, 5, 1, 0x80, 6, 1, count, 0x80

enum { NOW = 0x80, AFTER_1 = 0x40, AFTER_2 = 0x60, REFERRED = 0x41, NOT_REFERRED = 0x01 };

static av_refresh start_codes(void)
{
    return av_refresh_of(AV_CODEC_ID_H264, NULL, 0);
}

static void whole_pictures(void)
{
    av_refresh r = start_codes();
    const AVPacket idr = PACKET(0, 0, 1, 0x65, 1), point = PACKET(0, 0, 1, SEI(NOW), 0, 0, 1, 0x41);
    CHECK(av_refresh_begin(&r, &idr));
    CHECK(av_refresh_begin(&r, &point));
    CHECK(av_refresh_next(&r, &idr));
}

static void gradual(void)
{
    av_refresh r = start_codes();
    AVPacket point = PACKET(0, 0, 0, 1, 9, 16, 0, 0, 1, SEI(AFTER_2), 0, 0, 1, REFERRED, 1);
    const AVPacket p = PACKET(0, 0, 1, REFERRED, 1), b = PACKET(0, 0, 1, NOT_REFERRED, 1);
    point.flags = AV_PKT_FLAG_KEY;
    for (int i = 0; i < 2; i++) {
        CHECK(i ? !av_refresh_next(&r, &point) : !av_refresh_begin(&r, &point));
        CHECK(!av_refresh_next(&r, &b));
        CHECK(!av_refresh_next(&r, &p));
        CHECK(!av_refresh_next(&r, &b));
        CHECK(av_refresh_next(&r, &p) == (i == 1));
        CHECK(av_refresh_next(&r, &b) == (i == 1));
    }
}

static void a_whole_picture_behind_it(void)
{
    av_refresh r = start_codes();
    const AVPacket point = PACKET(0, 0, 1, SEI(AFTER_2), 0, 0, 1, REFERRED, 1);
    AVPacket idr = PACKET(0, 0, 1, 0x65, 1);
    idr.flags = AV_PKT_FLAG_KEY;
    CHECK(!av_refresh_begin(&r, &point));
    CHECK(av_refresh_next(&r, &idr));
}

static void lengths(void)
{
    const uint8_t extra[] = {1, 100, 0, 30, 0xFF, 0xE0, 0}; /* four bytes */
    av_refresh r = av_refresh_of(AV_CODEC_ID_H264, extra, sizeof(extra));
    AVPacket point = PACKET(0, 0, 0, 8, SEI(AFTER_1), 0, 0, 0, 2, REFERRED, 1);
    const AVPacket p = PACKET(0, 0, 0, 2, REFERRED, 1);
    const AVPacket beyond = PACKET(0, 0, 0, 9, SEI(AFTER_1)), nothing = PACKET(0, 0, 0, 0, 1);
    CHECK_EQ(r.lengths, 4);
    point.flags = AV_PKT_FLAG_KEY;
    CHECK(!av_refresh_begin(&r, &point));
    CHECK(!av_refresh_next(&r, &point));
    CHECK(av_refresh_next(&r, &p));
    CHECK(av_refresh_begin(&r, &beyond));
    CHECK(av_refresh_begin(&r, &nothing));
}

/* Bytes of 3 that keep start codes out are no part of a message. */
static void escaped(void)
{
    av_refresh r = start_codes();
    const AVPacket point = PACKET(0, 0, 1, 0x06, 5, 4, 0, 0, 3, 1, 9, 6, 1, AFTER_1, 0x80);
    CHECK(!av_refresh_begin(&r, &point));
    CHECK_EQ(r.left, 1);
}

/* Cut at every byte, and full of ones and zeros: it says nothing, and reads nothing beyond. */
static void nonsense(void)
{
    const uint8_t all[] = {0, 0, 1, SEI(AFTER_2), 0, 0, 1, REFERRED, 1};
    for (int n = 0; n <= (int)sizeof(all); n++) {
        uint8_t *data = av_malloc((size_t)n + 1);
        CHECK(data);
        for (int fill = 0; fill < 2; fill++) {
            av_refresh r = start_codes();
            memcpy(data, all, (size_t)n);
            for (int i = 4; fill && i < n; i++) data[i] = fill ? 0xFF : 0;
            const AVPacket p = packet(data, n);
            CHECK(av_refresh_begin(&r, &p) || r.left == 2);
            av_refresh_next(&r, &p);
        }
        av_free(data);
    }
    av_refresh r = start_codes();
    const AVPacket zeros = PACKET(0, 0, 1, 0x06, 6, 4, 0, 0, 3, 0, 1), empty = packet(NULL, 0);
    CHECK(av_refresh_begin(&r, &zeros)); /* no number is that large */
    CHECK(av_refresh_begin(&r, &empty));
    CHECK(av_refresh_next(&r, &empty));
}

static void other_codecs(void)
{
    av_refresh r = av_refresh_of(AV_CODEC_ID_HEVC, NULL, 0);
    const AVPacket point = PACKET(0, 0, 1, SEI(AFTER_2), 0, 0, 1, REFERRED, 1);
    CHECK(av_refresh_begin(&r, &point));
}

/* The worst there is: each packet begins a refresh, and each look reads all up to the last one. */
static void looks_are_few(void)
{
    const size_t n = 100000;
    size_t seen = 0, num = 0, first = n;
    av_refresh_looks l = {0};
    for (size_t at = n; at-- > 0;) {
        if (!av_refresh_look(&l, at)) continue;
        av_refresh_looked(&l, at, n - at);
        seen += n - at;
        if (++num == AV_REFRESH_LOOKS) first = at;
    }
    CHECK_EQ(first, n - AV_REFRESH_LOOKS); /* the last ones, each */
    CHECK(num < 40 && seen < 4 * n);
    l = (av_refresh_looks){0};
    seen = 0;
    for (size_t at = n; at-- > 0;) {
        if (!av_refresh_look(&l, at)) continue;
        av_refresh_looked(&l, at, n);
        seen += n;
    }
    CHECK(seen <= (AV_REFRESH_LOOKS + 1) * n); /* the first packet is always looked at */
}

TESTS(TEST(looks_are_few), TEST(whole_pictures), TEST(gradual), TEST(a_whole_picture_behind_it),
      TEST(lengths), TEST(escaped), TEST(nonsense), TEST(other_codecs))
