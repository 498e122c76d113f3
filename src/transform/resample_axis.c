/* The windows and weights are those that Pillow documents for its resampling filters: support and
 * filter stretched by the reduction, weights normalised, pixel centres at halves. */
#include "transform/resample_axis.h"

#include <math.h>
#include <string.h>

#define PI 3.14159265358979323846
#define INLINE __attribute__((always_inline)) static inline

enum { LANES = 4 };
typedef float float4 __attribute__((vector_size(LANES * sizeof(float))));
typedef double double4 __attribute__((vector_size(LANES * sizeof(double))));
typedef int32_t int4 __attribute__((vector_size(LANES * sizeof(int32_t))));
typedef int64_t long4 __attribute__((vector_size(LANES * sizeof(int64_t))));

static double box(double x)
{
    return x > -0.5 && x <= 0.5 ? 1.0 : 0.0;
}

static double bilinear(double x)
{
    x = fabs(x);
    return x < 1.0 ? 1.0 - x : 0.0;
}

static double bicubic(double x)
{
    const double a = -0.5; /* Keys' choice: third-order exact */
    x = fabs(x);
    if (x < 1.0) return ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0;
    return x < 2.0 ? (((x - 5.0) * x + 8.0) * x - 4.0) * a : 0.0;
}

static double sinc(double x)
{
    return x == 0.0 ? 1.0 : sin(x * PI) / (x * PI);
}

static double lanczos(double x)
{
    return x >= -3.0 && x < 3.0 ? sinc(x) * sinc(x / 3.0) : 0.0;
}

/* `peak` times the reduction is the largest weight there can be, edges included (but never more
 * than 1): found by trying all reductions and offsets. */
static const struct kind {
    double (*at)(double x);
    double support;
    double peak;
} kinds[] = {
    [STK_FILTER_BILINEAR] = {bilinear, 1.0, 1.31}, [STK_FILTER_BICUBIC] = {bicubic, 2.0, 1.31},
    [STK_FILTER_LANCZOS] = {lanczos, 3.0, 1.31},   [STK_FILTER_BOX] = {box, 0.5, 2.0},
    [STK_FILTER_NEAREST] = {NULL, 0.0, 1.0},
};

/* Everything about an axis that is the same for all of its destinations; if it is reversed, said of
 * the mirrored source. */
typedef struct geometry {
    const struct kind *kind;
    int32_t base;   /* source pixel from which positions count */
    int32_t limit;  /* pixels from there that may be used */
    int32_t from;   /* the first destination that is wanted */
    double begin;   /* of the box, from base */
    double scale;   /* source pixels a destination */
    double step;    /* 1 / stretch */
    double stretch; /* of the filter */
    double support; /* reach of the stretched filter */
} geometry;

static geometry geometry_of(const stk_axis_params *p)
{
    geometry g = {.kind = &kinds[p->filter], .limit = p->src, .from = p->from};
    int32_t left = 0, right = p->src;
    if (!p->outside) {
        /* Positions count from the box, as if it had been cut out: adding its corner would round
         * differently, and a box filter's edge could fall on the other side of a pixel. */
        left = (int32_t)floor(p->begin);
        right = (int32_t)ceil(p->end);
        g.limit = right - left;
    }
    g.base = left;
    g.begin = p->begin - left;
    if (p->reversed) {
        g.base = p->src - right;
        g.begin = right - p->end;
        g.from = p->full - p->from - p->count;
    }
    g.scale = (p->end - p->begin) / p->full;
    g.stretch = g.scale > 1.0 ? g.scale : 1.0;
    if (p->twice) { /* two triangles, one after the other: their variances add up */
        const double second = g.scale > 0.5 ? g.scale : 0.5;
        g.stretch = sqrt(1.0 + second * second);
    }
    g.step = 1.0 / g.stretch;
    g.support = g.kind->support * g.stretch;
    return g;
}

