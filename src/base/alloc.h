/* The only door to the heap, so that tests can make any allocation fail. */
#ifndef STK_BASE_ALLOC_H
#define STK_BASE_ALLOC_H

#include <stdbool.h>
#include <stddef.h>

void *stk_alloc(size_t size);                       /* like malloc */
void *stk_alloc_zero(size_t count, size_t size);    /* like calloc: checks the product */
void *stk_alloc_aligned(size_t align, size_t size); /* align: a power of two */
/* like realloc: on NULL the old block is still the caller's, so keep it in another variable */
void *stk_alloc_resize(void *ptr, size_t size);
void stk_free(void *ptr); /* frees any of these; NULL is fine */

/* True when a test has asked this attempt to fail; false always, otherwise. */
#ifdef STK_FAULTS
bool stk_fault(void);
void stk_fault_arm(long countdown); /* the countdown-th attempt from now fails; -1: none */
bool stk_fault_armed(void);         /* it has not come to that yet */
#else
static inline bool stk_fault(void)
{
    return false;
}
#endif

#endif /* STK_BASE_ALLOC_H */
