#include "ops/augment.h"

#include <string.h>

#include "base/alloc.h"

stk_err stk_augment_check(const char *op, double keep, stk_diag *diag)
{
    if (keep >= 0 && keep <= 1) return STK_OK; /* a NaN is neither */
    return stk_diag_set(diag, STK_EINVAL, "%s: keep is %g, not a probability from 0 to 1", op,
                        keep);
}

stk_err stk_augment_check_range(const char *op, const char *what, const double range[2],
                                double least, double most, stk_diag *diag)
{
    if (range[0] >= least && range[0] <= range[1] && range[1] <= most) return STK_OK;
    return stk_diag_set(diag, STK_EINVAL, "%s: %s is %g to %g: a range from %g to %g is possible",
                        op, what, range[0], range[1], least, most);
}

stk_err stk_augment_check_fill(const char *op, const stk_fill *fill, stk_diag *diag)
{
    if (fill->channels >= 0 && fill->channels <= STK_FILL_CHANNELS) return STK_OK;
    return stk_diag_set(diag, STK_EINVAL, "%s: a fill of %d channels: 0 to %d are possible", op,
                        (int)fill->channels, STK_FILL_CHANNELS);
}

stk_err stk_augment_fill(const stk_fill *fill, int32_t channels, uint8_t out[STK_FILLED_CHANNELS],
                         stk_diag *diag)
{
    if (channels > STK_FILLED_CHANNELS)
        return stk_diag_set(diag, STK_EINVAL, "the array has %d channels: at most %d can be filled",
                            (int)channels, STK_FILLED_CHANNELS);
    if (fill->channels > 1 && fill->channels != channels)
        return stk_diag_set(diag, STK_EINVAL,
                            "the fill has %d values, but the array %d channels: give one value, or "
                            "as many",
                            (int)fill->channels, (int)channels);
    for (int32_t c = 0; c < channels; c++) out[c] = fill->value[fill->channels > 1 ? c : 0];
    return STK_OK;
}

stk_op *stk_augment_op(const stk_op_class *cls, const void *params, size_t size, stk_diag *diag)
{
    void *copy = stk_alloc(size);
    if (copy) memcpy(copy, params, size);
    stk_op *op = copy ? stk_op_new(cls, copy) : NULL;
    if (!op) stk_diag_set(diag, STK_ENOMEM, "%s: no memory", cls->name);
    return op;
}
