#include "transform/tile_loops.h"

STK_TILE_TABLE(stk_tile_plain, "plain");

const stk_tile_kernels *stk_tile_kernels_at(size_t i)
{
    if (i == 0) return &stk_tile_plain;
#if defined(__x86_64__)
    if (i == 1 && __builtin_cpu_supports("avx2")) return &stk_tile_avx2;
#endif
    return NULL;
}

const stk_tile_kernels *stk_tile_kernels_best(void)
{
    const stk_tile_kernels *simd = stk_tile_kernels_at(1);
    return simd ? simd : &stk_tile_plain;
}
