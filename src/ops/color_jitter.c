#include <stdio.h>

#include <stoker/augment.h>

#include "base/alloc.h"
#include "ops/augment.h"
#include "ops/frames.h"
#include "transform/jitter.h"

enum { KINDS = 4 };

typedef struct params {
    double range[KINDS][2]; /* factors, by stk_jitter_kind */
    double keep;
} params;

static const char *const names[KINDS] = {"brightness", "contrast", "saturation", "hue"};

/* What changes nothing is left out. */
static size_t draw_steps(const params *p, stk_draws *d, stk_jitter_step *steps)
{
    stk_jitter_step all[KINDS];
    size_t n = 0;
    for (int i = 0; i < KINDS; i++)
        all[i] = (stk_jitter_step){(stk_jitter_kind)i, stk_draws_between(d, p->range[i])};
    for (int i = KINDS - 1; i > 0; i--) {
        const int64_t other = stk_draws_below(d, i + 1);
        const stk_jitter_step s = all[i];
        all[i] = all[other];
        all[other] = s;
    }
    for (int i = 0; i < KINDS; i++)
        if (all[i].factor != (all[i].kind == STK_JITTER_HUE ? 0 : 1)) steps[n++] = all[i];
    return n;
}

static stk_err jitter_run(const void *op_params, void *state, stk_item *item, stk_diag *diag)
{
    (void)state;
    const params *p = op_params;
    stk_draws d = {.item = item};
    stk_raster r;
    if (stk_draws_unit(&d) < p->keep) return STK_OK;
    stk_err err = stk_frames_own(item, 0, &r, diag);
    if (!err) err = stk_frames_check_colors(&r, diag);
    if (err) return err;
    stk_jitter_step steps[KINDS];
    const size_t n = draw_steps(p, &d, steps);
    stk_jitter_run(stk_tile_kernels_best(), steps, n, &r);
    return STK_OK;
}

static void jitter_print(const void *op_params, char *dst, size_t size)
{
    const params *p = op_params;
    int used = snprintf(dst, size, "color_jitter(");
    for (int i = 0; i < KINDS; i++)
        if (used >= 0 && (size_t)used < size)
            used += snprintf(dst + used, size - (size_t)used, "%s=%g..%g, ", names[i],
                             p->range[i][0], p->range[i][1]);
    if (used >= 0 && (size_t)used < size)
        snprintf(dst + used, size - (size_t)used, "p=%g)", 1 - p->keep);
}

static stk_err set_range(params *p, stk_jitter_kind kind, const double given[2], double least,
                         double most, double around, stk_diag *diag)
{
    double *range = p->range[kind];
    range[0] = given[0] + around;
    range[1] = given[1] + around;
    return stk_augment_check_range("color_jitter", names[kind], range, least, most, diag);
}

static stk_err set_params(params *p, const stk_color_jitter_opts *o, stk_diag *diag)
{
    p->keep = o->keep;
    stk_err err = stk_augment_check("color_jitter", o->keep, diag);
    if (!err) err = set_range(p, STK_JITTER_BRIGHTNESS, o->brightness, 0, STK_FACTOR_MAX, 1, diag);
    if (!err) err = set_range(p, STK_JITTER_CONTRAST, o->contrast, 0, STK_FACTOR_MAX, 1, diag);
    if (!err) err = set_range(p, STK_JITTER_SATURATION, o->saturation, 0, STK_FACTOR_MAX, 1, diag);
    if (!err) err = set_range(p, STK_JITTER_HUE, o->hue, -0.5, 0.5, 0, diag);
    return err;
}

stk_op *stk_op_color_jitter(const stk_color_jitter_opts *opts, stk_diag *diag)
{
    static const stk_op_class cls = {
        .name = "color_jitter",
        .flags = STK_OP_ALONE | STK_OP_IN_PLACE,
        .in = STK_KIND_ARRAY,
        .out = STK_KIND_ARRAY,
        .run = jitter_run,
        .fini = stk_free,
        .print = jitter_print,
    };
    params p = {0};
    if (set_params(&p, opts ? opts : &(stk_color_jitter_opts){0}, diag)) return NULL;
    return stk_augment_op(&cls, &p, sizeof(p), diag);
}
