#include "ops/geometry.h"

#include <math.h>

#include "base/rng.h"

enum { TRIES = 10, FLIP_BLOCK = TRIES };

/* Written so that a NaN fails. */
static stk_err check_ranges(const stk_image_opts *o, stk_diag *diag)
{
    if (!(o->flip >= 0 && o->flip <= 1))
        return stk_diag_set(diag, STK_EINVAL, "flip is %g, not a probability", o->flip);
    if (!(o->scale[0] > 0 && o->scale[0] <= o->scale[1] && o->scale[1] < HUGE_VAL))
        return stk_diag_set(diag, STK_EINVAL, "scale is (%g, %g): not a range above 0", o->scale[0],
                            o->scale[1]);
    if (!(o->ratio[0] > 0 && o->ratio[0] <= o->ratio[1] && o->ratio[1] < HUGE_VAL))
        return stk_diag_set(diag, STK_EINVAL, "ratio is (%g, %g): not a range above 0", o->ratio[0],
                            o->ratio[1]);
    if (o->max_pixels < 0 || o->max_side < 0)
        return stk_diag_set(diag, STK_EINVAL, "a limit is negative");
    if ((unsigned)o->filter > STK_FILTER_NEAREST || (unsigned)o->crop > STK_CROP_RANDOM_RESIZED ||
        (unsigned)o->quality > STK_QUALITY_EXACT || (unsigned)o->color > STK_COLOR_GRAY)
        return stk_diag_set(diag, STK_EINVAL, "unknown crop, filter, quality or color");
    return STK_OK;
}

static stk_err check_sizes(const stk_image_opts *o, stk_diag *diag)
{
    const int32_t max = 65535; /* of the resampler */
    const int32_t larger = o->width > o->height ? o->width : o->height;
    if (o->width < 0 || o->height < 0 || larger > max || !o->width != !o->height)
        return stk_diag_set(diag, STK_EINVAL, "a size of %d x %d: each 1 to %d, or both 0",
                            (int)o->width, (int)o->height, (int)max);
    if (!o->width && o->crop != STK_CROP_NONE)
        return stk_diag_set(diag, STK_EINVAL, "a crop needs a width and a height");
    if (o->crop == STK_CROP_CENTER && (o->resize < larger || o->resize > 4 * max))
        return stk_diag_set(diag, STK_EINVAL, "resize is %d: less than what is cut out of it",
                            (int)o->resize);
    return STK_OK;
}

stk_err stk_image_opts_check(const stk_image_opts *opts, stk_image_opts *out, stk_diag *diag)
{
    stk_image_opts *o = out;
    *o = opts ? *opts : (stk_image_opts){0};
    if (o->scale[0] == 0 && o->scale[1] == 0) o->scale[0] = 0.08, o->scale[1] = 1;
    if (o->ratio[0] == 0 && o->ratio[1] == 0) o->ratio[0] = 3.0 / 4, o->ratio[1] = 4.0 / 3;
    if (o->max_pixels == 0) o->max_pixels = 178956970;
    if (o->max_side == 0) o->max_side = 65500;
    const stk_err err = check_ranges(o, diag);
    if (err) return err;
    if (o->crop == STK_CROP_CENTER && o->resize == 0) {
        const int64_t larger = o->width > o->height ? o->width : o->height;
        const int64_t resize = (larger * 256 + 112) / 224;
        o->resize = resize > INT32_MAX ? INT32_MAX : (int32_t)resize;
    }
    return check_sizes(o, diag);
}

static void set_box(stk_geometry *g, double x, double y, double width, double height)
{
    g->x = (int32_t)x, g->y = (int32_t)y;
    g->box_width = (int32_t)width, g->box_height = (int32_t)height;
}

static double between(const double range[2], double unit)
{
    return range[0] + (range[1] - range[0]) * unit;
}

/* The middle, with the nearest ratio that is allowed. */
static void middle(const stk_image_opts *o, int32_t width, int32_t height, stk_geometry *g)
{
    const double ratio = (double)width / height;
    double w = width, h = height;
    if (ratio < o->ratio[0])
        h = fmax(1, nearbyint(w / o->ratio[0]));
    else if (ratio > o->ratio[1])
        w = fmax(1, nearbyint(h * o->ratio[1]));
    set_box(g, floor((width - w) / 2), floor((height - h) / 2), w, h);
}

