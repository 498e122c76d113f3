#include "transform/kernels.h"

#if defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#define HAVE_NEON ((getauxval(AT_HWCAP) & 2) != 0) /* HWCAP_ASIMD */
#else
#define HAVE_NEON 1
#endif

const stk_kernels *stk_kernels_at(size_t i)
{
    if (i == 0) return &stk_kernels_scalar;
#if defined(__x86_64__)
    if (i == 1 && __builtin_cpu_supports("avx2")) return &stk_kernels_avx2;
#elif defined(__aarch64__)
    if (i == 1 && HAVE_NEON) return &stk_kernels_neon;
#endif
    return NULL;
}

const stk_kernels *stk_kernels_best(void)
{
    const stk_kernels *simd = stk_kernels_at(1);
    return simd ? simd : &stk_kernels_scalar;
}
