#include <stoker/foreign.h>

#include <assert.h>
#include <stdatomic.h>

#include "base/alloc.h"
#include "base/thread.h"

struct stk_foreign_domain {
    stk_foreign_release_fn *release; /* these four never change */
    stk_foreign_notify_fn *notify;
    void *ctx;
    unsigned generation; /* of the process that made it */

    atomic_size_t refs; /* the owner's, one for each handle, one for each running notify */
    atomic_bool any;    /* dead handles, about: to look without the lock */

    stk_mutex lock; /* guards everything below */
    stk_cond quiet; /* notifying became 0 */
    size_t notifying;
    bool closed;
    stk_foreign *dead; /* first to die first */
    stk_foreign **dead_end;
};

struct stk_foreign {
    stk_foreign_domain *domain;
    void *handle;
    atomic_size_t refs;
    stk_foreign *next; /* in the domain's dead list: its lock guards it */
};

static void domain_free(stk_foreign_domain *d)
{
    stk_cond_fini(&d->quiet);
    stk_mutex_fini(&d->lock);
    stk_free(d);
}

stk_err stk_foreign_domain_new(stk_foreign_release_fn *release, stk_foreign_notify_fn *notify,
                               void *ctx, stk_foreign_domain **out)
{
    *out = NULL;
    if (!release) return STK_EINVAL;
    stk_foreign_domain *d = stk_alloc_zero(1, sizeof(*d));
    if (!d) return STK_ENOMEM;
    d->release = release;
    d->notify = notify;
    d->ctx = ctx;
    d->generation = stk_fork_generation();
    atomic_init(&d->refs, 1);
    d->dead_end = &d->dead;

    stk_err err = stk_mutex_init(&d->lock);
    if (!err) err = stk_cond_init(&d->quiet);
    if (err)
        domain_free(d);
    else
        *out = d;
    return err;
}

/* After fork the lock may be held by a thread that does not exist in the child: what the parent
 * made is left alone there. */
static bool forked(const stk_foreign_domain *d)
{
    return d->generation != stk_fork_generation();
}

static stk_foreign *take_dead_locked(stk_foreign_domain *d) STK_REQUIRES(d->lock)
{
    stk_foreign *list = d->dead;
    d->dead = NULL;
    d->dead_end = &d->dead;
    atomic_store_explicit(&d->any, false, memory_order_relaxed);
    return list;
}

/* Gives up `count` references. */
static void domain_unref(stk_foreign_domain *d, size_t count)
{
    if (atomic_fetch_sub_explicit(&d->refs, count, memory_order_acq_rel) == count) domain_free(d);
}

size_t stk_foreign_drain(stk_foreign_domain *d)
{
    size_t count = 0;
    if (forked(d)) return 0;
    while (atomic_load_explicit(
        &d->any, memory_order_relaxed)) { /* again: a release may be the end of another handle */
        stk_mutex_lock(&d->lock);
        stk_foreign *list = take_dead_locked(d);
        stk_mutex_unlock(&d->lock);
        if (!list) break;

        while (list) {
            stk_foreign *f = list;
            list = f->next;
            d->release(f->handle, d->ctx);
            stk_free(f);
            count++;
        }
    }
    /* Only here, all at once: the owner's reference has kept the domain meanwhile. */
    if (count) domain_unref(d, count);
    return count;
}

void stk_foreign_domain_close(stk_foreign_domain **pd)
{
    stk_foreign_domain *d = *pd;
    *pd = NULL;
    if (!d || forked(d)) return;

    for (bool open = true; open;) {
        stk_foreign_drain(d);
        stk_mutex_lock(&d->lock);
        if (!d->dead) {
            d->closed = true;
            open = false;
            /* `ctx` may go away once this function has returned. */
            while (d->notifying) stk_cond_wait(&d->quiet, &d->lock, STK_NEVER);
        }
        stk_mutex_unlock(&d->lock);
    }
    domain_unref(d, 1);
}

stk_err stk_foreign_new(stk_foreign_domain *d, void *handle, stk_foreign **out)
{
    *out = NULL;
    if (forked(d)) return STK_EFORK;
    stk_foreign *f = *out = stk_alloc_zero(1, sizeof(*f));
    if (!f) return STK_ENOMEM;
    f->domain = d;
    f->handle = handle;
    atomic_init(&f->refs, 1);

    atomic_fetch_add_explicit(&d->refs, 1, memory_order_relaxed);
    return STK_OK;
}

stk_foreign *stk_foreign_ref(stk_foreign *f)
{
    /* Relaxed: the caller already holds a reference, so nothing is published. */
    size_t before = atomic_fetch_add_explicit(&f->refs, 1, memory_order_relaxed);
    assert(before > 0);
    (void)before;
    return f;
}

/* Called without the lock; `d` is kept by a reference that this gives up. */
static void notify_and_unref(stk_foreign_domain *d)
{
    d->notify(d->ctx);

    stk_mutex_lock(&d->lock);
    if (--d->notifying == 0) stk_cond_broadcast(&d->quiet);
    stk_mutex_unlock(&d->lock);
    domain_unref(d, 1);
}

void stk_foreign_unref(stk_foreign **pf)
{
    stk_foreign *f = *pf;
    *pf = NULL;
    if (!f || atomic_fetch_sub_explicit(&f->refs, 1, memory_order_acq_rel) != 1) return;

    stk_foreign_domain *d = f->domain;
    if (forked(d)) return;
    stk_mutex_lock(&d->lock);
    const bool closed = d->closed;
    const bool tell = !closed && !d->dead && d->notify;
    if (tell) {
        atomic_fetch_add_explicit(&d->refs, 1, memory_order_relaxed);
        d->notifying++;
    }
    if (!closed) {
        *d->dead_end = f;
        d->dead_end = &f->next;
        atomic_store_explicit(&d->any, true, memory_order_relaxed);
    }
    stk_mutex_unlock(&d->lock);

    if (closed) {
        stk_free(f);
        domain_unref(d, 1);
    }
    if (tell) notify_and_unref(d);
}

void *stk_foreign_swap(stk_foreign *f, void *handle)
{
    void *before = f->handle;
    f->handle = handle;
    return before;
}

void *stk_foreign_take(stk_foreign **pf)
{
    stk_foreign *f = *pf;
    if (forked(f->domain) || atomic_load_explicit(&f->refs, memory_order_acquire) != 1) {
        stk_foreign_unref(pf);
        return NULL;
    }
    *pf = NULL;
    void *handle = f->handle;
    stk_foreign_domain *d = f->domain;
    stk_free(f);
    domain_unref(d, 1);
    return handle;
}

void *stk_foreign_handle(const stk_foreign *f)
{
    return f->handle;
}