int32_t stk_axis_max_taps(const stk_axis_params *p)
{
    if (p->filter == STK_FILTER_NEAREST) return 1;
    const geometry g = geometry_of(p);
    const int32_t reach = (int32_t)ceil(g.support) * 2 + 1;
    const int32_t taps = reach < g.limit ? reach : g.limit;
    return taps > LANES ? taps : LANES; /* four_windows writes that many */
}

/* The source pixel whose area holds each destination's centre.  Positions are summed up step by
 * step, because Pillow does: its rounding decides which pixel a centre on an edge belongs to. */
static void build_nearest(const stk_axis_params *p, stk_axis *a)
{
    const geometry g = geometry_of(p);
    double at = g.begin + g.scale * 0.5;
    for (int32_t i = 0; i < g.from; i++) at += g.scale;
    for (int32_t i = 0; i < a->count; i++, at += g.scale) {
        const int32_t pixel = (int32_t)at;
        a->first[i] = g.base + (pixel < g.limit ? pixel : g.limit - 1);
        a->size[i] = 1;
        a->coef[i] = 1;
    }
    a->copies = true;
    a->precision = 0;
    a->longest = 1;
}

/* Writes the weights of destination `i` of the full result, not yet normalised, and their sum. */
INLINE int32_t weigh(const geometry *g, double (*at)(double), int32_t i, double *weights,
                     int32_t *first, double *sum)
{
    const double centre = g->begin + (i + 0.5) * g->scale;
    const double low = centre - g->support + 0.5, high = centre + g->support + 0.5;
    const int32_t lo = low > 0 ? (int32_t)low : 0;
    const int32_t hi = high < g->limit ? (int32_t)high : g->limit;
    *sum = 0.0;
    for (int32_t k = lo; k < hi; k++) {
        const double w = at((k - centre + 0.5) * g->step);
        weights[k - lo] = w;
        *sum += w;
    }
    *first = lo;
    if (*sum != 0.0) return hi - lo;

    /* Rounding put every pixel just outside: the nearest one it is. */
    const int32_t nearest = (int32_t)centre;
    *first = nearest < g->limit ? nearest : g->limit - 1;
    *sum = weights[0] = 1.0;
    return 1;
}

/* Rounds weights so that their sum is exact: each takes what rounding the running sum leaves it.
 * Zero weights at either end are dropped. */
INLINE void quantise(const double *weights, double sum, int32_t n, int32_t most, stk_axis *a,
                     int32_t i)
{
    int32_t *coef = a->coef + (ptrdiff_t)i * a->taps;
    const double unit = (double)(1 << a->precision) / sum;
    double running = 0.0;
    int32_t done = 0, kept = 0;
    for (int32_t k = 0; k < n; k++) {
        running += weights[k];
        const double scaled = running * unit;
        const int32_t total = (int32_t)(scaled < 0 ? scaled - 0.5 : scaled + 0.5);
        const int32_t c = total - done;
        done = total;
        if (c == 0 && kept == 0) {
            a->first[i]++;
            continue;
        }
        coef[kept++] = c < most ? c : most;
    }
    while (kept > 1 && coef[kept - 1] == 0) kept--;
    a->size[i] = kept;
}

/* Widens windows with zero weights until none steps back. */
static void make_monotone(stk_axis *a)
{
    for (int32_t i = a->count - 2; i >= 0; i--) {
        const int32_t extra = a->first[i] - a->first[i + 1];
        if (extra <= 0) continue;
        int32_t *coef = a->coef + (ptrdiff_t)i * a->taps;
        for (int32_t k = a->size[i] - 1; k >= 0; k--) coef[k + extra] = coef[k];
        for (int32_t k = 0; k < extra; k++) coef[k] = 0;
        a->first[i] -= extra;
        a->size[i] += extra;
    }
    for (int32_t i = 1; i < a->count; i++) {
        const int32_t end = a->first[i - 1] + a->size[i - 1];
        int32_t *coef = a->coef + (ptrdiff_t)i * a->taps;
        while (a->first[i] + a->size[i] < end) coef[a->size[i]++] = 0;
    }
    for (int32_t i = 0; i < a->count; i++)
        if (a->size[i] > a->longest) a->longest = a->size[i];
}

