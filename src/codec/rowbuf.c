#include "codec/rowbuf.h"

#include "base/alloc.h"

stk_err stk_rowbuf_reserve(stk_rowbuf *buf, size_t size)
{
    if (size <= buf->size) return STK_OK;
    stk_rowbuf_fini(buf);
    buf->data = stk_alloc_aligned(64, size);
    if (!buf->data) return STK_ENOMEM;
    buf->size = size;
    return STK_OK;
}

void stk_rowbuf_trim(stk_rowbuf *buf)
{
    if (buf->size > STK_ROWBUF_KEEP) stk_rowbuf_fini(buf);
}

void stk_rowbuf_fini(stk_rowbuf *buf)
{
    stk_free(buf->data);
    *buf = (stk_rowbuf){0};
}

uint8_t stk_gray_of(const uint8_t rgb[3])
{
    return (uint8_t)((rgb[0] * 19595u + rgb[1] * 38470u + rgb[2] * 7471u + 0x8000u) >> 16);
}

void stk_gray_row(const uint8_t *rgb, int32_t count, uint8_t *gray)
{
    for (int32_t i = 0; i < count; i++) gray[i] = stk_gray_of(rgb + (size_t)i * 3);
}
