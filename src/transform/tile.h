/*
 * stk_tile: some pixels with their colours apart, so that loops over them are loops over vectors.
 *
 * Threads: plain values; kernels have no state.
 */
#ifndef STK_TRANSFORM_TILE_H
#define STK_TRANSFORM_TILE_H

#include <stddef.h>
#include <stdint.h>

enum {
    STK_TILE = 512,        /* pixels: a tile stays in the first cache */
    STK_TILE_FRACTION = 7, /* bits, of pixels in 16 bits with a sign */
    STK_TILE_SIXTH = 2048, /* of the circle of hues: red is at 0, green at 2, blue at 4 of them */
};

typedef struct stk_tile {
    _Alignas(64) uint8_t plane[3][STK_TILE];
} stk_tile;

/* All by integers, and one rounded float, so every table gives the same bits.  n <= STK_TILE. */
typedef struct stk_tile_kernels {
    const char *name;

    /* From interleaved pixels, and back. */
    void (*split)(stk_tile *t, const uint8_t *src, int32_t n);
    void (*join)(const stk_tile *t, uint8_t *dst, int32_t n);

    /* 0.2989 R + 0.587 G + 0.114 B, luma of ITU-R BT.601 with torchvision's weights, with
     * STK_TILE_FRACTION bits of fraction. */
    void (*luma)(const stk_tile *t, int32_t n, int16_t *out);

    /* x = other + f (x - other), rounded and clipped.  `other` has STK_TILE_FRACTION bits of
     * fraction, `factor` is f with 9 + `bits` of them; bits: 2 to 5, f < 2^(6 - bits). */
    void (*blend)(int16_t factor, int bits, const int16_t *other, uint8_t *x, int32_t n);

    /* Turns hues by 0 to 6 STK_TILE_SIXTH. */
    void (*turn)(int16_t by, stk_tile *t, int32_t n);
} stk_tile_kernels;

/* The fastest table that this processor can run. */
const stk_tile_kernels *stk_tile_kernels_best(void);

/* Every table that this processor can run, slowest first; NULL past the last. */
const stk_tile_kernels *stk_tile_kernels_at(size_t i);

extern const stk_tile_kernels stk_tile_plain;
#if defined(__x86_64__)
extern const stk_tile_kernels stk_tile_avx2;
#endif

#endif /* STK_TRANSFORM_TILE_H */
