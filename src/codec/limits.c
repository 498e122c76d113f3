#include "codec/limits.h"

#include <inttypes.h>

stk_err stk_image_limits_check(const stk_image_limits *limits, const char *format, int64_t width,
                               int64_t height, stk_diag *diag)
{
    if (width > limits->max_side || height > limits->max_side)
        return stk_diag_set(diag, STK_ELIMIT,
                            "%s of %" PRId64 " x %" PRId64
                            " pixels: a side is over the limit of %d",
                            format, width, height, (int)limits->max_side);
    if (height > 0 && width > limits->max_pixels / height)
        return stk_diag_set(diag, STK_ELIMIT,
                            "%s of %" PRId64 " x %" PRId64 " pixels: over the limit of %" PRId64,
                            format, width, height, limits->max_pixels);
    return STK_OK;
}
