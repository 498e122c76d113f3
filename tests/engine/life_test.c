/* Beginning, waiting, stopping, forking: a run ends promptly, from anywhere, and gives all back. */
#include "tests/engine/kit.h"

#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/thread.h"
#include "exec/pool.h"

#define N 4000
static int64_t got[N];

static stk_run *start(stk_plan *p, const stk_run_opts *opts)
{
    stk_run *run;
    stk_diag diag = {0};
    stk_err err = stk_run_start(p, opts, &run, &diag);
    if (err) fprintf(stderr, "%s\n", diag.text);
    CHECK_EQ(err, STK_OK);
    stk_plan_free(&p);
    return run;
}

static stk_plan *batches(kit_source *s, const kit_op *op)
{
    stk_plan *p = kit_plan(s, kit_value(op), NULL);
    stk_plan_batch(p, 4, NULL);
    stk_plan_sink(p, 2);
    return p;
}

static void waiting_sources_wake_the_run(void)
{
    kit_source s = kit_counting(50);
    s.hold_at = 23;
    stk_run *run = start(batches(&s, NULL), NULL);
    stk_batch *b;
    for (int i = 0; i < 5; i++) {
        CHECK_EQ(stk_run_next(run, STK_FOREVER, &b, NULL), STK_OK);
        stk_batch_unref(&b);
    }
    CHECK_EQ(stk_run_next(run, 1000, &b, NULL), STK_ETIMEOUT);
    CHECK_EQ(stk_run_next(run, STK_NOWAIT, &b, NULL), STK_ETIMEOUT);
    kit_release(&s);
    size_t n;
    CHECK_EQ(kit_read(run, got, N, &n, NULL), STK_EEND);
    CHECK_EQ(n, 30 + 8);
    stk_run_free(&run);
}

static void await(_Atomic int64_t *n, int64_t wanted)
{
    while (atomic_load(n) < wanted) sched_yield();
}

/* While the first batch is on its way no other sample begins; when it is there, others do. */
static void nothing_begins_beside_the_first_batch(void)
{
    _Atomic int64_t values = 0, sums = 0, gate = 0;
    kit_source s = kit_counting(40);
    stk_plan *p = kit_plan(&s, kit_value(&(kit_op){.calls = &values}), NULL);
    stk_plan_batch(p, 4, NULL);
    stk_plan_pipe(p, kit_batch(&(kit_op){.calls = &sums, .gate = &gate}), NULL);
    stk_plan_sink(p, 2);
    stk_run *run = start(p, &(stk_run_opts){.num_threads = 4});
    await(&sums, 1);
    CHECK_EQ(atomic_load(&values), 4);
    atomic_store(&gate, 1);
    await(&values, 8); /* although nobody reads */
    size_t n;
    CHECK_EQ(kit_read(run, got, N, &n, NULL), STK_EEND);
    CHECK_EQ(n, 40 + 10);
    stk_run_free(&run);
}

/* Reads that wait run at once, more of them than there are processors, before the first batch. */
static void reads_of_the_first_batch_wait_together(void)
{
    _Atomic int64_t at_once = 0, most = 0;
    const kit_op op = {
        .reads = true, .sleep_ns = 5000000, .at_once = &at_once, .at_once_max = &most};
    const int32_t some = stk_usable_processors() + 4;
    kit_source s = kit_counting(1000);
    stk_plan *p = kit_plan(&s, kit_value(&op), &(stk_stage_opts){.concurrency = some});
    stk_batch *b;
    stk_plan_batch(p, (size_t)some * 4, NULL);
    stk_plan_sink(p, 2);
    stk_run *run = start(p, &(stk_run_opts){.num_threads = 2});
    CHECK_EQ(stk_run_next(run, STK_FOREVER, &b, NULL), STK_OK);
    CHECK_EQ(atomic_load(&most), some < STK_MAX_IO_THREADS ? some : STK_MAX_IO_THREADS);
    stk_batch_unref(&b);
    stk_run_free(&run);
}

