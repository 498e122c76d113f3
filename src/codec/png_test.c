#include <spng.h>

#include "codec/rowbuf.h"
#include "tests/codec_check.h"

struct file {
    uint8_t *data;
    size_t size;
};

struct kind {
    uint8_t color, depth, channels;
};

static const struct kind kinds[] = {
    {SPNG_COLOR_TYPE_GRAYSCALE, 1, 1},        {SPNG_COLOR_TYPE_GRAYSCALE, 2, 1},
    {SPNG_COLOR_TYPE_GRAYSCALE, 4, 1},        {SPNG_COLOR_TYPE_GRAYSCALE, 8, 1},
    {SPNG_COLOR_TYPE_GRAYSCALE, 16, 1},       {SPNG_COLOR_TYPE_GRAYSCALE_ALPHA, 8, 2},
    {SPNG_COLOR_TYPE_GRAYSCALE_ALPHA, 16, 2}, {SPNG_COLOR_TYPE_TRUECOLOR, 8, 3},
    {SPNG_COLOR_TYPE_TRUECOLOR, 16, 3},       {SPNG_COLOR_TYPE_TRUECOLOR_ALPHA, 8, 4},
    {SPNG_COLOR_TYPE_TRUECOLOR_ALPHA, 16, 4}, {SPNG_COLOR_TYPE_INDEXED, 1, 1},
    {SPNG_COLOR_TYPE_INDEXED, 2, 1},          {SPNG_COLOR_TYPE_INDEXED, 4, 1},
    {SPNG_COLOR_TYPE_INDEXED, 8, 1},
};
#define NUM_KINDS (sizeof(kinds) / sizeof(kinds[0]))

/* Sample c of pixel (x, y): noise, the same for every size of image. */
static unsigned sample(const struct kind *k, int32_t x, int32_t y, int c)
{
    unsigned h = (unsigned)x * 2654435761u ^ (unsigned)y * 2246822519u ^ (unsigned)c * 3266489917u;
    h = (h ^ h >> 15) * 2246822519u;
    return (h >> 16) & ((1u << k->depth) - 1);
}

static void palette_entry(unsigned i, uint8_t rgb[3])
{
    rgb[0] = (uint8_t)(i * 7 + 3), rgb[1] = (uint8_t)(255 - i), rgb[2] = (uint8_t)(i * 31);
}

/* What Pillow's convert("RGB") makes of that pixel. */
static void expected(const struct kind *k, int32_t x, int32_t y, uint8_t rgb[3])
{
    if (k->color == SPNG_COLOR_TYPE_INDEXED) {
        palette_entry(sample(k, x, y, 0), rgb);
        return;
    }
    for (int c = 0; c < 3; c++) {
        const unsigned v = sample(k, x, y, k->channels < 3 ? 0 : c);
        rgb[c] = (uint8_t)(k->depth == 16 ? v >> 8 : v * 255 / ((1u << k->depth) - 1));
    }
}

static size_t row_bytes(const struct kind *k, int32_t width)
{
    return ((size_t)width * k->channels * k->depth + 7) / 8;
}

static uint8_t *samples(const struct kind *k, int32_t width, int32_t height)
{
    uint8_t *all = calloc((size_t)height, row_bytes(k, width));
    for (int32_t y = 0; y < height; y++)
        for (int32_t x = 0; x < width; x++)
            for (int c = 0; c < k->channels; c++) {
                uint8_t *row = all + (size_t)y * row_bytes(k, width);
                const unsigned v = sample(k, x, y, c);
                const size_t at = (size_t)x * k->channels + (size_t)c, bit = at * k->depth;
                if (k->depth == 16)
                    memcpy(row + at * 2, &(uint16_t){(uint16_t)v}, 2);
                else
                    row[bit / 8] |= (uint8_t)(v << (8 - k->depth - bit % 8));
            }
    return all;
}

/* A TIFF block with one tag, the orientation. */
static const char tiff[] = "II*\0\10\0\0\0\1\0\22\1\3\0\1\0\0\0\6\0\0\0\0\0\0\0";

