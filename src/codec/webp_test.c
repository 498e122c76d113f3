#include <webp/decode.h>
#include <webp/encode.h>

#include "tests/codec_check.h"

struct file {
    uint8_t *data;
    size_t size;
};

/* Gradients with some noise, and an alpha that must not show. */
static uint8_t *picture(int width, int height)
{
    uint8_t *rgba = malloc((size_t)width * (size_t)height * 4);
    unsigned h = 1;
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++) {
            uint8_t *p = rgba + ((size_t)y * (size_t)width + (size_t)x) * 4;
            h = h * 1664525u + 1013904223u;
            p[0] = (uint8_t)(x * 255 / width), p[1] = (uint8_t)(y * 255 / height);
            p[2] = (uint8_t)((x ^ y) * 4 + (int)(h >> 28)), p[3] = (uint8_t)(x + 1);
        }
    return rgba;
}

enum variant { LOSSY, LOSSY_ALPHA, LOSSLESS, LOSSLESS_ALPHA, NUM_VARIANTS };

static struct file encode(enum variant v, int width, int height)
{
    struct file f = {0};
    WebPConfig config;
    WebPPicture pic;
    WebPMemoryWriter out;
    CHECK(WebPConfigInit(&config) && WebPPictureInit(&pic));
    config.lossless = v >= LOSSLESS;
    config.exact = 1; /* also what is transparent */
    config.method = 0;
    pic.use_argb = config.lossless;
    pic.width = width, pic.height = height;
    uint8_t *rgba = picture(width, height);
    const bool alpha = v == LOSSY_ALPHA || v == LOSSLESS_ALPHA;
    CHECK(alpha ? WebPPictureImportRGBA(&pic, rgba, width * 4)
                : WebPPictureImportRGBX(&pic, rgba, width * 4));
    WebPMemoryWriterInit(&out);
    pic.writer = WebPMemoryWrite;
    pic.custom_ptr = &out;
    CHECK(WebPEncode(&config, &pic));
    WebPPictureFree(&pic);
    f.data = malloc(out.size);
    memcpy(f.data, out.mem, out.size);
    f.size = out.size;
    WebPMemoryWriterClear(&out);
    free(rgba);
    return f;
}

/* The whole image equals libwebp's plain decoding; lossless: also the original. */
static void whole(void)
{
    void *state = codec_state(&stk_codec_webp);
    for (int v = 0; v < NUM_VARIANTS; v++)
        for (int size = 1; size < 80; size += 26) {
            const int width = size, height = 80 - size;
            const size_t pixels = (size_t)width * (size_t)height;
            struct file f = encode(v, width, height);
            struct pixels p = {0};
            CHECK_EQ(codec_decode(&stk_codec_webp, state, f.data, f.size, (stk_window_request){0},
                                  &p, NULL),
                     STK_OK);
            uint8_t *plain = WebPDecodeRGB(f.data, f.size, NULL, NULL);
            CHECK(!memcmp(plain, p.data, pixels * 3));
            uint8_t *rgba = picture(width, height);
            for (size_t i = 0; v >= LOSSLESS && i < pixels; i++)
                CHECK(!memcmp(rgba + i * 4, p.data + i * 3, 3));
            free(rgba);
            free(p.data);

            CHECK_EQ(codec_decode(&stk_codec_webp, state, f.data, f.size,
                                  (stk_window_request){.gray = true}, &p, NULL),
                     STK_OK);
            for (size_t i = 0; i < pixels; i++) {
                const uint8_t *c = plain + i * 3;
                CHECK_EQ(p.data[i], (c[0] * 19595 + c[1] * 38470 + c[2] * 7471 + 32768) >> 16);
            }
            WebPFree(plain);
            free(p.data);
            free(f.data);
        }
    stk_codec_webp.close(state);
}

static void windows(void)
{
    for (int v = 0; v < NUM_VARIANTS; v++) {
        struct file f = encode(v, 75, 61);
        check_windows(&stk_codec_webp, f.data, f.size, v == LOSSY, 60);
        free(f.data);
    }
}

static void store32(uint8_t *p, size_t v)
{
    for (int i = 0; i < 4; i++) p[i] = (uint8_t)(v >> (8 * i));
}

/* The same image in the extended container: VP8X first, EXIF last. */
static struct file extend(const struct file *f, int width, int height, uint8_t flags,
                          const char *exif, size_t exif_size)
{
    struct file e = {malloc(f->size + 18 + 8 + exif_size + 1), 12};
    memcpy(e.data, f->data, 12);
    uint8_t *p = e.data + 12;
    memset(p, 0, 18);
    memcpy(p, "VP8X", 4);
    store32(p + 4, 10);
    p[8] = flags;
    store32(p + 12, (size_t)width - 1);
    store32(p + 15, (size_t)height - 1); /* 24 bits; the fourth byte is overwritten */
    p += 18;
    memcpy(p, f->data + 12, f->size - 12);
    p += f->size - 12;
    memcpy(p, "EXIF", 4);
    store32(p + 4, exif_size);
    memcpy(p + 8, exif, exif_size);
    p += 8 + exif_size;
    if (exif_size & 1) *p++ = 0;
    e.size = (size_t)(p - e.data);
    store32(e.data + 4, e.size - 8);
    return e;
}

