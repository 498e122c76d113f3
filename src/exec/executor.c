#include "exec/pool.h"

#include <assert.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/thread.h"

typedef struct worker {
    stk_executor *ex;
    stk_thread thread;
    int32_t index;
} worker;

struct stk_executor {
    int32_t num_threads; /* at most; these five never change */
    int32_t nice;        /* of its threads */
    bool placed;         /* `cpus` is known */
    cpu_set_t cpus;
    char name[11];
    unsigned generation;
    atomic_int refs;
    atomic_int waiting_clients; /* a hint, read without the lock */
    atomic_int missing;         /* threads that the system refused; likewise */
    worker *workers;

    stk_mutex lock; /* guards everything below */
    stk_cond work;  /* a client has demand, or the end */
    stk_client *head, *tail;
    int32_t demand; /* of all clients in the queue */
    int32_t made;   /* threads that run */
    int32_t idle;   /* of them, and of the one being made: with no client */
    bool making;    /* a thread is being made */
    bool ending;
    int32_t heir; /* the worker that dropped the last reference frees the rest; -1: none */
};

static void free_executor(stk_executor *ex)
{
    stk_cond_fini(&ex->work);
    stk_mutex_fini(&ex->lock);
    stk_free(ex->workers);
    stk_free(ex);
}

static void push_locked(stk_executor *ex, stk_client *c) STK_REQUIRES(ex->lock)
{
    if (c->queued || c->demand == 0) return;
    c->queued = true;
    c->next = NULL;
    if (ex->tail)
        ex->tail->next = c;
    else
        ex->head = c;
    ex->tail = c;
    ex->demand += c->demand;
    atomic_fetch_add_explicit(&ex->waiting_clients, 1, memory_order_relaxed);
}

static void unlink_locked(stk_executor *ex, stk_client *c) STK_REQUIRES(ex->lock)
{
    if (!c->queued) return;
    stk_client **at = &ex->head, *before = NULL;
    while (*at != c) before = *at, at = &(*at)->next;
    *at = c->next;
    if (ex->tail == c) ex->tail = before;
    c->queued = false;
    ex->demand -= c->demand;
    atomic_fetch_sub_explicit(&ex->waiting_clients, 1, memory_order_relaxed);
}

/* Counts one more worker that `c` could use. */
static void ask_locked(stk_executor *ex, stk_client *c) STK_REQUIRES(ex->lock)
{
    if (c->detached || c->demand == ex->num_threads) return;
    c->demand++;
    ex->demand += c->queued;
    push_locked(ex, c);
}

/* Gives one worker to the client at the head; a client that wants more goes to the tail. */
static void serve_locked(stk_executor *ex, int32_t index) STK_REQUIRES(ex->lock)
{
    stk_client *c = ex->head;
    unlink_locked(ex, c);
    c->demand--;
    c->inside++;
    push_locked(ex, c);
    ex->idle--;
    stk_mutex_unlock(&ex->lock);

    const bool more = c->work(c, index);

    stk_mutex_lock(&ex->lock);
    ex->idle++;
    c->inside--;
    if (more) ask_locked(ex, c);
    if (!c->detached || c->inside > 0) return;
    stk_mutex_unlock(&ex->lock);
    c->gone(c);
    stk_mutex_lock(&ex->lock);
}

/* A thread begins with the processors and the niceness of the one that made it, and any thread
 * that has work for us may: so both are set.  Failing to get them costs speed, nothing else. */
static void settle_in(const stk_executor *ex)
{
    const id_t self = (id_t)gettid();
    if (ex->placed) (void)sched_setaffinity(0, sizeof(ex->cpus), &ex->cpus);
    if (getpriority(PRIO_PROCESS, self) != ex->nice)
        (void)setpriority(PRIO_PROCESS, self, ex->nice);
}

