/*
 * stk_rowbuf: memory for rows that a decoder uses image after image.
 *
 * Threads: one.
 */
#ifndef STK_CODEC_ROWBUF_H
#define STK_CODEC_ROWBUF_H

#include <stoker/error.h>

#define STK_ROWBUF_KEEP ((size_t)8 << 20) /* more than this is not kept between images */

/* All zero: empty. */
typedef struct stk_rowbuf {
    uint8_t *data;
    size_t size;
} stk_rowbuf;

/* Makes room for `size` bytes; what was there is lost. */
STK_NODISCARD stk_err stk_rowbuf_reserve(stk_rowbuf *buf, size_t size);
/* After an image: lets go of more than STK_ROWBUF_KEEP. */
void stk_rowbuf_trim(stk_rowbuf *buf);
void stk_rowbuf_fini(stk_rowbuf *buf);

/* RGB to luma as Pillow's convert("L"): ITU-R 601-2 in 16-bit fixed point, rounded.
 * `gray` may be `rgb`. */
uint8_t stk_gray_of(const uint8_t rgb[3]);
void stk_gray_row(const uint8_t *rgb, int32_t count, uint8_t *gray);

#endif /* STK_CODEC_ROWBUF_H */
