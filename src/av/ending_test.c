#include "av/ending.h"

#include <string.h>

#include "tests/check.h"

/* What came is the first `known` bytes of these; nothing is read again. */
static bool is_missing(const char *format, const void *head, size_t n, int64_t known)
{
    av_input in = {.size = -1, .known = known};
    CHECK(n <= AV_INPUT_HEAD);
    memcpy(in.head, head, n);
    return av_ending_is_missing(format, &in, NULL);
}

#define MISSING(format, head, known) is_missing(format, head, sizeof(head) - 1, known)

static void sizes_in_headers(void)
{
    static const char aiff[] = "FORM\0\0\1\0AIFF", au[] = ".snd\0\0\0\x18\0\0\1\0\0\0\0\3";
    static const char flv[] = "FLV\1\5\0\0\0\t    filesize\0\x40\x8F\x40\0\0\0\0\0\0\0"; /* 1000 */
    static const char mkv[] = "\x1A\x45\xDF\xA3\x81X\x18\x53\x80\x67\x41\0"; /* 12 + 256 */
    CHECK(MISSING("aiff", aiff, 255) && !MISSING("aiff", aiff, 256)); /* 8 bytes are forgiven */
    CHECK(MISSING("au", au, 279) && !MISSING("au", au, 280));
    CHECK(MISSING("flv", flv, 999) && !MISSING("flv", flv, 1000));
    CHECK(MISSING("matroska,webm", mkv, 267) && !MISSING("matroska,webm", mkv, 268));
    CHECK(!MISSING("mov", mkv, 100) && !MISSING("ogg", "OggS", 100));
}

static void sizes_that_are_not_known(void)
{
    CHECK(!MISSING("aiff", "FORM\xFF\xFF\xFF\xFF", 100));
    CHECK(!MISSING("au", ".snd\0\0\0\x18\xFF\xFF\xFF\xFF", 100));
    CHECK(!MISSING("flv", "FLV filesize\0\0\0\0\0\0\0\0\0", 100));
    CHECK(!MISSING("flv", "FLV filesize\0\x7F\xF0\0\0\0\0\0\0", 100)); /* infinity */
    CHECK(!MISSING("matroska,webm",
                   "\x1A\x45\xDF\xA3\x81X\x18\x53\x80\x67\x01\xFF\xFF\xFF\xFF\xFF\xFF\xFF", 100));
    CHECK(!MISSING("matroska,webm", "\x1A\x45\xDF\xA3\x81X\x18\x53\x80\x67\xFF", 100));
}

/* Nothing behind what came is looked at. */
static void heads_that_are_cut(void)
{
    static const char mkv[] = "\x1A\x45\xDF\xA3\x81X\x18\x53\x80\x67\x41\0";
    for (int64_t n = 0; n < (int64_t)sizeof(mkv) - 1; n++) CHECK(!MISSING("matroska,webm", mkv, n));
    CHECK(!MISSING("matroska,webm", "\x1A\x45\xDF\xA3\x01\xFF\xFF\xFF\xFF\xFF\xFF\xFE", 12));
    CHECK(!MISSING("matroska,webm", "\x1A\x45\xDF\xA3\0\0\0\0\0\0\0\0", 12));
    CHECK(!MISSING("aiff", "FORM", 4) && !MISSING("au", ".snd\0\0\0\x18", 8));
    CHECK(!MISSING("flv", "FLV filesize\0\x40\x8F", 15));
}

TESTS(TEST(sizes_in_headers), TEST(sizes_that_are_not_known), TEST(heads_that_are_cut))
