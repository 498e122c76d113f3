/* Ports: stages that another runtime serves, here a thread that waits for news. */
#include "tests/engine/ports.h"

#include "base/alloc.h"

#define N 5000
#define BURST 16

static int64_t ids[N + 100];

/* What serves the stage `index` of a plan. */
typedef struct server {
    kit_port port;
    size_t inputs;
    int64_t fail_every;  /* ids that it divides fail; 0: none */
    int64_t fatal_id;    /* the stage fails at this id; 0: none */
    int64_t skip_every;  /* ids that it divides have no result; 0: none */
    int64_t close_after; /* closes the port after that many results; 0: at the end */
    int64_t made;        /* of a source: how many items to make; marks each 10 of them */
    size_t max;
    bool epoch_ends; /* the reader sees them */
    int64_t taken, ended;
} server;

static void run_one(server *s, stk_item *item)
{
    const int64_t id = stk_item_id(item);
    stk_diag diag = {0};
    if (s->fatal_id && id == s->fatal_id) {
        stk_diag_set(&diag, STK_EINVAL, "fatal");
        diag.fatal = true;
        stk_port_fail(s->port.run, s->port.index, item, &diag);
    }
    else if (s->fail_every && id % s->fail_every == 0) {
        stk_diag_set(&diag, STK_EINVAL, "no such thing");
        stk_port_fail(s->port.run, s->port.index, item, &diag);
    }
    else if (s->skip_every && id % s->skip_every == 0) {
        stk_port_skip(item);
    }
}

/* Until the input has ended or the stage has. */
static void serve_input(server *s, size_t input)
{
    stk_item *items[BURST];
    for (size_t n;;) {
        const stk_err err = kit_port_take(&s->port, input, s->max, items, &n);
        if (err == STK_EEPOCH) {
            if (!kit_port_mark(&s->port)) return;
            continue;
        }
        s->ended = err;
        if (err) return;
        CHECK(n > 0 && n <= s->max);
        for (size_t i = 0; i < n; i++) run_one(s, items[i]);
        s->taken += (int64_t)n;
        if (!kit_port_put(&s->port, items, n)) return;
        if (s->close_after && s->taken >= s->close_after) return;
    }
}

static void make_items(server *s)
{
    for (int64_t i = 0; i < s->made; i++) {
        stk_item *item = stk_port_item(s->port.run, s->port.index);
        if (!item) return;
        stk_item_set_id(item, i, s->port.epochs);
        run_one(s, item);
        if (!kit_port_put(&s->port, &item, 1)) return;
        if (i % 10 == 9 && !kit_port_mark(&s->port)) return;
    }
}

static void serve(void *arg)
{
    server *s = arg;
    if (s->made) make_items(s);
    for (size_t k = 0; k < s->inputs; k++) serve_input(s, k);
}

static server serving(size_t index)
{
    return (server){.port = {.index = index, .serve = serve}, .inputs = 1, .max = BURST};
}

static void begin(server *s, stk_plan *plan)
{
    s->port.ctx = s;
    kit_port_start(&s->port, plan, s->epoch_ends);
}

static void finish(server *s)
{
    kit_port_end(&s->port);
}

static size_t read_ids(server *s, size_t max, stk_err *end, stk_diag *diag)
{
    return kit_port_read(&s->port, ids, max, end, diag);
}

static stk_plan *one_port(kit_source *src, stk_stage_opts o, size_t sink)
{
    o.group = 1;
    o.concurrency = 1;
    stk_plan *p = kit_plan(src, kit_value(&(kit_op){0}), &(stk_stage_opts){.concurrency = 1});
    stk_plan_port(p, &o);
    stk_plan_sink(p, sink);
    return p;
}

static void everything_passes_in_its_order(void)
{
    for (size_t max = 1; max <= BURST; max += 5) {
        kit_source src = kit_counting(N);
        server s = serving(2);
        stk_err end;
        s.max = max;
        begin(&s, one_port(&src, (stk_stage_opts){0}, 3));
        CHECK_EQ(read_ids(&s, N + 1, &end, NULL), N);
        CHECK_EQ(end, STK_EEND);
        for (int64_t i = 0; i < N; i++) CHECK_EQ(ids[i], i);
        CHECK_EQ(s.taken, N);
        finish(&s);
        CHECK_EQ(s.ended, STK_EEND);
    }
}

