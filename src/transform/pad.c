#include "transform/pad.h"

#include <string.h>

#include "transform/erase.h"

/* `n` pixels of a row, from `begin` on, which may lie beyond its ends. */
static void side(const stk_pad *p, const stk_raster *src, const uint8_t *row, int64_t begin,
                 int32_t n, uint8_t *dst)
{
    const size_t c = (size_t)src->channels;
    if (p->mode == STK_PAD_CONSTANT) {
        stk_erase_row(p->fill, src->channels, dst, (size_t)n);
        return;
    }
    for (int32_t i = 0; i < n; i++)
        memcpy(dst + (size_t)i * c,
               row + (size_t)stk_border_index(p->mode, begin + i, src->width) * c, c);
}

static void run_frame(const stk_pad *p, const stk_raster *src, const uint8_t *from,
                      const stk_raster *dst, uint8_t *to)
{
    const size_t c = (size_t)src->channels, in = stk_raster_row(src), out = stk_raster_row(dst);
    for (int32_t y = 0; y < dst->height; y++, to += out) {
        const int64_t at = (int64_t)y - p->top;
        if (p->mode == STK_PAD_CONSTANT && (at < 0 || at >= src->height)) {
            stk_erase_row(p->fill, dst->channels, to, (size_t)dst->width);
            continue;
        }
        const uint8_t *row = from + (size_t)stk_border_index(p->mode, at, src->height) * in;
        side(p, src, row, -(int64_t)p->left, p->left, to);
        memcpy(to + (size_t)p->left * c, row, in);
        side(p, src, row, src->width, p->right, to + (size_t)p->left * c + in);
    }
}

void stk_pad_run(const stk_pad *p, const stk_raster *src, const stk_raster *dst)
{
    for (int64_t f = 0; f < src->frames; f++)
        run_frame(p, src, src->data + (size_t)f * stk_raster_frame(src), dst,
                  dst->data + (size_t)f * stk_raster_frame(dst));
}
