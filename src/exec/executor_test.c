#include "exec/pool.h"

#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <unistd.h>

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
    CHECK(strstr(diag.text, "processor -3 does not exist"));
    const int32_t beyond[] = {CPU_SETSIZE - 1};
    CHECK_EQ(stk_executor_new(&(stk_executor_opts){.cpus = beyond, .num_cpus = 1}, &ex, &diag),
             STK_EINVAL);
    CHECK_EQ(stk_executor_new(&(stk_executor_opts){.name = "longer than ten"}, &ex, &diag),
             STK_EINVAL);
}

/* A client whose workers stay until all that it waits for have come. */
typedef struct meeting {
    stk_client client;
    stk_executor *ex;
    int32_t wanted;
    atomic_int inside, most, gone;
    atomic_bool all_asked; /* nobody leaves before */
    atomic_bool indices[8];
} meeting;

static bool meet(stk_client *client, int32_t worker)
{
    meeting *m = (meeting *)client;
    CHECK(!atomic_exchange(&m->indices[worker], true));
    const int n = atomic_fetch_add(&m->inside, 1) + 1;
    for (int most = atomic_load(&m->most); most < n;)
        (void)atomic_compare_exchange_weak(&m->most, &most, n);
    while (atomic_load(&m->most) < m->wanted || !atomic_load(&m->all_asked)) sched_yield();
    atomic_fetch_sub(&m->inside, 1);
    atomic_store(&m->indices[worker], false);
    return false;
}

static void meeting_gone(stk_client *client)
{
    atomic_store(&((meeting *)client)->gone, 1);
}

static void meet_up(meeting *m, stk_executor *ex, int32_t asked, int32_t wanted)
{
    *m = (meeting){.client = {.work = meet, .gone = meeting_gone}, .ex = ex, .wanted = wanted};
    for (int32_t i = 0; i < asked; i++) stk_executor_wake(ex, &m->client);
    atomic_store(&m->all_asked, true);
    while (atomic_load(&m->most) < wanted) sched_yield();
    stk_executor_detach(ex, &m->client);
    while (!atomic_load(&m->gone)) sched_yield();
}

/* Threads of the executor "late"; those that were joined may still be on their way out. */
static int num_late(void)
{
    int n = 0;
    DIR *d = opendir("/proc/self/task");
    CHECK(d);
    for (const struct dirent *e; (e = readdir(d));) {
        char path[300], name[16] = "";
        snprintf(path, sizeof(path), "/proc/self/task/%s/comm", e->d_name);
        FILE *f = fopen(path, "r");
        if (f && fgets(name, sizeof(name), f)) n += !strncmp(name, "late-", 5);
        if (f) fclose(f);
    }
    closedir(d);
    return n;
}

static void threads_come_when_there_is_work_for_them(void)
{
    const stk_executor_opts opts = {.num_threads = 8, .name = "late"};
    stk_executor *ex;
    meeting m;
    CHECK_EQ(stk_executor_new(&opts, &ex, NULL), STK_OK);
    CHECK_EQ(num_late(), 1);
    for (int i = 0; i < 20; i++) meet_up(&m, ex, 1, 1);
    CHECK_EQ(num_late(), 1);
    meet_up(&m, ex, 3, 3);
    CHECK_EQ(num_late(), 3);
    meet_up(&m, ex, 8, 8);
    meet_up(&m, ex, 9, 8);
    CHECK_EQ(num_late(), 8);
    CHECK_EQ(stk_executor_num_threads(ex), 8);
    CHECK_EQ(stk_executor_refused(ex), 0);
    stk_executor_unref(&ex);
}

/* The system has two threads to give: they do all there is, and nobody asks a second time. */
static void goes_on_with_fewer_threads(void)
{
    stk_executor *ex;
    meeting m;
    counting c;
    CHECK_EQ(stk_executor_new(&(stk_executor_opts){.num_threads = 8}, &ex, NULL), STK_OK);
    meet_up(&m, ex, 2, 2);
    stk_fault_arm(0);
    meet_up(&m, ex, 5, 2);
    stk_fault_arm(-1);
    CHECK_EQ(stk_executor_refused(ex), 6);
    start(&c, ex, 1000);
    for (int i = 0; i < 7; i++) stk_executor_wake(ex, &c.client);
    finish(&c);
    CHECK_EQ(stk_executor_refused(ex), 6);
    stk_executor_unref(&ex);
}

