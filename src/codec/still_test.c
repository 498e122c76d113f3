/* Headers, and what happens without FFmpeg; the pixels are tested in src/av/picture_test.c and in
 * tests/differential. */
#include "tests/codec_check.h"
#include "tests/still_make.h"

typedef struct sample {
    const stk_codec *codec;
    still_file file;
} sample;

enum { SAMPLES = 4 };

static void make_samples(sample out[SAMPLES])
{
    out[0] = (sample){&stk_codec_avif, still_avif(0, -1)};
    out[1] = (sample){&stk_codec_bmp, still_bmp()};
    out[2] = (sample){&stk_codec_gif, still_gif()};
    out[3] = (sample){&stk_codec_tiff, still_tiff()};
}

static void describes(void)
{
    static const struct {
        const char *name, *detail;
        int channels, bits, orientation;
    } want[SAMPLES] = {{"AVIF", "4:2:2", 3, 10, 1},
                       {"BMP", "24 bits a pixel", 3, 8, 1},
                       {"GIF", "palette", 4, 8, 1},
                       {"TIFF", "uncompressed", 1, 8, 6}};
    sample samples[SAMPLES];
    make_samples(samples);
    for (int i = 0; i < SAMPLES; i++) {
        const sample *s = &samples[i];
        stk_image_info info;
        stk_diag diag;
        CHECK(stk_codec_find(s->file.data, s->file.size) == s->codec);
        CHECK_EQ(stk_image_probe(s->file.data, s->file.size, &info, &diag), STK_OK);
        CHECK(!strcmp(stk_image_format_str(info.format), want[i].name));
        CHECK(info.width == 4 && info.height == 2 && !info.animated && !info.progressive);
        CHECK_EQ(info.channels, want[i].channels);
        CHECK_EQ(info.bits, want[i].bits);
        CHECK_EQ(info.orientation, want[i].orientation);
        CHECK(!strcmp(info.detail, want[i].detail));
    }
}

/* HEIF turns against the clock, and mirrors afterwards. */
static void orientations(void)
{
    static const int want[3][4] = {{1, 8, 3, 6}, {4, 5, 2, 7}, {2, 7, 4, 5}};
    for (int mirror = -1; mirror < 2; mirror++)
        for (int turns = 0; turns < 4; turns++) {
            const still_file f = still_avif(turns, mirror);
            stk_image_info info;
            CHECK_EQ(stk_image_probe(f.data, f.size, &info, NULL), STK_OK);
            CHECK_EQ(info.orientation, want[mirror + 1][turns]);
        }
}

static void cut_anywhere(void)
{
    sample samples[SAMPLES];
    make_samples(samples);
    for (int i = 0; i < SAMPLES; i++) {
        const sample *s = &samples[i];
        void *state = codec_state(s->codec);
        for (size_t cut = 0; cut < s->file.size; cut++) {
            uint8_t *copy = malloc(cut ? cut : 1); /* so that the sanitizer sees its end */
            memcpy(copy, s->file.data, cut);
            stk_image_info info;
            stk_diag diag = {0};
            const stk_err err = s->codec->begin(state, copy, cut, CODEC_LIMITS, &info, &diag);
            if (err != STK_ECORRUPT) fprintf(stderr, "%s: cut at %zu\n", s->codec->name, cut);
            CHECK_EQ(err, STK_ECORRUPT);
            CHECK(strstr(diag.text, s->codec->name) == diag.text);
            CHECK(stk_image_probe(copy, cut, &info, NULL) != STK_OK);
            free(copy);
        }
        s->codec->close(state);
    }
}

/* Every byte changed in several ways: any answer, but none that is beyond the data. */
static void damaged(void)
{
    static const uint8_t changes[] = {0xFF, 0x80, 0x41, 0x01};
    sample samples[SAMPLES];
    make_samples(samples);
    for (int i = 0; i < SAMPLES; i++) {
        sample *s = &samples[i];
        uint8_t *copy = malloc(s->file.size);
        void *state = codec_state(s->codec);
        memcpy(copy, s->file.data, s->file.size);
        for (size_t at = 0; at < s->file.size * sizeof(changes); at++) {
            uint8_t *byte = copy + at / sizeof(changes);
            stk_image_info info;
            stk_diag diag = {0};
            *byte ^= changes[at % sizeof(changes)];
            const stk_err err =
                s->codec->begin(state, copy, s->file.size, CODEC_LIMITS, &info, &diag);
            CHECK(!err == !diag.text[0]);
            CHECK(err || (info.width > 0 && info.height > 0 && info.orientation >= 1));
            *byte ^= changes[at % sizeof(changes)];
        }
        s->codec->close(state);
        free(copy);
    }
}

static void limits(void)
{
    sample samples[SAMPLES];
    make_samples(samples);
    for (int i = 0; i < SAMPLES; i++) {
        const sample *s = &samples[i];
        void *state = codec_state(s->codec);
        stk_image_info info;
        stk_diag diag;
        const stk_image_limits pixels = {.max_pixels = 7, .max_side = 4};
        const stk_image_limits side = {.max_pixels = 8, .max_side = 3};
        CHECK_EQ(s->codec->begin(state, s->file.data, s->file.size, &pixels, &info, &diag),
                 STK_ELIMIT);
        CHECK(strstr(diag.text, "4 x 2"));
        CHECK_EQ(s->codec->begin(state, s->file.data, s->file.size, &side, &info, &diag),
                 STK_ELIMIT);
        s->codec->close(state);
    }
}

