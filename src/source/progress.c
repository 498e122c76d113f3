#include "source/progress.h"

stk_err stk_progress_init(stk_progress *p, const char *name, void (*help_locked)(stk_progress *p))
{
    p->name = name;
    p->help_locked = help_locked;
    stk_err err = stk_mutex_init(&p->lock);
    if (!err) err = stk_cond_init(&p->work);
    if (!err) err = stk_cond_init(&p->news);
    return err;
}

void stk_progress_fini(stk_progress *p)
{
    stk_cond_fini(&p->news);
    stk_cond_fini(&p->work);
    stk_mutex_fini(&p->lock);
}

bool stk_progress_is_forked(const stk_progress *p)
{
    return atomic_load_explicit(&p->started, memory_order_acquire) &&
           p->generation != stk_fork_generation();
}

bool stk_progress_is_complete(const stk_progress *p)
{
    return atomic_load_explicit(&p->complete, memory_order_acquire);
}

bool stk_progress_stopped(const stk_progress *p)
{
    return atomic_load_explicit(&p->stop, memory_order_relaxed);
}

static void stop_locked(stk_progress *p) STK_REQUIRES(p->lock)
{
    atomic_store_explicit(&p->stop, true, memory_order_relaxed);
    stk_cond_broadcast(&p->work);
}

void stk_progress_stop(stk_progress *p)
{
    stk_mutex_lock(&p->lock);
    stop_locked(p);
    stk_mutex_unlock(&p->lock);
}

stk_err stk_progress_refuse_child(const stk_progress *p, stk_diag *diag)
{
    return stk_diag_set(diag, STK_EFORK,
                        "%s: it was being listed when this process was forked: "
                        "make a new source in the child",
                        p->name);
}

void stk_progress_fail_locked(stk_progress *p, stk_err err, const stk_diag *diag)
{
    if (p->err) return;
    p->err = err;
    if (diag)
        p->diag = *diag;
    else
        stk_diag_set(&p->diag, err, "%s: no memory to list its samples", p->name);
    p->diag.err = err;
    stop_locked(p);
    stk_cond_broadcast(&p->news);
}

void stk_progress_complete_locked(stk_progress *p)
{
    atomic_store_explicit(&p->complete, true, memory_order_release);
    stk_cond_broadcast(&p->news);
}

static bool is_news_locked(const stk_progress *p, const stk_watcher *w) STK_REQUIRES(p->lock)
{
    return p->err || stk_progress_is_complete(p) || w->wanted <= p->available;
}

void stk_progress_wake_locked(stk_progress *p)
{
    stk_watcher **at = &p->watchers;
    while (*at) {
        stk_watcher *w = *at;
        if (!is_news_locked(p, w)) {
            at = &w->next;
            continue;
        }
        *at = w->next;
        w->armed = false;
        w->waking++;
        stk_mutex_unlock(&p->lock);
        w->wake(w->ctx);
        stk_mutex_lock(&p->lock);
        w->waking--;
        stk_cond_broadcast(&p->news);
        at = &p->watchers; /* others may have come and gone */
    }
}

static stk_err report_locked(const stk_progress *p, stk_diag *diag) STK_REQUIRES(p->lock)
{
    if (diag) *diag = p->diag;
    return p->err;
}

static void arm_locked(stk_progress *p, stk_watcher *w, int64_t wanted) STK_REQUIRES(p->lock)
{
    w->wanted = wanted;
    if (w->armed) return;
    w->armed = true;
    w->next = p->watchers;
    p->watchers = w;
}

static void demand_locked(stk_progress *p, int64_t wanted) STK_REQUIRES(p->lock)
{
    if (wanted <= p->demand || !atomic_load_explicit(&p->started, memory_order_relaxed)) return;
    p->demand = wanted;
    p->help_locked(p);
}

/* What is there without the lock, which a child of fork must not touch. */
static bool is_settled(const stk_progress *p, stk_err *err, stk_diag *diag)
{
    *err = STK_OK;
    if (stk_progress_is_complete(p)) return true;
    if (!stk_progress_is_forked(p)) return false;
    *err = stk_progress_refuse_child(p, diag);
    return true;
}

stk_err stk_progress_look(stk_progress *p, int64_t wanted, stk_watcher *w, stk_look *out,
                          stk_diag *diag)
{
    stk_err err;
    *out = (stk_look){0};
    if (is_settled(p, &err, diag)) {
        if (!err) *out = (stk_look){.available = p->available, .complete = true};
        return err;
    }
    stk_mutex_lock(&p->lock);
    demand_locked(p, wanted);
    *out = (stk_look){.available = p->available, .complete = stk_progress_is_complete(p)};
    if (!out->complete && out->available < wanted) {
        err = p->err ? report_locked(p, diag) : STK_EAGAIN;
        if (!p->err && w) arm_locked(p, w, wanted);
    }
    stk_mutex_unlock(&p->lock);
    return err;
}

void stk_progress_forget(stk_progress *p, stk_watcher *w)
{
    if (stk_progress_is_forked(p)) return;
    stk_mutex_lock(&p->lock);
    for (stk_watcher **at = &p->watchers; *at; at = &(*at)->next)
        if (*at == w) {
            *at = w->next;
            w->armed = false;
            break;
        }
    while (w->waking) (void)stk_cond_wait(&p->news, &p->lock, STK_NEVER);
    stk_mutex_unlock(&p->lock);
}

static bool is_there_locked(const stk_progress *p, const bool *is_there) STK_REQUIRES(p->lock)
{
    return stk_progress_is_complete(p) || (is_there && *is_there);
}

stk_err stk_progress_wait(stk_progress *p, const bool *is_there, int64_t *count, stk_diag *diag)
{
    stk_err err;
    *count = 0;
    if (!is_settled(p, &err, diag)) {
        stk_mutex_lock(&p->lock);
        if (!is_there) demand_locked(p, INT64_MAX);
        while (!p->err && !is_there_locked(p, is_there))
            (void)stk_cond_wait(&p->news, &p->lock, STK_NEVER);
        if (!is_there_locked(p, is_there)) err = report_locked(p, diag);
        if (!err) *count = p->available;
        stk_mutex_unlock(&p->lock);
    }
    else if (!err) {
        *count = p->available;
    }
    return err;
}
