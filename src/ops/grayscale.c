#include <stdio.h>

#include <stoker/augment.h>

#include "base/alloc.h"
#include "ops/augment.h"
#include "ops/frames.h"
#include "transform/jitter.h"

static stk_err grayscale_run(const void *params, void *state, stk_item *item, stk_diag *diag)
{
    (void)state;
    const stk_grayscale_opts *o = params;
    stk_draws d = {.item = item};
    stk_raster r;
    if (stk_draws_unit(&d) < o->keep) return STK_OK;
    stk_err err = stk_frames_own(item, 0, &r, diag);
    if (!err) err = stk_frames_check_colors(&r, diag);
    if (!err) stk_jitter_gray(stk_tile_kernels_best(), &r);
    return err;
}

static void grayscale_print(const void *params, char *dst, size_t size)
{
    snprintf(dst, size, "grayscale(p=%g)", 1 - ((const stk_grayscale_opts *)params)->keep);
}

stk_op *stk_op_grayscale(const stk_grayscale_opts *opts, stk_diag *diag)
{
    static const stk_op_class cls = {
        .name = "grayscale",
        .flags = STK_OP_ALONE | STK_OP_IN_PLACE,
        .in = STK_KIND_ARRAY,
        .out = STK_KIND_ARRAY,
        .run = grayscale_run,
        .fini = stk_free,
        .print = grayscale_print,
    };
    const stk_grayscale_opts o = opts ? *opts : (stk_grayscale_opts){0};
    if (stk_augment_check("grayscale", o.keep, diag)) return NULL;
    return stk_augment_op(&cls, &o, sizeof(o), diag);
}