INLINE void store(int32_t *to, int4 v)
{
    memcpy(to, &v, sizeof(v));
}

/* Lane i of the four registers, one after the other, to row i. */
INLINE void store_columns(int32_t *to, ptrdiff_t stride, const int4 c[4])
{
    const int4 low01 = __builtin_shufflevector(c[0], c[1], 0, 4, 1, 5);
    const int4 high01 = __builtin_shufflevector(c[0], c[1], 2, 6, 3, 7);
    const int4 low23 = __builtin_shufflevector(c[2], c[3], 0, 4, 1, 5);
    const int4 high23 = __builtin_shufflevector(c[2], c[3], 2, 6, 3, 7);
    store(to, __builtin_shufflevector(low01, low23, 0, 1, 4, 5));
    store(to + stride, __builtin_shufflevector(low01, low23, 2, 3, 6, 7));
    store(to + 2 * stride, __builtin_shufflevector(high01, high23, 0, 1, 4, 5));
    store(to + 3 * stride, __builtin_shufflevector(high01, high23, 2, 3, 6, 7));
}

/* Four destinations from `i` on, of a linear filter that reaches no more than four pixels: as weigh
 * and quantise, except that zero weights at the front stay.  No branch depends on a position,
 * because nothing foretells whether a window has two, three or four weights; and floats do, because
 * positions count from the window's first pixel. */
INLINE void four_windows(const geometry *g, stk_axis *a, int32_t i)
{
    const int4 lanes = {0, 1, 2, 3}, to = i + lanes, last = a->count - 1 + (int4){0};
    const int4 wanted = g->from + ((to & (to < last)) | (last & (to >= last)));
    const double4 centre = g->begin + (__builtin_convertvector(wanted, double4) + 0.5) * g->scale;
    double4 low = centre - g->support + 0.5;
    low = (double4)((long4)low & (low > 0.0));
    const int4 first = __builtin_convertvector(low, int4), left = g->limit - first;
    const double4 back = __builtin_convertvector(first, double4) - centre + 0.5;
    const float4 at = __builtin_convertvector(back, float4);

    float4 sum[4], running = {0};
    for (int k = 0; k < 4; k++) {
        const float4 x = (at + (float)k) * (float)g->step;
        const float4 w = 1.0f - (float4)((int4)x & INT32_MAX); /* without its sign */
        running += (float4)((int4)w & (w > 0.0f) & (left > k));
        sum[k] = running;
    }
    const float4 unit = (float)(1 << a->precision) / running;
    int4 c[4], done = {0};
    for (int k = 0; k < 4; k++) {
        const int4 total = __builtin_convertvector(sum[k] * unit + 0.5f, int4);
        c[k] = total - done;
        done = total;
    }
    const int4 size = 1 - ((c[1] | c[2] | c[3]) != 0) - ((c[2] | c[3]) != 0) - (c[3] != 0);
    store(a->first + i, g->base + first);
    store(a->size + i, size);
    store_columns(a->coef + (ptrdiff_t)i * a->taps, a->taps, c);
}

static void drop_zeros(stk_axis *a, int32_t i)
{
    int32_t *c = a->coef + (ptrdiff_t)i * a->taps;
    for (; c[0] == 0 && a->size[i] > 1; a->first[i]++)
        memmove(c, c + 1, (size_t)--a->size[i] * sizeof(*c));
}

