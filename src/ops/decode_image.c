#include <assert.h>
#include <stdio.h>

#include <stoker/image.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "ops/image_decoder.h"
#include "ops/parts.h"

static stk_err decode_open(const void *params, void **state, stk_diag *diag)
{
    (void)params;
    stk_image_decoder *d;
    const stk_err err = stk_image_decoder_new(&d, diag);
    *state = d;
    return err;
}

static void decode_close(void *state)
{
    stk_image_decoder *d = state;
    stk_image_decoder_free(&d);
}

static void draw_of_item(void *ctx, uint32_t n, uint32_t out[4])
{
    stk_item_random(ctx, n, out);
}

/* What the first part of a sample decides for all, on that thread. */
typedef struct shared {
    stk_image_decoder *decoder;
    int32_t width, height;
    stk_geometry geometry;
} shared;

static stk_err decode_part(const void *params, void *ctx, stk_item *item, size_t part,
                           stk_diag *diag)
{
    const stk_image_opts *opts = params;
    shared *s = ctx;
    stk_image_decoder *d = s->decoder;
    const stk_buffer *bytes = stk_item_bytes(item, part);
    int32_t width, height;
    stk_err err = stk_image_decoder_begin(d, opts, stk_buffer_data(bytes), stk_buffer_size(bytes),
                                          &width, &height, diag);
    if (err) return err;
    if (!s->width) {
        s->width = width, s->height = height;
        stk_geometry_draw(opts, width, height, draw_of_item, item, &s->geometry);
    }
    else if (width != s->width || height != s->height)
        return stk_diag_set(diag, STK_EINVAL,
                            "%d x %d pixels, but the sample's first part has %d x %d", (int)width,
                            (int)height, (int)s->width, (int)s->height);

    const stk_spec spec = stk_image_spec(opts, part, s->geometry.width, s->geometry.height);
    stk_tensor dst;
    err = stk_item_new_array(item, part, &spec, &dst);
    if (err) return stk_diag_set(diag, err, "no place for the pixels: %s", stk_err_str(err));
    err = stk_image_decoder_run(d, opts, part, &s->geometry, &dst, diag);
    if (!err) stk_item_commit_array(item, part);
    return err;
}

static stk_err decode_run(const void *params, void *state, stk_item *item, stk_diag *diag)
{
    const stk_image_opts *opts = params;
    shared s = {.decoder = state};
    return stk_parts_decode(opts->parts, item, decode_part, params, &s, diag);
}

static void decode_spec(const void *params, size_t part, stk_spec *out)
{
    const stk_image_opts *o = params;
    *out = (stk_spec){0};
    if (o->width) *out = stk_image_spec(o, part, o->width, o->height);
}

static void decode_print(const void *params, char *dst, size_t size)
{
    static const char *const crops[] = {"none", "center", "random_resized"};
    static const char *const filters[] = {"bilinear", "bicubic", "lanczos", "box", "nearest"};
    const stk_image_opts *o = params;
    char extent[32] = "as stored";
    if (o->width) snprintf(extent, sizeof(extent), "%dx%d", (int)o->width, (int)o->height);
    snprintf(dst, size, "decode_image(%s, crop=%s, filter=%s, quality=%s, flip=%g)", extent,
             crops[o->crop], filters[o->filter], o->quality == STK_QUALITY_EXACT ? "exact" : "fast",
             o->flip);
}

static uint32_t decode_takes(const void *params)
{
    return ((const stk_image_opts *)params)->parts;
}

stk_op *stk_op_decode_image(const stk_image_opts *opts, stk_diag *diag)
{
    static const stk_op_class cls = {
        .name = "decode_image",
        .flags = STK_OP_ALONE,
        .in = STK_KIND_BYTES,
        .out = STK_KIND_ARRAY,
        .open = decode_open,
        .close = decode_close,
        .run = decode_run,
        .takes = decode_takes,
        .spec = decode_spec,
        .fini = stk_free,
        .print = decode_print,
    };
    stk_image_opts checked;
    if (stk_image_opts_check(opts, &checked, diag)) return NULL;
    stk_image_opts *params = stk_alloc(sizeof(*params));
    if (params) *params = checked;
    stk_op *op = params ? stk_op_new(&cls, params) : NULL;
    if (!op) stk_diag_set(diag, STK_ENOMEM, "decode_image: no memory");
    return op;
}

static void draw_of_seed(void *ctx, uint32_t n, uint32_t out[4])
{
    const uint64_t seed = *(const uint64_t *)ctx;
    stk_philox((const uint32_t[2]){(uint32_t)seed, (uint32_t)(seed >> 32)},
               (const uint32_t[4]){n, 0, 0, 0}, out);
}

stk_err stk_image_decode(const void *data, size_t size, const stk_image_opts *opts, uint64_t seed,
                         stk_tensor *out, stk_buffer **mem, stk_diag *diag)
{
    stk_image_decoder *d = NULL;
    stk_buffer *buf = NULL;
    *out = (stk_tensor){0};
    *mem = NULL;

    stk_image_opts o;
    stk_err err = stk_image_opts_check(opts, &o, diag);
    if (!err) err = stk_image_decoder_new(&d, diag);
    if (err) goto done;
    int32_t width, height;
    err = stk_image_decoder_begin(d, &o, data, size, &width, &height, diag);
    if (err) goto done;

    stk_geometry g;
    stk_geometry_draw(&o, width, height, draw_of_seed, &seed, &g);
    const stk_spec spec = stk_image_spec(&o, 0, g.width, g.height);
    size_t bytes;
    err = stk_spec_bytes(&spec, &bytes);
    if (!err) err = stk_buffer_new(bytes, &buf);
    if (err) {
        stk_diag_set(diag, err, "no memory for %d x %d pixels", (int)g.width, (int)g.height);
        goto done;
    }
    const stk_tensor t = stk_tensor_over(stk_buffer_writable(buf), &spec);
    err = stk_image_decoder_run(d, &o, 0, &g, &t, diag);
    if (err) goto done;
    *out = t;
    *mem = buf;
    buf = NULL;

done:
    stk_buffer_unref(&buf);
    stk_image_decoder_free(&d);
    return err;
}
