#include "codec/exif.h"

#include "tests/check.h"

/* A TIFF block with two tags, the second the orientation. */
static size_t make_tiff(uint8_t *dst, char order, int value)
{
    const uint8_t little[] = {'I',  'I', '*', 0, 8, 0, 0, 0, 2,
                              0, /* */
                              0x0F, 1,   2,   0, 1, 0, 0, 0, 'x',
                              0,    0,   0, /* Make */
                              0x12, 1,   3,   0, 1, 0, 0, 0, (uint8_t)value,
                              0,    0,   0};                      /* */
    const uint8_t big[] = {'M', 'M',  0, '*', 0, 0, 0, 8, 0,   2, /* */
                           1,   0x0F, 0, 2,   0, 0, 0, 1, 'x', 0,
                           0,   0, /* Make */
                           1,   0x12, 0, 3,   0, 0, 0, 1, 0,   (uint8_t)value,
                           0,   0}; /* */
    memcpy(dst, order == 'I' ? little : big, sizeof(big));
    return sizeof(big);
}

static size_t make_jpeg(uint8_t *dst, char order, int value)
{
    const uint8_t head[] = {0xFF, 0xD8, 0xFF, 0xE0, 0,   4,   1,   2, 0xFF, 0xFF,
                            0xE1, 0,    0,    'E',  'x', 'i', 'f', 0, 0};
    memcpy(dst, head, sizeof(head));
    size_t n = sizeof(head) + make_tiff(dst + sizeof(head), order, value);
    dst[12] = (uint8_t)(n - 11); /* length of APP1 */
    memcpy(dst + n, "\xFF\xDA\0\2", 4);
    return n + 4;
}

static void both_orders(void)
{
    uint8_t data[128];
    for (int value = 0; value < 12; value++) {
        const int want = value >= 1 && value <= 8 ? value : 1;
        for (int i = 0; i < 2; i++) {
            size_t size = make_tiff(data, "IM"[i], value);
            CHECK_EQ(stk_exif_orientation(data, size), want);
            size = make_jpeg(data, "IM"[i], value);
            CHECK_EQ(stk_exif_orientation_of_jpeg(data, size), want);
        }
    }
}

/* A copy of just `size` bytes, so that the sanitizer sees one that is read beyond. */
static uint8_t *exact_copy(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1);
    CHECK(copy);
    if (size) memcpy(copy, data, size);
    return copy;
}

static void cut_anywhere(void)
{
    uint8_t data[128];
    const size_t size = make_jpeg(data, 'M', 6);
    for (size_t cut = 0; cut < size; cut++) {
        uint8_t *copy = exact_copy(data, cut);
        const int32_t got = stk_exif_orientation_of_jpeg(copy, cut);
        CHECK_EQ(got, cut < size - 4 ? 1 : 6);
        const size_t tiff = cut < 13 ? 13 : cut;
        CHECK_EQ(stk_exif_orientation(data + 13, tiff - 13), cut < size - 4 ? 1 : 6);
        free(copy);
    }
}

static void any_byte_changed(void)
{
    uint8_t data[128];
    for (int i = 0; i < 2; i++) {
        const size_t size = make_jpeg(data, "IM"[i], 6);
        for (size_t at = 0; at < size; at++) {
            for (int v = 0; v < 256; v++) {
                uint8_t *copy = exact_copy(data, size);
                copy[at] = (uint8_t)v;
                const int32_t got = stk_exif_orientation_of_jpeg(copy, size);
                CHECK(got >= 1 && got <= 8);
                free(copy);
            }
        }
    }
}

TESTS(TEST(both_orders), TEST(cut_anywhere), TEST(any_byte_changed))