/* A TIFF block with one tag, the orientation, as JPEG has it. */
static const char exif[] = "Exif\0\0II*\0\10\0\0\0\1\0\22\1\3\0\1\0\0\0\6\0\0\0\0\0\0\0";

static void describes(void)
{
    struct file f = encode(LOSSY, 40, 30), g = encode(LOSSLESS_ALPHA, 7, 9);
    stk_image_info info;
    CHECK_EQ(stk_codec_webp.probe(f.data, f.size, &info, NULL), STK_OK);
    CHECK(info.format == STK_IMAGE_WEBP && info.width == 40 && info.height == 30);
    CHECK(info.channels == 3 && info.bits == 8 && info.orientation == 1 && !info.animated);
    CHECK(!strcmp(info.detail, "lossy"));
    CHECK_EQ(stk_codec_webp.probe(g.data, g.size, &info, NULL), STK_OK);
    CHECK(info.width == 7 && info.height == 9 && info.channels == 4);
    CHECK(!strcmp(info.detail, "lossless"));

    for (size_t skip = 0; skip <= 6; skip += 6) {
        struct file e = extend(&f, 40, 30, 8, exif + skip, sizeof(exif) - 1 - skip);
        CHECK_EQ(stk_codec_webp.probe(e.data, e.size, &info, NULL), STK_OK);
        CHECK_EQ(info.orientation, 6);
        check_windows(&stk_codec_webp, e.data, e.size, false, 2);
        free(e.data);
    }
    free(f.data);
    free(g.data);
}

static void animations(void)
{
    struct file f = encode(LOSSY, 40, 30);
    struct file e = extend(&f, 40, 30, 2, exif, 0);
    void *state = codec_state(&stk_codec_webp);
    stk_image_info info;
    stk_diag diag;
    CHECK_EQ(stk_codec_webp.begin(state, e.data, e.size, CODEC_LIMITS, &info, &diag),
             STK_EUNSUPPORTED);
    CHECK(strstr(diag.text, "animations"));
    CHECK(info.animated);
    stk_codec_webp.close(state);
    free(e.data);
    free(f.data);
}

static void truncated(void)
{
    for (int v = 0; v < NUM_VARIANTS; v++) {
        struct file f = encode(v, 20, 17);
        check_truncation(&stk_codec_webp, f.data, f.size);
        free(f.data);
    }
}

/* There are no checksums: what is damaged may decode, to something, but never crashes. */
static void damaged(void)
{
    void *state = codec_state(&stk_codec_webp);
    int failed = 0;
    for (int v = 0; v < NUM_VARIANTS; v++) {
        struct file f = encode(v, 20, 17);
        for (size_t i = 0; i < f.size; i++) {
            struct pixels p = {0};
            stk_diag diag = {0};
            f.data[i] ^= 0x41;
            stk_err err = codec_decode(&stk_codec_webp, state, f.data, f.size,
                                       (stk_window_request){0}, &p, &diag);
            CHECK(!err == !diag.text[0]);
            failed += err != STK_OK;
            free(p.data);
            f.data[i] ^= 0x41;
        }
        free(f.data);
    }
    CHECK(failed > 50);
    stk_codec_webp.close(state);
}

static void limits(void)
{
    struct file f = encode(LOSSY, 20, 10);
    void *state = codec_state(&stk_codec_webp);
    stk_image_info info;
    stk_diag diag;
    stk_image_limits lim = {.max_pixels = 199, .max_side = 20};
    CHECK_EQ(stk_codec_webp.begin(state, f.data, f.size, &lim, &info, &diag), STK_ELIMIT);
    CHECK(strstr(diag.text, "20 x 10"));
    lim = (stk_image_limits){.max_pixels = 200, .max_side = 19};
    CHECK_EQ(stk_codec_webp.begin(state, f.data, f.size, &lim, &info, &diag), STK_ELIMIT);
    lim.max_side = 20;
    CHECK_EQ(stk_codec_webp.begin(state, f.data, f.size, &lim, &info, &diag), STK_OK);
    stk_codec_webp.close(state);
    free(f.data);
}

static void out_of_memory(void)
{
    struct file f = encode(LOSSY, 20, 10);
    check_out_of_memory(&stk_codec_webp, f.data, f.size);
    free(f.data);
}

static void not_begun(void)
{
    void *state = codec_state(&stk_codec_webp);
    struct pixels p = {0};
    CHECK_EQ(stk_codec_webp.rows(state, pixels_push, &p, NULL), STK_EINVAL);
    stk_codec_webp.close(state);
    stk_codec_webp.close(NULL);
    CHECK(!stk_codec_webp.match((const uint8_t *)"RIFF0000WEB", 11));
    CHECK(!stk_codec_webp.match((const uint8_t *)"RIFF0000WAVE", 12));
}

TESTS(TEST(whole), TEST(windows), TEST(describes), TEST(animations), TEST(truncated), TEST(damaged),
      TEST(limits), TEST(out_of_memory), TEST(not_begun))
