/*
 * Failpoints: named places where a test can make the world fail or wait.
 *
 *     if (stk_failpoint("read.pread")) return stk_diag_errno(diag, errno, ...);
 *
 * Compiled in with -Dfailpoints=true (or STK_FAULTS); costs nothing otherwise.  A test sets them
 * by stk_failpoints_set, or a process by the environment variable STK_FAILPOINTS, read at the
 * first hit:  "dir.list=hold@2;read.pread=EIO@3"
 *
 *     NAME=ERRNO      every hit fails with that errno     (EIO ENOENT EACCES ENOMEM ENOSPC EAGAIN
 * EMFILE) NAME=hold       every hit waits until the point is cleared
 *     ...@N           only the N-th hit, from 1           ...@N+  that and every later one
 *
 * Threads: any.
 */
#ifndef STK_BASE_FAILPOINT_H
#define STK_BASE_FAILPOINT_H

#include <stdbool.h>

#if defined(STK_FAULTS) || defined(STK_FAILPOINTS)
/* True when this hit must fail: errno is set. */
bool stk_failpoint(const char *name);
/* Replaces all points; NULL or "" clears them and lets every holder go.  False: bad text. */
bool stk_failpoints_set(const char *text);
/* Waits until some thread is held at `name`. */
void stk_failpoint_await(const char *name);
#else
#define stk_failpoint(name) false
#endif

#endif /* STK_BASE_FAILPOINT_H */
