#include "transform/blur.h"

#include <math.h>
#include <string.h>

#include "transform/blur_loops.h"
#include "transform/border.h"

enum { HALF = STK_BLUR_MAX / 2 };

STK_BLUR_TABLE(stk_blur_plain, "plain");

const stk_blur_kernels *stk_blur_kernels_at(size_t i)
{
    if (i == 0) return &stk_blur_plain;
#if defined(__x86_64__)
    if (i == 1 && __builtin_cpu_supports("avx2")) return &stk_blur_avx2;
#endif
    return NULL;
}

const stk_blur_kernels *stk_blur_kernels_best(void)
{
    const stk_blur_kernels *simd = stk_blur_kernels_at(1);
    return simd ? simd : &stk_blur_plain;
}

/* It is symmetric: half of it is enough. */
typedef struct half_kernel {
    int32_t reach;             /* taps on either side */
    uint16_t weight[HALF + 1]; /* of 65,536, the middle first */
} half_kernel;

static void make_kernel(int32_t size, double sigma, half_kernel *k)
{
    double value[HALF + 1], sum = 0;
    k->reach = size / 2;
    for (int32_t i = 0; i <= k->reach; i++) {
        value[i] = exp(-0.5 * (i / sigma) * (i / sigma));
        sum += i ? 2 * value[i] : value[i];
    }
    int32_t left = 65536; /* what rounding leaves goes to the middle, so that flat stays flat */
    for (int32_t i = k->reach; i > 0; i--) {
        k->weight[i] = (uint16_t)nearbyint(value[i] / sum * 65536);
        left -= 2 * k->weight[i];
    }
    k->weight[0] = (uint16_t)(left > 65535 ? 65535 : left);
    while (k->reach > 0 && k->weight[k->reach] == 0) k->reach--;
}

/* A row as it is made wider by its mirrors. */
static void widen(const uint8_t *src, const stk_raster *r, int32_t reach, uint8_t *wide)
{
    const size_t c = (size_t)r->channels, row = stk_raster_row(r);
    memcpy(wide + (size_t)reach * c, src, row);
    for (int32_t i = 0; i < reach; i++) {
        memcpy(wide + (size_t)i * c,
               src + (size_t)stk_border_index(STK_PAD_REFLECT, i - reach, r->width) * c, c);
        memcpy(wide + (size_t)reach * c + row + (size_t)i * c,
               src + (size_t)stk_border_index(STK_PAD_REFLECT, (int64_t)r->width + i, r->width) * c,
               c);
    }
}

/* Rows that are done along themselves, as many as the kernel reaches over, in a ring. */
typedef struct ring {
    uint16_t *rows;
    size_t stride;
    int32_t count; /* row y is at y % count */
} ring;

static uint16_t *ring_row(const ring *r, int32_t y)
{
    return r->rows + (size_t)(y % r->count) * r->stride;
}

typedef struct pass {
    const stk_blur_kernels *kernels;
    half_kernel x, y;
    ring held;
    uint16_t *sum; /* a row */
    uint8_t *wide; /* a row of pixels with its mirrors */
} pass;

static int32_t ring_rows(const stk_blur *b, const stk_raster *r)
{
    return b->height < r->height ? b->height : r->height;
}

/* A row of 16 bits each, at the start of a cache line. */
static size_t row_bytes(const stk_raster *r)
{
    return (stk_raster_row(r) * sizeof(uint16_t) + 63) / 64 * 64;
}

size_t stk_blur_scratch(const stk_blur *b, const stk_raster *r)
{
    const size_t wide = stk_raster_row(r) + (size_t)b->width * (size_t)r->channels;
    return row_bytes(r) * ((size_t)ring_rows(b, r) + 1) + wide;
}

/* Rows are read ahead of those that are written, so both may be the same. */
static void run_frame(const pass *p, const stk_raster *r, const uint8_t *src, uint8_t *dst)
{
    const half_kernel *kx = &p->x, *ky = &p->y;
    const ring *held = &p->held;
    const size_t row = stk_raster_row(r);
    for (int32_t y = 0, next = 0; y < r->height; y++) {
        for (; next < r->height && next <= y + ky->reach; next++) {
            widen(src + (size_t)next * row, r, kx->reach, p->wide);
            p->kernels->along(kx->weight, kx->reach,
                              p->wide + (size_t)kx->reach * (size_t)r->channels,
                              (size_t)r->channels, row, ring_row(held, next));
        }
        const uint16_t *rows[STK_BLUR_MAX];
        for (int32_t i = 0; i <= 2 * ky->reach; i++) {
            const int32_t from =
                stk_border_index(STK_PAD_REFLECT, (int64_t)y + i - ky->reach, r->height);
            rows[i] = ring_row(held, from);
        }
        p->kernels->across(ky->weight, ky->reach, rows, row, p->sum, dst + (size_t)y * row);
    }
}

void stk_blur_run(const stk_blur_kernels *k, const stk_blur *b, const stk_raster *src,
                  const stk_raster *dst, void *scratch)
{
    pass p = {.kernels = k,
              .held = {.rows = scratch,
                       .stride = row_bytes(src) / sizeof(uint16_t),
                       .count = ring_rows(b, src)}};
    make_kernel(b->width, b->sigma, &p.x);
    make_kernel(b->height, b->sigma, &p.y);
    const size_t frame = stk_raster_frame(src);
    p.sum = p.held.rows + p.held.stride * (size_t)p.held.count;
    p.wide = (uint8_t *)(p.sum + p.held.stride);
    for (int64_t i = 0; i < src->frames; i++)
        run_frame(&p, src, src->data + (size_t)i * frame, dst->data + (size_t)i * frame);
}