static struct file encode(const struct kind *k, int32_t width, int32_t height, bool interlaced,
                          bool exif)
{
    struct file f;
    int code;
    spng_ctx *ctx = spng_ctx_new(SPNG_CTX_ENCODER);
    CHECK(ctx);
    CHECK_EQ(spng_set_option(ctx, SPNG_ENCODE_TO_BUFFER, 1), 0);
    struct spng_ihdr ihdr = {.width = (uint32_t)width,
                             .height = (uint32_t)height,
                             .bit_depth = k->depth,
                             .color_type = k->color,
                             .interlace_method = interlaced};
    CHECK_EQ(spng_set_ihdr(ctx, &ihdr), 0);
    if (k->color == SPNG_COLOR_TYPE_INDEXED) {
        struct spng_plte plte = {.n_entries = 1u << k->depth};
        for (unsigned i = 0; i < plte.n_entries; i++) {
            uint8_t rgb[3];
            palette_entry(i, rgb);
            plte.entries[i] = (struct spng_plte_entry){rgb[0], rgb[1], rgb[2], 0};
        }
        CHECK_EQ(spng_set_plte(ctx, &plte), 0);
        CHECK_EQ(spng_set_trns(ctx, &(struct spng_trns){.n_type3_entries = 1}), 0);
    }
    if (exif) CHECK_EQ(spng_set_exif(ctx, &(struct spng_exif){sizeof(tiff) - 1, (char *)tiff}), 0);
    uint8_t *image = samples(k, width, height);
    CHECK_EQ(spng_encode_image(ctx, image, row_bytes(k, width) * (size_t)height, SPNG_FMT_PNG,
                               SPNG_ENCODE_FINALIZE),
             0);
    free(image);
    f.data = spng_get_png_buffer(ctx, &f.size, &code);
    CHECK(f.data);
    spng_ctx_free(ctx);
    return f;
}

static void check_pixels(const struct kind *k, const struct file *f, int32_t width, int32_t height,
                         bool gray)
{
    void *state = codec_state(&stk_codec_png);
    struct pixels p = {0};
    CHECK_EQ(codec_decode(&stk_codec_png, state, f->data, f->size,
                          (stk_window_request){.gray = gray}, &p, NULL),
             STK_OK);
    const bool one = gray || k->channels <= (k->color == SPNG_COLOR_TYPE_INDEXED ? 0 : 2);
    CHECK_EQ(p.window.pixels, one ? STK_PIXELS_GRAY : STK_PIXELS_RGB);
    for (int32_t y = 0; y < height; y++)
        for (int32_t x = 0; x < width; x++) {
            uint8_t rgb[3];
            const uint8_t *got = p.data + (size_t)(y * width + x) * (one ? 1 : 3);
            expected(k, x, y, rgb);
            if (one)
                CHECK_EQ(got[0], (rgb[0] * 299 + rgb[1] * 587 + rgb[2] * 114 + 500) / 1000);
            else
                CHECK(!memcmp(got, rgb, 3));
        }
    free(p.data);
    stk_codec_png.close(state);
}

static void all_kinds(void)
{
    static const int32_t sizes[][2] = {{1, 1}, {2, 3}, {5, 7}, {8, 8}, {33, 18}};
    for (size_t i = 0; i < NUM_KINDS; i++)
        for (size_t s = 0; s < 5; s++)
            for (int interlaced = 0; interlaced < 2; interlaced++) {
                const int32_t w = sizes[s][0], h = sizes[s][1];
                struct file f = encode(&kinds[i], w, h, interlaced, false);
                check_pixels(&kinds[i], &f, w, h, false);
                check_pixels(&kinds[i], &f, w, h, true);
                check_windows(&stk_codec_png, f.data, f.size, s % 2, 12);
                free(f.data);
            }
}

static void describes(void)
{
    for (size_t i = 0; i < NUM_KINDS; i++) {
        const struct kind *k = &kinds[i];
        const bool indexed = k->color == SPNG_COLOR_TYPE_INDEXED;
        struct file f = encode(k, 9, 4, i % 2, i % 3 == 0);
        stk_image_info info;
        CHECK(stk_codec_png.match(f.data, f.size));
        CHECK_EQ(stk_codec_png.probe(f.data, f.size, &info, NULL), STK_OK);
        CHECK_EQ(info.format, STK_IMAGE_PNG);
        CHECK(info.width == 9 && info.height == 4);
        CHECK_EQ(info.bits, indexed ? 8 : k->depth);
        CHECK_EQ(info.channels,
                 indexed ? 4 : k->channels); /* the palette has a transparent entry */
        CHECK_EQ(info.progressive, i % 2);
        CHECK_EQ(info.orientation, i % 3 == 0 ? 6 : 1);
        CHECK(!info.animated);
        CHECK_EQ(!strcmp(info.detail, "palette"), indexed);
        free(f.data);
    }
}

