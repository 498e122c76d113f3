#include <stoker/foreign.h>

#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/thread.h"
#include "tests/check.h"

/* The foreign side of a test: counts, and knows which threads may release. */
struct side {
    atomic_int released, notified;
    int *order;
    stk_foreign *chain; /* dropped by the first release */
};

static _Thread_local bool may_release;

static void release(void *handle, void *ctx)
{
    struct side *s = ctx;
    CHECK(may_release);
    const int n = atomic_fetch_add(&s->released, 1);
    if (s->order) s->order[n] = (int)(intptr_t)handle;
    stk_foreign_unref(&s->chain);
}

static void notify(void *ctx)
{
    struct side *s = ctx;
    atomic_fetch_add(&s->notified, 1);
}

static void one_thread(void)
{
    int order[4] = {0};
    struct side s = {.order = order};
    stk_foreign_domain *d;
    stk_foreign *f[3];
    CHECK_EQ(stk_foreign_domain_new(release, notify, &s, &d), STK_OK);
    for (intptr_t i = 0; i < 3; i++) {
        CHECK_EQ(stk_foreign_new(d, (void *)(i + 1), &f[i]), STK_OK);
        CHECK(stk_foreign_handle(f[i]) == (void *)(i + 1));
    }
    stk_foreign *again = stk_foreign_ref(f[0]);
    stk_foreign_unref(&f[0]);
    CHECK(!f[0]);
    CHECK_EQ(s.notified, 0);
    CHECK_EQ(stk_foreign_drain(d), 0);
    stk_foreign_unref(&f[2]);
    stk_foreign_unref(&again);
    CHECK_EQ(s.notified, 1); /* only when the list was empty */
    CHECK_EQ(s.released, 0);

    may_release = true;
    CHECK_EQ(stk_foreign_drain(d), 2);
    CHECK_EQ(stk_foreign_drain(d), 0);
    CHECK(order[0] == 3 && order[1] == 1);
    stk_foreign_unref(&f[1]);
    CHECK_EQ(s.notified, 2);
    stk_foreign_domain_close(&d); /* drains */
    CHECK(!d);
    CHECK_EQ(s.released, 3);
    may_release = false;
    stk_foreign_domain_close(&d);
    stk_foreign_unref(&f[1]);
}

static void release_drops_another(void)
{
    struct side s = {0};
    stk_foreign_domain *d;
    stk_foreign *f;
    CHECK_EQ(stk_foreign_domain_new(release, NULL, &s, &d), STK_OK);
    CHECK_EQ(stk_foreign_new(d, NULL, &s.chain), STK_OK);
    CHECK_EQ(stk_foreign_new(d, NULL, &f), STK_OK);
    stk_foreign_unref(&f);
    may_release = true;
    CHECK_EQ(stk_foreign_drain(d), 2);
    stk_foreign_domain_close(&d);
    may_release = false;
}

static void dead_after_close(void)
{
    struct side s = {0};
    stk_foreign_domain *d;
    stk_foreign *f, *g;
    CHECK_EQ(stk_foreign_domain_new(release, notify, &s, &d), STK_OK);
    CHECK_EQ(stk_foreign_new(d, NULL, &f), STK_OK);
    CHECK_EQ(stk_foreign_new(d, NULL, &g), STK_OK);
    stk_foreign_domain_close(&d);
    stk_foreign_unref(&f);
    stk_foreign_unref(&g);
    CHECK_EQ(s.released, 0);
    CHECK_EQ(s.notified, 0);
}

static void bad_arguments(void)
{
    stk_foreign_domain *d;
    CHECK_EQ(stk_foreign_domain_new(NULL, notify, NULL, &d), STK_EINVAL);
    CHECK(!d);
}

