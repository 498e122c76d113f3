#include "codec/png_chunks.h"

#include <zlib.h>

#include "tests/check.h"

struct file {
    uint8_t data[1024];
    size_t size;
};

static void put32(struct file *f, uint32_t v)
{
    for (int shift = 24; shift >= 0; shift -= 8) f->data[f->size++] = (uint8_t)(v >> shift);
}

static void begin(struct file *f)
{
    memcpy(f->data, STK_PNG_SIGNATURE, 8);
    f->size = 8;
}

static void put(struct file *f, const char *type, uint32_t size)
{
    put32(f, size);
    const size_t from = f->size;
    memcpy(f->data + f->size, type, 4);
    memset(f->data + f->size + 4, type[0] ^ (int)size, size);
    f->size += 4 + size;
    put32(f, (uint32_t)crc32(0, f->data + from, 4 + size));
}

/* The same with a wrong checksum. */
static void put_broken(struct file *f, const char *type, uint32_t size)
{
    put(f, type, size);
    f->data[f->size - 1] ^= 1;
}

static void make(struct file *f)
{
    begin(f);
    put(f, "IHDR", 13);
    put(f, "acTL", 8);
    put(f, "tRNS", 6);
    put(f, "eXIf", 20);
    put(f, "eXIf", 30);
    put(f, "IDAT", 100);
    put(f, "IDAT", 0);
    put(f, "IDAT", 23);
    put(f, "IEND", 0);
}

static void says_what_is_there(void)
{
    struct file f;
    stk_png_chunks chunks;
    make(&f);
    for (int verify = 0; verify < 2; verify++) {
        CHECK_EQ(stk_png_chunks_scan(f.data, f.size, verify, &chunks, NULL), STK_OK);
        CHECK_EQ(chunks.image_bytes, 123);
        CHECK(chunks.animated && chunks.transparent);
        CHECK_EQ(chunks.exif_size, 20); /* the first */
        CHECK(chunks.exif && !memcmp(chunks.exif - 4, "eXIf", 4));
    }
    begin(&f);
    put(&f, "IHDR", 13);
    put(&f, "IEND", 0);
    CHECK_EQ(stk_png_chunks_scan(f.data, f.size, true, &chunks, NULL), STK_OK);
    CHECK(!chunks.image_bytes && !chunks.exif && !chunks.animated && !chunks.transparent);
}

/* What comes behind IEND belongs to nobody. */
static void ends_at_iend(void)
{
    struct file f;
    stk_png_chunks chunks;
    make(&f);
    put_broken(&f, "IDAT", 50);
    CHECK_EQ(stk_png_chunks_scan(f.data, f.size, true, &chunks, NULL), STK_OK);
    CHECK_EQ(chunks.image_bytes, 123);
}

static void checksums(void)
{
    struct file f;
    stk_png_chunks chunks;
    stk_diag diag = {0};
    begin(&f);
    put(&f, "IHDR", 13);
    put_broken(&f, "tRNS", 6); /* without these the image can be shown */
    put_broken(&f, "eXIf", 20);
    put(&f, "IDAT", 10);
    const size_t good = f.size;
    put(&f, "IEND", 0);
    CHECK_EQ(stk_png_chunks_scan(f.data, f.size, true, &chunks, &diag), STK_OK);
    CHECK(!chunks.transparent && !chunks.exif && chunks.image_bytes == 10);
    CHECK_EQ(stk_png_chunks_scan(f.data, f.size, false, &chunks, &diag), STK_OK);
    CHECK(chunks.transparent && !chunks.exif); /* orientation is believed only if intact */

    f.size = good;
    put_broken(&f, "IDAT", 11);
    put(&f, "IEND", 0);
    CHECK_EQ(stk_png_chunks_scan(f.data, f.size, true, &chunks, &diag), STK_ECORRUPT);
    CHECK(!strcmp(diag.text, "PNG: wrong checksum of chunk IDAT"));
    CHECK_EQ(stk_png_chunks_scan(f.data, f.size, false, &chunks, &diag), STK_OK);
    CHECK_EQ(chunks.image_bytes, 21);

    f.size = good;
    put_broken(&f, "IEND", 0);
    CHECK_EQ(stk_png_chunks_scan(f.data, f.size, true, &chunks, &diag), STK_ECORRUPT);
    CHECK(strstr(diag.text, "IEND"));
}

/* At every length: an error, and nothing is read beyond it. */
static void truncated(void)
{
    struct file f;
    stk_png_chunks chunks;
    make(&f);
    for (size_t size = 0; size < f.size; size++) {
        uint8_t *data = malloc(size ? size : 1);
        CHECK(data);
        memcpy(data, f.data, size);
        stk_diag diag = {0};
        CHECK_EQ(stk_png_chunks_scan(data, size, true, &chunks, &diag), STK_ECORRUPT);
        CHECK(strstr(diag.text, "PNG: the data ends"));
        CHECK_EQ(stk_png_chunks_scan(data, size, false, &chunks, &diag), STK_OK);
        CHECK(!chunks.exif || chunks.exif + chunks.exif_size <= data + size);
        free(data);
    }
    stk_diag diag = {0};
    CHECK_EQ(stk_png_chunks_scan(f.data, 8 + 12, true, &chunks, &diag), STK_ECORRUPT);
    CHECK(!strcmp(diag.text, "PNG: the data ends inside chunk IHDR"));
    CHECK_EQ(stk_png_chunks_scan(f.data, 8 + 25, true, &chunks, &diag), STK_ECORRUPT);
    CHECK(!strcmp(diag.text, "PNG: the data ends before its last chunk"));
}

/* A length that is larger than the file, also by as little as the frame of the chunk. */
static void lengths_are_not_believed(void)
{
    static const uint32_t lengths[] = {UINT32_MAX, UINT32_MAX - 11, 0x80000000, 14, 13 + 12};
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        struct file f;
        stk_png_chunks chunks;
        begin(&f);
        put(&f, "IDAT", 13);
        for (int b = 0; b < 4; b++) f.data[8 + b] = (uint8_t)(lengths[i] >> (24 - 8 * b));
        uint8_t *data = malloc(f.size);
        CHECK(data);
        memcpy(data, f.data, f.size);
        CHECK_EQ(stk_png_chunks_scan(data, f.size, true, &chunks, NULL), STK_ECORRUPT);
        CHECK_EQ(stk_png_chunks_scan(data, f.size, false, &chunks, NULL), STK_OK);
        CHECK_EQ(chunks.image_bytes, 0);
        free(data);
    }
}

TESTS(TEST(says_what_is_there), TEST(ends_at_iend), TEST(checksums), TEST(truncated),
      TEST(lengths_are_not_believed))
