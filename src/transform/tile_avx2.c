#include "transform/tile.h"

#if defined(__x86_64__)

#include "transform/avx2.h"

STK_AVX2_BEGIN
#include "transform/tile_loops.h"
STK_AVX2_END

STK_TILE_TABLE(stk_tile_avx2, "avx2");

#endif