/* eXIf may also stand behind the picture. */
static void late_exif(void)
{
    struct file f = encode(&kinds[7], 3, 3, false, true);
    const size_t exif = 12 + sizeof(tiff) - 1, at = 33, end = f.size - 12;
    CHECK(!memcmp(f.data + at + 4, "eXIf", 4));
    uint8_t *moved = malloc(f.size);
    memcpy(moved, f.data, at);
    memcpy(moved + at, f.data + at + exif, end - at - exif);
    memcpy(moved + end - exif, f.data + at, exif);
    memcpy(moved + end, f.data + end, 12);
    stk_image_info info;
    CHECK_EQ(stk_codec_png.probe(moved, f.size, &info, NULL), STK_OK);
    CHECK_EQ(info.orientation, 6);
    moved[end - exif + 8] ^= 1; /* wrong checksum: as if it were not there */
    CHECK_EQ(stk_codec_png.probe(moved, f.size, &info, NULL), STK_OK);
    CHECK_EQ(info.orientation, 1);
    free(moved);
    free(f.data);
}

static void truncated(void)
{
    for (size_t i = 3; i < NUM_KINDS; i += 4)
        for (int interlaced = 0; interlaced < 2; interlaced++) {
            struct file f = encode(&kinds[i], 6, 5, interlaced, true);
            check_truncation(&stk_codec_png, f.data, f.size);
            free(f.data);
        }
}

/* Every changed byte is noticed, whatever window is asked for. */
static void damaged(void)
{
    struct file f = encode(&kinds[7], 7, 9, false, false);
    void *state = codec_state(&stk_codec_png);
    for (size_t i = 0; i < f.size; i++) {
        struct pixels p = {0};
        stk_diag diag = {0};
        f.data[i] ^= 0x10;
        CHECK(codec_decode(&stk_codec_png, state, f.data, f.size,
                           (stk_window_request){.rect = {0, 0, 1, 1}}, &p, &diag));
        CHECK(diag.text[0]);
        free(p.data);
        f.data[i] ^= 0x10;
    }
    stk_codec_png.close(state);
    free(f.data);
}

static void limits(void)
{
    struct file f = encode(&kinds[7], 20, 10, false, false);
    void *state = codec_state(&stk_codec_png);
    stk_image_info info;
    stk_diag diag;
    stk_image_limits lim = {.max_pixels = 199, .max_side = 20};
    CHECK_EQ(stk_codec_png.begin(state, f.data, f.size, &lim, &info, &diag), STK_ELIMIT);
    CHECK(strstr(diag.text, "20 x 10") && strstr(diag.text, "199"));
    lim = (stk_image_limits){.max_pixels = 200, .max_side = 19};
    CHECK_EQ(stk_codec_png.begin(state, f.data, f.size, &lim, &info, &diag), STK_ELIMIT);
    lim.max_side = 20;
    CHECK_EQ(stk_codec_png.begin(state, f.data, f.size, &lim, &info, &diag), STK_OK);
    CHECK_EQ(stk_codec_png.begin(state, f.data, f.size, &lim, &info, NULL), STK_OK);
    stk_codec_png.close(state);
    free(f.data);
}

static uint32_t crc(const uint8_t *p, size_t n)
{
    uint32_t c = 0xFFFFFFFFu;
    for (size_t i = 0; i < n; i++) {
        c ^= p[i];
        for (int b = 0; b < 8; b++) c = c >> 1 ^ (0xEDB88320u & -(c & 1));
    }
    return ~c;
}

static struct file with_size(const uint8_t size[8])
{
    struct file f = encode(&kinds[10], 4, 4, true, false);
    memcpy(f.data + 16, size, 8);
    const uint32_t c = crc(f.data + 12, 17);
    for (int i = 0; i < 4; i++) f.data[29 + i] = (uint8_t)(c >> (24 - 8 * i));
    return f;
}

