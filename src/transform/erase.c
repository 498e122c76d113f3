#include "transform/erase.h"

#include <string.h>

#include "base/rng.h"

void stk_erase_row(const uint8_t *fill, int32_t channels, uint8_t *dst, size_t n)
{
    const size_t c = (size_t)channels, bytes = n * c;
    if (n == 0) return;
    if (channels == 1) {
        memset(dst, fill[0], n);
        return;
    }
    memcpy(dst, fill, c);
    for (size_t done = c; done < bytes; done *= 2) /* twice as much each time */
        memcpy(dst + done, dst, done < bytes - done ? done : bytes - done);
}

/* Row `y` of the noise, 16 bytes at a time. */
static void noise_row(const stk_erase *e, int32_t y, uint8_t *dst, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += 16) {
        uint32_t words[4];
        stk_philox(e->key, (const uint32_t[4]){(uint32_t)(at / 16), (uint32_t)y, 0, 0}, words);
        memcpy(dst + at, words, bytes - at < 16 ? bytes - at : 16);
    }
}

void stk_erase_run(const stk_erase *e, const stk_raster *r)
{
    const size_t c = (size_t)r->channels, row = stk_raster_row(r), frame = stk_raster_frame(r);
    uint8_t *first = r->data + (size_t)e->y * row + (size_t)e->x * c;
    for (int32_t y = 0; y < e->height; y++) {
        uint8_t *dst = first + (size_t)y * row;
        if (e->fill)
            stk_erase_row(e->fill, r->channels, dst, (size_t)e->width);
        else
            noise_row(e, y, dst, (size_t)e->width * c);
        for (int64_t f = 1; f < r->frames; f++)
            memcpy(dst + (size_t)f * frame, dst, (size_t)e->width * c);
    }
}