static void epochs_pass(void)
{
    kit_source src = kit_counting(7);
    src.epochs = 3;
    server s = serving(2);
    stk_err end;
    s.epoch_ends = true;
    begin(&s, one_port(&src, (stk_stage_opts){0}, 3));
    const size_t n = read_ids(&s, N, &end, NULL);
    CHECK_EQ(end, STK_EEND);
    int64_t marks = 0, items = 0;
    for (size_t i = 0; i < n; i++) {
        if (ids[i] == KIT_EPOCH_END)
            CHECK_EQ(items % 7, 0), marks++;
        else
            CHECK_EQ(ids[i], items++ % 7);
    }
    CHECK_EQ(items, 21);
    CHECK_EQ(marks, 3);
    CHECK_EQ(s.port.epochs, marks);
    finish(&s);
}

static void skips_and_failures_leave_gaps(void)
{
    kit_source src = kit_counting(100);
    server s = serving(2);
    stk_err end;
    stk_stats *st;
    s.fail_every = 5, s.skip_every = 7;
    begin(&s, one_port(&src, (stk_stage_opts){.on_error = STK_SKIP}, 3));
    const size_t n = read_ids(&s, N, &end, NULL);
    CHECK_EQ(end, STK_EEND);
    size_t expected = 0;
    for (int64_t i = 0; i < 100; i++)
        if (i % 5 && i % 7) CHECK_EQ(ids[expected++], i);
    CHECK_EQ(n, expected);
    CHECK_EQ(stk_run_stats(s.port.run, &st), STK_OK);
    CHECK_EQ(st->stages[2].failed, 20);
    stk_stats_free(&st);
    finish(&s);
}

static void a_failure_in_a_port_comes_behind_its_results(void)
{
    for (int fatal = 0; fatal <= 1; fatal++) {
        kit_source src = kit_counting(N);
        server s = serving(2);
        stk_err end;
        stk_diag diag = {0};
        if (fatal)
            s.fatal_id = 40;
        else
            s.fail_every = 40;
        src.first_id = 1;
        begin(&s, one_port(&src, (stk_stage_opts){.on_error = fatal ? STK_SKIP : STK_RAISE}, 3));
        CHECK_EQ(read_ids(&s, N, &end, &diag), 39);
        CHECK_EQ(end, STK_EINVAL);
        CHECK(strstr(diag.text, fatal ? "fatal" : "no such thing"));
        for (int64_t i = 0; i < 39; i++) CHECK_EQ(ids[i], i + 1);
        finish(&s);
    }
}

static void too_many_failures_end_the_run(void)
{
    kit_source src = kit_counting(N);
    server s = serving(2);
    stk_err end;
    s.fail_every = 10;
    begin(&s, one_port(&src, (stk_stage_opts){.on_error = STK_SKIP, .max_failures = 3}, 3));
    CHECK_EQ(read_ids(&s, N, &end, NULL), 27); /* ids 0, 10, 20, 30 fail */
    CHECK_EQ(end, STK_ETOOMANY);
    finish(&s);
}

static void a_failure_before_a_port_waits_for_its_results(void)
{
    kit_source src = kit_counting(N);
    server s = serving(2);
    stk_err end;
    src.fail_at = 60;
    src.fail_with = STK_EIO;
    begin(&s, one_port(&src, (stk_stage_opts){0}, 3));
    CHECK_EQ(read_ids(&s, N, &end, NULL), 60);
    CHECK_EQ(end, STK_EIO);
    CHECK_EQ(s.taken, 60);
    finish(&s);
}