/* A header that claims much, over data that cannot hold it: refused before memory is asked for. */
static void bomb(void)
{
    struct file f = with_size((const uint8_t[8]){0, 0, 0xFF, 0xFF, 0, 0, 0xFF, 0xFF});
    void *state = codec_state(&stk_codec_png);
    stk_image_info info;
    stk_diag diag;
    stk_image_limits lim = {.max_pixels = INT64_MAX, .max_side = INT32_MAX};
    CHECK_EQ(stk_codec_png.begin(state, f.data, f.size, &lim, &info, &diag), STK_ECORRUPT);
    CHECK(strstr(diag.text, "65535 x 65535"));
    lim.max_side = 65500;
    CHECK_EQ(stk_codec_png.begin(state, f.data, f.size, &lim, &info, &diag), STK_ELIMIT);
    free(f.data);

    f = with_size((const uint8_t[8]){0x7F, 0xFF, 0xFF, 0xFF, 0x7F, 0xFF, 0xFF, 0xFF});
    CHECK_EQ(stk_codec_png.begin(state, f.data, f.size, &lim, &info, &diag), STK_ELIMIT);
    CHECK(strstr(diag.text, "2147483647 x 2147483647"));
    CHECK_EQ(stk_codec_png.probe(f.data, f.size, &info, &diag), STK_ELIMIT);
    stk_codec_png.close(state);
    free(f.data);
}

/* A few kilobytes of text that unpack to many megabytes. */
static void text_bomb(void)
{
    const size_t size = 20 << 20;
    char *letters = calloc(1, size + 1); /* libspng also looks for its end */
    memset(letters, 'a', size);
    struct file f;
    int code;
    spng_ctx *ctx = spng_ctx_new(SPNG_CTX_ENCODER);
    struct spng_ihdr ihdr = {.width = 1, .height = 1, .bit_depth = 8};
    struct spng_text text = {"key", SPNG_ZTXT, .length = size, .text = letters};
    CHECK_EQ(spng_set_option(ctx, SPNG_ENCODE_TO_BUFFER, 1), 0);
    CHECK_EQ(spng_set_option(ctx, SPNG_TEXT_COMPRESSION_LEVEL, 1), 0);
    CHECK_EQ(spng_set_ihdr(ctx, &ihdr), 0);
    CHECK_EQ(spng_set_text(ctx, &text, 1), 0);
    CHECK_EQ(spng_encode_image(ctx, "x", 1, SPNG_FMT_PNG, SPNG_ENCODE_FINALIZE), 0);
    f.data = spng_get_png_buffer(ctx, &f.size, &code);
    CHECK(f.data && f.size < size / 100);
    spng_ctx_free(ctx);
    free(letters);

    void *state = codec_state(&stk_codec_png);
    struct pixels p = {0};
    stk_diag diag;
    CHECK_EQ(
        codec_decode(&stk_codec_png, state, f.data, f.size, (stk_window_request){0}, &p, &diag),
        STK_ELIMIT);
    CHECK(strstr(diag.text, "texts"));
    free(p.data);
    stk_codec_png.close(state);
    free(f.data);
}

static void out_of_memory(void)
{
    for (int interlaced = 0; interlaced < 2; interlaced++) {
        struct file f = encode(&kinds[NUM_KINDS - 1], 30, 20, interlaced, true);
        check_out_of_memory(&stk_codec_png, f.data, f.size);
        free(f.data);
    }
}

static void not_begun(void)
{
    void *state = codec_state(&stk_codec_png);
    struct pixels p = {0};
    CHECK_EQ(stk_codec_png.rows(state, pixels_push, &p, NULL), STK_EINVAL);
    stk_codec_png.close(state);
    stk_codec_png.close(NULL);
    CHECK(!stk_codec_png.match((const uint8_t *)"\x89PNG\r\n\x1a", 7));
}

TESTS(TEST(all_kinds), TEST(describes), TEST(late_exif), TEST(truncated), TEST(damaged),
      TEST(limits), TEST(bomb), TEST(text_bomb), TEST(out_of_memory), TEST(not_begun))