static void refused(const stk_codec *codec, const still_file *f, const char *words)
{
    void *state = codec_state(codec);
    stk_image_info info;
    stk_diag diag = {0};
    CHECK_EQ(codec->begin(state, f->data, f->size, CODEC_LIMITS, &info, &diag), STK_EUNSUPPORTED);
    if (!strstr(diag.text, words)) fprintf(stderr, "  \"%s\"\n", diag.text);
    CHECK(strstr(diag.text, words));
    codec->close(state);
}

static uint8_t *find(still_file *f, const char *text)
{
    for (size_t i = 0; i + strlen(text) <= f->size; i++)
        if (!memcmp(f->data + i, text, strlen(text))) return f->data + i;
    CHECK(!"found");
    return NULL;
}

static void kinds_that_are_not_decoded(void)
{
    still_file f = still_tiff();
    f.data[10 + 3 * 12 + 8] = 7;
    refused(&stk_codec_tiff, &f, "JPEG in TIFF");
    f.data[2] = 43;
    refused(&stk_codec_tiff, &f, "BigTIFF");
    f = still_tiff();
    f.data[10 + 2 * 12 + 8] = 32;
    refused(&stk_codec_tiff, &f, "32 bits");
    f = still_tiff();
    f.data[10 + 10 * 12] = 324 - 256; /* the tag that nobody knows */
    f.data[10 + 10 * 12 + 1] = 1;
    refused(&stk_codec_tiff, &f, "tiles");
    f = still_bmp();
    f.data[30] = 4;
    refused(&stk_codec_bmp, &f, "compression 4");
    f = still_bmp();
    f.data[28] = 2;
    refused(&stk_codec_bmp, &f, "2 bits");
    f = still_avif(0, -1);
    memcpy(find(&f, "av01"), "grid", 4);
    refused(&stk_codec_avif, &f, "grid");
    memcpy(find(&f, "grid"), "Exif", 4);
    refused(&stk_codec_avif, &f, "not AV1");
    memcpy(find(&f, "meta"), "moov", 4);
    refused(&stk_codec_avif, &f, "without a still");
}

/* Sizes of 0 make entries that say much in few bytes: nobody goes through what they say. */
static void little_says_much(void)
{
    static const uint8_t iloc[] = {
        0, 0, 0, 0, 0,    0,    0xFF, 0xFF,  /* no fields, 65535 items */
        0, 2, 0, 0, 0xFF, 0xFF,              /* another, in 65535 pieces */
        0, 1, 0, 0, 0,    1,    0x55, 0x55}; /* the main one, and no more */
    stk_image_info info;
    still_file f = still_avif(0, -1);
    uint8_t *at = find(&f, "iloc") + 4;
    memcpy(at, iloc, sizeof(iloc));
    CHECK_EQ(stk_image_probe(f.data, f.size, &info, NULL), STK_OK);
    at[19] = 2; /* the main one, twice the same */
    CHECK_EQ(stk_image_probe(f.data, f.size, &info, NULL), STK_ECORRUPT);
    at[19] = 1;
    at[4] = 0x10; /* a byte a piece, so that the other item's are beyond the end */
    CHECK_EQ(stk_image_probe(f.data, f.size, &info, NULL), STK_ECORRUPT);
    f = still_avif(0, -1);
    memset(find(&f, "ipma") + 8, 0xFF, 4); /* so many entries; the first is the main one's */
    CHECK_EQ(stk_image_probe(f.data, f.size, &info, NULL), STK_OK);
}

static void without_ffmpeg(void)
{
    sample samples[SAMPLES];
    make_samples(samples);
    CHECK_EQ(setenv("STOKER_AV_MODULE", "/nonexistent/module.so", 1), 0);
    for (int i = 0; i < SAMPLES; i++) {
        const sample *s = &samples[i];
        void *state = codec_state(s->codec);
        struct pixels p = {0};
        stk_diag diag = {0};
        CHECK_EQ(codec_decode(s->codec, state, s->file.data, s->file.size, (stk_window_request){0},
                              &p, &diag),
                 STK_EUNSUPPORTED);
        CHECK(strstr(diag.text, s->codec->name) == diag.text);
        CHECK(strstr(diag.text, "STOKER_AV_MODULE") && p.rows == 0);
        free(p.data);
        CHECK_EQ(s->codec->rows(state, pixels_push, &p, &diag), STK_EINVAL); /* not begun */
        s->codec->close(state);
        s->codec->close(NULL);
    }
}

static void memory_may_run_out(void)
{
    sample samples[SAMPLES];
    make_samples(samples);
    for (int i = 0; i < SAMPLES; i++) {
        const sample *s = &samples[i];
        stk_err err;
        TORTURE (err) {
            void *state = NULL;
            stk_image_info info;
            err = s->codec->open(&state, NULL);
            if (!err)
                err = s->codec->begin(state, s->file.data, s->file.size, CODEC_LIMITS, &info, NULL);
            CHECK(!err || err == STK_ENOMEM);
            s->codec->close(state);
        }
    }
}

TESTS(TEST(describes), TEST(orientations), TEST(cut_anywhere), TEST(damaged), TEST(limits),
      TEST(kinds_that_are_not_decoded), TEST(little_says_much), TEST(without_ffmpeg),
      TEST(memory_may_run_out))
