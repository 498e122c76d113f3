/* Ports on the paths of a route in input order: any number of results of what they took. */
#include "tests/engine/ports.h"

#define N 200
#define BURST 16
#define PATHS 2

/* Of id i come i % 4 results, with the ids i * 10, i * 10 + 1, ... */
typedef struct server {
    kit_port port;
    size_t max;
    int64_t fail_every; /* ids that it divides fail behind their results; 0: none */
} server;

static int64_t ids[16 * N];

static stk_err by_parity(void *ctx, stk_item *item, stk_diag *diag)
{
    (void)ctx, (void)diag;
    stk_item_set_path(item, (size_t)stk_item_id(item) % PATHS);
    return STK_OK;
}

/* Results and what they are of; false: the stage is over. */
static bool put_results(server *s, stk_item *item)
{
    const int64_t id = stk_item_id(item);
    stk_item *items[4];
    size_t n = 0;
    for (int64_t k = 0; k < id % 4; k++) {
        stk_item *one = stk_port_item(s->port.run, s->port.index);
        if (!one) break;
        stk_item_set_id(one, id * 10 + k, stk_item_epoch(item));
        stk_port_more(one);
        items[n++] = one;
    }
    if (s->fail_every && id % s->fail_every == 0) {
        stk_diag diag = {0};
        stk_diag_set(&diag, STK_EINVAL, "no more of them");
        stk_port_fail(s->port.run, s->port.index, item, &diag);
    }
    else {
        stk_port_close_results(item);
    }
    items[n++] = item;
    return kit_port_put(&s->port, items, n);
}

static void serve(void *arg)
{
    server *s = arg;
    stk_item *items[BURST];
    for (size_t n;;) {
        const stk_err err = kit_port_take(&s->port, 0, s->max, items, &n);
        if (err == STK_EEPOCH ? !kit_port_mark(&s->port) : err != STK_OK) return;
        bool open = true;
        for (size_t i = 0; !err && i < n; i++) {
            if (open)
                open = put_results(s, items[i]);
            else
                stk_item_free(&items[i]);
        }
        if (!open) return;
    }
}

/* Of anything an array with its id. */
static stk_err number(const void *params, void *state, stk_item *item, stk_diag *diag)
{
    (void)params, (void)state, (void)diag;
    const stk_spec spec = {.dtype = STK_INT64, .ndim = 1, .shape = {1}};
    const int64_t id = stk_item_id(item);
    stk_tensor t;
    const stk_err err = stk_item_new_array(item, 0, &spec, &t);
    if (err) return err;
    memcpy(t.data, &id, sizeof(id));
    stk_item_commit_array(item, 0);
    return STK_OK;
}

static const stk_op_class numbering = {
    .name = "number", .in = STK_KIND_ANY, .out = STK_KIND_ARRAY, .run = number};

/* Source, the op that names paths, route, path 0, path 1: the port is stage 3 or 4. */
static stk_plan *routed(kit_source *src, size_t port, const stk_stage_opts *opts)
{
    stk_plan *paths[PATHS];
    stk_plan *p = kit_plan(src, kit_hook_op((kit_hook){.run = by_parity}), NULL);
    for (size_t k = 0; k < PATHS; k++) {
        CHECK_EQ(stk_plan_new(&paths[k]), STK_OK);
        if (k == port) stk_plan_port(paths[k], opts);
        stk_plan_pipe(paths[k], stk_op_new(&numbering, NULL), NULL);
    }
    stk_plan_route(p, NULL, NULL, PATHS, paths, NULL);
    return p;
}

static void begin(server *s, stk_plan *plan, size_t port, size_t max)
{
    *s = (server){.port = {.index = 3 + port, .serve = serve, .ctx = s},
                  .max = max,
                  .fail_every = s->fail_every};
    stk_plan_sink(plan, 3);
    kit_port_start(&s->port, plan, true);
}

/* The ids of one epoch as its reader sees them. */
static size_t expect(int64_t *out, int64_t samples, size_t port)
{
    size_t n = 0;
    for (int64_t i = 0; i < samples; i++) {
        if (i % PATHS != (int64_t)port)
            out[n++] = i;
        else
            for (int64_t k = 0; k < i % 4; k++) out[n++] = i * 10 + k;
    }
    out[n++] = KIT_EPOCH_END;
    return n;
}

static const stk_stage_opts one = {.group = 1, .concurrency = 1, .on_error = STK_SKIP};

static void they_come_where_their_item_was(void)
{
    for (size_t port = 0; port < PATHS; port++)
        for (size_t max = 1; max <= BURST; max += 5) {
            kit_source src = kit_counting(N);
            src.epochs = 2;
            server s = {0};
            stk_err end;
            begin(&s, routed(&src, port, &one), port, max);
            const size_t n = kit_port_read(&s.port, ids, sizeof(ids) / sizeof(ids[0]), &end, NULL);
            CHECK_EQ(end, STK_EEND);
            kit_port_end(&s.port);
            int64_t expected[4 * N];
            const size_t each = expect(expected, N, port);
            CHECK_EQ(n, 2 * each);
            for (size_t i = 0; i < n; i++) CHECK_EQ(ids[i], expected[i % each]);
        }
}

