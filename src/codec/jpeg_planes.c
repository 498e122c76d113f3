#include "codec/jpeg_planes.h"

enum {
    /* What jpeg_read_raw_data wants c->global_state to be (DSTATE_RAW_OK of jpegint.h).  libjpeg
     * sets it when raw_data_out is true, but then there is no crop and no skip. */
    RAW_OK = 206,
    MAX_LINES = MAX_SAMP_FACTOR * DCTSIZE,
};

#if JPEG_LIB_VERSION >= 70
#define BLOCK_SIZE(comp) (comp)->DCT_h_scaled_size
#define MIN_BLOCK_SIZE(c) (c)->min_DCT_h_scaled_size
#else
#define BLOCK_SIZE(comp) (comp)->DCT_scaled_size
#define MIN_BLOCK_SIZE(c) (c)->min_DCT_scaled_size
#endif

bool stk_jpeg_planes_fit(j_decompress_ptr c, stk_jpeg_planes *out)
{
    *out = (stk_jpeg_planes){0};
    if (c->jpeg_color_space != JCS_YCbCr || c->num_components != 3) return false;
    jpeg_calc_output_dimensions(c); /* sets the size that a block has at this scale */
    const jpeg_component_info *y = &c->comp_info[0], *cb = y + 1, *cr = y + 2;
    if (y->h_samp_factor != c->max_h_samp_factor || y->v_samp_factor != c->max_v_samp_factor ||
        BLOCK_SIZE(y) != MIN_BLOCK_SIZE(c))
        return false;
    if (cb->h_samp_factor != cr->h_samp_factor || cb->v_samp_factor != cr->v_samp_factor ||
        BLOCK_SIZE(cb) != BLOCK_SIZE(cr))
        return false;
    const int32_t width[2] = {y->h_samp_factor * BLOCK_SIZE(y), cb->h_samp_factor * BLOCK_SIZE(cb)};
    out->lines[0] = y->v_samp_factor * BLOCK_SIZE(y);
    out->lines[1] = cb->v_samp_factor * BLOCK_SIZE(cb);
    out->across = width[0] / width[1];
    out->down = out->lines[0] / out->lines[1];
    return out->across * width[1] == width[0] && out->down * out->lines[1] == out->lines[0] &&
           out->across >= 1 && out->across <= 2 && out->down >= 1 && out->down <= 2;
}

static int32_t divide_up(int32_t a, int32_t b)
{
    return (a + b - 1) / b;
}

stk_err stk_jpeg_planes_open(stk_jpeg_planes *p, j_decompress_ptr c, int32_t x, int32_t first,
                             int32_t end, stk_row_window *w, stk_rowbuf *buf)
{
    p->first[0] = first;
    p->end[0] = end;
    p->first[1] = first / p->down;
    p->end[1] = divide_up(end, p->down);

    const int32_t left = x / p->across; /* exact: the crop begins with an MCU */
    stk_extent *e = &w->chroma;
    e->width = divide_up(x + w->width, p->across) - left;
    e->height = p->end[1] - p->first[1];
    e->x0 = (x + w->x0) / p->across - left;
    e->x1 = (x + w->x1) / p->across - left;
    e->y0 = (first + w->y0) / p->down - p->first[1];
    e->y1 = (first + w->y1) / p->down - p->first[1];

    const int32_t mcu = c->max_h_samp_factor * MIN_BLOCK_SIZE(c);
    p->stride[0] = (size_t)(divide_up(w->width, mcu) * mcu);
    p->stride[1] = p->stride[0] / (size_t)p->across;
    return stk_rowbuf_reserve(buf, p->stride[0] * (size_t)p->lines[0] +
                                       2 * p->stride[1] * (size_t)p->lines[1]);
}

static bool wanted(const stk_jpeg_planes *p, int kind, int32_t row)
{
    return row >= p->first[kind] && row < p->end[kind];
}

/* Pushes what is wanted of a row of MCUs. */
static bool push_mcus(const stk_jpeg_planes *p, int32_t row, JSAMPROW rows[3][MAX_LINES],
                      stk_planes_fn *push, void *ctx)
{
    for (int32_t i = 0; i < p->lines[0]; i++)
        if (wanted(p, 0, row * p->lines[0] + i) && !push(ctx, rows[0][i], NULL, NULL)) return false;
    for (int32_t i = 0; i < p->lines[1]; i++)
        if (wanted(p, 1, row * p->lines[1] + i) && !push(ctx, NULL, rows[1][i], rows[2][i]))
            return false;
    return true;
}

void stk_jpeg_planes_rows(const stk_jpeg_planes *p, j_decompress_ptr c, const stk_rowbuf *buf,
                          stk_planes_fn *push, void *ctx)
{
    JSAMPROW rows[3][MAX_LINES];
    JSAMPARRAY planes[3] = {rows[0], rows[1], rows[2]};
    uint8_t *mem = buf->data;
    for (int plane = 0; plane < 3; plane++)
        for (int32_t i = 0; i < p->lines[plane > 0]; i++, mem += p->stride[plane > 0])
            rows[plane][i] = mem;

    /* Whole rows of MCUs: then the skip leaves nothing half done behind. */
    int32_t row = p->first[0] / p->lines[0]; /* of MCUs */
    if (row) (void)jpeg_skip_scanlines(c, (JDIMENSION)(row * p->lines[0]));
    c->global_state = RAW_OK;
    for (; row * p->lines[0] < p->end[0]; row++) {
        if (!jpeg_read_raw_data(c, planes, (JDIMENSION)p->lines[0]))
            stk_jpeg_io_raise(c->client_data, STK_ECORRUPT, "no more rows");
        if (!push_mcus(p, row, rows, push, ctx)) return;
    }
}
