#include "base/alloc.h"

#include <stdatomic.h>
#include <stdlib.h>

#ifdef STK_FAULTS
static _Atomic long countdown = -1;

bool stk_fault(void)
{
    return atomic_load(&countdown) >= 0 && atomic_fetch_sub(&countdown, 1) == 0;
}

void stk_fault_arm(long n)
{
    atomic_store(&countdown, n);
}

bool stk_fault_armed(void)
{
    return atomic_load(&countdown) >= 0;
}
#endif

void *stk_alloc(size_t size)
{
    return stk_fault() ? NULL : malloc(size ? size : 1);
}

void *stk_alloc_zero(size_t count, size_t size)
{
    return stk_fault() ? NULL : calloc(count ? count : 1, size ? size : 1);
}

void *stk_alloc_aligned(size_t align, size_t size)
{
    void *ptr;
    if (stk_fault() || posix_memalign(&ptr, align, size ? size : 1)) return NULL;
    return ptr;
}

void *stk_alloc_resize(void *ptr, size_t size)
{
    return stk_fault() ? NULL : realloc(ptr, size ? size : 1);
}

void stk_free(void *ptr)
{
    free(ptr);
}
