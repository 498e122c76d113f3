#include "transform/blur.h"

#if defined(__x86_64__)

#include "transform/avx2.h"

STK_AVX2_BEGIN
#include "transform/blur_loops.h"
STK_AVX2_END

STK_BLUR_TABLE(stk_blur_avx2, "avx2");

#endif
