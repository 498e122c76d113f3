#include <stdio.h>

#include "base/alloc.h"
#include "codec/rowbuf.h"
#include "ops/augment.h"
#include "ops/frames.h"
#include "transform/blur.h"

static stk_err blur_open(const void *params, void **state, stk_diag *diag)
{
    (void)params;
    *state = stk_alloc_zero(1, sizeof(stk_rowbuf));
    return *state ? STK_OK : stk_diag_set(diag, STK_ENOMEM, "blur: no memory");
}

static void blur_close(void *state)
{
    if (state) stk_rowbuf_fini(state);
    stk_free(state);
}

static stk_err blur_run(const void *params, void *state, stk_item *item, stk_diag *diag)
{
    const stk_blur_opts *o = params;
    stk_draws d = {.item = item};
    stk_rowbuf *scratch = state;
    stk_raster src, dst;
    if (stk_draws_unit(&d) < o->keep) return STK_OK;
    stk_err err = stk_frames_pair(item, 0, &src, &dst, diag);
    if (err) return err;
    const stk_blur b = {o->width, o->height, stk_draws_between(&d, o->sigma)};
    const size_t bytes = stk_blur_scratch(&b, &src);
    err = stk_rowbuf_reserve(scratch, bytes);
    if (err) return stk_diag_set(diag, err, "no memory for %zu bytes of rows", bytes);
    stk_blur_run(stk_blur_kernels_best(), &b, &src, &dst, scratch->data);
    stk_rowbuf_trim(scratch);
    if (src.data != dst.data) stk_item_commit_array(item, 0);
    return STK_OK;
}

static void blur_print(const void *params, char *dst, size_t size)
{
    const stk_blur_opts *o = params;
    snprintf(dst, size, "blur(%dx%d, sigma=%g..%g, p=%g)", (int)o->width, (int)o->height,
             o->sigma[0], o->sigma[1], 1 - o->keep);
}

static stk_err check_opts(stk_blur_opts *o, stk_diag *diag)
{
    if (o->width == 0) o->width = o->height;
    if (o->height == 0) o->height = o->width;
    if (o->sigma[0] == 0 && o->sigma[1] == 0) o->sigma[0] = 0.1, o->sigma[1] = 2;
    const int32_t sides[] = {o->width, o->height};
    for (size_t i = 0; i < 2; i++)
        if (sides[i] < 1 || sides[i] > STK_BLUR_MAX || sides[i] % 2 == 0)
            return stk_diag_set(diag, STK_EINVAL,
                                "blur: a kernel of %d x %d: odd sizes from 1 to %d are possible",
                                (int)o->width, (int)o->height, STK_BLUR_MAX);
    stk_err err = stk_augment_check_range("blur", "sigma", o->sigma, 1e-3, 1e6, diag);
    return err ? err : stk_augment_check("blur", o->keep, diag);
}

stk_op *stk_op_blur(const stk_blur_opts *opts, stk_diag *diag)
{
    static const stk_op_class cls = {
        .name = "blur",
        .flags = STK_OP_ALONE | STK_OP_IN_PLACE,
        .in = STK_KIND_ARRAY,
        .out = STK_KIND_ARRAY,
        .open = blur_open,
        .close = blur_close,
        .run = blur_run,
        .fini = stk_free,
        .print = blur_print,
    };
    stk_blur_opts o = opts ? *opts : (stk_blur_opts){0};
    if (check_opts(&o, diag)) return NULL;
    return stk_augment_op(&cls, &o, sizeof(o), diag);
}