/* What was begun for the first result may come to none. */
static void a_first_batch_that_never_comes(void)
{
    for (int kind = 0; kind < 4; kind++) {
        kit_source s = kit_counting(kind == 0 ? 3 : 100);
        s.epochs = kind == 0 ? 50 : 1;
        s.first_id = 1;
        const kit_op op = {.fail_every = kind ? 1 : 0};
        stk_plan *p = kit_plan(&s, kit_value(&op), &(stk_stage_opts){.on_error = STK_SKIP});
        if (kind < 2) stk_plan_batch(p, 4, &(stk_batch_opts){.drop_last = true});
        if (kind == 2) stk_plan_pipe(p, kit_add(NULL), NULL);
        stk_plan_sink(p, 2);
        stk_run *run = start(p, &(stk_run_opts){.num_threads = 2, .epoch_ends = kind == 0});
        size_t n = 0;
        stk_batch *b = NULL;
        stk_err err = STK_EEPOCH;
        if (kind < 2)
            while (err == STK_EEPOCH) err = stk_run_next(run, STK_FOREVER, &b, NULL);
        else
            err = kit_read(run, got, N, &n, NULL);
        CHECK(err == STK_EEND && n == 0 && !b);
        stk_run_free(&run);
    }
}

static void close_drains(void)
{
    _Atomic int64_t calls = 0;
    kit_source s = kit_counting(1000000);
    s.epochs = -1;
    stk_run *run = start(batches(&s, &(kit_op){.calls = &calls}), NULL);
    stk_batch *b;
    size_t n;
    int64_t delivered = 4;
    CHECK_EQ(stk_run_next(run, STK_FOREVER, &b, NULL), STK_OK);
    await(&calls, 12);
    stk_run_close(run);
    stk_run_close(run);
    CHECK_EQ(kit_read(run, got, N, &n, NULL), STK_EEND);
    CHECK(n > 0 && n < N);
    for (size_t i = 0; i < n; i++) delivered += got[i] >= 0;
    CHECK_EQ(delivered, atomic_load(&calls)); /* all that was begun */
    stk_run_free(&run);
    CHECK_EQ(stk_batch_size(b), 4); /* batches outlive the run */
    stk_batch_unref(&b);
}

static void *cancel_it(void *run)
{
    stk_run_cancel(run);
    return NULL;
}

static void cancel_wakes_the_reader(void)
{
    for (int i = 0; i < 50; i++) {
        kit_source s = kit_counting(10);
        s.hold_at = 2;
        stk_run *run = start(batches(&s, NULL), NULL);
        pthread_t t;
        stk_batch *b;
        CHECK_EQ(pthread_create(&t, NULL, cancel_it, run), 0);
        CHECK_EQ(stk_run_next(run, STK_FOREVER, &b, NULL), STK_ECANCELLED);
        pthread_join(t, NULL);
        CHECK_EQ(stk_run_stop(run, STK_FOREVER, NULL), STK_OK);
        stk_run_free(&run);
    }
}

static void free_at_any_moment(void)
{
    for (int i = 0; i < 200; i++) {
        kit_source s = kit_counting(100000);
        stk_plan *p = kit_plan(&s, kit_value(&(kit_op){.blocking = i % 2}), NULL);
        stk_plan_pipe(p, kit_repeat(NULL), NULL);
        stk_plan_batch(p, 3, NULL);
        stk_plan_sink(p, 2);
        stk_run *run = start(p, &(stk_run_opts){.num_threads = 1 + i % 4});
        for (int k = 0; k < i % 7; k++) {
            stk_batch *b;
            CHECK_EQ(stk_run_next(run, STK_FOREVER, &b, NULL), STK_OK);
            stk_batch_unref(&b);
        }
        stk_run_free(&run);
        CHECK(run == NULL);
    }
}

