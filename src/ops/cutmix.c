#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "ops/frames.h"
#include "ops/mixing.h"
#include "transform/mix.h"

enum { USUAL_CHANNELS = 4 }; /* at most, of pictures */

/* The other layout is what the array looks like. */
static bool looks_turned(const stk_tensor *t, bool last)
{
    const int64_t channels = t->shape[last ? t->ndim - 1 : t->ndim - 3];
    const int64_t other = t->shape[last ? t->ndim - 3 : t->ndim - 1];
    return channels > USUAL_CHANNELS && other >= 1 && other <= USUAL_CHANNELS;
}

/* Height and width among the axes behind the first. */
static stk_err find_planes(const stk_mixing *m, const stk_tensor *t, stk_planes *out,
                           stk_diag *diag)
{
    const bool last = m->o.layout == STK_LAYOUT_NHWC; /* channels are */
    const int32_t h = t->ndim - (last ? 3 : 2);
    char found[160];
    stk_describe_array(t, found, sizeof(found));
    if (t->ndim != 4 && t->ndim != 5)
        return stk_diag_set(
            diag, STK_EINVAL,
            "field \"%s\": needs (n, height, width, channels) or (n, frames, height, "
            "width, channels), found %s",
            m->o.field, found);
    if (looks_turned(t, last))
        return stk_diag_set(diag, STK_EINVAL,
                            "field \"%s\": %s has %lld channels if its layout is %s: say "
                            "layout=\"%s\" if they are the %lld",
                            m->o.field, found, (long long)t->shape[last ? h + 2 : h - 1],
                            last ? "NHWC" : "NCHW", last ? "NCHW" : "NHWC",
                            (long long)t->shape[last ? h : h + 1]);
    *out = (stk_planes){.count = 1,
                        .height = t->shape[h],
                        .width = t->shape[h + 1],
                        .unit = stk_dtype_size(t->dtype) * (size_t)(last ? t->shape[h + 2] : 1)};
    for (int32_t d = 1; d < h; d++) out->count *= t->shape[d];
    return STK_OK;
}

/* Yun et al.: "CutMix", ICCV 2019: a box of 1 - lam of the area about any pixel, cut off at the
 * edges; lam becomes what it leaves. */
static stk_box draw_box(stk_mixing_pass *p, const stk_planes *q)
{
    const int64_t x = stk_draws_below(&p->draws, q->width ? q->width : 1);
    const int64_t y = stk_draws_below(&p->draws, q->height ? q->height : 1);
    const double half = 0.5 * sqrt(1 - p->lam);
    const int64_t across = (int64_t)(half * (double)q->width);
    const int64_t down = (int64_t)(half * (double)q->height);
    const stk_box b = {.x0 = x > across ? x - across : 0,
                       .y0 = y > down ? y - down : 0,
                       .x1 = x + across < q->width ? x + across : q->width,
                       .y1 = y + down < q->height ? y + down : q->height};
    const double area = (double)q->width * (double)q->height;
    if (area > 0) p->lam = 1 - (double)(b.x1 - b.x0) * (double)(b.y1 - b.y0) / area;
    return b;
}

/* From the last sample to the first, as mixup. */
static stk_err cut(stk_mixing_pass *p, const stk_planes *q, const stk_box *b, stk_diag *diag)
{
    const size_t bytes = (size_t)p->t.strides[0];
    const uint8_t *src = p->t.data;
    uint8_t *last = stk_alloc(bytes ? bytes : 1);
    if (!last) return stk_diag_set(diag, STK_ENOMEM, "no memory for a sample");
    memcpy(last, src + (p->n - 1) * bytes, bytes);
    if (p->mem) memcpy(p->dst, src, p->n * bytes);
    for (size_t i = p->n; i-- > 0;)
        stk_mix_box(q, b, i ? src + (i - 1) * bytes : last, p->dst + i * bytes);
    stk_free(last);
    return STK_OK;
}

static stk_err cutmix_run(const void *params, void *state, stk_item *item, stk_diag *diag)
{
    (void)state;
    const stk_mixing *m = params;
    stk_mixing_pass p;
    stk_planes q;
    stk_err err = stk_mixing_begin(m, item, &p, diag);
    if (!err && p.mixes) err = find_planes(m, &p.t, &q, diag);
    if (!err && p.mixes) {
        const stk_box b = draw_box(&p, &q);
        err = cut(&p, &q, &b, diag);
    }
    return stk_mixing_end(m, &p, err, diag);
}

static void cutmix_print(const void *params, char *dst, size_t size)
{
    stk_mixing_print("cutmix", params, dst, size);
}

stk_op *stk_op_cutmix(const stk_mix_opts *opts, stk_diag *diag)
{
    static const stk_op_class cls = {
        .name = "cutmix",
        .flags = STK_OP_ALONE,
        .in = STK_KIND_BATCH,
        .out = STK_KIND_BATCH,
        .run = cutmix_run,
        .fini = stk_free,
        .print = cutmix_print,
    };
    return stk_mixing_op(&cls, opts, diag);
}
