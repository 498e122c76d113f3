#include "transform/resample.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "transform/resample_axis.h"
#include "transform/resample_impl.h"

enum {
    MAX_SIDE = 65535,
    MAX_FULL = 1 << 24,
    MAX_BITS = 22, /* of a weight's precision and a value's fraction: sums stay below 2^31 */
    MAX_FRACTION = 7,
    BLEND_PRECISION = 15,
    MAX_ROW_PRECISION = MAX_BITS - 3,
    KEEP_BYTES = 1 << 20, /* of scratch, however small the next image is */
};

stk_err stk_resample_new(stk_resample **out)
{
    stk_resample *r = *out = stk_alloc_zero(1, sizeof(*r));
    if (!r) return STK_ENOMEM;
    r->kernels = stk_kernels_best();
    return STK_OK;
}

void stk_resample_free(stk_resample **pr)
{
    stk_resample *r = *pr;
    *pr = NULL;
    if (!r) return;
    stk_free(r->tables.mem);
    stk_free(r->scratch.mem);
    stk_free(r);
}

/* Makes the block at least `size` bytes; what it held is lost. */
static stk_err block_reserve(stk_block *b, size_t size)
{
    const bool wasteful = b->size > KEEP_BYTES && b->size / 4 > size;
    if (b->size >= size && !wasteful) return STK_OK;
    stk_free(b->mem);
    b->size = 0;
    b->mem = stk_alloc_aligned(64, (size + 63) / 64 * 64);
    if (!b->mem) return STK_ENOMEM;
    b->size = size;
    return STK_OK;
}

/* Where the next array of a block begins; the block is only measured while `mem` is NULL. */
static void *carve(uint8_t *mem, size_t *used, size_t size)
{
    void *p = mem ? mem + *used : NULL;
    *used += (size + 63) / 64 * 64;
    return p;
}

static bool side_ok(int32_t src, double begin, double end, int32_t dst, int32_t full, int32_t from)
{
    return src >= 1 && src <= MAX_SIDE && dst >= 1 && dst <= MAX_SIDE && full <= MAX_FULL &&
           from >= 0 && from <= full - dst && begin >= 0 && begin < end && end <= src;
}

static bool params_ok(const stk_resample_params *p)
{
    return side_ok(p->src_width, p->x0, p->x1, p->dst_width, p->full_width, p->dst_x) &&
           side_ok(p->src_height, p->y0, p->y1, p->dst_height, p->full_height, p->dst_y) &&
           p->row_x >= 0 && p->row_width >= 1 && p->row_x <= p->src_width - p->row_width &&
           (p->channels == 1 || p->channels == 3 || p->channels == 4) &&
           p->filter >= STK_FILTER_BILINEAR && p->filter <= STK_FILTER_NEAREST &&
           (!p->ycc_to_rgb || p->channels == 3) &&
           (!p->pair || (p->channels == 1 && p->filter == STK_FILTER_BILINEAR));
}

static size_t axis_carve(stk_axis *a, const stk_axis_params *p, uint8_t *mem, size_t used)
{
    const size_t count = ((size_t)p->count + 3) / 4 * 4;
    a->first = carve(mem, &used, count * sizeof(*a->first));
    a->size = carve(mem, &used, count * sizeof(*a->size));
    a->coef = carve(mem, &used, count * (size_t)stk_axis_max_taps(p) * sizeof(*a->coef));
    return used;
}

/* Pillow (13) takes the vertical pass first where it removes more than twice as many rows as the
 * horizontal one removes columns.  Each pass clips to 0..255, so the order shows where a filter
 * overshoots; with the other filters it does not matter.  Where the destination is transposed
 * later, Pillow would take for rows what are columns here. */
static bool takes_vertical_first(const stk_resample_params *p)
{
    if (p->filter != STK_FILTER_BICUBIC && p->filter != STK_FILTER_LANCZOS) return false;
    const int32_t w = p->outside ? p->src_width : (int32_t)(ceil(p->x1) - floor(p->x0));
    const int32_t h = p->outside ? p->src_height : (int32_t)(ceil(p->y1) - floor(p->y0));
    const int64_t rows = h - p->full_height, columns = w - p->full_width;
    if (p->transposed) return columns <= 0 || columns <= 2 * rows;
    return rows > 0 && rows > 2 * columns;
}

