/* Numbers as little-endian files have them, at any address. */
#ifndef STK_CODEC_LE_H
#define STK_CODEC_LE_H

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

#endif /* STK_CODEC_LE_H */
