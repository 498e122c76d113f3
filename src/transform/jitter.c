#include "transform/jitter.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

/* A frame on its way through some steps. */
typedef struct frame {
    const stk_tile_kernels *kernels;
    uint8_t *data;
    size_t pixels;
    int32_t channels;
} frame;

static int32_t load(const frame *f, size_t at, stk_tile *t)
{
    const int32_t n = f->pixels - at < STK_TILE ? (int32_t)(f->pixels - at) : STK_TILE;
    if (f->channels == 3)
        f->kernels->split(t, f->data + at * 3, n);
    else
        memcpy(t->plane[0], f->data + at, (size_t)n);
    return n;
}

static void store(const frame *f, size_t at, const stk_tile *t, int32_t n)
{
    if (f->channels == 3)
        f->kernels->join(t, f->data + at * 3, n);
    else
        memcpy(f->data + at, t->plane[0], (size_t)n);
}

/* One channel is its own luma. */
static void luma(const frame *f, const stk_tile *t, int32_t n, int16_t *out)
{
    if (f->channels == 3) {
        f->kernels->luma(t, n, out);
        return;
    }
    for (int32_t i = 0; i < n; i++) out[i] = (int16_t)(t->plane[0][i] << STK_TILE_FRACTION);
}

/* f x + (1 - f) o = o + f (x - o); f in 16 bits, of which so many are fraction as fit. */
static void blend(const frame *f, double factor, const int16_t *other, stk_tile *t, int32_t n)
{
    int bits = 5;
    while (bits > 2 && factor >= ldexp(1, 6 - bits)) bits--;
    const double scaled = nearbyint(ldexp(factor, 9 + bits));
    const int16_t fixed = scaled > INT16_MAX ? INT16_MAX : (int16_t)scaled;
    for (int32_t c = 0; c < f->channels; c++) f->kernels->blend(fixed, bits, other, t->plane[c], n);
}

static void turn(const frame *f, double turns, stk_tile *t, int32_t n)
{
    const double sixths = (turns - floor(turns)) * 6 * STK_TILE_SIXTH;
    if (f->channels == 3) f->kernels->turn((int16_t)nearbyint(sixths), t, n);
}

/* `mean`: of the frame's luma as it is before the step. */
static void run_step(const frame *f, const stk_jitter_step *s, int16_t mean, stk_tile *t, int32_t n)
{
    int16_t other[STK_TILE];
    switch (s->kind) {
    case STK_JITTER_HUE: turn(f, s->factor, t, n); return;
    case STK_JITTER_SATURATION: luma(f, t, n, other); break;
    case STK_JITTER_BRIGHTNESS: mean = 0; /* fall through */
    case STK_JITTER_CONTRAST:
        for (int32_t i = 0; i < n; i++) other[i] = mean;
        break;
    }
    assert(s->factor >= 0 && s->factor <= STK_JITTER_MAX);
    if (f->channels == 3 || s->kind != STK_JITTER_SATURATION) blend(f, s->factor, other, t, n);
}

static uint64_t sum_luma(const frame *f, const stk_tile *t, int32_t n)
{
    int16_t row[STK_TILE];
    int32_t sum = 0;
    luma(f, t, n, row);
    for (int32_t i = 0; i < n; i++) sum += row[i];
    return (uint64_t)sum;
}

/* `n` steps, of which only the first may need `mean`.  Gives the mean of what they made, if it is
 * wanted. */
static int16_t run_pass(const frame *f, const stk_jitter_step *steps, size_t n, int16_t mean,
                        bool wanted)
{
    stk_tile t;
    uint64_t sum = 0;
    for (size_t at = 0; at < f->pixels; at += STK_TILE) {
        const int32_t count = load(f, at, &t);
        for (size_t i = 0; i < n; i++) run_step(f, &steps[i], mean, &t, count);
        if (wanted) sum += sum_luma(f, &t, count);
        if (n) store(f, at, &t, count);
    }
    return wanted ? (int16_t)nearbyint((double)sum / (double)f->pixels) : 0;
}

/* Contrast needs the mean of the whole frame: steps are run in passes that begin with one. */
static void run_frame(const frame *f, const stk_jitter_step *steps, size_t n)
{
    int16_t mean = 0;
    for (size_t at = 0, end = 0;; at = end++) {
        while (end < n && steps[end].kind != STK_JITTER_CONTRAST) end++;
        mean = run_pass(f, steps + at, end - at, mean, end < n);
        if (end == n) return;
    }
}

static frame frame_of(const stk_tile_kernels *k, const stk_raster *r, int64_t i)
{
    const size_t bytes = stk_raster_frame(r);
    assert(r->channels == 1 || r->channels == 3);
    return (frame){.kernels = k,
                   .data = r->data + (size_t)i * bytes,
                   .pixels = bytes / (size_t)r->channels,
                   .channels = r->channels};
}

void stk_jitter_run(const stk_tile_kernels *k, const stk_jitter_step *steps, size_t n,
                    const stk_raster *r)
{
    for (int64_t i = 0; i < r->frames; i++) {
        const frame f = frame_of(k, r, i);
        run_frame(&f, steps, n);
    }
}

static void gray_frame(const frame *f)
{
    stk_tile t;
    int16_t row[STK_TILE];
    for (size_t at = 0; at < f->pixels; at += STK_TILE) {
        const int32_t n = load(f, at, &t);
        luma(f, &t, n, row);
        for (int32_t i = 0; i < n; i++)
            t.plane[0][i] =
                (uint8_t)((row[i] + (1 << (STK_TILE_FRACTION - 1))) >> STK_TILE_FRACTION);
        memcpy(t.plane[1], t.plane[0], (size_t)n);
        memcpy(t.plane[2], t.plane[0], (size_t)n);
        store(f, at, &t, n);
    }
}

void stk_jitter_gray(const stk_tile_kernels *k, const stk_raster *r)
{
    for (int64_t i = 0; i < r->frames && r->channels == 3; i++) {
        const frame f = frame_of(k, r, i);
        gray_frame(&f);
    }
}
