/* Checks of what an image's header claims, before any of it is believed. */
#ifndef STK_CODEC_LIMITS_H
#define STK_CODEC_LIMITS_H

#include "codec/codec.h"

/* STK_ELIMIT, with the size and the limit in the text. */
STK_NODISCARD stk_err stk_image_limits_check(const stk_image_limits *limits, const char *format,
                                             int64_t width, int64_t height, stk_diag *diag);

#endif /* STK_CODEC_LIMITS_H */
