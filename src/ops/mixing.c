#include "ops/mixing.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "ops/frames.h"
#include "ops/mix_labels.h"

static stk_err check_opts(const char *op, const stk_mix_opts *o, stk_diag *diag)
{
    const int64_t most = 1 << 24;
    const double alpha[2] = {o->alpha, o->alpha};
    stk_err err = stk_augment_check_range(op, "alpha", alpha, 1e-3, 1e6, diag);
    if (!err) err = stk_augment_check(op, o->keep, diag);
    if (err) return err;
    if (o->num_classes < 0 || o->num_classes > most)
        return stk_diag_set(diag, STK_EINVAL, "%s: %lld classes: 1 to %lld are possible, or 0", op,
                            (long long)o->num_classes, (long long)most);
    if (o->layout != STK_LAYOUT_NHWC && o->layout != STK_LAYOUT_NCHW)
        return stk_diag_set(diag, STK_EINVAL, "%s: layout %d; NHWC and NCHW are possible", op,
                            (int)o->layout);
    return STK_OK;
}

stk_op *stk_mixing_op(const stk_op_class *cls, const stk_mix_opts *opts, stk_diag *diag)
{
    stk_mix_opts o = opts ? *opts : (stk_mix_opts){0};
    if (o.alpha == 0) o.alpha = 1;
    if (!o.field) o.field = "image";
    if (!o.label) o.label = "label";
    if (check_opts(cls->name, &o, diag)) return NULL;
    const size_t field = strlen(o.field) + 1, label = strlen(o.label) + 1;
    stk_mixing *m = stk_alloc_zero(1, sizeof(*m) + field + label + label + 2);
    stk_op *op = NULL;
    if (m) {
        m->o = o;
        m->o.field = memcpy(m->names, o.field, field);
        m->o.label = memcpy(m->names + field, o.label, label);
        char *other = m->names + field + label;
        snprintf(other, label + 2, "%s_b", o.label);
        m->other = other;
        op = stk_op_new(cls, m);
    }
    if (!op) stk_diag_set(diag, STK_ENOMEM, "%s: no memory", cls->name);
    return op;
}

/* A batch that was mixed says so. */
static bool is_mixed(const stk_batch *b)
{
    stk_tensor t;
    const int i = stk_batch_find(b, STK_MIX_LAM);
    if (i < 0 || stk_batch_array(b, (size_t)i, &t, NULL)) return false;
    return t.dtype == STK_FLOAT32 && t.ndim == 1 && t.shape[0] > 0 && *(const float *)t.data < 1;
}

static stk_err find_field(const stk_mixing *m, stk_mixing_pass *p, stk_diag *diag)
{
    char found[160];
    const int i = stk_batch_find(p->batch, m->o.field);
    if (i < 0)
        return stk_diag_set(diag, STK_EINVAL, "field \"%s\": the batch has none of that name",
                            m->o.field);
    p->field = (size_t)i;
    if (stk_batch_array(p->batch, p->field, &p->t, NULL))
        return stk_diag_set(diag, STK_EINVAL, "field \"%s\": strings, not an array", m->o.field);
    stk_describe_array(&p->t, found, sizeof(found));
    if (p->t.ndim < 1 || !stk_tensor_contiguous(&p->t))
        return stk_diag_set(diag, STK_EINVAL, "field \"%s\": not contiguous: %s", m->o.field,
                            found);
    return STK_OK;
}

static stk_err find_memory(const stk_mixing *m, stk_mixing_pass *p, stk_diag *diag)
{
    size_t bytes;
    const stk_spec spec = stk_tensor_spec(&p->t);
    p->dst = stk_batch_writable(p->batch, p->field);
    if (p->dst) return STK_OK;
    stk_err err = stk_spec_bytes(&spec, &bytes);
    if (!err) err = stk_slab_take(stk_batch_pool(p->batch), bytes, &p->mem);
    if (err) return stk_diag_set(diag, err, "field \"%s\": no memory", m->o.field);
    p->dst = stk_buffer_writable(p->mem);
    return STK_OK;
}

stk_err stk_mixing_begin(const stk_mixing *m, stk_item *item, stk_mixing_pass *p, stk_diag *diag)
{
    *p = (stk_mixing_pass){.batch = stk_item_batch(item), .draws = {.item = item}, .lam = 1};
    if (!p->batch)
        return stk_diag_set(diag, STK_EINVAL, "found no batch: it belongs behind a batch stage");
    p->n = stk_batch_size(p->batch);
    p->mixes = stk_draws_unit(&p->draws) >= m->o.keep && p->n > 0 && !is_mixed(p->batch);
    if (!p->mixes) return STK_OK;
    p->lam = stk_draws_beta(&p->draws, m->o.alpha);
    stk_err err = find_field(m, p, diag);
    return err ? err : find_memory(m, p, diag);
}

stk_err stk_mixing_end(const stk_mixing *m, stk_mixing_pass *p, stk_err err, stk_diag *diag)
{
    if (!err && p->mem) {
        const stk_spec spec = stk_tensor_spec(&p->t);
        err = stk_batch_replace_array(p->batch, p->field, &spec, &p->mem);
    }
    stk_buffer_unref(&p->mem);
    if (!err && (p->mixes || !is_mixed(p->batch)))
        err = stk_mix_labels(p->batch, m, p->mixes, p->lam, diag);
    return err;
}

void stk_mixing_print(const char *name, const stk_mixing *m, char *dst, size_t size)
{
    snprintf(dst, size, "%s(%s, alpha=%g, p=%g, num_classes=%lld)", name, m->o.field, m->o.alpha,
             1 - m->o.keep, (long long)m->o.num_classes);
}