static void build_short(const stk_axis_params *p, const geometry *g, stk_axis *a)
{
    const int32_t count = a->count, taps = a->taps, most = p->wide ? INT32_MAX : INT16_MAX;
    for (int32_t i = 0; i < count; i += LANES) four_windows(g, a, i);

    int32_t longest = 1, first = 0, end = 0, *c = a->coef;
    bool back = false;
    for (int32_t i = 0; i < count; i++, c += taps) {
        if (c[0] == 0) drop_zeros(a, i);
        if (c[0] > most) c[0] = most; /* no other weight is as large */
        const int32_t size = a->size[i];
        back |= a->first[i] < first || a->first[i] + size < end;
        first = a->first[i];
        end = first + size;
        if (size > longest) longest = size;
    }
    a->longest = longest;
    a->copies = longest == 1;
    if (back && !a->copies) make_monotone(a);
}

static int32_t precision_of(const stk_axis_params *p, const geometry *g)
{
    if (p->wide) return p->max_precision;
    double peak = g->kind->peak / g->stretch;
    if (peak > 1.0) peak = 1.0;
    const int32_t bits = (int32_t)floor(log2(32700.0 / peak));
    return bits < p->max_precision ? bits : p->max_precision;
}

/* A function of its own for a filter that is known here: a plan is made for every image. */
INLINE void build_windows(const stk_axis_params *p, const geometry *g, double (*at)(double),
                          double *weights, stk_axis *a)
{
    a->longest = 1;
    for (int32_t i = 0; i < a->count; i++) {
        double sum;
        const int32_t n = weigh(g, at, g->from + i, weights, &a->first[i], &sum);
        a->first[i] += g->base;
        quantise(weights, sum, n, p->wide ? INT32_MAX : INT16_MAX, a, i);
        if (a->size[i] > a->longest) a->longest = a->size[i];
    }
    a->copies = a->longest == 1;
    if (!a->copies) make_monotone(a);
}

static void build_filter(const stk_axis_params *p, double *weights, stk_axis *a)
{
    const geometry g = geometry_of(p);
    a->precision = precision_of(p, &g);
    if (p->filter == STK_FILTER_BILINEAR && g.support * 2 <= LANES)
        build_short(p, &g, a);
    else if (p->filter == STK_FILTER_BILINEAR)
        build_windows(p, &g, bilinear, weights, a);
    else
        build_windows(p, &g, g.kind->at, weights, a);
}

static void reverse_values(int32_t *v, int32_t count)
{
    for (int32_t i = 0, j = count - 1; i < j; i++, j--) {
        const int32_t t = v[i];
        v[i] = v[j];
        v[j] = t;
    }
}

/* Makes the table of a mirrored source that of the source. */
static void turn_round(stk_axis *a, int32_t src)
{
    for (int32_t i = 0; i < a->count; i++) {
        int32_t *coef = a->coef + (ptrdiff_t)i * a->taps;
        a->first[i] = src - a->first[i] - a->size[i];
        reverse_values(coef, a->size[i]);
    }
    reverse_values(a->first, a->count);
    reverse_values(a->size, a->count);
    for (int32_t i = 0, j = a->count - 1; i < j; i++, j--) {
        int32_t *left = a->coef + (ptrdiff_t)i * a->taps, *right = a->coef + (ptrdiff_t)j * a->taps;
        for (int32_t k = 0; k < a->longest; k++) {
            const int32_t t = left[k];
            left[k] = right[k];
            right[k] = t;
        }
    }
}

void stk_axis_build(const stk_axis_params *p, double *weights, stk_axis *a)
{
    a->count = p->count;
    a->taps = stk_axis_max_taps(p);
    if (p->filter == STK_FILTER_NEAREST)
        build_nearest(p, a);
    else
        build_filter(p, weights, a);
    if (p->reversed) turn_round(a, p->src);
}

void stk_axis_range(const stk_axis *a, int32_t *first, int32_t *end)
{
    *first = a->first[0];
    *end = a->first[a->count - 1] + a->size[a->count - 1];
}
