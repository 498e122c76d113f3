/*
 * stk_names: many short strings, kept as bytes and sorted byte by byte (as LC_ALL=C sort).
 *
 *     bytes  b.jpg.a.jpg.aa.jpg.      at  6 12 0      (. is a NUL)
 *
 * Threads: one thread at a time until it is packed, then any may read.
 * Memory:  the bytes, a NUL and 4 bytes for each name; 4 GiB at most.
 */
#ifndef STK_SOURCE_NAMES_H
#define STK_SOURCE_NAMES_H

#include <stoker/error.h>

typedef struct stk_names {
    char *bytes;
    uint32_t *at; /* where each begins */
    uint32_t num;
    uint32_t room; /* of `at` */
    size_t size, capacity;
} stk_names;

void stk_names_fini(stk_names *names);

/* `len` bytes without a NUL among them.  STK_ELIMIT: 4 GiB are full. */
STK_NODISCARD stk_err stk_names_add(stk_names *names, const char *name, size_t len);

/* Sorts, and gives memory that was not needed back. */
STK_NODISCARD stk_err stk_names_pack(stk_names *names);

const char *stk_names_get(const stk_names *names, size_t i);

/* Bytes held. */
size_t stk_names_memory(const stk_names *names);

#endif /* STK_SOURCE_NAMES_H */