static void stop_names_what_still_runs(void)
{
    _Atomic int64_t gate = 0, calls = 0;
    kit_source s = kit_counting(10);
    stk_run *run =
        start(batches(&s, &(kit_op){.gate = &gate, .calls = &calls, .stubborn = true}), NULL);
    stk_diag diag;
    while (!atomic_load(&calls)) sched_yield();
    CHECK_EQ(stk_run_stop(run, 1000000, &diag), STK_ETIMEOUT);
    CHECK(strstr(diag.text, "stage 'value' is still running"));
    atomic_store(&gate, 1);
    CHECK_EQ(stk_run_stop(run, STK_FOREVER, &diag), STK_OK);
    stk_run_free(&run);
}

static bool thread_exists(const char *name)
{
    bool found = false;
    DIR *tasks = opendir("/proc/self/task");
    CHECK(tasks != NULL);
    for (struct dirent *e; (e = readdir(tasks));) {
        char path[300], comm[32] = "";
        snprintf(path, sizeof(path), "/proc/self/task/%s/comm", e->d_name);
        FILE *f = fopen(path, "re");
        if (f && fgets(comm, sizeof(comm), f)) found |= !strncmp(comm, name, strlen(name));
        if (f) fclose(f);
    }
    closedir(tasks);
    return found;
}

static void stop_ends_the_threads(void)
{
    kit_source s = kit_counting(1000000);
    stk_run *run = start(batches(&s, &(kit_op){.blocking = true}), NULL);
    stk_batch *b;
    CHECK_EQ(stk_run_next(run, STK_FOREVER, &b, NULL), STK_OK);
    stk_batch_unref(&b);
    CHECK(thread_exists("stoker-0"));
    CHECK_EQ(stk_run_stop(run, STK_FOREVER, NULL), STK_OK);
    while (thread_exists("stoker-0")) sched_yield(); /* joined: only /proc may be late */
    CHECK_EQ(stk_run_stop(run, STK_FOREVER, NULL), STK_OK);
    CHECK_EQ(stk_run_next(run, STK_NOWAIT, &b, NULL), STK_ECANCELLED);
    stk_stats *st;
    CHECK_EQ(stk_run_stats(run, &st), STK_OK);
    stk_stats_free(&st);
    stk_run_free(&run);
}

static void items_outlive_the_run(void)
{
    kit_source s = kit_counting(10);
    stk_plan *p = kit_plan(&s, kit_value(NULL), NULL);
    stk_plan_sink(p, 10);
    stk_run *run = start(p, NULL);
    stk_item *items[3];
    size_t n = 0;
    while (n < 3) {
        size_t more;
        CHECK_EQ(stk_run_next_items(run, STK_FOREVER, 3 - n, items + n, &more, NULL), STK_OK);
        n += more;
    }
    stk_run_free(&run);
    for (int64_t i = 0; i < 3; i++) {
        CHECK_EQ(*(int64_t *)stk_item_array(items[i], 0).data, i * 10);
        stk_item_free(&items[i]);
    }
}

static void keeping_all_batches_hangs_nothing(void)
{
    kit_source s = kit_counting(800);
    stk_run *run = start(batches(&s, NULL), NULL);
    stk_batch *kept[200];
    for (int i = 0; i < 200; i++) CHECK_EQ(stk_run_next(run, STK_FOREVER, &kept[i], NULL), STK_OK);
    for (int64_t i = 0; i < 200; i++) {
        stk_tensor t;
        CHECK_EQ(stk_batch_array(kept[i], 0, &t, NULL), STK_OK);
        for (int64_t k = 0; k < 4; k++) CHECK_EQ(((int64_t *)t.data)[k], (4 * i + k) * 10);
        stk_batch_unref(&kept[i]);
    }
    stk_run_free(&run);
}