/* True where kernel `narrow` does: windows of eight neighbouring pixels lie within 16 bytes. */
static bool is_narrow(const stk_resample_params *p)
{
    if (!p->coarse || p->channels != 1 || p->filter != STK_FILTER_BILINEAR) return false;
    const double scale = (p->x1 - p->x0) / p->full_width;
    const double reach =
        p->twice_x ? sqrt(1 + fmax(scale, 0.5) * fmax(scale, 0.5)) : fmax(scale, 1);
    return reach * 2 <= STK_KERNEL_NARROW && scale * 7 + reach * 2 <= 15;
}

/* Windows and weights of both sides. */
static stk_err plan_axes(stk_resample *r)
{
    const stk_resample_params *p = &r->params;
    stk_axis_params x = {.src = p->src_width,
                         .begin = p->x0,
                         .end = p->x1,
                         .full = p->full_width,
                         .from = p->dst_x,
                         .count = p->dst_width,
                         .filter = p->filter,
                         .outside = p->outside,
                         .reversed = p->from_right,
                         .twice = p->twice_x,
                         .max_precision = MAX_BITS};
    stk_axis_params y = {.src = p->src_height,
                         .begin = p->y0,
                         .end = p->y1,
                         .full = p->full_height,
                         .from = p->dst_y,
                         .count = p->dst_height,
                         .filter = p->filter,
                         .outside = p->outside,
                         .reversed = p->from_bottom,
                         .twice = p->twice_y,
                         .max_precision = MAX_ROW_PRECISION};
    r->blends = (p->filter == STK_FILTER_BILINEAR || p->filter == STK_FILTER_BOX) &&
                stk_axis_max_taps(&y) <= STK_RESAMPLE_RING;
    r->is_narrow = r->blends && is_narrow(p);
    if (r->is_narrow) x.max_precision = STK_KERNEL_BLEND;
    x.wide = r->is_narrow;
    y.wide = r->blends || r->vertical_first;
    if (r->blends) y.max_precision = BLEND_PRECISION;
    if (r->vertical_first) y.max_precision = MAX_BITS - 1;
    const int32_t tx = stk_axis_max_taps(&x), ty = stk_axis_max_taps(&y);
    const size_t weights = (size_t)(tx > ty ? tx : ty) * sizeof(double);

    size_t size = axis_carve(&r->y, &y, NULL, axis_carve(&r->x, &x, NULL, 0));
    (void)carve(NULL, &size, weights);
    const stk_err err = block_reserve(&r->tables, size);
    if (err) return err;
    size = axis_carve(&r->y, &y, r->tables.mem, axis_carve(&r->x, &x, r->tables.mem, 0));
    double *scratch = carve(r->tables.mem, &size, weights);
    stk_axis_build(&x, scratch, &r->x);
    stk_axis_build(&y, scratch, &r->y);
    return STK_OK;
}

/* Destination rows that a piece of so many source rows can add to. */
static int32_t count_open(const stk_axis *a, int32_t piece)
{
    int32_t most = 1;
    for (int32_t i = 0, j = 0; i < a->count; i++) {
        while (j < a->count && a->first[j] < a->first[i] + a->size[i] + piece) j++;
        if (j - i > most) most = j - i;
    }
    return most;
}

/* The weight of one tap, wherever kernels look for it. */
static void set_weight(int16_t *block, int32_t channels, int32_t pixel, int32_t tap, int16_t weight)
{
    int16_t *to = block + STK_KERNEL_WEIGHT(channels, pixel, tap);
    *to = weight;
    if (channels == 1) return;
    to[2] = to[4] = to[6] = weight;
}

/* What the horizontal pass needs to know about pixel `x` of a destination row. */
static void set_pixel(stk_resample *r, int32_t x, int32_t *offset, int16_t *coef)
{
    const int32_t w = r->params.dst_width, channels = r->params.channels;
    const int32_t block = STK_KERNEL_BLOCK(channels);
    int16_t *to = coef + (ptrdiff_t)(x / STK_KERNEL_GROUP) * r->steps * block;
    const int32_t pixel = x % STK_KERNEL_GROUP, from = r->params.mirror ? w - 1 - x : x;
    const int32_t *c = NULL;
    int32_t n = 0;
    if (x < w) {
        c = r->x.coef + (ptrdiff_t)from * r->x.taps;
        n = r->x.size[from];
        offset[x] = r->x.first[from] * channels;
    }
    else { /* fills up the last group */
        offset[x] = offset[w - 1];
    }
    for (int32_t s = 0, k = 0; s < r->steps; s++, to += block)
        for (int32_t t = 0; t < STK_KERNEL_STEP; t++, k++)
            set_weight(to, channels, pixel, t, (int16_t)(k < n ? c[k] : 0));
}