static void after_fork(void)
{
    struct side s = {0};
    stk_foreign_domain *d;
    stk_foreign *f, *g;
    CHECK_EQ(stk_foreign_domain_new(release, notify, &s, &d), STK_OK);
    CHECK_EQ(stk_foreign_new(d, NULL, &f), STK_OK);
    pid_t child = fork();
    if (child == 0) { /* where may_release is false */
        CHECK_EQ(stk_foreign_new(d, NULL, &g), STK_EFORK);
        CHECK(!g);
        stk_foreign_unref(&f);
        CHECK_EQ(stk_foreign_drain(d), 0);
        stk_foreign_domain_close(&d);
        _exit(s.notified);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    stk_foreign_unref(&f);
    may_release = true;
    CHECK_EQ(stk_foreign_drain(d), 1);
    stk_foreign_domain_close(&d);
    may_release = false;
}

static void out_of_memory(void)
{
    stk_err err;
    may_release = true;
    TORTURE (err) {
        struct side s = {0};
        stk_foreign_domain *d;
        stk_foreign *f = NULL;
        err = stk_foreign_domain_new(release, notify, &s, &d);
        if (!err) err = stk_foreign_new(d, &s, &f);
        CHECK(err == STK_OK || (err == STK_ENOMEM && !f));
        stk_foreign_unref(&f);
        stk_foreign_domain_close(&d);
        CHECK_EQ(s.released, err ? 0 : 1);
    }
    may_release = false;
}

#define WORKERS 3
#define EACH 2000

struct shared {
    struct side side;
    stk_foreign_domain *domain;
    stk_foreign *handles[EACH];
    stk_mutex lock;
    stk_cond wake;
    bool woken;
};

static void wake(void *ctx)
{
    struct shared *sh = ctx;
    stk_mutex_lock(&sh->lock);
    sh->woken = true;
    stk_cond_signal(&sh->wake);
    stk_mutex_unlock(&sh->lock);
}

static void release_shared(void *handle, void *ctx)
{
    struct shared *sh = ctx;
    CHECK(may_release);
    CHECK(handle == sh);
    atomic_fetch_add(&sh->side.released, 1);
}

static void *worker(void *arg)
{
    struct shared *sh = arg;
    for (int i = 0; i < EACH; i++) stk_foreign_unref(&(stk_foreign *){sh->handles[i]});
    return NULL;
}

/* Workers drop the last references; this thread alone releases, woken each time. */
static void threads(void)
{
    struct shared *sh = calloc(1, sizeof(*sh));
    CHECK(sh);
    CHECK_EQ(stk_mutex_init(&sh->lock), STK_OK);
    CHECK_EQ(stk_cond_init(&sh->wake), STK_OK);
    CHECK_EQ(stk_foreign_domain_new(release_shared, wake, sh, &sh->domain), STK_OK);
    for (int i = 0; i < EACH; i++) {
        CHECK_EQ(stk_foreign_new(sh->domain, sh, &sh->handles[i]), STK_OK);
        for (int w = 1; w < WORKERS; w++) stk_foreign_ref(sh->handles[i]);
    }
    pthread_t t[WORKERS];
    for (int w = 0; w < WORKERS; w++) pthread_create(&t[w], NULL, worker, sh);

    may_release = true;
    for (size_t total = 0; total < EACH;) { /* hangs if a notify is ever lost */
        stk_mutex_lock(&sh->lock);
        while (!sh->woken) stk_cond_wait(&sh->wake, &sh->lock, STK_NEVER);
        sh->woken = false;
        stk_mutex_unlock(&sh->lock);
        total += stk_foreign_drain(sh->domain);
    }
    /* A notify may still be running: close waits for it, so that sh can go. */
    stk_foreign_domain_close(&sh->domain);
    may_release = false;
    CHECK_EQ(sh->side.released, EACH);
    stk_cond_fini(&sh->wake);
    stk_mutex_fini(&sh->lock);
    for (int w = 0; w < WORKERS; w++) pthread_join(t[w], NULL);
    free(sh);
}

static void *drop_one(void *arg)
{
    stk_foreign *f = arg;
    stk_foreign_unref(&f);
    return NULL;
}

/* Close against the last unref of other threads: released here or never, nothing lost. */
static void close_while_dying(void)
{
    may_release = true;
    for (int round = 0; round < 200; round++) {
        struct side s = {0};
        stk_foreign_domain *d;
        pthread_t t[2];
        CHECK_EQ(stk_foreign_domain_new(release, notify, &s, &d), STK_OK);
        for (int i = 0; i < 2; i++) {
            stk_foreign *f;
            CHECK_EQ(stk_foreign_new(d, NULL, &f), STK_OK);
            pthread_create(&t[i], NULL, drop_one, f);
        }
        stk_foreign_domain_close(&d);
        const int released = atomic_load(&s.released);
        for (int i = 0; i < 2; i++) pthread_join(t[i], NULL);
        CHECK_EQ(s.released, released);
        CHECK(released <= 2);
    }
    may_release = false;
}

static void handles_change_and_leave(void)
{
    struct side s = {0};
    stk_foreign_domain *d;
    stk_foreign *f, *g, *again;
    CHECK_EQ(stk_foreign_domain_new(release, notify, &s, &d), STK_OK);
    CHECK_EQ(stk_foreign_new(d, (void *)1, &f), STK_OK);
    CHECK_EQ(stk_foreign_new(d, (void *)4, &g), STK_OK);
    CHECK(stk_foreign_swap(f, (void *)2) == (void *)1);
    CHECK(stk_foreign_handle(f) == (void *)2);
    again = stk_foreign_ref(f);
    CHECK(!stk_foreign_take(&again) && !again);
    CHECK(stk_foreign_handle(f) == (void *)2);
    CHECK(stk_foreign_take(&f) == (void *)2 && !f);
    const pid_t child = fork();
    if (child == 0) _exit(stk_foreign_take(&g) || g);
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    may_release = true;
    CHECK_EQ(stk_foreign_drain(d), 0);
    stk_foreign_domain_close(&d);
    may_release = false;
    CHECK(stk_foreign_take(&g) == (void *)4); /* which ends the domain */
    CHECK(s.released == 0 && s.notified == 0);
}

static void *take_one(void *arg)
{
    stk_foreign *f = arg;
    return stk_foreign_take(&f);
}

/* Of two threads that give the last references up at most one gets the handle; else it is
 * released. */
static void takes_at_once(void)
{
    struct side s = {0};
    stk_foreign_domain *d;
    int taken = 0;
    CHECK_EQ(stk_foreign_domain_new(release, NULL, &s, &d), STK_OK);
    for (int i = 0; i < 300; i++) {
        stk_foreign *f;
        pthread_t other;
        void *got;
        CHECK_EQ(stk_foreign_new(d, &s, &f), STK_OK);
        CHECK_EQ(pthread_create(&other, NULL, take_one, stk_foreign_ref(f)), 0);
        taken += take_one(f) != NULL;
        CHECK_EQ(pthread_join(other, &got), 0);
        taken += got != NULL;
    }
    may_release = true;
    stk_foreign_domain_close(&d);
    may_release = false;
    CHECK_EQ(taken + s.released, 300);
}

TESTS(TEST(one_thread), TEST(release_drops_another), TEST(dead_after_close), TEST(bad_arguments),
      TEST(after_fork), TEST(out_of_memory), TEST(threads), TEST(close_while_dying),
      TEST(handles_change_and_leave), TEST(takes_at_once))
