#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "codec/rowbuf.h"
#include "ops/augment.h"
#include "ops/frames.h"
#include "transform/rotate.h"

static stk_err rotate_open(const void *params, void **state, stk_diag *diag)
{
    (void)params;
    *state = stk_alloc_zero(1, sizeof(stk_rowbuf));
    return *state ? STK_OK : stk_diag_set(diag, STK_ENOMEM, "rotate: no memory");
}

static void rotate_close(void *state)
{
    if (state) stk_rowbuf_fini(state);
    stk_free(state);
}

/* One frame of each. */
static stk_raster frame_of(const stk_raster *r, int64_t i)
{
    stk_raster one = *r;
    one.frames = 1;
    one.data += (size_t)i * stk_raster_frame(r);
    return one;
}

static stk_err turn(const stk_rotate *r, stk_item *item, size_t part, stk_rowbuf *scratch,
                    stk_diag *diag)
{
    stk_raster src, dst;
    stk_err err = stk_frames_pair(item, part, &src, &dst, diag);
    if (err) return err;
    if (src.data != dst.data) {
        stk_rotate_run(r, &src, &dst);
        stk_item_commit_array(item, part);
        return STK_OK;
    }
    err = stk_rowbuf_reserve(scratch, stk_raster_frame(&src));
    if (err) return stk_diag_set(diag, err, "no memory for a copy of a frame");
    for (int64_t i = 0; i < src.frames; i++) {
        const stk_raster to = frame_of(&dst, i);
        stk_raster from = to;
        from.data = memcpy(scratch->data, to.data, stk_raster_frame(&to));
        stk_rotate_run(r, &from, &to);
    }
    stk_rowbuf_trim(scratch);
    return STK_OK;
}

static stk_err turn_expanded(stk_rotate *r, stk_item *item, size_t part, const stk_raster *src,
                             stk_diag *diag)
{
    double width, height;
    stk_raster dst;
    stk_rotate_extent(r->degrees, src->width, src->height, &width, &height);
    if (width > INT32_MAX || height > INT32_MAX)
        return stk_diag_set(diag, STK_ELIMIT, "%g x %g pixels are too many", width, height);
    stk_err err = stk_frames_new(item, part, (int32_t)height, (int32_t)width, &dst, diag);
    if (err) return err;
    r->to_x = width / 2;
    r->to_y = height / 2;
    stk_rotate_run(r, src, &dst);
    stk_item_commit_array(item, part);
    return STK_OK;
}

static stk_err rotate_part(const stk_rotate_opts *o, double degrees, stk_item *item, size_t part,
                           stk_rowbuf *scratch, stk_diag *diag)
{
    const bool mask = o->mask_parts >> part & 1;
    uint8_t fill[STK_FILLED_CHANNELS];
    stk_raster src;
    stk_err err = stk_frames_view(item, part, &src, diag);
    if (!err) err = stk_augment_fill(mask ? &o->mask_fill : &o->fill, src.channels, fill, diag);
    if (err) return err;
    stk_rotate r = {.degrees = degrees,
                    .x = o->off_center ? o->center[0] : src.width / 2.0,
                    .y = o->off_center ? o->center[1] : src.height / 2.0,
                    .bilinear = o->filter == STK_FILTER_BILINEAR && !mask,
                    .fill = fill};
    r.to_x = r.x, r.to_y = r.y;
    return o->expand ? turn_expanded(&r, item, part, &src, diag)
                     : turn(&r, item, part, scratch, diag);
}

static stk_err rotate_run(const void *params, void *state, stk_item *item, stk_diag *diag)
{
    const stk_rotate_opts *o = params;
    stk_draws d = {.item = item};
    if (stk_draws_unit(&d) < o->keep) return STK_OK;
    const double degrees = stk_draws_between(&d, o->degrees);
    for (size_t part = 0; part < stk_item_num_parts(item); part++) {
        const stk_err err = rotate_part(o, degrees, item, part, state, diag);
        if (!err) continue;
        diag->part = (int)part;
        return err;
    }
    return STK_OK;
}

static void rotate_print(const void *params, char *dst, size_t size)
{
    const stk_rotate_opts *o = params;
    snprintf(dst, size, "rotate(%g..%g, %s%s, p=%g)", o->degrees[0], o->degrees[1],
             o->filter == STK_FILTER_NEAREST ? "nearest" : "bilinear", o->expand ? ", expand" : "",
             1 - o->keep);
}

static stk_err check_opts(const stk_rotate_opts *o, stk_diag *diag)
{
    const double all[2] = {fmin(o->center[0], o->center[1]), fmax(o->center[0], o->center[1])};
    stk_err err = stk_augment_check_range("rotate", "degrees", o->degrees, -1e6, 1e6, diag);
    if (!err) err = stk_augment_check_range("rotate", "center", all, -1e6, 1e6, diag);
    if (!err) err = stk_augment_check("rotate", o->keep, diag);
    if (!err) err = stk_augment_check_fill("rotate", &o->fill, diag);
    if (!err) err = stk_augment_check_fill("rotate", &o->mask_fill, diag);
    if (err) return err;
    if (o->filter != STK_FILTER_BILINEAR && o->filter != STK_FILTER_NEAREST)
        return stk_diag_set(diag, STK_EINVAL,
                            "rotate: filter %d: bilinear and nearest are possible", (int)o->filter);
    if (o->expand && o->off_center)
        return stk_diag_set(diag, STK_EINVAL,
                            "rotate: expand turns about the middle: leave center out");
    return STK_OK;
}

stk_op *stk_op_rotate(const stk_rotate_opts *opts, stk_diag *diag)
{
    /* Two classes, as one changes the shape: each has random numbers of its own. */
    static const stk_op_class in_place = {
        .name = "rotate",
        .flags = STK_OP_ALONE | STK_OP_IN_PLACE,
        .in = STK_KIND_ARRAY,
        .out = STK_KIND_ARRAY,
        .open = rotate_open,
        .close = rotate_close,
        .run = rotate_run,
        .fini = stk_free,
        .print = rotate_print,
    };
    static const stk_op_class expands = {
        .name = "rotate_expand",
        .flags = STK_OP_ALONE,
        .in = STK_KIND_ARRAY,
        .out = STK_KIND_ARRAY,
        .open = rotate_open,
        .close = rotate_close,
        .run = rotate_run,
        .fini = stk_free,
        .print = rotate_print,
    };
    const stk_rotate_opts o = opts ? *opts : (stk_rotate_opts){0};
    if (check_opts(&o, diag)) return NULL;
    return stk_augment_op(o.expand ? &expands : &in_place, &o, sizeof(o), diag);
}