/* torchvision.transforms.RandomResizedCrop.get_params, with our random numbers. */
static void random_resized(const stk_image_opts *o, int32_t width, int32_t height,
                           stk_draw_fn *draw, void *ctx, stk_geometry *g)
{
    const double area = (double)width * height;
    const double log_ratio[2] = {log(o->ratio[0]), log(o->ratio[1])};
    for (uint32_t n = 0; n < TRIES; n++) {
        uint32_t word[4];
        draw(ctx, n, word);
        const double target = area * between(o->scale, stk_unit(word[0]));
        const double ratio = exp(between(log_ratio, stk_unit(word[1])));
        const double w = nearbyint(sqrt(target * ratio)); /* to even, as Python's round */
        const double h = nearbyint(sqrt(target / ratio));
        if (!(w > 0 && w <= width && h > 0 && h <= height)) continue;
        const double y = floor(stk_unit(word[2]) * (height - h + 1));
        const double x = floor(stk_unit(word[3]) * (width - w + 1));
        set_box(g, x, y, w, h);
        return;
    }
    middle(o, width, height, g);
}

/* torchvision's Resize(resize) and CenterCrop(height, width). */
static void center(const stk_image_opts *o, int32_t width, int32_t height, stk_geometry *g)
{
    const int64_t shorter = width < height ? width : height;
    const int64_t w = (int64_t)o->resize * width / shorter;
    const int64_t h = (int64_t)o->resize * height / shorter;
    set_box(g, 0, 0, width, height);
    g->full_width = (int32_t)(w < INT32_MAX ? w : INT32_MAX);
    g->full_height = (int32_t)(h < INT32_MAX ? h : INT32_MAX);
    g->left = (int32_t)nearbyint((g->full_width - o->width) / 2.0);
    g->top = (int32_t)nearbyint((g->full_height - o->height) / 2.0);
}

void stk_geometry_draw(const stk_image_opts *opts, int32_t width, int32_t height, stk_draw_fn *draw,
                       void *ctx, stk_geometry *out)
{
    *out = (stk_geometry){.width = opts->width ? opts->width : width,
                          .height = opts->height ? opts->height : height};
    out->full_width = out->width;
    out->full_height = out->height;
    switch (opts->crop) {
    case STK_CROP_NONE: set_box(out, 0, 0, width, height); break;
    case STK_CROP_CENTER: center(opts, width, height, out); break;
    case STK_CROP_RANDOM_RESIZED: random_resized(opts, width, height, draw, ctx, out); break;
    }
    if (opts->flip > 0) {
        uint32_t word[4];
        draw(ctx, FLIP_BLOCK, word);
        out->mirror = stk_unit(word[0]) < opts->flip;
    }
}

static void swap(int32_t *a, int32_t *b)
{
    const int32_t t = *a;
    *a = *b;
    *b = t;
}

/*
 * What makes the picture of the stored image, after Exif 2.32, 4.6.4 (orientation):
 *
 *     1 as it is    2 mirror         3 both           4 upside down
 *     5 transpose   6 upside down,   7 both,          8 mirror,
 *                     transpose        transpose        transpose
 */
void stk_geometry_place(const stk_geometry *g, int32_t orientation, int32_t width, int32_t height,
                        stk_placement *out)
{
    *out = (stk_placement){.x = g->x,
                           .y = g->y,
                           .box_width = g->box_width,
                           .box_height = g->box_height,
                           .full_width = g->full_width,
                           .full_height = g->full_height,
                           .left = g->left,
                           .top = g->top,
                           .width = g->width,
                           .height = g->height,
                           .transposed = orientation >= 5};
    stk_placement *p = out;
    if (p->transposed) {
        swap(&p->x, &p->y);
        swap(&p->box_width, &p->box_height);
        swap(&p->full_width, &p->full_height);
        swap(&p->left, &p->top);
        swap(&p->width, &p->height);
    }
    if (orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8) {
        p->x = width - p->x - p->box_width;
        p->left = p->full_width - p->left - p->width;
        p->mirror = p->from_right = true;
    }
    if (orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7) {
        p->y = height - p->y - p->box_height;
        p->top = p->full_height - p->top - p->height;
        p->upside_down = p->from_bottom = true;
    }
    if (g->mirror && p->transposed)
        p->upside_down = !p->upside_down;
    else if (g->mirror)
        p->mirror = !p->mirror;
}

/* One axis: whole pixels within the box. */
static void reach(int32_t box, int32_t box_size, int32_t full, int32_t from, int32_t count,
                  double support, bool coarse, int32_t *start, int32_t *size)
{
    const double scale = (double)box_size / full;
    const double margin =
        coarse ? support * fmax(scale * 1.5, 2) + 2 : support * fmax(scale, 1) + 1;
    const double first = fmax(floor(from * scale - margin), 0);
    const double end = fmin(ceil((from + count) * scale + margin), box_size);
    *start = box + (int32_t)first;
    *size = (int32_t)end - (int32_t)first;
}

stk_rect stk_placement_rect(const stk_placement *p, double support, bool coarse)
{
    stk_rect r;
    reach(p->x, p->box_width, p->full_width, p->left, p->width, support, coarse, &r.x, &r.width);
    reach(p->y, p->box_height, p->full_height, p->top, p->height, support, coarse, &r.y, &r.height);
    return r;
}
