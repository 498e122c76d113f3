#include <string.h>

#include "base/alloc.h"
#include "ops/frames.h"
#include "ops/mixing.h"
#include "transform/mix.h"

static stk_err check(const stk_mixing *m, const stk_tensor *t, stk_diag *diag)
{
    char found[160];
    if (t->dtype == STK_UINT8 || t->dtype == STK_FLOAT32) return STK_OK;
    stk_describe_array(t, found, sizeof(found));
    return stk_diag_set(diag, STK_EINVAL,
                        "field \"%s\": needs uint8 or float32, found %s: put mixup before what "
                        "makes that of it",
                        m->o.field, found);
}

/* From the last sample to the first, as each is mixed with the one before it; the first with the
 * last as it was. */
static stk_err mix(stk_mixing_pass *p, stk_diag *diag)
{
    const size_t values = (size_t)(p->t.strides[0] / (int64_t)stk_dtype_size(p->t.dtype));
    const size_t bytes = (size_t)p->t.strides[0];
    const uint8_t *src = p->t.data;
    uint8_t *last = stk_alloc(bytes ? bytes : 1);
    if (!last) return stk_diag_set(diag, STK_ENOMEM, "no memory for a sample");
    memcpy(last, src + (p->n - 1) * bytes, bytes);
    for (size_t i = p->n; i-- > 0;) {
        const uint8_t *other = i ? src + (i - 1) * bytes : last;
        if (p->t.dtype == STK_UINT8)
            stk_mix_bytes(p->lam, src + i * bytes, other, p->dst + i * bytes, values);
        else
            stk_mix_floats(p->lam, (const float *)(const void *)(src + i * bytes),
                           (const float *)(const void *)other,
                           (float *)(void *)(p->dst + i * bytes), values);
    }
    stk_free(last);
    return STK_OK;
}

static stk_err mixup_run(const void *params, void *state, stk_item *item, stk_diag *diag)
{
    (void)state;
    const stk_mixing *m = params;
    stk_mixing_pass p;
    stk_err err = stk_mixing_begin(m, item, &p, diag);
    if (!err && p.mixes) err = check(m, &p.t, diag);
    if (!err && p.mixes) err = mix(&p, diag);
    return stk_mixing_end(m, &p, err, diag);
}

static void mixup_print(const void *params, char *dst, size_t size)
{
    stk_mixing_print("mixup", params, dst, size);
}

stk_op *stk_op_mixup(const stk_mix_opts *opts, stk_diag *diag)
{
    static const stk_op_class cls = {
        .name = "mixup",
        .flags = STK_OP_ALONE,
        .in = STK_KIND_BATCH,
        .out = STK_KIND_BATCH,
        .run = mixup_run,
        .fini = stk_free,
        .print = mixup_print,
    };
    return stk_mixing_op(&cls, opts, diag);
}
