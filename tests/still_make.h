/* Small files for tests of the formats that FFmpeg decodes: 4 x 2 pixels, the last byte of each in
 * use.  That of AVIF has no AV1 in it. */
#ifndef STK_TESTS_STILL_MAKE_H
#define STK_TESTS_STILL_MAKE_H

#include "tests/check.h"

typedef struct still_file {
    uint8_t data[512];
    size_t size;
} still_file;

static inline void still_put(still_file *f, const void *bytes, size_t size)
{
    CHECK(size <= sizeof(f->data) - f->size);
    memcpy(f->data + f->size, bytes, size);
    f->size += size;
}

#define STILL_PUT(f, ...) \
    still_put(f, (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))

/* 24 bits; pixel (x, y) is {10 x, 100 y, 7}. */
static inline still_file still_bmp(void)
{
    still_file f = {0};
    STILL_PUT(&f, 'B', 'M', 78, 0, 0, 0, 0, 0, 0, 0, 54, 0, 0, 0);
    STILL_PUT(&f, 40, 0, 0, 0, 4, 0, 0, 0, 2, 0, 0, 0, 1, 0, 24, 0, 0, 0, 0, 0, 24, 0, 0, 0);
    STILL_PUT(&f, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    for (int y = 1; y >= 0; y--) /* the last row comes first */
        for (int x = 0; x < 4; x++)
            STILL_PUT(&f, 7, (uint8_t)(100 * y), (uint8_t)(10 * x)); /* blue comes first */
    return f;
}

/* 8 bits of gray, 30 x + 100 y; its orientation is 6, and it has a tag nobody knows. */
static inline still_file still_tiff(void)
{
    static const uint16_t tags[][3] = {{256, 3, 4}, {257, 3, 2},   {258, 3, 8},  {259, 3, 1},
                                       {262, 3, 1}, {273, 3, 146}, {274, 3, 6},  {277, 3, 1},
                                       {278, 3, 2}, {279, 3, 8},   {65000, 3, 9}};
    still_file f = {0};
    STILL_PUT(&f, 'I', 'I', 42, 0, 8, 0, 0, 0, 11, 0);
    for (size_t i = 0; i < sizeof(tags) / sizeof(*tags); i++)
        STILL_PUT(&f, (uint8_t)tags[i][0], (uint8_t)(tags[i][0] >> 8), (uint8_t)tags[i][1], 0, 1, 0,
                  0, 0, (uint8_t)tags[i][2], 0, 0, 0);
    STILL_PUT(&f, 0, 0, 0, 0);
    CHECK_EQ(f.size, 146);
    for (int i = 0; i < 8; i++) STILL_PUT(&f, (uint8_t)(i % 4 * 30 + i / 4 * 100));
    return f;
}

/* Pixels 0 1 2 3, 3 2 1 0 of a palette whose colour i is {50 i, 60 i, 70 i}; 2 is transparent.
 * Codes of three bits, the table cleared before each two of them, so that they stay that short. */
static inline still_file still_gif(void)
{
    static const uint8_t pixels[] = {0, 1, 2, 3, 3, 2, 1, 0};
    enum { CLEAR = 4, END = 5 };
    uint8_t packed[8] = {0};
    size_t bit = 0;
    still_file f = {0};
    STILL_PUT(&f, 'G', 'I', 'F', '8', '9', 'a', 4, 0, 2, 0, 0x81, 0, 0);
    for (int i = 0; i < 4; i++)
        STILL_PUT(&f, (uint8_t)(50 * i), (uint8_t)(60 * i), (uint8_t)(70 * i));
    STILL_PUT(&f, 0x21, 0xF9, 4, 1, 0, 0, 2, 0); /* transparency */
    STILL_PUT(&f, 0x2C, 0, 0, 0, 0, 4, 0, 2, 0, 0, 2);
    for (int i = 0; i <= 12; i++) {
        const unsigned code = i == 12 ? END : i % 3 ? pixels[i / 3 * 2 + i % 3 - 1] : CLEAR;
        for (int k = 0; k < 3; k++, bit++) packed[bit / 8] |= (uint8_t)((code >> k & 1) << bit % 8);
    }
    STILL_PUT(&f, (uint8_t)((bit + 7) / 8));
    still_put(&f, packed, (bit + 7) / 8);
    STILL_PUT(&f, 0);
    return f;
}

/* A box, to still_end. */
static inline size_t still_begin(still_file *f, const char type[4])
{
    const size_t at = f->size;
    STILL_PUT(f, 0, 0, 0, 0);
    still_put(f, type, 4);
    return at;
}

static inline void still_end(still_file *f, size_t at)
{
    f->data[at + 2] = (uint8_t)((f->size - at) >> 8);
    f->data[at + 3] = (uint8_t)(f->size - at);
}

static inline void still_box(still_file *f, const char type[4], const void *body, size_t size)
{
    const size_t at = still_begin(f, type);
    still_put(f, body, size);
    still_end(f, at);
}

#define STILL_BOX(f, type, ...) \
    still_box(f, type, (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))

/* 4:2:2 of 10 bits; rotated by so many quarters, and mirrored: -1: not, 0: top to bottom. */
static inline still_file still_avif(int turns, int mirror)
{
    still_file f = {0};
    STILL_BOX(&f, "ftyp", 'm', 'i', 'f', '1', 0, 0, 0, 0, 'a', 'v', 'i', 'f');
    const size_t meta = still_begin(&f, "meta");
    STILL_PUT(&f, 0, 0, 0, 0);
    STILL_BOX(&f, "pitm", 0, 0, 0, 0, 0, 1);
    const size_t iinf = still_begin(&f, "iinf");
    STILL_PUT(&f, 0, 0, 0, 0, 0, 1);
    STILL_BOX(&f, "infe", 2, 0, 0, 0, 0, 1, 0, 0, 'a', 'v', '0', '1', 0);
    still_end(&f, iinf);
    STILL_BOX(&f, "iloc", 0, 0, 0, 0, 0x44, 0, 0, 1, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 9);
    const size_t place = f.size - 5; /* the low byte of where the data is */
    const size_t iprp = still_begin(&f, "iprp"), ipco = still_begin(&f, "ipco");
    STILL_BOX(&f, "ispe", 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 2);
    STILL_BOX(&f, "av1C", 0x81, 0, 0x48, 0);
    STILL_BOX(&f, "colr", 'n', 'c', 'l', 'x', 0, 1, 0, 13, 0, 1, 0x80);
    STILL_BOX(&f, "irot", (uint8_t)turns);
    STILL_BOX(&f, "imir", (uint8_t)(mirror > 0));
    still_end(&f, ipco);
    if (mirror < 0)
        STILL_BOX(&f, "ipma", 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 4, 1, 0x82, 3, 0x84);
    else
        STILL_BOX(&f, "ipma", 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 5, 1, 0x82, 3, 0x84, 0x85);
    still_end(&f, iprp);
    still_end(&f, meta);
    f.data[place] = (uint8_t)(f.size + 8);
    STILL_BOX(&f, "mdat", 1, 2, 3, 4, 5, 6, 7, 8, 9);
    return f;
}

#endif /* STK_TESTS_STILL_MAKE_H */
