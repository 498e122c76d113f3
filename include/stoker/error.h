/*
 * stk_err and stk_diag: how a call says that it failed.
 *
 * A code says what a program may do about it; the text is for people.
 *
 * Threads: plain values, no hidden state: one thread at a time per stk_diag.
 */
#ifndef STK_ERROR_H
#define STK_ERROR_H

#include <stoker/base.h>

STK_BEGIN

/* The one list of failures. */
#define STK_ERR_MAP(X)                                                    \
    X(ENOMEM, -1, "out of memory")                                        \
    X(EINVAL, -2, "invalid argument")                                     \
    X(EIO, -3, "input/output failed; trying again may help")              \
    X(ECORRUPT, -4, "corrupt data; trying again will not help")           \
    X(EEND, -5, "no more items")                                          \
    X(ETIMEOUT, -6, "timed out")                                          \
    X(ECANCELLED, -7, "cancelled")                                        \
    X(ENOTFOUND, -8, "not found")                                         \
    X(EUNSUPPORTED, -9, "valid, but not supported")                       \
    X(ELIMIT, -10, "over a limit; the limit is an option")                \
    X(EAGAIN, -11, "not ready yet")                                       \
    X(EFORK, -12, "made before fork: use it in the process that made it") \
    X(ETOOMANY, -13, "more samples failed than allowed")                  \
    X(EEPOCH, -14, "end of an epoch; reading on gives the next one")      \
    X(ESKIP, -15, "no result, and no failure")                            \
    X(EFOREIGN, -16, "an op of another runtime failed")

typedef enum stk_err {
    STK_OK = 0,
#define X(name, value, text) STK_##name = value,
    STK_ERR_MAP(X)
#undef X
} stk_err;

/* Never NULL; static storage. */
STK_API const char *stk_err_str(stk_err err);

/*
 * What happened, for a person to read.  The caller owns it, usually on the
 * stack; it travels with a failed item from the worker that wrote it to the
 * thread that reports it.  Every function that takes one accepts NULL.
 */
typedef struct stk_diag {
    stk_err err;
    int os_error;    /* errno, or 0 */
    int part;        /* which file of a sample that has several */
    bool fatal;      /* of an op: its stage has failed, whatever its policy says of items */
    char text[2032]; /* room for the first ten failures of a run */
} stk_diag;

/* Both return `err`, so that failing is one statement:
 *     return stk_diag_set(diag, STK_ECORRUPT, "%s: bad magic", name);
 * stk_diag_errno picks the code: ENOENT and ENOTDIR are STK_ENOTFOUND, ENOMEM is
 * STK_ENOMEM, all others STK_EIO; it appends ": " and the system's own words. */
STK_API stk_err stk_diag_set(stk_diag *diag, stk_err err, const char *fmt, ...) STK_PRINTF(3, 4);
STK_API stk_err stk_diag_errno(stk_diag *diag, int errnum, const char *fmt, ...) STK_PRINTF(3, 4);

/* Puts "context: " before the text that is there; the code stays.  Cuts at the end. */
STK_API void stk_diag_prefix(stk_diag *diag, const char *fmt, ...) STK_PRINTF(2, 3);

STK_END

#endif /* STK_ERROR_H */
