/* SPDX-License-Identifier: BSD-2-Clause
 *
 * noop: what moving an item costs, and that waiting costs nothing.
 *
 *     noop ITEMS THREADS IDLE_SECONDS
 *
 * A counting source, three stages that do nothing, a sink, through the public API.  First ITEMS
 * items are read to the end; then an endless run fills its queues and nobody reads it for
 * IDLE_SECONDS.  Prints one line of JSON.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include <stoker/run.h>

enum {
    BURST = 256, /* items of one read */
    SINK = 512,
    STAGES = 3,
};

#define SETTLE_NS 500000000L /* until the queues of the idle run are full */

typedef struct counter {
    int64_t next, end;
    bool ended; /* the end of the epoch was told */
} counter;

static stk_err counter_open(void *params, const stk_source_env *env, void **cursor, stk_diag *diag)
{
    (void)env;
    counter *c = malloc(sizeof(*c));
    *cursor = c;
    if (!c) return stk_diag_set(diag, STK_ENOMEM, "counter");
    *c = (counter){.end = *(const int64_t *)params};
    return STK_OK;
}

static void counter_close(void *cursor)
{
    free(cursor);
}

static stk_err counter_next(void *cursor, stk_item *item, stk_diag *diag)
{
    (void)diag;
    counter *c = cursor;
    if (c->next == c->end) {
        if (c->ended) return STK_EEND;
        c->ended = true;
        return STK_EEPOCH;
    }
    stk_item_set_id(item, c->next++, 0);
    return STK_OK;
}

static int64_t counter_length(void *params)
{
    return *(const int64_t *)params;
}

static int64_t one_epoch(void *params)
{
    (void)params;
    return 1;
}

static const stk_source_class counter_class = {
    .name = "counter",
    .open = counter_open,
    .close = counter_close,
    .next = counter_next,
    .length = counter_length,
    .epochs = one_epoch,
    .reproducible = true,
};

static stk_err nothing(const void *params, void *state, stk_item *item, stk_diag *diag)
{
    (void)params;
    (void)state;
    (void)item;
    (void)diag;
    return STK_OK;
}

static const stk_op_class nothing_class = {.name = "nothing", .run = nothing};

static double seconds(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void sleep_seconds(long whole, long nanos)
{
    struct timespec left = {.tv_sec = whole, .tv_nsec = nanos};
    while (nanosleep(&left, &left)) /* check: allow sleep: being idle is what is measured */
        continue;
}

/* `items` must outlive the run. */
static stk_err start(int64_t *items, int32_t threads, stk_run **run, stk_diag *diag)
{
    stk_plan *plan = NULL;
    stk_err err = stk_plan_new(&plan);
    if (err) return stk_diag_set(diag, err, "plan");
    stk_plan_source(plan, stk_source_new(&counter_class, items));
    for (int i = 0; i < STAGES; i++) stk_plan_pipe(plan, stk_op_new(&nothing_class, NULL), NULL);
    stk_plan_sink(plan, SINK);
    err = stk_run_start(plan, &(stk_run_opts){.num_threads = threads}, run, diag);
    stk_plan_free(&plan);
    return err;
}

/* Reads to the end; the sum of ids tells whether each item came once. */
static stk_err drain(stk_run *run, int64_t *count, int64_t *sum, stk_diag *diag)
{
    stk_item *items[BURST];
    size_t n = 0;
    stk_err err;
    while (!(err = stk_run_next_items(run, STK_FOREVER, BURST, items, &n, diag))) {
        for (size_t i = 0; i < n; i++) {
            *sum += stk_item_id(items[i]);
            stk_item_free(&items[i]);
        }
        *count += (int64_t)n;
    }
    return err == STK_EEND ? STK_OK : err;
}

static stk_err move(int64_t items, int32_t threads, double *took, double *cpu, stk_diag *diag)
{
    stk_run *run = NULL;
    int64_t count = 0, sum = 0;
    const double began = seconds(CLOCK_MONOTONIC), began_cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
    stk_err err = start(&items, threads, &run, diag);
    if (!err) err = drain(run, &count, &sum, diag);
    *took = seconds(CLOCK_MONOTONIC) - began;
    *cpu = seconds(CLOCK_PROCESS_CPUTIME_ID) - began_cpu;
    stk_run_free(&run);
    if (!err && (count != items || sum != items * (items - 1) / 2))
        err =
            stk_diag_set(diag, STK_ECORRUPT, "%" PRId64 " of %" PRId64 " items came", count, items);
    return err;
}

static stk_err idle(long duration, int32_t threads, double *cpu, stk_diag *diag)
{
    stk_run *run = NULL;
    int64_t items = INT64_MAX;
    stk_item *item = NULL;
    size_t n = 0;
    stk_err err = start(&items, threads, &run, diag);
    if (!err) err = stk_run_next_items(run, STK_FOREVER, 1, &item, &n, diag);
    if (!err) {
        stk_item_free(&item);
        sleep_seconds(0, SETTLE_NS);
        const double before = seconds(CLOCK_PROCESS_CPUTIME_ID);
        sleep_seconds(duration, 0);
        *cpu = seconds(CLOCK_PROCESS_CPUTIME_ID) - before;
    }
    stk_run_free(&run);
    return err;
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        (void)fprintf(stderr, "usage: noop ITEMS THREADS IDLE_SECONDS\n");
        return EXIT_FAILURE;
    }
    const int64_t items = strtoll(argv[1], NULL, 10);
    const int32_t threads = (int32_t)strtol(argv[2], NULL, 10);
    const long rest = strtol(argv[3], NULL, 10);
    double took = 0, cpu = 0, idle_cpu = 0;
    stk_diag diag = {0};

    stk_err err = move(items, threads, &took, &cpu, &diag);
    if (!err && rest > 0) err = idle(rest, threads, &idle_cpu, &diag);
    if (err) {
        (void)fprintf(stderr, "noop: %s: %s\n", stk_err_str(err), diag.text);
        return EXIT_FAILURE;
    }
    (void)printf("{\"items\": %" PRId64 ", \"threads\": %d, \"seconds\": %.6f, \"cpu_s\": %.6f, "
                 "\"idle_seconds\": %ld, \"idle_cpu_s\": %.6f}\n",
                 items, threads, took, cpu, rest, idle_cpu);
    return EXIT_SUCCESS;
}
