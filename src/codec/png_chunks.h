/*
 * stk_png_chunks: what the list of a PNG file's chunks says, without decoding any.
 *
 *     signature, { length, type, data, crc }...        (W3C PNG specification, section 5)
 *
 * Checking the whole file first makes a broken file fail whatever part of it is wanted.
 *
 * Threads: any.
 */
#ifndef STK_CODEC_PNG_CHUNKS_H
#define STK_CODEC_PNG_CHUNKS_H

#include <stoker/error.h>

#define STK_PNG_SIGNATURE "\x89PNG\r\n\x1a\n"

/* A number of a PNG file. */
static inline uint32_t stk_png_load32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

typedef struct stk_png_chunks {
    uint64_t image_bytes; /* compressed, in all IDAT chunks */
    const uint8_t *exif;  /* points into the data; NULL: none */
    size_t exif_size;
    bool animated;    /* APNG: the image that is decoded is the default one */
    bool transparent; /* tRNS */
} stk_png_chunks;

/* Fills *out from `data`, which begins with the signature.  With `verify`, STK_ECORRUPT unless the
 * chunks that matter are intact and lead up to IEND; without, what is missing is not noticed. */
STK_NODISCARD stk_err stk_png_chunks_scan(const uint8_t *data, size_t size, bool verify,
                                          stk_png_chunks *out, stk_diag *diag);

#endif /* STK_CODEC_PNG_CHUNKS_H */
