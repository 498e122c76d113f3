#include "transform/border.h"

static int64_t wrapped(int64_t i, int64_t period)
{
    i %= period;
    return i < 0 ? i + period : i;
}

int32_t stk_border_index(stk_pad_mode mode, int64_t i, int32_t n)
{
    if (i >= 0 && i < n) return (int32_t)i;
    if (mode == STK_PAD_EDGE || n == 1) return i < 0 ? 0 : n - 1;
    /* The last index of a period's way back: it begins with the last pixel again, or not. */
    const int64_t last = mode == STK_PAD_REFLECT ? 2 * ((int64_t)n - 1) : 2 * (int64_t)n - 1;
    i = wrapped(i, mode == STK_PAD_REFLECT ? last : last + 1);
    return (int32_t)(i < n ? i : last - i);
}