/* Groups whose pixels can be read without looking past the end of the row come from the row, the
 * others from a padded copy of its end.  Either kind is one run: offsets rise, or fall if mirrored.
 */
static void split_runs(stk_resample *r, int32_t *offset, const int16_t *coef, int32_t groups)
{
    const int32_t row_bytes = r->params.row_width * r->params.channels;
    const int32_t safe = row_bytes - STK_KERNEL_READS(r->params.channels, r->steps);
    const bool mirror = r->params.mirror;
    int32_t in_row = 0; /* groups */
    for (int32_t i = 0; i < groups; i++, in_row++) {
        const int32_t g = mirror ? groups - 1 - i : i;
        if (offset[mirror ? 4 * g : 4 * g + 3] > safe) break;
    }
    int32_t cut = mirror ? groups - in_row : in_row;
    if (cut % 2 && cut < groups) cut += mirror ? 1 : -1; /* stk_quick takes two at a time */
    r->tail_at = row_bytes;
    const int32_t begin = mirror ? 0 : cut, end = mirror ? cut : groups;
    if (begin < end) r->tail_at = offset[mirror ? 4 * end - 1 : 4 * begin];
    for (int32_t i = 4 * begin; i < 4 * end; i++) offset[i] -= r->tail_at;

    for (int32_t i = 0; i < 2; i++) {
        const int32_t first = i == 0 ? 0 : cut;
        r->runs[i] = (stk_horizontal){
            .offset = offset + 4 * first,
            .coef = coef + (ptrdiff_t)STK_KERNEL_BLOCK(r->params.channels) * r->steps * first,
            .groups = i == 0 ? cut : groups - cut,
            .steps = r->steps,
            .shift = r->x.precision - r->fraction,
            .fraction = r->fraction,
        };
        r->run_in_tail[i] = (i == 0) == mirror;
    }
}

/* Values to make room for so that kernels may write a group, and read a register, too far. */
static size_t row_room(size_t values)
{
    const size_t overshoot = STK_KERNEL_GROUP * 4 + 8;
    return (values + overshoot + STK_KERNEL_LANES - 1) / STK_KERNEL_LANES * STK_KERNEL_LANES;
}

/* How the passes work, before any memory is needed. */
static void choose_passes(stk_resample *r)
{
    const int32_t channels = r->params.channels;
    r->steps = (r->x.longest + STK_KERNEL_STEP - 1) / STK_KERNEL_STEP;
    r->copies_in_ring = r->vertical_first ? 2 : 1;
    r->fraction = MAX_BITS - r->y.precision;
    if (r->fraction > MAX_FRACTION) r->fraction = MAX_FRACTION;
    if (r->vertical_first) r->fraction = 0;
    if (r->blends) r->fraction = STK_KERNEL_BLEND;

    const int32_t columns = r->end_column - r->first_column;
    r->values = (r->vertical_first ? columns : r->params.dst_width) * channels;
    if (r->params.pair) r->values *= 2;
    r->row_values = row_room((size_t)r->values);
    r->piecewise = r->y.longest > STK_RESAMPLE_RING / r->copies_in_ring;
    r->ring_rows = r->piecewise ? STK_KERNEL_ROWS / r->copies_in_ring : r->y.longest;
    r->open_rows = r->piecewise ? count_open(&r->y, r->ring_rows) : 0;
}

/* The tables of stk_quick, where the taps of every group lie within 16 bytes.  An even number of
 * groups: what is missing repeats the last pixel, with no weight. */