static void too_many_failures_before_a_port_wait_for_its_results(void)
{
    for (size_t max = 1; max <= BURST; max += 5) {
        kit_source src = kit_counting(N);
        server s = serving(2);
        stk_err end;
        src.first_id = 1;
        s.max = max;
        stk_plan *p =
            kit_plan(&src, kit_value(&(kit_op){.fail_every = 10}),
                     &(stk_stage_opts){.concurrency = 3, .on_error = STK_SKIP, .max_failures = 2});
        stk_plan_port(p, &(stk_stage_opts){.group = 1, .concurrency = 1});
        stk_plan_sink(p, 1);
        begin(&s, p);
        CHECK_EQ(read_ids(&s, N, &end, NULL), 27); /* ids 10, 20, 30 fail */
        CHECK_EQ(end, STK_ETOOMANY);
        finish(&s);
    }
}

static void a_closed_port_ends_what_is_before_it(void)
{
    kit_source src = kit_counting(INT64_C(1) << 40);
    server s = serving(2);
    stk_err end;
    s.close_after = 50, s.max = 1;
    begin(&s, one_port(&src, (stk_stage_opts){0}, 3));
    CHECK_EQ(read_ids(&s, N, &end, NULL), 50);
    CHECK_EQ(end, STK_EEND);
    finish(&s);
}

static void a_port_makes_items(void)
{
    server s = serving(0);
    stk_err end;
    s.inputs = 0, s.made = 95, s.skip_every = 9, s.epoch_ends = true;
    stk_plan *p;
    CHECK_EQ(stk_plan_new(&p), STK_OK);
    stk_plan_port_source(p, 1);
    stk_plan_sink(p, 2);
    begin(&s, p);
    const size_t n = read_ids(&s, N, &end, NULL);
    CHECK_EQ(end, STK_EEND);
    int64_t items = 0, marks = 0;
    for (size_t i = 0; i < n; i++) {
        if (ids[i] == KIT_EPOCH_END)
            marks++;
        else
            CHECK(ids[i] % 9 != 0 && ids[i] / 10 == marks), items++;
    }
    CHECK_EQ(items, 95 - 11);
    CHECK_EQ(marks, 9);
    finish(&s);
}

static stk_plan *merging(kit_source *sources, size_t n)
{
    stk_plan *p, *inputs[4];
    for (size_t i = 0; i < n; i++)
        inputs[i] =
            kit_plan(&sources[i], kit_value(&(kit_op){0}), &(stk_stage_opts){.concurrency = 1});
    CHECK_EQ(stk_plan_new(&p), STK_OK);
    stk_plan_port_merge(p, n, inputs, 1);
    stk_plan_sink(p, 2);
    return p;
}

static void inputs_of_a_merge_are_taken_one_by_one(void)
{
    kit_source sources[3] = {kit_counting(30), kit_counting(20), kit_counting(10)};
    sources[1].first_id = 100, sources[2].first_id = 200;
    server s = serving(6);
    stk_err end;
    s.inputs = 3;
    begin(&s, merging(sources, 3));
    CHECK_EQ(read_ids(&s, N, &end, NULL), 60);
    CHECK_EQ(end, STK_EEND);
    for (int64_t i = 0; i < 60; i++) CHECK_EQ(ids[i], i < 30 ? i : i < 50 ? 70 + i : 150 + i);
    finish(&s);
}

static void a_merge_may_leave_its_inputs(void)
{
    kit_source sources[2] = {kit_counting(N), kit_counting(INT64_C(1) << 40)};
    server s = serving(4);
    stk_err end;
    s.inputs = 1, s.close_after = 5, s.max = 1;
    begin(&s, merging(sources, 2));
    CHECK_EQ(read_ids(&s, N, &end, NULL), 5);
    CHECK_EQ(end, STK_EEND);
    finish(&s);
}

static void cancel_wakes_the_server(void)
{
    for (int64_t read = 0; read < 40; read += 3) {
        kit_source src = kit_counting(INT64_C(1) << 40);
        server s = serving(2);
        stk_err end;
        begin(&s, one_port(&src, (stk_stage_opts){0}, 1));
        CHECK_EQ(read_ids(&s, (size_t)read, &end, NULL), read);
        finish(&s); /* joins it */
        CHECK(s.ended == STK_ECANCELLED || s.taken > read);
    }
}

