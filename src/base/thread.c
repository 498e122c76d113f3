#include "base/thread.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/alloc.h"

static void must(int rc)
{
    if (rc) abort();
}

stk_err stk_mutex_init(stk_mutex *m)
{
    pthread_mutexattr_t attr;
    if (stk_fault() || pthread_mutexattr_init(&attr)) return STK_ENOMEM;
#ifndef NDEBUG
    pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ERRORCHECK);
#endif
    int rc = pthread_mutex_init(&m->os, &attr);
    pthread_mutexattr_destroy(&attr);
    m->made = rc == 0;
    return m->made ? STK_OK : STK_ENOMEM;
}

void stk_mutex_fini(stk_mutex *m)
{
    if (m->made) must(pthread_mutex_destroy(&m->os));
    m->made = false;
}

void stk_mutex_lock(stk_mutex *m) STK_TSA(no_thread_safety_analysis)
{
    must(pthread_mutex_lock(&m->os));
}
void stk_mutex_unlock(stk_mutex *m) STK_TSA(no_thread_safety_analysis)
{
    must(pthread_mutex_unlock(&m->os));
}

stk_err stk_cond_init(stk_cond *c)
{
    pthread_condattr_t attr;
    if (stk_fault() || pthread_condattr_init(&attr)) return STK_ENOMEM;
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    int rc = pthread_cond_init(&c->os, &attr);
    pthread_condattr_destroy(&attr);
    c->made = rc == 0;
    return c->made ? STK_OK : STK_ENOMEM;
}

void stk_cond_fini(stk_cond *c)
{
    if (c->made) must(pthread_cond_destroy(&c->os));
    c->made = false;
}

void stk_cond_signal(stk_cond *c)
{
    must(pthread_cond_signal(&c->os));
}
void stk_cond_broadcast(stk_cond *c)
{
    must(pthread_cond_broadcast(&c->os));
}

bool stk_cond_wait(stk_cond *c, stk_mutex *m, int64_t deadline)
{
    if (deadline == STK_NEVER) {
        must(pthread_cond_wait(&c->os, &m->os));
        return true;
    }
    struct timespec ts = {
        .tv_sec = (time_t)(deadline / 1000000000),
        .tv_nsec = (long)(deadline % 1000000000),
    };
    int rc = pthread_cond_timedwait(&c->os, &m->os, &ts);
    if (rc != ETIMEDOUT) must(rc);
    return rc == 0;
}

int64_t stk_clock_ns(void)
{
    struct timespec ts;
    must(clock_gettime(CLOCK_MONOTONIC, &ts));
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

int64_t stk_deadline_ns(int64_t timeout)
{
    if (timeout < 0) return STK_NEVER;
    int64_t now = stk_clock_ns();
    return timeout > STK_NEVER - now ? STK_NEVER : now + timeout;
}

stk_err stk_thread_start(stk_thread *t, const char *name, void *(*run)(void *), void *arg)
{
    char cut[16];
    snprintf(cut, sizeof(cut), "%s", name);
    if (stk_fault()) return STK_EAGAIN;

    sigset_t all, before;
    sigfillset(&all);
    must(pthread_sigmask(SIG_SETMASK, &all, &before));
    int rc = pthread_create(&t->os, NULL, run, arg);
    must(pthread_sigmask(SIG_SETMASK, &before, NULL));
    t->made = rc == 0;
    if (rc) return STK_EAGAIN;
    (void)pthread_setname_np(t->os, cut); /* for debuggers only */
    return STK_OK;
}

void stk_thread_join(stk_thread *t)
{
    if (t->made) must(pthread_join(t->os, NULL));
    t->made = false;
}

void stk_thread_detach(stk_thread *t)
{
    if (t->made) must(pthread_detach(t->os));
    t->made = false;
}

bool stk_thread_is_self(const stk_thread *t)
{
    return t->made && pthread_equal(t->os, pthread_self());
}

static _Atomic unsigned generation;
static pthread_once_t watching = PTHREAD_ONCE_INIT;

static void count_fork(void)
{
    atomic_fetch_add_explicit(&generation, 1, memory_order_relaxed);
}

static void watch_forks(void)
{
    must(pthread_atfork(NULL, NULL, count_fork));
}

unsigned stk_fork_generation(void)
{
    must(pthread_once(&watching, watch_forks));
    return atomic_load_explicit(&generation, memory_order_relaxed);
}