static void epochs_end_when_asked(void)
{
    kit_source s = kit_counting(10);
    s.epochs = 3;
    stk_run *run = start(batches(&s, NULL), &(stk_run_opts){.epoch_ends = true});
    for (int epoch = 0; epoch < 3; epoch++) {
        size_t n;
        CHECK_EQ(kit_read(run, got, N, &n, NULL), STK_EEPOCH);
        CHECK_EQ(n, 13);
    }
    stk_batch *b;
    CHECK_EQ(stk_run_next(run, STK_FOREVER, &b, NULL), STK_EEND);
    CHECK_EQ(stk_run_next(run, STK_FOREVER, &b, NULL), STK_EEND);
    stk_run_free(&run);
}

static void runs_share_an_executor(void)
{
    stk_executor *ex;
    CHECK_EQ(stk_executor_new(&(stk_executor_opts){.num_threads = 2, .name = "shared"}, &ex, NULL),
             STK_OK);
    kit_source s = kit_counting(500);
    stk_plan *p = batches(&s, NULL);
    stk_run *runs[5];
    for (int i = 0; i < 5; i++)
        CHECK_EQ(stk_run_start(p, &(stk_run_opts){.executor = ex}, &runs[i], NULL), STK_OK);
    stk_plan_free(&p);
    stk_executor_unref(&ex);
    for (int i = 0; i < 5; i++) {
        size_t n;
        CHECK_EQ(kit_read(runs[i], got, N, &n, NULL), STK_EEND);
        CHECK_EQ(n, 625);
        stk_run_free(&runs[i]);
    }
}

static void concurrency_is_kept(void)
{
    for (int blocking = 0; blocking < 2; blocking++) {
        _Atomic int64_t at_once = 0, most = 0;
        const kit_op op = {
            .blocking = blocking, .at_once = &at_once, .at_once_max = &most, .spin_ns = 50000};
        kit_source s = kit_counting(300);
        size_t n;
        stk_plan *p = kit_plan(&s, kit_value(&op), &(stk_stage_opts){.concurrency = 3});
        stk_plan_sink(p, 3);
        CHECK_EQ(kit_run(p, 8, got, N, &n, NULL), STK_EEND);
        CHECK(atomic_load(&most) <= 3);
    }
}

/* Sixteen reads are in flight with two CPU threads: each waits until all sixteen are there. */
static void blocking_work_has_its_own_threads(void)
{
    _Atomic int64_t gate = 0, calls = 0;
    kit_source s = kit_counting(16);
    stk_plan *p =
        kit_plan(&s, kit_value(&(kit_op){.blocking = true, .gate = &gate, .calls = &calls}), NULL);
    stk_plan_sink(p, 16);
    stk_run *run = start(p, &(stk_run_opts){.num_threads = 2});
    while (atomic_load(&calls) < 16) sched_yield();
    atomic_store(&gate, 1);
    size_t n;
    CHECK_EQ(kit_read(run, got, N, &n, NULL), STK_EEND);
    CHECK_EQ(n, 16);
    stk_run_free(&run);
}

static void fork_is_refused_in_the_child(void)
{
    kit_source s = kit_counting(100);
    stk_run *run = start(batches(&s, NULL), NULL);
    stk_batch *b;
    CHECK_EQ(stk_run_next(run, STK_FOREVER, &b, NULL), STK_OK);
    const pid_t pid = fork();
    if (pid == 0) {
        stk_diag diag;
        stk_batch *none;
        int bad = stk_run_next(run, STK_FOREVER, &none, &diag) != STK_EFORK;
        bad |= !strstr(diag.text, "fork");
        stk_run_cancel(run);
        stk_run_free(&run);
        stk_batch_unref(&b);
        _exit(bad);
    }
    int status;
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK_EQ(status, 0);
    size_t n;
    stk_batch_unref(&b);
    CHECK_EQ(kit_read(run, got, N, &n, NULL), STK_EEND);
    CHECK_EQ(n, 120);
    stk_run_free(&run);
}

