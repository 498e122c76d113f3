#include "ops/normalize.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "data/batch.h"
#include "ops/frames.h"
#include "transform/normalize.h"

typedef struct params {
    stk_normalize n; /* all but the input's type and channels */
    size_t num_channels;
    char field[]; /* its name */
} params;

static stk_err find_field(const params *p, const stk_batch *b, size_t *field, stk_tensor *t,
                          stk_diag *diag)
{
    const int i = stk_batch_find(b, p->field);
    if (i < 0) {
        stk_diag_set(diag, STK_EINVAL, "field \"%s\": the batch has none of that name; it has",
                     p->field);
        for (size_t f = 0; diag && f < stk_batch_num_fields(b); f++) {
            const size_t used = strlen(diag->text);
            snprintf(diag->text + used, sizeof(diag->text) - used, "%s \"%s\"", f ? "," : "",
                     stk_batch_field_name(b, f));
        }
        return STK_EINVAL;
    }
    *field = (size_t)i;
    if (stk_batch_field_is_strings(b, *field))
        return stk_diag_set(diag, STK_EINVAL, "field \"%s\": strings, not an array", p->field);
    return stk_batch_array(b, *field, t, NULL);
}

static stk_err check_field(const params *p, const stk_tensor *t, stk_diag *diag)
{
    char found[160];
    stk_describe_array(t, found, sizeof(found));
    if (t->ndim != 4 && t->ndim != 5)
        return stk_diag_set(diag, STK_EINVAL,
                            "field \"%s\": needs an array (n, height, width, channels) or (n, "
                            "frames, height, width, channels), found %s",
                            p->field, found);
    const int64_t channels = t->shape[t->ndim - 1];
    if (t->dtype != STK_UINT8 && t->dtype != STK_FLOAT32)
        return stk_diag_set(diag, STK_EINVAL, "field \"%s\": needs uint8 or float32, found %s",
                            p->field, found);
    if (p->num_channels != 1 && channels != (int64_t)p->num_channels)
        return stk_diag_set(diag, STK_EINVAL,
                            "field \"%s\": mean and std have %zu channels, found %s", p->field,
                            p->num_channels, found);
    if (channels < 1 || channels > INT32_MAX || !stk_tensor_contiguous(t))
        return stk_diag_set(diag, STK_EINVAL, "field \"%s\": no channels, or not contiguous: %s",
                            p->field, found);
    return STK_OK;
}

/* What becomes of an array like `t`. */
static stk_spec spec_after(const params *p, const stk_tensor *t)
{
    stk_spec spec = stk_tensor_spec(t);
    spec.dtype = p->n.out;
    if (p->n.layout == STK_LAYOUT_NCHW) { /* of each picture, also of a clip's */
        const int64_t *from = &t->shape[t->ndim - 3];
        int64_t *to = &spec.shape[t->ndim - 3];
        to[0] = from[2];
        to[1] = from[0];
        to[2] = from[1];
    }
    return spec;
}

stk_err stk_normalize_batch(const void *op_params, stk_batch *b, stk_diag *diag)
{
    const params *p = op_params;
    size_t field, bytes;
    stk_tensor t;
    stk_buffer *mem = NULL;
    /* Only a batch that lost all of its samples has no array to look at. */
    if (stk_batch_size(b) == 0 && stk_batch_find(b, p->field) < 0) return STK_OK;
    stk_err err = find_field(p, b, &field, &t, diag);
    if (!err) err = check_field(p, &t, diag);
    if (err) return err;

    const stk_spec spec = spec_after(p, &t);
    err = stk_spec_bytes(&spec, &bytes);
    if (err) return stk_diag_set(diag, err, "field \"%s\": too large", p->field);
    err = stk_slab_take(stk_batch_pool(b), bytes, &mem);
    if (err)
        return stk_diag_set(diag, err, "field \"%s\": no memory for %zu bytes", p->field, bytes);

    stk_normalize n = p->n;
    n.in = t.dtype;
    const int64_t *last = &t.shape[t.ndim - 3];
    n.channels = (int32_t)last[2];
    err = stk_normalize_run(&n, t.data, stk_buffer_writable(mem),
                            t.ndim == 5 ? t.shape[0] * t.shape[1] : t.shape[0], last[0] * last[1]);
    if (!err) err = stk_batch_replace_array(b, field, &spec, &mem);
    if (err) stk_diag_set(diag, err, "field \"%s\": cannot be replaced", p->field);
    stk_buffer_unref(&mem);
    return err;
}