static void the_end_is_told_without_ports(void)
{
    for (int round = 0; round < 20; round++) {
        kit_source src = kit_counting(3);
        kit_port s = {0};
        stk_plan *p = kit_plan(&src, kit_value(&(kit_op){0}), NULL);
        stk_plan_sink(p, 3);
        CHECK_EQ(stk_run_start(p, &(stk_run_opts){.num_threads = 2}, &s.run, NULL), STK_OK);
        stk_plan_free(&p);
        CHECK_EQ(pthread_mutex_init(&s.lock, NULL), 0);
        CHECK_EQ(pthread_cond_init(&s.changed, NULL), 0);
        stk_run_set_notify(s.run, 0, kit_port_hear, &s);
        stk_run_cancel(s.run);
        kit_port_await(&s);
        CHECK_EQ(s.seen, 1);
        stk_run_free(&s.run);
        CHECK_EQ(s.news, 1);
        pthread_cond_destroy(&s.changed);
        pthread_mutex_destroy(&s.lock);
    }
}

static void other_stages_are_no_ports(void)
{
    kit_source src = kit_counting(3);
    server s = serving(2);
    stk_item *item;
    size_t n;
    stk_err end;
    begin(&s, one_port(&src, (stk_stage_opts){0}, 3));
    CHECK_EQ(stk_port_take(s.port.run, 1, 0, 1, &item, &n), STK_EINVAL);
    CHECK_EQ(stk_port_take(s.port.run, 2, 1, 1, &item, &n), STK_EINVAL);
    CHECK_EQ(stk_port_put(s.port.run, 99, &item, 0, 0, &n), STK_EINVAL);
    CHECK_EQ(stk_port_mark(s.port.run, 99, 0), STK_EINVAL);
    CHECK(!stk_port_item(s.port.run, 1));
    stk_port_close(s.port.run, 99);
    CHECK_EQ(read_ids(&s, N, &end, NULL), 3);
    finish(&s);
}

static void without_memory(void)
{
    stk_err err = STK_OK;
    TORTURE (err) {
        const stk_run_opts two = {.num_threads = 2};
        stk_plan *p = NULL;
        stk_run *run = NULL;
        err = stk_plan_new(&p);
        if (!err) {
            stk_plan_port_source(p, 1);
            stk_plan_port(p, &(stk_stage_opts){.group = 1, .concurrency = 1});
            stk_plan_sink(p, 2);
            err = stk_run_start(p, &two, &run, NULL);
        }
        stk_item *item = err ? NULL : stk_port_item(run, 0);
        size_t n = 0;
        if (!err && !item) err = STK_ENOMEM;
        if (!err) err = stk_port_put(run, 0, &item, 1, 0, &n);
        stk_item_free(&item);
        if (!err) err = stk_port_take(run, 1, 0, 1, &item, &n);
        if (!err) stk_port_fail(run, 1, item, &(stk_diag){.fatal = true});
        stk_item_free(&item);
        if (!err) err = stk_port_mark(run, 0, 0);
        stk_run_free(&run);
        stk_plan_free(&p);
    }
    CHECK_EQ(err, STK_OK);
}

TESTS(TEST(everything_passes_in_its_order), TEST(epochs_pass), TEST(skips_and_failures_leave_gaps),
      TEST(a_failure_in_a_port_comes_behind_its_results), TEST(too_many_failures_end_the_run),
      TEST(a_failure_before_a_port_waits_for_its_results),
      TEST(too_many_failures_before_a_port_wait_for_its_results),
      TEST(a_closed_port_ends_what_is_before_it), TEST(a_port_makes_items),
      TEST(inputs_of_a_merge_are_taken_one_by_one), TEST(a_merge_may_leave_its_inputs),
      TEST(cancel_wakes_the_server), TEST(the_end_is_told_without_ports),
      TEST(other_stages_are_no_ports), TEST(without_memory))