static void make_quick(stk_resample *r, const int32_t *offset, const int16_t *coef, int32_t groups)
{
    const struct quick_tables *q = &r->quick;
    for (int32_t g = 0; g < groups + groups % 2; g++) {
        const int32_t from = (g < groups ? g : groups - 1) * 4;
        const int32_t *o = offset + from;
        const int32_t base = o[0] < o[3] ? o[0] : o[3];
        uint8_t *shuffle = q->shuffle + (ptrdiff_t)g * 16;
        int16_t *to = q->coef + (ptrdiff_t)(g / 2) * 32 + g % 2 * 8;
        q->base[g] = base;
        for (int32_t i = 0; i < 16; i++) {
            const int32_t pixel = i / 4, tap = i % 4, at = o[pixel] - base + tap;
            if (at > 15 && tap < r->x.longest) return;
            shuffle[tap / 2 * 8 + pixel * 2 + tap % 2] = (uint8_t)(at & 15);
            to[tap / 2 * 16 + pixel * 2 + tap % 2] = g < groups ? coef[(ptrdiff_t)from * 4 + i] : 0;
        }
    }
    for (int32_t i = 0, first = 0; i < 2; first += r->runs[i++].groups)
        r->runs[i].quick = (stk_quick){.base = q->base + first,
                                       .shuffle = q->shuffle + (ptrdiff_t)first * 16,
                                       .coef = q->coef + (ptrdiff_t)first * 16};
}

/* The tables of stk_narrow.  What the last sixteen pixels lack repeats the last one, with no
 * weight; so do taps beyond the load, whose weights rounding alone can have left there. */
static void make_narrow(const stk_resample *r, int32_t *base, uint8_t *shuffle, int8_t *coef)
{
    const stk_axis *a = &r->x;
    const int32_t w = r->params.dst_width, row = r->params.row_width;
    const int32_t taps = 2 * r->narrow.pairs;
    for (int32_t x = 0; x < r->narrow.count * 16; x += 8, base++) {
        const int32_t begin = x < w ? x : w - 1, end = x + 7 < w ? x + 7 : w - 1;
        const int32_t lowest = a->first[r->params.mirror ? w - 1 - end : begin];
        *base = lowest + 16 <= row ? lowest : row > 16 ? row - 16 : 0;
        const ptrdiff_t half = (ptrdiff_t)(x / 16) * 16 * taps + x % 16 * 2;
        for (int32_t i = 0; i < 8; i++) {
            const int32_t pixel = x + i < w ? x + i : w - 1;
            const int32_t from = r->params.mirror ? w - 1 - pixel : pixel;
            const int32_t *c = a->coef + (ptrdiff_t)from * a->taps;
            const int32_t n = x + i < w ? a->size[from] : 0, at = a->first[from] - *base;
            for (int32_t t = 0; t < taps; t++) {
                const ptrdiff_t to = half + t / 2 * 32 + 2 * i + t % 2;
                shuffle[to] = (uint8_t)(at + t < 16 ? at + t : 15);
                coef[to] = (int8_t)(t < n ? c[t] : 0);
            }
        }
    }
}

