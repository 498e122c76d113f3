#include "ops/frames.h"

#include <inttypes.h>
#include <stdio.h>

void stk_describe_array(const stk_tensor *t, char *dst, size_t size)
{
    size_t used = 0;
    for (int32_t i = 0; i < t->ndim && used < size; i++) {
        const int n = snprintf(dst + used, size - used, "%s%" PRId64, i ? ", " : "(", t->shape[i]);
        used += n > 0 ? (size_t)n : 0;
    }
    if (used < size)
        snprintf(dst + used, size - used, "%s) %s", t->ndim ? "" : "(", stk_dtype_str(t->dtype));
}

static stk_err check(const stk_tensor *t, stk_diag *diag)
{
    char found[160];
    if (!t->data) return stk_diag_set(diag, STK_EINVAL, "there is no array");
    stk_describe_array(t, found, sizeof(found));
    if (t->dtype != STK_UINT8 || (t->ndim != 3 && t->ndim != 4))
        return stk_diag_set(diag, STK_EINVAL,
                            "needs uint8 (height, width, channels) or (frames, height, width, "
                            "channels), found %s",
                            found);
    for (int32_t d = 0; d < t->ndim; d++)
        if (t->shape[d] < 1 || t->shape[d] > INT32_MAX)
            return stk_diag_set(diag, STK_EINVAL, "an array without pixels, or too large: %s",
                                found);
    return STK_OK;
}

static stk_raster raster_over(const stk_tensor *t)
{
    const int64_t *last = &t->shape[t->ndim - 3];
    return (stk_raster){.data = t->data,
                        .frames = t->ndim == 4 ? t->shape[0] : 1,
                        .height = (int32_t)last[0],
                        .width = (int32_t)last[1],
                        .channels = (int32_t)last[2]};
}

static stk_err new_array(stk_item *item, size_t part, const stk_spec *spec, stk_tensor *out,
                         stk_diag *diag)
{
    const stk_err err = stk_item_new_array(item, part, spec, out);
    return err ? stk_diag_set(diag, err, "no place for the pixels: %s", stk_err_str(err)) : err;
}

/* The same array in memory that only the item refers to. */
static stk_err copy(stk_item *item, size_t part, stk_tensor *t, stk_diag *diag)
{
    const stk_spec spec = stk_tensor_spec(t);
    stk_tensor mine;
    const stk_err err = new_array(item, part, &spec, &mine, diag);
    if (err) return err;
    stk_tensor_pack(t, mine.data);
    stk_item_commit_array(item, part);
    *t = mine;
    return STK_OK;
}

/* Without a buffer it is in its slot of the batch, of which nobody else knows yet. */
static bool is_mine(const stk_item *item, size_t part)
{
    stk_buffer *mem = stk_item_array_buffer(item, part);
    return !mem || stk_buffer_writable(mem);
}

stk_err stk_frames_view(stk_item *item, size_t part, stk_raster *out, stk_diag *diag)
{
    stk_tensor t = stk_item_array(item, part);
    stk_err err = check(&t, diag);
    if (!err && !stk_tensor_contiguous(&t)) err = copy(item, part, &t, diag);
    if (!err) *out = raster_over(&t);
    return err;
}

stk_err stk_frames_own(stk_item *item, size_t part, stk_raster *out, stk_diag *diag)
{
    stk_tensor t = stk_item_array(item, part);
    stk_err err = check(&t, diag);
    if (!err && (!stk_tensor_contiguous(&t) || !is_mine(item, part)))
        err = copy(item, part, &t, diag);
    if (!err) *out = raster_over(&t);
    return err;
}

stk_err stk_frames_new(stk_item *item, size_t part, int32_t height, int32_t width, stk_raster *out,
                       stk_diag *diag)
{
    const stk_tensor t = stk_item_array(item, part);
    stk_spec spec = stk_tensor_spec(&t);
    stk_tensor made;
    spec.shape[t.ndim - 3] = height;
    spec.shape[t.ndim - 2] = width;
    const stk_err err = new_array(item, part, &spec, &made, diag);
    if (!err) *out = raster_over(&made);
    return err;
}

stk_err stk_frames_pair(stk_item *item, size_t part, stk_raster *src, stk_raster *dst,
                        stk_diag *diag)
{
    stk_err err = stk_frames_view(item, part, src, diag);
    if (err) return err;
    *dst = *src;
    if (is_mine(item, part)) return STK_OK;
    return stk_frames_new(item, part, src->height, src->width, dst, diag);
}

stk_err stk_frames_check_colors(const stk_raster *r, stk_diag *diag)
{
    if (r->channels == 1 || r->channels == 3) return STK_OK;
    return stk_diag_set(
        diag, STK_EINVAL,
        "needs 1 or 3 channels (gray or RGB), found %d: leave the others out before",
        (int)r->channels);
}
