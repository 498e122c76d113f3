/* Exif 2.32 (CIPA DC-008), section 4.5: APP1; TIFF 6.0, section 2: directories. */
#include "codec/exif.h"

#include <stdbool.h>
#include <string.h>

#include "codec/le.h"

enum { TAG_ORIENTATION = 0x0112, TYPE_SHORT = 3, ENTRY_SIZE = 12 };

typedef struct tiff {
    const uint8_t *data;
    size_t size;
    bool big_endian;
} tiff;

/* `at + 2` and `at + 4` must lie inside. */
static uint32_t get16(const tiff *t, size_t at)
{
    return stk_tiff16(t->data + at, t->big_endian);
}

static uint32_t get32(const tiff *t, size_t at)
{
    return stk_tiff32(t->data + at, t->big_endian);
}

static int32_t first_directory(const tiff *t)
{
    const size_t at = get32(t, 4);
    if (at > t->size || t->size - at < 2) return 1;
    const size_t count = get16(t, at);
    for (size_t i = 0; i < count; i++) {
        const size_t entry = at + 2 + i * ENTRY_SIZE;
        if (t->size < ENTRY_SIZE || entry > t->size - ENTRY_SIZE) return 1;
        if (get16(t, entry) != TAG_ORIENTATION) continue;
        if (get16(t, entry + 2) != TYPE_SHORT || get32(t, entry + 4) != 1) return 1;
        const uint32_t value = get16(t, entry + 8);
        return value >= 1 && value <= 8 ? (int32_t)value : 1;
    }
    return 1;
}

int32_t stk_exif_orientation(const uint8_t *data, size_t size)
{
    if (size >= 6 && !memcmp(data, "Exif\0\0", 6)) data += 6, size -= 6;
    if (size < 8) return 1;
    tiff t = {.data = data, .size = size};
    if (!memcmp(data, "MM\0*", 4))
        t.big_endian = true;
    else if (memcmp(data, "II*\0", 4))
        return 1;
    return first_directory(&t);
}

int32_t stk_exif_orientation_of_jpeg(const uint8_t *data, size_t size)
{
    size_t at = 2; /* behind SOI */
    while (at + 4 <= size && data[at] == 0xFF) {
        const uint8_t marker = data[at + 1];
        if (marker == 0xFF) { /* a fill byte */
            at++;
            continue;
        }
        if (marker == 0xDA || marker == 0xD9) return 1; /* SOS, EOI */
        const size_t length = (size_t)data[at + 2] << 8 | data[at + 3];
        if (length < 2 || length > size - at - 2) return 1;
        const uint8_t *body = data + at + 4;
        if (marker == 0xE1 && length - 2 >= 6 && !memcmp(body, "Exif\0\0", 6))
            return stk_exif_orientation(body, length - 2);
        at += 2 + length;
    }
    return 1;
}
