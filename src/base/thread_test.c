#include "base/thread.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "tests/check.h"

static void zero_is_not_made(void)
{
    stk_mutex m = {0};
    stk_cond c = {0};
    stk_thread t = {0};
    stk_mutex_fini(&m);
    stk_cond_fini(&c);
    stk_thread_join(&t);
    CHECK(!stk_thread_is_self(&t));
}

struct box {
    stk_mutex lock; /* guards everything below */
    stk_cond changed;
    int turn, count;
};

static void *ping(void *arg)
{
    struct box *b = arg;
    for (int i = 0; i < 500; i++) {
        stk_mutex_lock(&b->lock);
        while (b->turn != 1) CHECK(stk_cond_wait(&b->changed, &b->lock, STK_NEVER));
        b->turn = 0;
        b->count++;
        stk_cond_signal(&b->changed);
        stk_mutex_unlock(&b->lock);
    }
    return NULL;
}

static void box_init(struct box *b)
{
    *b = (struct box){0};
    CHECK_EQ(stk_mutex_init(&b->lock), STK_OK);
    CHECK_EQ(stk_cond_init(&b->changed), STK_OK);
}

static void box_fini(struct box *b)
{
    stk_cond_fini(&b->changed);
    stk_mutex_fini(&b->lock);
    CHECK(!b->lock.made && !b->changed.made);
}

static void wakes(void)
{
    struct box b;
    stk_thread t = {0};
    box_init(&b);
    CHECK_EQ(stk_thread_start(&t, "ping", ping, &b), STK_OK);
    for (int i = 0; i < 500; i++) {
        stk_mutex_lock(&b.lock);
        b.turn = 1;
        stk_cond_broadcast(&b.changed);
        while (b.turn != 0) CHECK(stk_cond_wait(&b.changed, &b.lock, STK_NEVER));
        stk_mutex_unlock(&b.lock);
    }
    stk_thread_join(&t);
    CHECK_EQ(b.count, 500);
    box_fini(&b);
}

static void wait_ends(void)
{
    struct box b;
    box_init(&b);
    stk_mutex_lock(&b.lock);
    const int64_t deadline = stk_deadline_ns(2000000);
    while (stk_cond_wait(&b.changed, &b.lock, deadline)) continue;
    CHECK(stk_clock_ns() >= deadline);
    CHECK(!stk_cond_wait(&b.changed, &b.lock, 0)); /* long past */
    stk_mutex_unlock(&b.lock);
    box_fini(&b);
}

static void deadlines(void)
{
    const int64_t before = stk_clock_ns();
    const int64_t now = stk_deadline_ns(STK_NOWAIT);
    CHECK(before > 0 && now >= before);
    CHECK(stk_deadline_ns(1000) >= before + 1000);
    CHECK(stk_deadline_ns(STK_FOREVER) == STK_NEVER);
    CHECK(stk_deadline_ns(INT64_MAX) == STK_NEVER);
}

static void *look(void *arg)
{
    stk_mutex *gate = arg;
    if (gate) {
        stk_mutex_lock(gate);
        stk_mutex_unlock(gate);
    }
    sigset_t blocked;
    CHECK_EQ(pthread_sigmask(SIG_BLOCK, NULL, &blocked), 0);
    CHECK(sigismember(&blocked, SIGINT) && sigismember(&blocked, SIGTERM));
    CHECK(sigismember(&blocked, SIGCHLD));
    return NULL;
}

/* Threads have all signals blocked; whoever starts one keeps its own mask. */
static void signals(void)
{
    sigset_t before, after;
    stk_thread t = {0};
    stk_mutex gate; /* keeps the thread alive while its name is read */
    CHECK_EQ(stk_mutex_init(&gate), STK_OK);
    stk_mutex_lock(&gate);
    CHECK_EQ(pthread_sigmask(SIG_BLOCK, NULL, &before), 0);
    CHECK_EQ(stk_thread_start(&t, "a name that is far too long", look, &gate), STK_OK);
    CHECK(!stk_thread_is_self(&t));
    CHECK_EQ(pthread_sigmask(SIG_BLOCK, NULL, &after), 0);
    CHECK_EQ(sigismember(&before, SIGINT), sigismember(&after, SIGINT));
    char name[16];
    CHECK_EQ(pthread_getname_np(t.os, name, sizeof(name)), 0);
    CHECK(!strcmp(name, "a name that is "));
    stk_mutex_unlock(&gate);
    stk_thread_join(&t);
    stk_thread_join(&t);
    stk_mutex_fini(&gate);
}

static void out_of_memory(void)
{
    stk_err err;
    TORTURE (err) {
        struct box b = {0};
        stk_thread t = {0};
        err = stk_mutex_init(&b.lock);
        if (!err) err = stk_cond_init(&b.changed);
        if (!err) err = stk_thread_start(&t, "look", look, NULL);
        CHECK(err == STK_OK || err == STK_ENOMEM || err == STK_EAGAIN);
        stk_thread_join(&t);
        box_fini(&b);
    }
}

static void forks(void)
{
    const unsigned before = stk_fork_generation();
    pid_t child = fork();
    if (child == 0) _exit(stk_fork_generation() == before + 1 ? 0 : 1);
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK_EQ(stk_fork_generation(), before);
}

TESTS(TEST(zero_is_not_made), TEST(wakes), TEST(wait_ends), TEST(deadlines), TEST(signals),
      TEST(out_of_memory), TEST(forks))