/* What was taken has no place among them. */
static void batches_of_them_are_full(void)
{
    for (size_t port = 0; port < PATHS; port++) {
        kit_source src = kit_counting(N);
        server s = {0};
        stk_plan *p = routed(&src, port, &one);
        int64_t expected[4 * N];
        const size_t all = expect(expected, N, port) - 1;
        size_t n;
        stk_plan_batch(p, 8, NULL);
        begin(&s, p, port, BURST);
        CHECK_EQ(kit_read(s.port.run, ids, 4 * N, &n, NULL), STK_EEPOCH);
        CHECK_EQ(n, all + (all + 7) / 8);
        for (size_t i = 0; i < n; i++)
            if (i % 9 == 0)
                CHECK_EQ(ids[i], -1 - (int64_t)(n - i > 8 ? 8 : n - i - 1));
            else
                CHECK_EQ(ids[i], expected[i - i / 9 - 1]);
        kit_port_end(&s.port);
    }
}

static void a_failure_behind_results_is_counted(void)
{
    kit_source src = kit_counting(N);
    server s = {.fail_every = 5};
    stk_err end;
    stk_stats *st;
    begin(&s, routed(&src, 1, &one), 1, BURST);
    const size_t n = kit_port_read(&s.port, ids, sizeof(ids) / sizeof(ids[0]), &end, NULL);
    CHECK_EQ(end, STK_EEND);
    int64_t expected[4 * N];
    CHECK_EQ(n, expect(expected, N, 1)); /* the results before it are there */
    for (size_t i = 0; i < n; i++) CHECK_EQ(ids[i], expected[i]);
    CHECK_EQ(stk_run_stats(s.port.run, &st), STK_OK);
    CHECK_EQ(st->stages[4].failed, N / 10); /* 5, 15, 25... */
    stk_stats_free(&st);
    kit_port_end(&s.port);
}

static void a_failure_may_end_the_run(void)
{
    kit_source src = kit_counting(N);
    server s = {.fail_every = 15};
    stk_err end;
    stk_diag diag = {0};
    begin(&s, routed(&src, 1, &(stk_stage_opts){.group = 1, .concurrency = 1}), 1, BURST);
    const size_t n = kit_port_read(&s.port, ids, sizeof(ids) / sizeof(ids[0]), &end, &diag);
    CHECK_EQ(end, STK_EINVAL);
    CHECK(strstr(diag.text, "no more of them"));
    int64_t expected[4 * N];
    const size_t before = expect(expected, 16, 1) - 1; /* all of 0 to 15, without the mark */
    CHECK_EQ(n, before);
    for (size_t i = 0; i < n; i++) CHECK_EQ(ids[i], expected[i]);
    kit_port_end(&s.port);
}

/* What an op with STK_OP_ENDS is run on. */
typedef struct sight {
    int64_t id;
    size_t path;
    bool more;
} sight;

static sight seen[4 * N];
static size_t num_seen;

static stk_err look(const void *params, void *state, stk_item *item, stk_diag *diag)
{
    (void)params, (void)state, (void)diag;
    const sight one_more = {stk_item_id(item), stk_item_path(item), stk_item_more(item)};
    if (num_seen < 4 * N) seen[num_seen++] = one_more;
    return one_more.path == PATHS ? STK_ESKIP : STK_OK;
}

static stk_err nothing_left(const void *params, void *state, stk_item *out, stk_diag *diag)
{
    (void)params, (void)state, (void)out, (void)diag;
    return STK_ESKIP;
}

/* A fold: one item after the other. */
static const stk_op_class looking = {
    .name = "look",
    .flags = STK_OP_ENDS,
    .in = STK_KIND_ANY,
    .out = STK_KIND_ANY,
    .run = look,
    .flush = nothing_left,
};

static void check_sights(size_t port)
{
    size_t at = 0;
    for (int64_t i = 0; i < N; i++) {
        if (i % PATHS != (int64_t)port) {
            CHECK_EQ(seen[at].id, i);
            CHECK(seen[at].path == 1 - port && !seen[at].more);
            at++;
            continue;
        }
        for (int64_t k = 0; k < i % 4; k++, at++) {
            CHECK_EQ(seen[at].id, i * 10 + k);
            CHECK(seen[at].path == port && seen[at].more);
        }
        if (port < PATHS - 1) continue;
        CHECK_EQ(seen[at].id, i);
        CHECK(seen[at].path == PATHS);
        at++;
    }
    CHECK_EQ(num_seen, at);
}

static void the_end_of_those_on_the_last_path_is_told(void)
{
    for (size_t port = 0; port < PATHS; port++) {
        kit_source src = kit_counting(N);
        server s = {0};
        stk_err end;
        num_seen = 0;
        stk_plan *p = routed(&src, port, &one);
        stk_plan_pipe(p, stk_op_new(&looking, NULL), NULL);
        begin(&s, p, port, BURST);
        const size_t n = kit_port_read(&s.port, ids, sizeof(ids) / sizeof(ids[0]), &end, NULL);
        CHECK_EQ(end, STK_EEND);
        kit_port_end(&s.port);
        int64_t expected[4 * N];
        CHECK_EQ(n, expect(expected, N, port));
        check_sights(port);
    }
}

static void it_may_be_cancelled(void)
{
    for (size_t read = 0; read < 40; read += 3) {
        kit_source src = kit_counting(INT64_C(1) << 40);
        server s = {0};
        stk_err end;
        begin(&s, routed(&src, read % PATHS, &one), read % PATHS, BURST);
        CHECK_EQ(kit_port_read(&s.port, ids, read, &end, NULL), read);
        kit_port_end(&s.port);
    }
}

TESTS(TEST(they_come_where_their_item_was), TEST(batches_of_them_are_full),
      TEST(a_failure_behind_results_is_counted), TEST(a_failure_may_end_the_run),
      TEST(the_end_of_those_on_the_last_path_is_told), TEST(it_may_be_cancelled))