static void *work(void *arg)
{
    worker *w = arg;
    stk_executor *ex = w->ex;
    settle_in(ex);
    stk_mutex_lock(&ex->lock);
    for (;;) {
        while (!ex->head && !ex->ending) (void)stk_cond_wait(&ex->work, &ex->lock, STK_NEVER);
        if (!ex->head) break;
        serve_locked(ex, w->index);
    }
    const bool orphaned = ex->heir == w->index;
    stk_mutex_unlock(&ex->lock);
    if (orphaned) {
        for (int32_t i = 0; i < ex->made; i++)
            if (i != w->index) stk_thread_join(&ex->workers[i].thread);
        (void)pthread_detach(w->thread.os);
        free_executor(ex);
    }
    return NULL;
}

/* Where the system hides some, those that may be used exist all the same. */
static bool exists(int32_t cpu)
{
    cpu_set_t usable;
    if (cpu < 0 || cpu >= CPU_SETSIZE) return false;
    if (cpu < sysconf(_SC_NPROCESSORS_CONF)) return true;
    return !sched_getaffinity(0, sizeof(usable), &usable) && CPU_ISSET((size_t)cpu, &usable);
}

static stk_err check(const stk_executor_opts *o, stk_diag *diag)
{
    if (o->num_threads < 0 || o->num_threads > STK_MAX_THREADS)
        return stk_diag_set(diag, STK_EINVAL,
                            "num_threads is %d: it must be from 0 (all usable) to %d",
                            (int)o->num_threads, STK_MAX_THREADS);
    if (o->nice < 0 || o->nice > 19)
        return stk_diag_set(diag, STK_EINVAL, "nice is %d: it must be from 0 to 19", (int)o->nice);
    for (size_t i = 0; i < o->num_cpus; i++)
        if (!exists(o->cpus[i]))
            return stk_diag_set(diag, STK_EINVAL, "processor %d does not exist", (int)o->cpus[i]);
    if (o->name && strlen(o->name) > sizeof((stk_executor){0}.name) - 1)
        return stk_diag_set(diag, STK_EINVAL, "name '%s' is longer than 10 bytes", o->name);
    return STK_OK;
}

int32_t stk_usable_processors(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof(set), &set)) return 1;
    const int n = CPU_COUNT(&set);
    return n < 1 ? 1 : n > STK_MAX_THREADS ? STK_MAX_THREADS : n;
}

/* One more thread, without the lock: called by one thread at a time, which has set `making` and
 * holds a reference, so nobody looks for the thread's handle before it is written. */
static stk_err make_thread(stk_executor *ex, int32_t index)
{
    worker *w = &ex->workers[index];
    w->ex = ex;
    w->index = index;
    char name[24];
    snprintf(name, sizeof(name), "%s-%d", ex->name, (int)index);
    return stk_thread_start(&w->thread, name, work, w);
}

/* As many threads as find something to do.  Lets the lock go for each of them. */
static stk_err make_threads_locked(stk_executor *ex) STK_REQUIRES(ex->lock)
{
    stk_err err = STK_OK;
    while (!err && !ex->making && !stk_executor_refused(ex) && ex->made < ex->num_threads &&
           (ex->demand > ex->idle || ex->made == 0)) {
        const int32_t index = ex->made;
        ex->making = true;
        ex->idle++;
        stk_mutex_unlock(&ex->lock);
        err = make_thread(ex, index);
        stk_mutex_lock(&ex->lock);
        ex->making = false;
        if (!err) {
            ex->made++;
            continue;
        }
        ex->idle--;
        atomic_store_explicit(&ex->missing, ex->num_threads - ex->made, memory_order_relaxed);
    }
    return err;
}

/* The first thread is there from the beginning: without any the executor would be of no use. */
static stk_err start(stk_executor *ex, int32_t n, stk_diag *diag)
{
    ex->workers = stk_alloc_zero((size_t)n, sizeof(*ex->workers));
    if (!ex->workers) return stk_diag_set(diag, STK_ENOMEM, "no memory for %d threads", (int)n);
    ex->num_threads = n;
    stk_mutex_lock(&ex->lock);
    stk_err err = make_threads_locked(ex);
    stk_mutex_unlock(&ex->lock);
    if (!err) return STK_OK;
    return stk_diag_set(diag, err,
                        "the system refused a thread: end other programs, or raise the limit on "
                        "processes (ulimit -u)");
}