/* Whichever thread makes them, they run where the maker of the executor does. */
static bool look_around(stk_client *client, int32_t worker)
{
    meeting *m = (meeting *)client;
    cpu_set_t set;
    CHECK_EQ(sched_getaffinity(0, sizeof(set), &set), 0);
    CHECK_EQ(CPU_COUNT(&set), m->wanted);
    CHECK_EQ(getpriority(PRIO_PROCESS, (id_t)gettid()), getpriority(PRIO_PROCESS, (id_t)getpid()));
    (void)worker;
    atomic_fetch_add(&m->inside, 1);
    while (atomic_load(&m->inside) < 2) sched_yield();
    return false;
}

static void *wake_from_afar(void *arg)
{
    meeting *m = arg;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET((size_t)sched_getcpu(), &one);
    CHECK_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
    CHECK_EQ(setpriority(PRIO_PROCESS, (id_t)gettid(), 19), 0);
    for (int i = 0; i < 2; i++) stk_executor_wake(m->ex, &m->client);
    return NULL;
}

static void threads_run_where_the_executor_was_made(void)
{
    meeting m = {.client = {.work = look_around, .gone = meeting_gone}};
    cpu_set_t set;
    pthread_t other;
    CHECK_EQ(sched_getaffinity(0, sizeof(set), &set), 0);
    m.wanted = CPU_COUNT(&set);
    CHECK_EQ(stk_executor_new(&(stk_executor_opts){.num_threads = 4}, &m.ex, NULL), STK_OK);
    CHECK_EQ(pthread_create(&other, NULL, wake_from_afar, &m), 0);
    pthread_join(other, NULL);
    while (atomic_load(&m.inside) < 2) sched_yield();
    stk_executor_detach(m.ex, &m.client);
    while (!atomic_load(&m.gone)) sched_yield();
    stk_executor_unref(&m.ex);
}

static bool look_at_itself(stk_client *client, int32_t worker)
{
    meeting *m = (meeting *)client;
    cpu_set_t set;
    char name[16];
    CHECK_EQ(sched_getaffinity(0, sizeof(set), &set), 0);
    CHECK(CPU_COUNT(&set) == 1 && CPU_ISSET((size_t)m->wanted, &set));
    const int whole = getpriority(PRIO_PROCESS, (id_t)getpid());
    CHECK_EQ(getpriority(PRIO_PROCESS, (id_t)gettid()), whole > 16 ? 19 : whole + 3);
    CHECK_EQ(pthread_getname_np(pthread_self(), name, sizeof(name)), 0);
    CHECK(!strcmp(name, "decoders-0"));
    (void)worker;
    atomic_fetch_add(&m->inside, 1);
    return false;
}

static void threads_have_what_was_asked_for(void)
{
    const int32_t here = sched_getcpu();
    const stk_executor_opts opts = {
        .num_threads = 1, .cpus = &here, .num_cpus = 1, .nice = 3, .name = "decoders"};
    meeting m = {.client = {.work = look_at_itself, .gone = meeting_gone}, .wanted = here};
    CHECK_EQ(stk_executor_new(&opts, &m.ex, NULL), STK_OK);
    stk_executor_wake(m.ex, &m.client);
    while (!atomic_load(&m.inside)) sched_yield();
    stk_executor_detach(m.ex, &m.client);
    while (!atomic_load(&m.gone)) sched_yield();
    stk_executor_unref(&m.ex);
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
        if (!err) {
            counting c;
            start(&c, ex, 100);
            stk_executor_wake(ex, &c.client);
            finish(&c);
            if (stk_executor_refused(ex)) err = STK_EAGAIN; /* and the next round one later */
        }
        stk_executor_unref(&ex);
    }
    stk_fault_arm(-1);
}

TESTS(TEST(clients_take_turns), TEST(detached_clients_are_left_alone),
      TEST(the_last_reference_may_go_on_a_worker), TEST(says_what_is_wrong),
      TEST(threads_come_when_there_is_work_for_them), TEST(goes_on_with_fewer_threads),
      TEST(threads_run_where_the_executor_was_made), TEST(threads_have_what_was_asked_for),
      TEST(survives_every_failure))