static int64_t switches(void)
{
    struct rusage u;
    CHECK_EQ(getrusage(RUSAGE_SELF, &u), 0);
    return u.ru_nvcsw + u.ru_nivcsw;
}

/* A full pipeline that nobody reads does nothing at all: no thread runs while we wait. */
static void idle_is_idle(void)
{
    kit_source s = kit_counting(1000);
    stk_run *run = start(batches(&s, &(kit_op){.blocking = true}), NULL);
    stk_stats *st = NULL;
    uint64_t before = 0, now = 1;
    while (now != before || now < 8) { /* until both batches wait and nothing moves */
        before = now;
        kit_pause(20000000);
        CHECK_EQ(stk_run_stats(run, &st), STK_OK);
        now = st->stages[1].items;
        stk_stats_free(&st);
    }
    const int64_t woken = switches();
    const clock_t used = clock();
    kit_pause(300000000);
    CHECK(clock() - used < CLOCKS_PER_SEC / 100);
    CHECK(switches() - woken < 10); /* our own sleep, and what a sanitizer does */
    stk_run_free(&run);
}

/* Handles ride on items through workers, and are released by the thread that drains alone. */
static _Atomic int64_t released;
static pthread_t home;

static void release_handle(void *handle, void *ctx)
{
    CHECK(handle == &released && ctx == &home);
    CHECK(pthread_equal(pthread_self(), home));
    atomic_fetch_add(&released, 1);
}

static stk_err attach_run(const void *params, void *own, stk_item *item, stk_diag *diag)
{
    (void)own;
    stk_foreign *f = NULL;
    stk_err err = stk_foreign_new(*(stk_foreign_domain *const *)params, &released, &f);
    if (err) return stk_diag_set(diag, err, "no handle");
    stk_item_set_foreign(item, &f);
    return STK_OK;
}

static void foreign_handles_are_released_at_home(void)
{
    static const stk_op_class attach = {
        .name = "attach", .in = STK_KIND_KEY, .out = STK_KIND_FOREIGN, .run = attach_run};
    stk_foreign_domain *domain;
    home = pthread_self();
    CHECK_EQ(stk_foreign_domain_new(release_handle, NULL, &home, &domain), STK_OK);
    kit_source s = kit_counting(100);
    stk_plan *p = kit_plan(&s, stk_op_new(&attach, &domain), NULL);
    stk_plan_pipe(p, kit_same(&(kit_op){.fail_every = 5}), &(stk_stage_opts){.on_error = STK_SKIP});
    stk_plan_sink(p, 4);
    stk_run *run = start(p, NULL);
    stk_item *items[4];
    size_t n;
    CHECK_EQ(stk_run_next_items(run, STK_FOREVER, 4, items, &n, NULL), STK_OK);
    CHECK(stk_foreign_handle(stk_item_foreign(items[0])) == &released);
    for (size_t i = 0; i < n; i++) stk_item_free(&items[i]);
    stk_run_free(&run); /* with handles in flight */
    CHECK_EQ(atomic_load(&released), 0);
    CHECK(stk_foreign_drain(domain) > 0);
    CHECK(atomic_load(&released) >= (int64_t)n);
    stk_foreign_domain_close(&domain);
}

TESTS(TEST(waiting_sources_wake_the_run), TEST(nothing_begins_beside_the_first_batch),
      TEST(reads_of_the_first_batch_wait_together), TEST(a_first_batch_that_never_comes),
      TEST(close_drains), TEST(cancel_wakes_the_reader), TEST(free_at_any_moment),
      TEST(stop_names_what_still_runs), TEST(stop_ends_the_threads), TEST(items_outlive_the_run),
      TEST(keeping_all_batches_hangs_nothing), TEST(epochs_end_when_asked),
      TEST(runs_share_an_executor), TEST(concurrency_is_kept),
      TEST(blocking_work_has_its_own_threads), TEST(fork_is_refused_in_the_child),
      TEST(idle_is_idle), TEST(foreign_handles_are_released_at_home))
