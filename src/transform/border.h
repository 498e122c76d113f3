/*
 * stk_border: which pixel of an axis stands beyond its ends.
 *
 * Threads: any; no state.
 */
#ifndef STK_TRANSFORM_BORDER_H
#define STK_TRANSFORM_BORDER_H

#include <stoker/augment.h>

/* For any i and an axis of n >= 1: 0 to n - 1.  Not for STK_PAD_CONSTANT. */
int32_t stk_border_index(stk_pad_mode mode, int64_t i, int32_t n);

#endif /* STK_TRANSFORM_BORDER_H */
