#include "transform/rotate.h"

#include <math.h>
#include <string.h>

enum {
    POINT = 28,  /* bits of fraction of coordinates: with 31 before them, and a few to spare */
    WEIGHT = 11, /* of bilinear weights: two of them and a pixel make 30 */
};

/* The nearest multiple of 1e-15, as Python's round(x, 15), for x from -1 to 1. */
static double round15(double x)
{
    const double product = x * 1e15, low = fma(x, 1e15, -product); /* together exact */
    double whole = nearbyint(product);
    if (product - whole + low > 0.5) whole++;
    if (product - whole + low < -0.5) whole--;
    return whole / 1e15;
}

/* Rounded as Pillow does: quarters of a turn are exact, so that they only move pixels. */
static void sine(double degrees, double *sin_out, double *cos_out)
{
    const double turn = fmod(degrees, 360);
    const double radians = (turn < 0 ? turn + 360 : turn) * (3.14159265358979323846 / 180);
    *sin_out = round15(sin(radians));
    *cos_out = round15(cos(radians));
}

/* From the lowest whole number below a x + b y to the highest above it, of all corners; x and y
 * from the middle, which stays.  In the order of Pillow's sums, as whole numbers are at stake. */
static double reach(double a, double b, double width, double height, double middle)
{
    const double zero = a * (-width / 2) + b * (-height / 2) + middle;
    double low = zero, high = zero;
    for (int corner = 1; corner < 4; corner++) {
        const double at = a * (corner & 1 ? width : 0) + b * (corner & 2 ? height : 0) + zero;
        low = fmin(low, at);
        high = fmax(high, at);
    }
    return ceil(high) - floor(low);
}

void stk_rotate_extent(double degrees, int32_t width, int32_t height, double *out_width,
                       double *out_height)
{
    double s, c;
    sine(degrees, &s, &c);
    *out_width = reach(c, -s, width, height, width / 2.0);
    *out_height = reach(s, c, width, height, height / 2.0);
    if (c == 0) { /* or half a pixel would be cut off, and another one added */
        *out_width = height;
        *out_height = width;
    }
}

typedef struct pass {
    const stk_raster *src;
    const uint8_t *data; /* of the frame */
    const uint8_t *fill;
    int64_t step_x, step_y; /* in the source, for each pixel of a row */
} pass;

static const uint8_t *pixel_at(const pass *p, int64_t x, int64_t y)
{
    if (x < 0 || y < 0 || x >= p->src->width || y >= p->src->height) return p->fill;
    return p->data + ((size_t)y * (size_t)p->src->width + (size_t)x) * (size_t)p->src->channels;
}

static void nearest_row(const pass *p, int64_t x, int64_t y, uint8_t *dst, int32_t count)
{
    const size_t channels = (size_t)p->src->channels;
    for (int32_t i = 0; i < count; i++, x += p->step_x, y += p->step_y, dst += channels) {
        const uint8_t *from = pixel_at(p, x >> POINT, y >> POINT);
        for (size_t c = 0; c < channels; c++) dst[c] = from[c];
    }
}

/* One pixel of the four at corner[0], corner[1] above corner[2], corner[3]. */
static inline void mix(const uint8_t *const corner[4], int32_t right, int32_t down, size_t channels,
                       uint8_t *dst)
{
    const int32_t one = 1 << WEIGHT, half = 1 << (2 * WEIGHT - 1);
    for (size_t c = 0; c < channels; c++) {
        const int32_t above = corner[0][c] * (one - right) + corner[1][c] * right;
        const int32_t below = corner[2][c] * (one - right) + corner[3][c] * right;
        dst[c] = (uint8_t)((above * (one - down) + below * down + half) >> (2 * WEIGHT));
    }
}

static inline void bilinear_row(const pass *p, int64_t x, int64_t y, uint8_t *dst, int32_t count,
                                size_t channels)
{
    const size_t row = (size_t)p->src->width * channels;
    const uint64_t last_x = (uint64_t)p->src->width - 1, last_y = (uint64_t)p->src->height - 1;
    const int64_t half = INT64_C(1) << (POINT - 1), fraction = (INT64_C(1) << POINT) - 1;
    x -= half;
    y -= half;
    for (int32_t i = 0; i < count; i++, x += p->step_x, y += p->step_y, dst += channels) {
        const int64_t left = x >> POINT, top = y >> POINT;
        const int32_t right = (int32_t)((x & fraction) >> (POINT - WEIGHT));
        const int32_t down = (int32_t)((y & fraction) >> (POINT - WEIGHT));
        if ((uint64_t)left < last_x && (uint64_t)top < last_y) {
            const uint8_t *q = p->data + (size_t)top * row + (size_t)left * channels;
            mix((const uint8_t *const[]){q, q + channels, q + row, q + row + channels}, right, down,
                channels, dst);
        }
        else {
            mix((const uint8_t *const[]){pixel_at(p, left, top), pixel_at(p, left + 1, top),
                                         pixel_at(p, left, top + 1),
                                         pixel_at(p, left + 1, top + 1)},
                right, down, channels, dst);
        }
    }
}

static void run_row(const stk_rotate *r, const pass *p, int64_t x, int64_t y, uint8_t *dst,
                    int32_t count)
{
    if (!r->bilinear)
        nearest_row(p, x, y, dst, count);
    else if (p->src->channels == 3)
        bilinear_row(p, x, y, dst, count, 3);
    else if (p->src->channels == 1)
        bilinear_row(p, x, y, dst, count, 1);
    else
        bilinear_row(p, x, y, dst, count, (size_t)p->src->channels);
}

/* x = cos x' - sin y', y = sin x' + cos y': the axis of rows points down. */
void stk_rotate_run(const stk_rotate *r, const stk_raster *src, const stk_raster *dst)
{
    const size_t row = stk_raster_row(dst), frame = stk_raster_frame(dst);
    double s, c;
    sine(r->degrees, &s, &c);
    pass p = {.src = src,
              .fill = r->fill,
              .step_x = llrint(ldexp(c, POINT)),
              .step_y = llrint(ldexp(s, POINT))};
    for (int64_t f = 0; f < src->frames; f++) {
        p.data = src->data + (size_t)f * stk_raster_frame(src);
        for (int32_t i = 0; i < dst->height; i++) {
            const double dx = 0.5 - r->to_x, dy = i + 0.5 - r->to_y;
            const int64_t x = llrint(ldexp(c * dx - s * dy + r->x, POINT));
            const int64_t y = llrint(ldexp(s * dx + c * dy + r->y, POINT));
            run_row(r, &p, x, y, dst->data + (size_t)f * frame + (size_t)i * row, dst->width);
        }
    }
}