static stk_err normalize_run(const void *op_params, void *state, stk_item *item, stk_diag *diag)
{
    (void)state;
    stk_batch *b = stk_item_batch(item);
    if (!b)
        return stk_diag_set(diag, STK_EINVAL, "found no batch: it belongs behind a batch stage");
    return stk_normalize_batch(op_params, b, diag);
}

static void normalize_fini(void *op_params)
{
    stk_free(op_params);
}

static void normalize_print(const void *op_params, char *dst, size_t size)
{
    const params *p = op_params;
    snprintf(dst, size, "normalize(%s, %s, %s)", p->field, stk_dtype_str(p->n.out),
             p->n.layout == STK_LAYOUT_NCHW ? "NCHW" : "NHWC");
}

/* out = (x / scale - mean) / std, as one product and one sum. */
static stk_err set_factors(params *p, const stk_normalize_opts *o, stk_diag *diag)
{
    const double scale = o->scale == 0.0 ? 255.0 : o->scale;
    if (!isfinite(scale) || scale < 0.0)
        return stk_diag_set(diag, STK_EINVAL, "normalize: scale is %g; it must be above 0", scale);
    for (size_t i = 0; i < p->num_channels; i++) {
        const double mean = o->mean ? o->mean[i] : 0.0, std = o->std ? o->std[i] : 1.0;
        if (!isfinite(mean))
            return stk_diag_set(diag, STK_EINVAL, "normalize: mean[%zu] is not a finite number", i);
        if (!isfinite(std) || std <= 0.0)
            return stk_diag_set(diag, STK_EINVAL, "normalize: std[%zu] is %g; it must be above 0",
                                i, std);
        p->n.a[i] = (float)(1.0 / (scale * std));
        p->n.b[i] = (float)(-mean / std);
        if (!isfinite(p->n.a[i]) || !isfinite(p->n.b[i]) || p->n.a[i] == 0.0f)
            return stk_diag_set(diag, STK_EINVAL,
                                "normalize: channel %zu: mean %g, std %g and scale %g are beyond "
                                "what float32 can hold",
                                i, mean, std, scale);
    }
    return STK_OK;
}

static stk_err set_params(params *p, const stk_normalize_opts *o, stk_diag *diag)
{
    p->num_channels = o->num_channels;
    if (!o->mean && !o->std && !p->num_channels) p->num_channels = 1;
    p->n.factors = (int32_t)p->num_channels;
    p->n.out = o->dtype == STK_DTYPE_NONE ? STK_FLOAT32 : o->dtype;
    p->n.layout = o->layout;
    if (p->num_channels < 1 || p->num_channels > STK_NORMALIZE_CHANNELS)
        return stk_diag_set(diag, STK_EINVAL,
                            "normalize: mean and std for %zu channels; 1 to %d are possible",
                            p->num_channels, STK_NORMALIZE_CHANNELS);
    if (p->n.out != STK_UINT8 && p->n.out != STK_FLOAT32 && p->n.out != STK_FLOAT16 &&
        p->n.out != STK_BFLOAT16)
        return stk_diag_set(
            diag, STK_EINVAL,
            "normalize: dtype %s; uint8, float32, float16 and bfloat16 are possible",
            stk_dtype_str(p->n.out));
    if (p->n.layout != STK_LAYOUT_NHWC && p->n.layout != STK_LAYOUT_NCHW)
        return stk_diag_set(diag, STK_EINVAL, "normalize: layout %d; NHWC and NCHW are possible",
                            (int)p->n.layout);
    return set_factors(p, o, diag);
}

stk_op *stk_op_normalize(const stk_normalize_opts *opts, stk_diag *diag)
{
    static const stk_op_class cls = {
        .name = "normalize",
        .flags = STK_OP_ALONE,
        .in = STK_KIND_BATCH,
        .out = STK_KIND_BATCH,
        .run = normalize_run,
        .fini = normalize_fini,
        .print = normalize_print,
    };
    const stk_normalize_opts o = opts ? *opts : (stk_normalize_opts){0};
    const char *field = o.field ? o.field : "image";
    params *p = stk_alloc_zero(1, sizeof(*p) + strlen(field) + 1);
    if (!p) {
        stk_diag_set(diag, STK_ENOMEM, "normalize: no memory");
        return NULL;
    }
    memcpy(p->field, field, strlen(field) + 1);
    if (set_params(p, &o, diag)) {
        stk_free(p);
        return NULL;
    }
    stk_op *op = stk_op_new(&cls, p);
    if (!op) stk_diag_set(diag, STK_ENOMEM, "normalize: no memory");
    return op;
}
