/* The loops of stk_tile_kernels, in plain C: compiled once for each instruction set. */
#ifndef STK_TRANSFORM_TILE_LOOPS_H
#define STK_TRANSFORM_TILE_LOOPS_H

#include "transform/tile.h"

static void split(stk_tile *t, const uint8_t *src, int32_t n)
{
    for (int32_t i = 0; i < n; i++, src += 3) {
        t->plane[0][i] = src[0];
        t->plane[1][i] = src[1];
        t->plane[2][i] = src[2];
    }
}

static void join(const stk_tile *t, uint8_t *dst, int32_t n)
{
    for (int32_t i = 0; i < n; i++, dst += 3) {
        dst[0] = t->plane[0][i];
        dst[1] = t->plane[1][i];
        dst[2] = t->plane[2][i];
    }
}

/* The upper half of a product of 16 bits each, one instruction of most processors. */
static inline uint16_t share(uint8_t v, uint16_t weight)
{
    return (uint16_t)(((uint32_t)(uint16_t)(v << 8) * weight) >> 16);
}

static void luma(const stk_tile *t, int32_t n, int16_t *out)
{
    enum { RED = 19589, GREEN = 38470, BLUE = 7471 }; /* of 65,536 */
    const uint8_t *r = t->plane[0], *g = t->plane[1], *b = t->plane[2];
    for (int32_t i = 0; i < n; i++) {
        const uint16_t sum = (uint16_t)(share(r[i], RED) + share(g[i], GREEN) + share(b[i], BLUE));
        out[i] = (int16_t)(sum >> (8 - STK_TILE_FRACTION));
    }
}

/* `bits`: a constant where it is inlined, as shifts of 16 bits by a constant are. */
static inline void blend_by(int16_t factor, int bits, const int16_t *other, uint8_t *x, int32_t n)
{
    const int drop = STK_TILE_FRACTION - bits;
    for (int32_t i = 0; i < n; i++) {
        const int16_t o = other[i];
        const int16_t d = (int16_t)((x[i] << STK_TILE_FRACTION) - o);
        const int16_t change = (int16_t)((d * factor) >> 16);
        const int16_t up = (int16_t)(o + (1 << (drop - 1)));
        const int16_t begin = (int16_t)(up >> drop);
        const int16_t sum = (int16_t)(begin + change + (1 << (bits - 1)));
        int16_t v = (int16_t)(sum >> bits);
        v = v < 0 ? 0 : v; /* apart: two instructions of 16 bits */
        v = v > 255 ? 255 : v;
        x[i] = (uint8_t)v;
    }
}

static void blend(int16_t factor, int bits, const int16_t *other, uint8_t *x, int32_t n)
{
    switch (bits) {
    case 5: blend_by(factor, 5, other, x, n); break;
    case 4: blend_by(factor, 4, other, x, n); break;
    case 3: blend_by(factor, 3, other, x, n); break;
    default: blend_by(factor, 2, other, x, n); break;
    }
}

/* Per pixel: the colour that is highest, and how far and which way the others move it. */
static void find_hues(const stk_tile *t, int32_t n, int16_t *hue)
{
    const uint8_t *pr = t->plane[0], *pg = t->plane[1], *pb = t->plane[2];
    int16_t over[STK_TILE], chroma[STK_TILE];
    for (int32_t i = 0; i < n; i++) {
        const int16_t r = pr[i], g = pg[i], b = pb[i];
        const int16_t rg_high = r > g ? r : g, rg_low = r > g ? g : r;
        const int16_t high = rg_high > b ? rg_high : b, low = rg_low < b ? rg_low : b;
        const int16_t c = (int16_t)(high - low), rg = (int16_t)(r - g), gb = (int16_t)(g - b),
                      br = (int16_t)(b - r);
        int16_t o = high == g ? br : rg, at = high == g ? 2 * STK_TILE_SIXTH : 4 * STK_TILE_SIXTH;
        o = high == r ? gb : o;
        at = high == r ? 0 : at;
        over[i] = o;
        hue[i] = at;
        chroma[i] = c > 1 ? c : 1;
    }
    for (int32_t i = 0; i < n; i++) {
        const float share = (float)over[i] * (float)STK_TILE_SIXTH / (float)chroma[i];
        hue[i] = (int16_t)(hue[i] + (int16_t)(int32_t)share);
    }
}

/* What a colour has of the chroma whose peak lies `away`: all up to a sixth, none from two on. */
static inline uint8_t ramp(uint8_t low, uint8_t chroma, int16_t away)
{
    int16_t part = (int16_t)(2 * STK_TILE_SIXTH - away);
    part = part < 0 ? 0 : part;
    part = part > STK_TILE_SIXTH ? STK_TILE_SIXTH : part;
    const uint16_t more = (uint16_t)(((uint32_t)(uint16_t)(chroma << 8) *
                                      (uint16_t)(part * (32768 / STK_TILE_SIXTH))) >>
                                     16);
    return (
        uint8_t)((uint16_t)((low << STK_TILE_FRACTION) + more + (1 << (STK_TILE_FRACTION - 1))) >>
                 STK_TILE_FRACTION);
}

/* `by`: 0 to 6 STK_TILE_SIXTH. */
static void turn(int16_t by, stk_tile *t, int32_t n)
{
    uint8_t *restrict pr = t->plane[0], *restrict pg = t->plane[1], *restrict pb = t->plane[2];
    int16_t hue[STK_TILE];
    find_hues(t, n, hue);
    for (int32_t i = 0; i < n; i++) {
        const uint8_t r = pr[i], g = pg[i], b = pb[i];
        const uint8_t rg_high = r > g ? r : g, rg_low = r > g ? g : r;
        const uint8_t high = rg_high > b ? rg_high : b, low = rg_low < b ? rg_low : b;
        const uint8_t chroma = (uint8_t)(high - low);
        int16_t h = (int16_t)(hue[i] + by); /* -1 to 11 */
        h = (int16_t)(h < 0 ? h + 6 * STK_TILE_SIXTH : h);
        h = (int16_t)(h >= 6 * STK_TILE_SIXTH ? h - 6 * STK_TILE_SIXTH : h);
        const int16_t a = (int16_t)(h - 3 * STK_TILE_SIXTH), c = (int16_t)(h - 2 * STK_TILE_SIXTH),
                      e = (int16_t)(h - 4 * STK_TILE_SIXTH);
        /* Red's peak is at both ends of the circle. */
        pr[i] = ramp(low, chroma, (int16_t)(3 * STK_TILE_SIXTH - (a < 0 ? -a : a)));
        pg[i] = ramp(low, chroma, (int16_t)(c < 0 ? -c : c));
        pb[i] = ramp(low, chroma, (int16_t)(e < 0 ? -e : e));
    }
}

/* `name`: of the table. */
#define STK_TILE_TABLE(table, text)  \
    const stk_tile_kernels table = { \
        .name = (text), .split = split, .join = join, .luma = luma, .blend = blend, .turn = turn}

#endif /* STK_TRANSFORM_TILE_LOOPS_H */
