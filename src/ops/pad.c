#include <stdio.h>

#include "base/alloc.h"
#include "ops/augment.h"
#include "ops/frames.h"
#include "transform/pad.h"

static stk_err pad_part(const stk_pad_opts *o, stk_item *item, size_t part, stk_diag *diag)
{
    stk_raster src, dst;
    uint8_t fill[STK_FILLED_CHANNELS];
    stk_err err = stk_frames_view(item, part, &src, diag);
    if (err) return err;
    const stk_fill *f = o->mask_parts >> part & 1 ? &o->mask_fill : &o->fill;
    if (o->mode == STK_PAD_CONSTANT) err = stk_augment_fill(f, src.channels, fill, diag);
    if (err) return err;
    const int64_t height = (int64_t)o->top + src.height + o->bottom;
    const int64_t width = (int64_t)o->left + src.width + o->right;
    if (height > INT32_MAX || width > INT32_MAX)
        return stk_diag_set(diag, STK_ELIMIT, "%lld x %lld pixels are too many", (long long)width,
                            (long long)height);
    err = stk_frames_new(item, part, (int32_t)height, (int32_t)width, &dst, diag);
    if (err) return err;
    const stk_pad p = {o->left, o->top, o->right, o->bottom, o->mode, fill};
    stk_pad_run(&p, &src, &dst);
    stk_item_commit_array(item, part);
    return STK_OK;
}

static stk_err pad_run(const void *params, void *state, stk_item *item, stk_diag *diag)
{
    (void)state;
    for (size_t part = 0; part < stk_item_num_parts(item); part++) {
        const stk_err err = pad_part(params, item, part, diag);
        if (!err) continue;
        diag->part = (int)part;
        return err;
    }
    return STK_OK;
}

static void pad_print(const void *params, char *dst, size_t size)
{
    static const char *const modes[] = {"constant", "edge", "reflect", "symmetric"};
    const stk_pad_opts *o = params;
    snprintf(dst, size, "pad(left=%d, top=%d, right=%d, bottom=%d, %s)", (int)o->left, (int)o->top,
             (int)o->right, (int)o->bottom, modes[o->mode]);
}

static stk_err check_opts(const stk_pad_opts *o, stk_diag *diag)
{
    const int32_t sides[] = {o->left, o->top, o->right, o->bottom};
    for (size_t i = 0; i < 4; i++)
        if (sides[i] < 0 || sides[i] > STK_PAD_MAX)
            return stk_diag_set(diag, STK_EINVAL, "pad: %d pixels on a side: 0 to %d are possible",
                                (int)sides[i], STK_PAD_MAX);
    if ((unsigned)o->mode > STK_PAD_SYMMETRIC)
        return stk_diag_set(diag, STK_EINVAL, "pad: unknown mode %d", (int)o->mode);
    stk_err err = stk_augment_check_fill("pad", &o->fill, diag);
    return err ? err : stk_augment_check_fill("pad", &o->mask_fill, diag);
}

stk_op *stk_op_pad(const stk_pad_opts *opts, stk_diag *diag)
{
    static const stk_op_class cls = {
        .name = "pad",
        .flags = STK_OP_ALONE,
        .in = STK_KIND_ARRAY,
        .out = STK_KIND_ARRAY,
        .run = pad_run,
        .fini = stk_free,
        .print = pad_print,
    };
    const stk_pad_opts o = opts ? *opts : (stk_pad_opts){0};
    if (check_opts(&o, diag)) return NULL;
    return stk_augment_op(&cls, &o, sizeof(o), diag);
}
