#include <math.h>
#include <stdio.h>

#include "base/alloc.h"
#include "ops/augment.h"
#include "ops/frames.h"
#include "transform/erase.h"

enum { TRIES = 10 };

/* torchvision.transforms.RandomErasing.get_params, with our random numbers.  False: none fits. */
static bool draw_box(const stk_erase_opts *o, stk_draws *d, const stk_raster *r, stk_erase *out)
{
    const double log_ratio[2] = {log(o->ratio[0]), log(o->ratio[1])};
    for (int i = 0; i < TRIES; i++) {
        const double area = (double)r->height * r->width * stk_draws_between(d, o->scale);
        const double ratio = exp(stk_draws_between(d, log_ratio));
        const double height = nearbyint(sqrt(area * ratio)), width = nearbyint(sqrt(area / ratio));
        const uint32_t down = stk_draws_word(d), right = stk_draws_word(d);
        if (!(height < r->height && width < r->width)) continue;
        out->height = (int32_t)height;
        out->width = (int32_t)width;
        out->y = (int32_t)(((uint64_t)(r->height - out->height + 1) * down) >> 32);
        out->x = (int32_t)(((uint64_t)(r->width - out->width + 1) * right) >> 32);
        return true;
    }
    return false;
}

static stk_err erase_run(const void *params, void *state, stk_item *item, stk_diag *diag)
{
    (void)state;
    const stk_erase_opts *o = params;
    stk_draws d = {.item = item};
    stk_raster r;
    uint8_t fill[STK_FILLED_CHANNELS];
    if (stk_draws_unit(&d) < o->keep) return STK_OK;
    stk_err err = stk_frames_own(item, 0, &r, diag);
    if (!err && !o->random) err = stk_augment_fill(&o->fill, r.channels, fill, diag);
    if (err) return err;
    stk_erase e = {.fill = o->random ? NULL : fill};
    e.key[0] = stk_draws_word(&d);
    e.key[1] = stk_draws_word(&d);
    if (draw_box(o, &d, &r, &e)) stk_erase_run(&e, &r);
    return STK_OK;
}

static void erase_print(const void *params, char *dst, size_t size)
{
    const stk_erase_opts *o = params;
    snprintf(dst, size, "erase(p=%g, scale=%g..%g, ratio=%g..%g%s)", 1 - o->keep, o->scale[0],
             o->scale[1], o->ratio[0], o->ratio[1], o->random ? ", random" : "");
}

static stk_err check_opts(stk_erase_opts *o, stk_diag *diag)
{
    if (o->scale[0] == 0 && o->scale[1] == 0) o->scale[0] = 0.02, o->scale[1] = 0.33;
    if (o->ratio[0] == 0 && o->ratio[1] == 0) o->ratio[0] = 0.3, o->ratio[1] = 3.3;
    stk_err err = stk_augment_check("erase", o->keep, diag);
    if (!err) err = stk_augment_check_range("erase", "scale", o->scale, 0, 1, diag);
    if (!err) err = stk_augment_check_range("erase", "ratio", o->ratio, 1e-6, 1e6, diag);
    return err ? err : stk_augment_check_fill("erase", &o->fill, diag);
}

stk_op *stk_op_erase(const stk_erase_opts *opts, stk_diag *diag)
{
    static const stk_op_class cls = {
        .name = "erase",
        .flags = STK_OP_ALONE | STK_OP_IN_PLACE,
        .in = STK_KIND_ARRAY,
        .out = STK_KIND_ARRAY,
        .run = erase_run,
        .fini = stk_free,
        .print = erase_print,
    };
    stk_erase_opts o = opts ? *opts : (stk_erase_opts){0};
    if (check_opts(&o, diag)) return NULL;
    return stk_augment_op(&cls, &o, sizeof(o), diag);
}