/* Tables and rows of the two passes. */
static stk_err plan_passes(stk_resample *r)
{
    choose_passes(r);
    const int32_t channels = r->params.channels;
    const int32_t sixteens = r->is_narrow ? (r->params.dst_width + 15) / 16 : 0;
    const int32_t fours = (r->params.dst_width + STK_KERNEL_GROUP - 1) / STK_KERNEL_GROUP;
    const int32_t groups = r->is_narrow ? 0 : fours;
    r->narrow = (stk_narrow){.count = sixteens, .pairs = r->x.longest > 2 ? 2 : 1};
    const size_t narrow = (size_t)sixteens * 32 * (size_t)r->narrow.pairs;
    const size_t pixels = (size_t)groups * STK_KERNEL_GROUP;
    const size_t blocks = (size_t)groups * (size_t)r->steps;
    const size_t quick = channels == 1 && r->steps == 1 ? (size_t)(groups + groups % 2) : 0;
    const size_t ring = (size_t)(r->ring_rows * r->copies_in_ring) * r->row_values;
    const size_t row_bytes = (size_t)r->params.row_width * (size_t)channels;
    const size_t middle = r->vertical_first ? row_bytes : 0;
    const size_t line = r->vertical_first ? row_room(pixels * (size_t)channels) : 0;
    const size_t tail = row_bytes + (size_t)STK_KERNEL_READS(channels, r->steps);
    for (uint8_t *mem = NULL;;) {
        size_t size = 0;
        int32_t *offset = carve(mem, &size, pixels * sizeof(*offset));
        int16_t *coef =
            carve(mem, &size, blocks * (size_t)STK_KERNEL_BLOCK(channels) * sizeof(*coef));
        r->quick.base = carve(mem, &size, quick * sizeof(*r->quick.base));
        r->quick.shuffle = carve(mem, &size, quick * 16);
        r->quick.coef = carve(mem, &size, quick * 16 * sizeof(*r->quick.coef));
        int32_t *base = carve(mem, &size, (size_t)sixteens * 2 * sizeof(*base));
        uint8_t *shuffle = carve(mem, &size, narrow);
        int8_t *small = carve(mem, &size, narrow);
        r->ring = carve(mem, &size, ring * sizeof(*r->ring));
        r->sums = carve(mem, &size, (size_t)r->open_rows * r->row_values * sizeof(*r->sums));
        r->middle = carve(mem, &size, middle);
        r->line = carve(mem, &size, line * sizeof(*r->line));
        r->tail = carve(mem, &size, tail);
        if (mem) {
            memset(r->ring, 0, ring * sizeof(*r->ring)); /* kernels read whole registers */
            memset(r->middle, 0, middle);
            memset(r->line, 0, line * sizeof(*r->line));
            memset(r->tail, 0, tail);
            make_narrow(r, base, shuffle, small);
            r->narrow.base = base, r->narrow.shuffle = shuffle, r->narrow.coef = small;
            for (int32_t x = 0; x < groups * STK_KERNEL_GROUP; x++) set_pixel(r, x, offset, coef);
            split_runs(r, offset, coef, groups);
            if (quick) make_quick(r, offset, coef, groups);
            return STK_OK;
        }
        const stk_err err = block_reserve(&r->scratch, size);
        if (err) return err;
        mem = r->scratch.mem;
    }
}

/* Counts columns from the first that a row holds.  False: rows lack some. */
static bool use_columns(stk_resample *r)
{
    const int32_t from = r->params.row_x;
    stk_axis_range(&r->x, &r->first_column, &r->end_column);
    if (r->first_column < from || r->end_column > from + r->params.row_width) return false;
    for (int32_t i = 0; i < r->x.count; i++) r->x.first[i] -= from;
    r->first_column -= from;
    r->end_column -= from;
    return true;
}

stk_err stk_resample_plan(stk_resample *r, const stk_resample_params *params)
{
    r->planned = false;
    r->params = *params;
    stk_resample_params *p = &r->params;
    if (!p->full_width && !p->full_height) {
        p->full_width = p->dst_width;
        p->full_height = p->dst_height;
    }
    if (!p->row_x && !p->row_width) p->row_width = p->src_width;
    if (!params_ok(p)) return STK_EINVAL;

    r->vertical_first = takes_vertical_first(p);
    stk_err err = plan_axes(r);
    if (err) return err;
    stk_axis_range(&r->y, &r->first_row, &r->end_row);
    if (!use_columns(r)) return STK_EINVAL;
    r->copies = r->x.copies && r->y.copies;
    if (!r->copies) err = plan_passes(r);
    r->planned = !err;
    return err;
}

void stk_resample_use_kernels(stk_resample *r, const stk_kernels *kernels)
{
    r->kernels = kernels;
}

void stk_resample_rows(const stk_resample *r, int32_t *first, int32_t *end)
{
    assert(r->planned);
    *first = r->first_row;
    *end = r->end_row;
}

void stk_resample_columns(const stk_resample *r, int32_t *first, int32_t *end)
{
    assert(r->planned);
    *first = r->params.row_x + r->first_column;
    *end = r->params.row_x + r->end_column;
}

void stk_resample_start(stk_resample *r, uint8_t *dst, ptrdiff_t stride, int32_t first_row)
{
    assert(r->planned && first_row >= 0 && first_row <= r->first_row);
    r->dst = dst;
    r->stride = stride;
    r->row = first_row;
    r->next = 0;
    if (!r->copies && r->piecewise)
        memset(r->sums, 0, (size_t)r->open_rows * r->row_values * sizeof(*r->sums));
}

bool stk_resample_done(const stk_resample *r)
{
    return r->planned && r->next == r->params.dst_height;
}
