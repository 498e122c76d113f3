/* Numbers as files have them, at any address: little-endian, or as the file says. */
#ifndef STK_CODEC_LE_H
#define STK_CODEC_LE_H

#include <stdbool.h>
#include <stdint.h>

static inline uint16_t stk_le16(const uint8_t *p)
{
    return (uint16_t)(p[0] | p[1] << 8);
}

static inline uint32_t stk_le32(const uint8_t *p)
{
    return stk_le16(p) | (uint32_t)stk_le16(p + 2) << 16;
}

static inline uint64_t stk_le64(const uint8_t *p)
{
    return stk_le32(p) | (uint64_t)stk_le32(p + 4) << 32;
}

/* TIFF, and so Exif: the first two bytes say the order of all others. */
static inline uint16_t stk_tiff16(const uint8_t *p, bool big_endian)
{
    return (uint16_t)(big_endian ? p[0] << 8 | p[1] : stk_le16(p));
}

static inline uint32_t stk_tiff32(const uint8_t *p, bool big_endian)
{
    return big_endian ? (uint32_t)stk_tiff16(p, true) << 16 | stk_tiff16(p + 2, true) : stk_le32(p);
}

#endif /* STK_CODEC_LE_H */
