/*
 * Functions between the two are compiled for AVX2: plain loops, from the same source as those for
 * any processor, three to six times as fast.  System headers come before.
 */
#ifndef STK_TRANSFORM_AVX2_H
#define STK_TRANSFORM_AVX2_H

#if defined(__clang__)
#define STK_AVX2_BEGIN \
    _Pragma("clang attribute push(__attribute__((target(\"avx2\"))), apply_to = function)")
#define STK_AVX2_END _Pragma("clang attribute pop")
#else
#define STK_AVX2_BEGIN _Pragma("GCC push_options") _Pragma("GCC target(\"avx2\")")
#define STK_AVX2_END _Pragma("GCC pop_options")
#endif

#endif /* STK_TRANSFORM_AVX2_H */
