#include "exec/pool.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>

#include "base/alloc.h"
#include "base/thread.h"
#include "tests/check.h"

/* A client that has `left` units of work. */
typedef struct counting {
    stk_client client;
    stk_executor *ex;
    _Atomic int64_t left;
    _Atomic int gone;
    _Atomic bool signals_open;
} counting;

static bool count_down(stk_client *client, int32_t worker)
{
    counting *c = (counting *)client;
    CHECK(worker >= 0 && worker < stk_executor_num_threads(c->ex));
    sigset_t blocked;
    pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    if (!sigismember(&blocked, SIGINT)) atomic_store(&c->signals_open, true);
    for (int i = 0; i < 10; i++)
        if (atomic_fetch_sub(&c->left, 1) <= 0) return false;
    return true; /* others may go first */
}

static void count_gone(stk_client *client)
{
    atomic_fetch_add(&((counting *)client)->gone, 1);
}

static void start(counting *c, stk_executor *ex, int64_t work)
{
    *c = (counting){.client = {.work = count_down, .gone = count_gone}, .ex = ex};
    atomic_store(&c->left, work);
    stk_executor_wake(ex, &c->client);
}

static void finish(counting *c)
{
    while (atomic_load(&c->left) > 0) sched_yield();
    stk_executor_detach(c->ex, &c->client);
    while (!atomic_load(&c->gone)) sched_yield();
    CHECK(!atomic_load(&c->signals_open));
}

static void clients_take_turns(void)
{
    stk_executor *ex;
    CHECK_EQ(stk_executor_new(&(stk_executor_opts){.num_threads = 2, .name = "turns"}, &ex, NULL),
             STK_OK);
    CHECK_EQ(stk_executor_num_threads(ex), 2);
    counting c[3];
    for (int i = 0; i < 3; i++) start(&c[i], ex, 1000);
    for (int i = 0; i < 3; i++) finish(&c[i]);
    stk_executor_unref(&ex);
    CHECK(ex == NULL);
}

static void detached_clients_are_left_alone(void)
{
    stk_executor *ex;
    CHECK_EQ(stk_executor_new(&(stk_executor_opts){.num_threads = 1}, &ex, NULL), STK_OK);
    counting c;
    start(&c, ex, 1);
    finish(&c);
    atomic_store(&c.left, 5);
    stk_executor_wake(ex, &c.client);
    stk_executor_unref(&ex);
    CHECK_EQ(atomic_load(&c.left), 5);
}

/* The last reference goes on a worker: the executor ends by itself. */
static bool drop_it(stk_client *client, int32_t worker)
{
    counting *c = (counting *)client;
    (void)worker;
    stk_executor *ex = c->ex;
    stk_executor_detach(ex, client);
    stk_executor_unref(&ex);
    return false;
}

static void the_last_reference_may_go_on_a_worker(void)
{
    for (int i = 0; i < 20; i++) {
        stk_executor *ex;
        CHECK_EQ(stk_executor_new(&(stk_executor_opts){.num_threads = 3}, &ex, NULL), STK_OK);
        static counting c;
        c = (counting){.client = {.work = drop_it, .gone = count_gone}, .ex = ex};
        stk_executor_wake(ex, &c.client);
        while (!atomic_load(&c.gone)) sched_yield();
    }
}

static void says_what_is_wrong(void)
{
    stk_executor *ex;
    stk_diag diag;
    CHECK_EQ(stk_executor_new(&(stk_executor_opts){.num_threads = -1}, &ex, &diag), STK_EINVAL);
    CHECK(ex == NULL && strstr(diag.text, "num_threads is -1"));
    CHECK_EQ(stk_executor_new(&(stk_executor_opts){.nice = 20}, &ex, &diag), STK_EINVAL);
    CHECK(strstr(diag.text, "nice is 20"));
    CHECK_EQ(
        stk_executor_new(&(stk_executor_opts){.cpus = (int32_t[]){-3}, .num_cpus = 1}, &ex, &diag),
        STK_EINVAL);
    CHECK_EQ(stk_executor_new(&(stk_executor_opts){.name = "longer than ten"}, &ex, &diag),
             STK_EINVAL);
}

static void survives_every_failure(void)
{
    stk_err err;
    TORTURE (err) {
        stk_executor *ex;
        stk_diag diag;
        err = stk_executor_new(&(stk_executor_opts){.num_threads = 3}, &ex, &diag);
        CHECK(!err == !!ex);
        CHECK(!err || diag.err == err);
        stk_executor_unref(&ex);
    }
    stk_fault_arm(-1);
}

TESTS(TEST(clients_take_turns), TEST(detached_clients_are_left_alone),
      TEST(the_last_reference_may_go_on_a_worker), TEST(says_what_is_wrong),
      TEST(survives_every_failure))
