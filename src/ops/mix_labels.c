#include "ops/mix_labels.h"

#include <string.h>

#include "base/alloc.h"
#include "ops/frames.h"

/* Adds a field, or puts the array in the place of the one that there is. */
static stk_err put(stk_batch *b, const char *name, const stk_spec *spec, stk_buffer **mem,
                   stk_diag *diag)
{
    const int i = stk_batch_find(b, name);
    if (i < 0) return stk_batch_add_array(b, name, spec, mem, diag);
    const stk_err err = stk_batch_replace_array(b, (size_t)i, spec, mem);
    return err ? stk_diag_set(diag, err, "field \"%s\": %s", name, stk_err_str(err)) : err;
}

static stk_err new_array(stk_batch *b, const stk_spec *spec, stk_buffer **mem, stk_diag *diag)
{
    size_t bytes;
    stk_err err = stk_spec_bytes(spec, &bytes);
    if (!err) err = stk_slab_take(stk_batch_pool(b), bytes, mem);
    return err ? stk_diag_set(diag, err, "no memory for labels") : err;
}

static size_t partner(size_t i, size_t n, bool mixes)
{
    return !mixes ? i : i ? i - 1 : n - 1;
}

static stk_err put_lam(stk_batch *b, double lam, stk_diag *diag)
{
    const size_t n = stk_batch_size(b);
    const stk_spec spec = {.dtype = STK_FLOAT32, .ndim = 1, .shape = {(int64_t)n}};
    const float share = (float)lam;
    stk_buffer *mem = NULL;
    stk_err err = new_array(b, &spec, &mem, diag);
    for (size_t i = 0; !err && i < n; i++)
        memcpy(stk_buffer_writable(mem) + i * sizeof(share), &share, sizeof(share));
    if (!err) err = put(b, STK_MIX_LAM, &spec, &mem, diag);
    stk_buffer_unref(&mem);
    return err;
}

static stk_err put_other_strings(stk_batch *b, size_t field, const char *name, bool mixes,
                                 stk_diag *diag)
{
    const size_t n = stk_batch_size(b);
    const int at = stk_batch_find(b, name);
    const char **strings = stk_alloc_zero(n ? n : 1, sizeof(*strings));
    if (!strings) return stk_diag_set(diag, STK_ENOMEM, "no memory for labels");
    for (size_t i = 0; i < n; i++) strings[i] = stk_batch_string(b, field, partner(i, n, mixes));
    stk_err err;
    if (at < 0)
        err = stk_batch_copy_strings(b, name, strings, diag);
    else if ((err = stk_batch_replace_strings(b, (size_t)at, strings)))
        stk_diag_set(diag, err, "field \"%s\": %s", name, stk_err_str(err));
    stk_free(strings);
    return err;
}

/* The labels of the partners, beside those of the samples. */
static stk_err put_other(stk_batch *b, size_t field, const char *name, bool mixes, stk_diag *diag)
{
    stk_tensor t;
    if (stk_batch_array(b, field, &t, NULL)) return put_other_strings(b, field, name, mixes, diag);
    const size_t n = stk_batch_size(b);
    const stk_spec spec = stk_tensor_spec(&t);
    stk_buffer *mem = NULL;
    stk_err err = new_array(b, &spec, &mem, diag);
    const size_t row = !err && n ? stk_buffer_size(mem) / n : 0;
    for (size_t i = 0; !err && i < n; i++)
        memcpy(stk_buffer_writable(mem) + i * row,
               (const uint8_t *)t.data + partner(i, n, mixes) * row, row);
    if (!err) err = put(b, name, &spec, &mem, diag);
    stk_buffer_unref(&mem);
    return err;
}

