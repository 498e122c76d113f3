#include <assert.h>
#include <string.h>

#include "transform/resample_impl.h"

static uint8_t *destination(const stk_resample *r, int32_t y)
{
    return r->dst + (r->params.upside_down ? r->params.dst_height - 1 - y : y) * r->stride;
}

static void finish_row(stk_resample *r, uint8_t *dst)
{
    if (r->params.ycc_to_rgb) r->kernels->ycc_to_rgb(dst, dst, r->params.dst_width);
    r->next++;
}

/* Picks the pixels of one destination row. */
static void copy_row(const stk_resample *r, const uint8_t *row, uint8_t *dst)
{
    const int32_t w = r->params.dst_width, channels = r->params.channels;
    const int32_t *first = r->x.first;
    if (!r->params.mirror && first[w - 1] - first[0] == w - 1) { /* never falling: so one by one */
        bool steps = true;
        for (int32_t x = 1; x < w && steps; x++) steps = first[x] == first[x - 1] + 1;
        if (steps) {
            memcpy(dst, row + (ptrdiff_t)first[0] * channels, (size_t)w * (size_t)channels);
            return;
        }
    }
    for (int32_t x = 0; x < w; x++, dst += channels) {
        const uint8_t *p = row + (ptrdiff_t)first[r->params.mirror ? w - 1 - x : x] * channels;
        for (int32_t c = 0; c < channels; c++) dst[c] = p[c];
    }
}

static void copy_rows(stk_resample *r, const uint8_t *row, const uint8_t *twin, int32_t at)
{
    const uint8_t *made = NULL; /* the same source row once more */
    const size_t bytes = (size_t)r->params.dst_width * (size_t)r->params.channels * (twin ? 2 : 1);
    while (r->next < r->params.dst_height && r->y.first[r->next] == at) {
        uint8_t *dst = destination(r, r->next);
        if (made) {
            memcpy(dst, made, bytes);
            r->next++;
            continue;
        }
        copy_row(r, row, dst);
        if (twin) copy_row(r, twin, dst + r->params.dst_width);
        finish_row(r, dst);
        made = dst;
    }
}

static void horizontal_pass(stk_resample *r, const uint8_t *row, int16_t *dst)
{
    if (r->is_narrow) {
        const bool padded = r->params.row_width < 16;
        if (padded) memcpy(r->tail, row, (size_t)r->params.row_width);
        r->kernels->narrow(&r->narrow, padded ? r->tail : row, dst);
        return;
    }
    const int32_t channels = r->params.channels;
    stk_horizontal_fn *run = channels == 3   ? r->kernels->horizontal3
                             : channels == 1 ? r->kernels->horizontal1
                                             : r->kernels->horizontal4;
    const int32_t row_bytes = r->params.row_width * channels;
    if (r->tail_at < row_bytes) memcpy(r->tail, row + r->tail_at, (size_t)(row_bytes - r->tail_at));
    for (int i = 0; i < 2; i++) {
        if (r->runs[i].groups) run(&r->runs[i], r->run_in_tail[i] ? r->tail : row, dst);
        dst += (ptrdiff_t)r->runs[i].groups * STK_KERNEL_GROUP * channels;
    }
}

/* Row `copy` (0, or 1 too if vertical_first) of source row `at`. */
static int16_t *ring_row(const stk_resample *r, int32_t at, int32_t copy)
{
    return r->ring + (size_t)(at % r->ring_rows * r->copies_in_ring + copy) * r->row_values;
}

static void fill_ring(stk_resample *r, const uint8_t *row, const uint8_t *twin, int32_t at)
{
    if (!r->vertical_first) {
        horizontal_pass(r, row, ring_row(r, at, 0));
        if (twin) horizontal_pass(r, twin, ring_row(r, at, 0) + r->params.dst_width);
        return;
    }
    const uint8_t *from = row + (ptrdiff_t)r->first_column * r->params.channels;
    int16_t *high = ring_row(r, at, 0), *low = ring_row(r, at, 1);
    for (int32_t i = 0; i < r->values; i++) {
        high[i] = (int16_t)(from[i] << STK_RESAMPLE_LOW_BITS);
        low[i] = from[i];
    }
}

/* The rows and weights for source rows [at, at + n), as many as the kernel takes of them.  Weights
 * of rows that destination row `y` does not use are 0. */
