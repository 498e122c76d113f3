/*
 * stk_foreign: a handle of another runtime (a Python object, say) inside an item.
 *
 * The engine moves handles, counts references and never looks inside.  The last
 * reference may go away on any thread, but `release` only ever runs inside
 * stk_foreign_drain, that is on a thread of the foreign side:
 *
 *     worker: unref ──► dead list of the domain ──► foreign thread: drain ──► release
 *
 * Threads: all functions, any thread.  stk_foreign_drain must not be called from `release`.
 * Fork:    in the child the parent's domains and handles are dead weight: stk_foreign_new says
 *          STK_EFORK, everything else does nothing and releases nothing.
 */
#ifndef STK_FOREIGN_H
#define STK_FOREIGN_H

#include <stoker/error.h>

STK_BEGIN

typedef struct stk_foreign stk_foreign;
typedef struct stk_foreign_domain stk_foreign_domain;

/* Gives back one handle; runs on a thread that called stk_foreign_drain. */
typedef void stk_foreign_release_fn(void *handle, void *ctx);

/* Told, without any lock held, from any thread, that the dead list is no longer
 * empty.  It must only wake somebody up.  May be NULL. */
typedef void stk_foreign_notify_fn(void *ctx);

/* A domain lives until it was closed and its last handle was drained or unrefed. */
STK_API STK_NODISCARD stk_err stk_foreign_domain_new(stk_foreign_release_fn *release,
                                                     stk_foreign_notify_fn *notify, void *ctx,
                                                     stk_foreign_domain **out);

/* Drains, waits for running notifies, then gives up *d.  Handles that die later are never released:
 * the foreign runtime is gone by then.  &(stk_foreign_domain *){NULL} is fine. */
STK_API void stk_foreign_domain_close(stk_foreign_domain **d);

/* Takes `handle` on success: it will be released, once. */
STK_API STK_NODISCARD stk_err stk_foreign_new(stk_foreign_domain *d, void *handle,
                                              stk_foreign **out);
STK_API stk_foreign *stk_foreign_ref(stk_foreign *f);
STK_API void stk_foreign_unref(stk_foreign **f);

/* Borrowed: valid while the caller's reference is. */
STK_API void *stk_foreign_handle(const stk_foreign *f);

/* Puts another handle in the place of the one there, which is the caller's from now on.  For
 * whoever has the only reference. */
STK_API void *stk_foreign_swap(stk_foreign *f, void *handle);

/* Gives up *f and gives its handle, not released, to the caller, who has the only reference.  NULL:
 * there are others, and *f was given up like any reference. */
STK_API void *stk_foreign_take(stk_foreign **f);

/* Releases every dead handle of the domain on this thread; returns how many. */
STK_API size_t stk_foreign_drain(stk_foreign_domain *d);

STK_END

#endif /* STK_FOREIGN_H */