/* An integer of any type; false: not one. */
static bool integer_at(const stk_tensor *t, size_t i, int64_t *out)
{
    const uint8_t *p = (const uint8_t *)t->data + i * stk_dtype_size(t->dtype);
    int8_t i8;
    int16_t i16;
    uint16_t u16;
    int32_t i32;
    uint32_t u32;
    switch (t->dtype) {
    case STK_BOOL:
    case STK_UINT8: *out = *p; return true;
    case STK_INT8: memcpy(&i8, p, 1), *out = i8; return true;
    case STK_INT16: memcpy(&i16, p, 2), *out = i16; return true;
    case STK_UINT16: memcpy(&u16, p, 2), *out = u16; return true;
    case STK_INT32: memcpy(&i32, p, 4), *out = i32; return true;
    case STK_UINT32: memcpy(&u32, p, 4), *out = u32; return true;
    case STK_INT64:
    case STK_UINT64: memcpy(out, p, 8); return true; /* what is too large is negative */
    default: return false;
    }
}

/* Row i of shares, as it was before: one of a class, or what the label says. */
static stk_err add_shares(const stk_tensor *t, size_t i, size_t classes, float weight, float *row,
                          const char *name, stk_diag *diag)
{
    int64_t label = -1;
    if (t->ndim == 2) {
        const float *from = (const float *)t->data + i * classes;
        for (size_t k = 0; k < classes; k++) row[k] += weight * from[k];
        return STK_OK;
    }
    (void)integer_at(t, i, &label);
    if (label < 0 || label >= (int64_t)classes)
        return stk_diag_set(diag, STK_EINVAL,
                            "field \"%s\": sample %zu of the batch has %lld, but there are %zu "
                            "classes from 0 on: raise num_classes",
                            name, i, (long long)label, classes);
    row[label] += weight;
    return STK_OK;
}

static stk_err check_labels(const stk_tensor *t, int64_t classes, const char *name, stk_diag *diag)
{
    char found[160];
    int64_t any;
    const bool numbers = t->ndim == 1 && (t->shape[0] == 0 || integer_at(t, 0, &any));
    const bool shares = t->dtype == STK_FLOAT32 && t->ndim == 2 && t->shape[1] == classes;
    if ((numbers || shares) && stk_tensor_contiguous(t)) return STK_OK;
    stk_describe_array(t, found, sizeof(found));
    return stk_diag_set(diag, STK_EINVAL,
                        "field \"%s\": num_classes needs integers (n,) or float32 (n, %lld), found "
                        "%s",
                        name, (long long)classes, found);
}

static stk_err put_shares(stk_batch *b, size_t field, const stk_mixing *m, bool mixes, double lam,
                          stk_diag *diag)
{
    stk_tensor t;
    const char *name = m->o.label;
    const size_t n = stk_batch_size(b), classes = (size_t)m->o.num_classes;
    if (stk_batch_array(b, field, &t, NULL))
        return stk_diag_set(diag, STK_EINVAL, "field \"%s\": strings are no numbers of classes",
                            name);
    stk_err err = check_labels(&t, m->o.num_classes, name, diag);
    if (err) return err;
    const stk_spec spec = {STK_FLOAT32, 2, {(int64_t)n, m->o.num_classes}};
    stk_buffer *mem = NULL;
    err = new_array(b, &spec, &mem, diag);
    float *rows = err ? NULL : (float *)(void *)stk_buffer_writable(mem);
    if (!err) memset(rows, 0, n * classes * sizeof(*rows));
    for (size_t i = 0; i < n && !err; i++) {
        float *row = rows + i * classes;
        err = add_shares(&t, i, classes, (float)lam, row, name, diag);
        if (!err && mixes)
            err = add_shares(&t, partner(i, n, true), classes, (float)(1 - lam), row, name, diag);
    }
    if (!err) err = stk_batch_replace_array(b, field, &spec, &mem);
    stk_buffer_unref(&mem);
    return err;
}

stk_err stk_mix_labels(stk_batch *b, const stk_mixing *m, bool mixes, double lam, stk_diag *diag)
{
    const int field = stk_batch_find(b, m->o.label);
    stk_err err = STK_OK;
    if (field >= 0 && m->o.num_classes)
        err = put_shares(b, (size_t)field, m, mixes, lam, diag);
    else if (field >= 0)
        err = put_other(b, (size_t)field, m->other, mixes, diag);
    else if (m->o.num_classes)
        err = stk_diag_set(diag, STK_EINVAL,
                           "field \"%s\": num_classes is given, but the batch has "
                           "no such labels",
                           m->o.label);
    return err ? err : put_lam(b, lam, diag);
}