static int32_t gather(const stk_resample *r, int32_t y, int32_t at, int32_t n, const int16_t **rows,
                      int16_t *weights)
{
    const int32_t *coef = r->y.coef + (ptrdiff_t)y * r->y.taps;
    const int32_t copies = r->copies_in_ring;
    for (int32_t i = 0; i < n; i++) {
        const int32_t k = at + i - r->y.first[y];
        const int32_t w = k >= 0 && k < r->y.size[y] ? coef[k] : 0;
        rows[i * copies] = ring_row(r, at + i, 0);
        weights[i * copies] = (int16_t)(w < INT16_MAX ? w : INT16_MAX); /* 1.0 of a blend */
        if (copies == 1) continue;
        rows[i * 2 + 1] = ring_row(r, at + i, 1);
        weights[i * 2] = (int16_t)(w >> STK_RESAMPLE_LOW_BITS);
        weights[i * 2 + 1] = (int16_t)(w & ((1 << STK_RESAMPLE_LOW_BITS) - 1));
    }
    return n * copies;
}

/* Where the vertical pass puts row `next`, and what is left to do when it has. */
static uint8_t *vertical_target(stk_resample *r)
{
    if (!r->vertical_first) return destination(r, r->next);
    return r->middle + (ptrdiff_t)r->first_column * r->params.channels;
}

static void vertical_done(stk_resample *r)
{
    uint8_t *dst = destination(r, r->next);
    if (r->vertical_first) {
        horizontal_pass(r, r->middle, r->line);
        const int16_t *const rows[2] = {r->line, r->line};
        const int16_t as_it_is[2] = {2, 0}; /* (2 v + 1) >> 1 */
        r->kernels->vertical(rows, as_it_is, 2, r->params.dst_width * r->params.channels, 1, dst);
    }
    finish_row(r, dst);
}

/* Mixes the ring's rows into destination row `next`. */
static void vertical_pass(stk_resample *r)
{
    const int16_t *rows[STK_RESAMPLE_RING];
    int16_t weights[STK_RESAMPLE_RING];
    const int32_t y = r->next;
    assert(r->y.size[y] * r->copies_in_ring <= STK_RESAMPLE_RING);
    int32_t n = gather(r, y, r->y.first[y], r->y.size[y], rows, weights);
    if (r->blends) {
        r->kernels->blend(rows, weights, n, r->values, vertical_target(r));
        vertical_done(r);
        return;
    }
    if (n % 2) { /* the kernel takes two at a time */
        rows[n] = rows[n - 1];
        weights[n++] = 0;
    }
    r->kernels->vertical(rows, weights, n, r->values, r->y.precision + r->fraction,
                         vertical_target(r));
    vertical_done(r);
}

/* Adds the ring's rows, the last of which is `end` - 1, to every destination row they belong to. */
static void add_piece(stk_resample *r, int32_t at, int32_t end)
{
    for (int32_t y = r->next; y < r->params.dst_height && r->y.first[y] < end; y++) {
        const int16_t *rows[STK_KERNEL_ROWS];
        int16_t weights[STK_KERNEL_ROWS];
        (void)gather(r, y, at, r->ring_rows, rows, weights);
        for (int32_t i = end - at; i < r->ring_rows; i++) /* rows that did not come */
            memset(weights + (ptrdiff_t)i * r->copies_in_ring, 0,
                   (size_t)r->copies_in_ring * sizeof(*weights));
        r->kernels->accumulate(rows, weights, r->values,
                               r->sums + (size_t)(y % r->open_rows) * r->row_values);
    }
    while (r->next < r->params.dst_height && r->y.first[r->next] + r->y.size[r->next] <= end) {
        int32_t *sums = r->sums + (size_t)(r->next % r->open_rows) * r->row_values;
        r->kernels->finish(sums, r->values, r->y.precision + r->fraction, vertical_target(r));
        memset(sums, 0, r->row_values * sizeof(*sums));
        vertical_done(r);
    }
}

static bool take(stk_resample *r, const uint8_t *row, const uint8_t *twin)
{
    const int32_t height = r->params.dst_height, at = r->row;
    assert(r->planned);
    if (r->next == height) return false;
    r->row++;
    if (at < r->first_row) return true;

    if (r->copies) {
        copy_rows(r, row, twin, at);
        return r->next < height;
    }
    fill_ring(r, row, twin, at);
    if (r->piecewise) {
        const int32_t rows = (at - r->first_row) % r->ring_rows + 1;
        if (rows == r->ring_rows || at + 1 == r->end_row) add_piece(r, at + 1 - rows, at + 1);
        return r->next < height;
    }
    while (r->next < height && r->y.first[r->next] + r->y.size[r->next] == at + 1) vertical_pass(r);
    return r->next < height;
}

bool stk_resample_row(stk_resample *r, const uint8_t *row)
{
    assert(!r->params.pair);
    return take(r, row, NULL);
}

bool stk_resample_row_pair(stk_resample *r, const uint8_t *row, const uint8_t *twin)
{
    assert(r->params.pair);
    return take(r, row, twin);
}
