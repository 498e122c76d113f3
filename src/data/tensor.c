#include <stoker/tensor.h>

#include <string.h>

size_t stk_dtype_size(stk_dtype dtype)
{
    switch (dtype) {
    case STK_DTYPE_NONE: return 0;
#define X(name, value, bytes, text) \
    case STK_##name: return bytes;
        STK_DTYPE_MAP(X)
#undef X
    }
    return 0;
}

const char *stk_dtype_str(stk_dtype dtype)
{
    switch (dtype) {
    case STK_DTYPE_NONE: return "none";
#define X(name, value, bytes, text) \
    case STK_##name: return text;
        STK_DTYPE_MAP(X)
#undef X
    }
    return "none";
}

stk_dtype stk_dtype_parse(const char *name)
{
#define X(name_, value, bytes, text) \
    if (!strcmp(name, text)) return STK_##name_;
    STK_DTYPE_MAP(X)
#undef X
    return STK_DTYPE_NONE;
}

/* An extent as strides see it: numpy's rule, so that strides of empty arrays are defined too. */
static int64_t at_least_one(int64_t extent)
{
    return extent > 0 ? extent : 1;
}

stk_err stk_spec_bytes(const stk_spec *spec, size_t *out)
{
    *out = 0;
    size_t total = stk_dtype_size(spec->dtype);
    if (!total || spec->ndim < 0 || spec->ndim > STK_MAX_NDIM) return STK_EINVAL;

    bool empty = false;
    for (int32_t i = 0; i < spec->ndim; i++) {
        if (spec->shape[i] < 0) return STK_EINVAL;
        empty |= spec->shape[i] == 0;
    }
    /* An empty array is held to the limit as well: its strides are products of the others. */
    for (int32_t i = 0; i < spec->ndim; i++) {
        const uint64_t extent = (uint64_t)at_least_one(spec->shape[i]);
        if (extent > SIZE_MAX / 2 / total) return STK_ELIMIT;
        total *= (size_t)extent;
    }
    *out = empty ? 0 : total;
    return STK_OK;
}

bool stk_spec_equal(const stk_spec *a, const stk_spec *b)
{
    if (a->dtype != b->dtype || a->ndim != b->ndim) return false;
    for (int32_t i = 0; i < a->ndim; i++)
        if (a->shape[i] != b->shape[i]) return false;
    return true;
}

stk_tensor stk_tensor_over(void *data, const stk_spec *spec)
{
    stk_tensor t = {.data = data, .dtype = spec->dtype, .ndim = spec->ndim};
    int64_t stride = (int64_t)stk_dtype_size(spec->dtype);
    for (int32_t i = spec->ndim - 1; i >= 0; i--) {
        t.shape[i] = spec->shape[i];
        t.strides[i] = stride;
        stride *= at_least_one(spec->shape[i]);
    }
    return t;
}

stk_spec stk_tensor_spec(const stk_tensor *t)
{
    stk_spec spec = {.dtype = t->dtype, .ndim = t->ndim};
    for (int32_t i = 0; i < t->ndim; i++) spec.shape[i] = t->shape[i];
    return spec;
}

bool stk_tensor_contiguous(const stk_tensor *t)
{
    bool packed = true;
    int64_t stride = (int64_t)stk_dtype_size(t->dtype);
    for (int32_t i = t->ndim - 1; i >= 0; i--) {
        if (t->shape[i] == 0) return true;
        if (t->shape[i] == 1) continue; /* never stepped over: its stride means nothing */
        packed &= t->strides[i] == stride;
        stride *= t->shape[i];
    }
    return packed;
}

/* Elements of a fixed size need no call each. */
static void pack_row(const uint8_t *src, int64_t stride, int64_t n, size_t item, uint8_t *dst)
{
    if (stride == (int64_t)item) {
        memcpy(dst, src, (size_t)n * item);
        return;
    }
    for (int64_t i = 0; i < n; i++, src += stride, dst += item) {
        switch (item) {
        case 1: *dst = *src; break;
        case 2: memcpy(dst, src, 2); break;
        case 4: memcpy(dst, src, 4); break;
        default: memcpy(dst, src, 8); break; /* the largest there is */
        }
    }
}

void stk_tensor_pack(const stk_tensor *t, void *to)
{
    uint8_t *dst = to;
    const uint8_t *src = t->data;
    const size_t item = stk_dtype_size(t->dtype);
    const int32_t last = t->ndim - 1;
    int64_t at[STK_MAX_NDIM] = {0};
    for (int32_t i = 0; i < t->ndim; i++)
        if (t->shape[i] == 0) return;
    if (t->ndim == 0) memcpy(dst, src, item);
    for (int32_t d = last; d >= 0;) {
        pack_row(src, t->strides[last], t->shape[last], item, dst);
        dst += (size_t)t->shape[last] * item;
        for (d = last - 1; d >= 0; d--) { /* the next row, as an odometer counts */
            src += t->strides[d];
            if (++at[d] < t->shape[d]) break;
            src -= t->strides[d] * t->shape[d];
            at[d] = 0;
        }
    }
}