static void place(stk_executor *ex, const stk_executor_opts *o)
{
    for (size_t i = 0; i < o->num_cpus; i++) CPU_SET((size_t)o->cpus[i], &ex->cpus);
    ex->placed = o->num_cpus > 0 || !sched_getaffinity(0, sizeof(ex->cpus), &ex->cpus);
    ex->nice = getpriority(PRIO_PROCESS, (id_t)gettid()) + o->nice;
}

stk_err stk_executor_new(const stk_executor_opts *opts, stk_executor **out, stk_diag *diag)
{
    const stk_executor_opts o = opts ? *opts : (stk_executor_opts){0};
    *out = NULL;
    stk_err err = check(&o, diag);
    if (err) return err;
    stk_executor *ex = stk_alloc_zero(1, sizeof(*ex));
    if (!ex) return stk_diag_set(diag, STK_ENOMEM, "no memory for an executor");
    atomic_init(&ex->refs, 1);
    ex->heir = -1;
    ex->generation = stk_fork_generation();
    place(ex, &o);
    snprintf(ex->name, sizeof(ex->name), "%s", o.name ? o.name : "stoker");

    err = stk_mutex_init(&ex->lock);
    if (!err) err = stk_cond_init(&ex->work);
    if (err) stk_diag_set(diag, err, "no memory for an executor");
    if (!err) err = start(ex, o.num_threads ? o.num_threads : stk_usable_processors(), diag);
    if (err) stk_executor_unref(&ex);
    *out = ex;
    return err;
}

stk_executor *stk_executor_ref(stk_executor *ex)
{
    atomic_fetch_add_explicit(&ex->refs, 1, memory_order_relaxed);
    return ex;
}

void stk_executor_unref(stk_executor **pex)
{
    stk_executor *ex = *pex;
    *pex = NULL;
    if (!ex || ex->generation != stk_fork_generation()) return; /* its threads are the parent's */
    if (atomic_fetch_sub_explicit(&ex->refs, 1, memory_order_acq_rel) != 1) return;
    if (!ex->lock.made) {
        free_executor(ex);
        return;
    }
    stk_mutex_lock(&ex->lock);
    for (int32_t i = 0; i < ex->made; i++)
        if (stk_thread_is_self(&ex->workers[i].thread)) ex->heir = i;
    const bool self = ex->heir >= 0;
    ex->ending = true;
    if (ex->work.made) stk_cond_broadcast(&ex->work);
    stk_mutex_unlock(&ex->lock);
    if (self) return;
    for (int32_t i = 0; i < ex->made; i++) stk_thread_join(&ex->workers[i].thread);
    free_executor(ex);
}

int32_t stk_executor_num_threads(const stk_executor *ex)
{
    return ex->num_threads;
}

void stk_executor_wake(stk_executor *ex, stk_client *c)
{
    stk_mutex_lock(&ex->lock);
    ask_locked(ex, c);
    if (c->queued) stk_cond_signal(&ex->work);
    (void)make_threads_locked(ex); /* a refusal is kept: those that run do without */
    stk_mutex_unlock(&ex->lock);
}

int32_t stk_executor_refused(const stk_executor *ex)
{
    return atomic_load_explicit(&ex->missing, memory_order_relaxed);
}

bool stk_executor_contended(stk_executor *ex)
{
    return atomic_load_explicit(&ex->waiting_clients, memory_order_relaxed) > 0;
}

void stk_executor_detach(stk_executor *ex, stk_client *c)
{
    stk_mutex_lock(&ex->lock);
    unlink_locked(ex, c);
    c->demand = 0;
    c->detached = true;
    const bool gone = c->inside == 0;
    stk_mutex_unlock(&ex->lock);
    if (gone) c->gone(c);
}
