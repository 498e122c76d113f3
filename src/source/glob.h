/*
 * stk_glob: patterns of file names, several separated by '|'.
 *
 *     *  any bytes, also none     ?  one byte     [a-z] [!a-z]  one byte of a set
 *     \  takes the next byte as it is
 *
 * Bytes are compared, whatever the locale, so that names need not be UTF-8.  A leading dot is
 * nothing special.
 *
 * Threads: any may match.
 */
#ifndef STK_SOURCE_GLOB_H
#define STK_SOURCE_GLOB_H

#include <stoker/error.h>

typedef struct stk_glob stk_glob;

/* Copies `text`; NULL stands for the endings of images, in any case.
 * STK_EINVAL: an empty pattern, or one whose '[' or '\' has no end; *diag says which. */
STK_NODISCARD stk_err stk_glob_new(const char *text, stk_glob **out, stk_diag *diag);
void stk_glob_free(stk_glob **g);

bool stk_glob_match(const stk_glob *g, const char *name, size_t len);

/* What it was made of, for people. */
const char *stk_glob_text(const stk_glob *g);

#endif /* STK_SOURCE_GLOB_H */
