#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "graph/steps.h"

#define FREE_WAIT_NS INT64_C(5000000000)     /* stk_run_free's patience with ops that run */
#define FOREIGN_SOURCE_NS INT64_C(500000000) /* a source that is longer in `next` is blocked */
#define MAX_FREE_SLABS 32 /* idle memory kept: a few batches and their small change */

static void wake_source(void *ctx)
{
    node *n = ctx;
    stk_run *run = n->run;
    run_lock(run);
    n->src.woken = true;
    n->src.waiting = false;
    /* A run that has ended is given back by others: that waits for this very call.  Where settling
     * ends it, for lack of memory, a worker is asked to. */
    const bool on = run->opened && !run_cancelled(run);
    if (on) run_settle(run);
    if (on && !run_cancelled(run)) {
        run_leave(run);
        return;
    }
    run->coming += on;
    stk_executor *ex = on ? stk_executor_ref(run->executor) : NULL;
    run_unlock(run);
    if (on) stk_executor_wake(ex, &run->client);
    stk_executor_unref(&ex);
}

static stk_err open_nodes(stk_run *run, stk_diag *diag)
{
    stk_err err = STK_OK;
    for (size_t i = 0; i < run->num_nodes && !err; i++) {
        node *n = &run->nodes[i];
        if (n->kind == NODE_JOIN) err = route_open(n, diag);
        if (n->kind != NODE_SOURCE) continue;
        const stk_source_class *cls = stk_source_get_class(n->source);
        void *params = stk_source_params(n->source);
        const stk_source_env env = {.wake = wake_source, .ctx = n};
        run->endless |= cls->epochs && cls->epochs(params) < 0;
        err = cls->open(params, &env, &n->src.cursor, diag);
    }
    return err;
}

static stk_err make_lanes(stk_run *run, stk_diag *diag)
{
    const size_t n = (size_t)run->num_threads + STK_MAX_IO_THREADS;
    run->lanes = stk_alloc_zero(n, sizeof(*run->lanes));
    for (size_t i = 0; run->lanes && i < n; i++) {
        lane *l = &run->lanes[i];
        l->run = run;
        l->blocking = i >= (size_t)run->num_threads;
        l->states = stk_alloc_zero(run->num_stages, sizeof(*l->states));
        l->opened = stk_alloc_zero(run->num_stages, sizeof(*l->opened));
        l->tally = stk_alloc_zero(run->num_stages, sizeof(*l->tally));
        if (!l->states || !l->opened || !l->tally)
            return stk_diag_set(diag, STK_ENOMEM, "no memory for a run");
    }
    return run->lanes ? STK_OK : stk_diag_set(diag, STK_ENOMEM, "no memory for a run");
}

static uint32_t most_groups(const stk_plan *plan)
{
    uint32_t most = plan->source_group;
    for (size_t i = 0; i < plan->num_inputs; i++) {
        const uint32_t n = most_groups(plan->inputs[i]);
        if (n > most) most = n;
    }
    for (size_t i = 0; i < plan->num_stages; i++) {
        const stage_plan *s = &plan->stages[i];
        if (s->opts.group > most) most = s->opts.group;
        for (size_t k = 0; k < s->num_paths; k++) {
            const uint32_t n = most_groups(s->paths[k]);
            if (n > most) most = n;
        }
    }
    return most;
}

static stk_err make_groups(stk_run *run)
{
    const size_t n = most_groups(run->plan) + 1;
    run->groups = stk_alloc_zero(n, sizeof(*run->groups));
    if (!run->groups) return STK_ENOMEM;
    stk_err err = STK_OK;
    for (size_t g = 0; g < n && !err; g++) {
        err = stk_cond_init(&run->groups[g].work);
        run->num_groups = g + 1;
    }
    return err;
}

static stk_err make(stk_run *run, const stk_run_opts *o, stk_diag *diag)
{
    const stk_executor_opts threads = {.num_threads = o->num_threads};
    stk_err err = stk_mutex_init(&run->lock);
    if (!err) err = stk_cond_init(&run->reader);
    if (!err) err = stk_cond_init(&run->io);
    if (!err) err = stk_cond_init(&run->idle);
    if (!err) err = make_groups(run);
    if (!err) err = stk_slab_pool_new(MAX_FREE_SLABS, &run->slabs);
    if (err) return stk_diag_set(diag, err, "no memory for a run");
    if (o->executor)
        run->executor = stk_executor_ref(o->executor);
    else
        err = stk_executor_new(&threads, &run->executor, diag);
    if (err) return err;
    run->num_threads = stk_executor_num_threads(run->executor);
    run->processors = stk_usable_processors();
    err = run_lower(run, diag);
    if (!err) err = make_lanes(run, diag);
    return err;
}

static stk_err begin(stk_run *run, stk_diag *diag)
{
    run_lock(run);
    run->opened = true;
    run_unlock(run);
    return run_start_io(run, diag);
}

stk_err stk_run_start(stk_plan *plan, const stk_run_opts *opts, stk_run **out, stk_diag *diag)
{
    const stk_run_opts o = opts ? *opts : (stk_run_opts){0};
    *out = NULL;
    stk_err err = stk_plan_check(plan, diag);
    if (err) return err;
    stk_run *run = stk_alloc_zero(1, sizeof(*run));
    if (!run) return stk_diag_set(diag, STK_ENOMEM, "no memory for a run");
    atomic_init(&run->refs, 2); /* the user's and the client's */
    run->cancel_fd = -1;
    run->client.work = run_work;
    run->client.gone = run_gone;
    run->generation = stk_fork_generation();
    run->plan = stk_plan_ref(plan);
    run->epoch_ends = o.epoch_ends;
    run->started = run->ticked = stk_clock_ns();

    err = make(run, &o, diag);
    if (err) {
        run_unref(run, 2); /* no thread has seen it */
        return err;
    }
    err = open_nodes(run, diag);
    if (!err) err = begin(run, diag);
    if (err) {
        stk_run_free(&run);
        return err;
    }
    run_lock(run);
    run_leave(run);
    *out = run;
    return STK_OK;
}

/* The words for a failure that ends a run. */
static void describe(const failure *f, stk_diag *diag)
{
    const stk_failure *w = &f->what;
    const bool named = *w->key && strstr(w->diag.text, w->key);
    diag->err = w->diag.err;
    diag->os_error = w->diag.os_error;
    const size_t len = strlen(w->key), shown = 256; /* of a long path the end */
    const size_t skip = len > shown ? len - shown : 0;
    if (w->id < 0)
        snprintf(diag->text, sizeof(diag->text), "stage '%s': %.1900s", w->stage, w->diag.text);
    else
        snprintf(diag->text, sizeof(diag->text), "stage '%s', %s %lld%s%s%.256s: %.1650s", w->stage,
                 w->is_batch ? "batch" : "sample", (long long)w->id, *w->key && !named ? ", " : "",
                 skip && !named ? "..." : "", named ? "" : w->key + skip, w->diag.text);
}

static void take_error(stk_run *run) STK_REQUIRES(run_role)
{
    stk_item *item = edge_take(run->sink);
    run->result_failure = item->failures;
    item->failures = NULL;
    if (run->result_failure)
        describe(run->result_failure, &run->result_diag);
    else
        stk_diag_set(&run->result_diag, STK_ENOMEM,
                     "a sample failed, and there was no memory to say why");
    run->result = run->result_diag.err;
    run_item_put(run, &item);
    run_end(run);
}

/* STK_OK: an item is at the head of the sink; STK_EAGAIN: not yet. */
static stk_err look_at_sink(stk_run *run) STK_REQUIRES(run_role)
{
    if (run->result) return run->result;
    if (run_cancelled(run)) return STK_ECANCELLED;
    run_settle(run);
    if (run->result) return run->result;
    const stk_item *item = edge_peek(run->sink);
    if (item && item->state == ITEM_ERROR) {
        take_error(run);
        return run->result;
    }
    if (item && item->state == ITEM_MARK) {
        stk_item *mark = edge_take(run->sink);
        run_item_put(run, &mark);
        return STK_EEPOCH;
    }
    if (item) return STK_OK;
    if (!edge_done(run->sink)) return STK_EAGAIN;
    run->result = STK_EEND;
    run_end(run);
    return STK_EEND;
}

static stk_err wait_for_result(stk_run *run, int64_t deadline) STK_REQUIRES(run_role)
{
    for (;;) {
        stk_err err = look_at_sink(run);
        if (err != STK_EAGAIN) return err;
        if (deadline != STK_NEVER && stk_clock_ns() >= deadline) return STK_ETIMEOUT;
        run_tick(run, stk_clock_ns());
        if (run_short_groups(run) & ~run->told) return STK_EAGAIN;
        run->reading++;
        run_leave(run); /* what looking has moved */
        run_lock(run);
        bool news;
        const int64_t due = run_take_apart(run, true, &news);
        if (!news && !reader_has_news(run)) run_watch(run, &run->reader, due, deadline);
        run_tick(run, stk_clock_ns());
        run->reading--;
    }
}

/* What is read ahead of the first result only delays it, so the windows are narrow until then. */
static void begin_in_full(stk_run *run) STK_REQUIRES(run_role)
{
    run->first_result = stk_clock_ns();
    for (size_t i = 0; i < run->num_edges; i++) {
        edge *e = &run->edges[i];
        if (e->window < e->later) e->window = e->later;
    }
}

/* The head of the sink, if it is a result. */
static stk_item *next_result(stk_run *run) STK_REQUIRES(run_role)
{
    stk_item *item = edge_peek(run->sink);
    if (item) run_judge(run, item);
    if (!item || item->state == ITEM_GAP) { /* what settling takes away, or moves here */
        run_settle(run);
        item = edge_peek(run->sink);
    }
    return item && item->state == ITEM_VALUE ? item : NULL;
}

static size_t take_results(stk_run *run, size_t max, stk_item **items) STK_REQUIRES(run_role)
{
    size_t n = 0;
    while (n < max && next_result(run)) items[n++] = edge_take(run->sink);
    if (run->results == 0 && n) begin_in_full(run);
    if (n) run->empty_epochs = -1;
    run->results += n;
    run->stages[run->num_stages - 1].items += n;
    return n;
}

static stk_err read_items(stk_run *run, int64_t timeout, size_t max, stk_item **items, size_t *n,
                          stk_diag *diag)
{
    if (run->generation != stk_fork_generation())
        return stk_diag_set(diag, STK_EFORK,
                            "this run was started before fork: start one in the child");
    const int64_t deadline = stk_deadline_ns(timeout);
    run_lock(run);
    if (run->lent) run_tick(run, stk_clock_ns()); /* nobody watches lanes while results are ready */
    stk_err err = wait_for_result(run, deadline);
    if (!err) *n = take_results(run, max, items);
    if (err && err == run->result && err != STK_EEND && diag)
        *diag = run->result_diag;
    else if (err)
        stk_diag_set(diag, err, "%s", stk_err_str(err));
    run_leave(run);
    return err;
}

stk_err stk_run_next_items(stk_run *run, int64_t timeout, size_t max, stk_item **items, size_t *n,
                           stk_diag *diag)
{
    *n = 0;
    stk_err err = read_items(run, timeout, max, items, n, diag);
    if (!err) atomic_fetch_add_explicit(&run->refs, (int)*n, memory_order_relaxed);
    return err;
}

stk_err stk_run_next(stk_run *run, int64_t timeout, stk_batch **out, stk_diag *diag)
{
    stk_item *item = NULL;
    size_t n = 0;
    *out = NULL;
    if (plan_kind_at(run->plan, run->plan->num_stages) != STK_KIND_BATCH)
        return stk_diag_set(diag, STK_EINVAL,
                            "the results are %s, not batches: read them with "
                            "stk_run_next_items, or add a batch stage",
                            stk_kind_str(plan_kind_at(run->plan, run->plan->num_stages)));
    stk_err err = read_items(run, timeout, 1, &item, &n, diag);
    if (err) return err;
    *out = item->batch;
    item->batch = NULL;
    run_lock(run);
    run_item_put(run, &item);
    run_unlock(run);
    return STK_OK;
}

size_t stk_run_burst(stk_run *run)
{
    return atomic_load_explicit(&run->wide, memory_order_relaxed) ? MAX_BURST : 1;
}

bool stk_run_ended(const stk_run *run)
{
    return run_cancelled(run);
}

void stk_run_close(stk_run *run)
{
    if (run->generation != stk_fork_generation()) return;
    run_lock(run);
    run->closed = true;
    for (size_t i = 0; i < run->num_nodes; i++)
        if (run->nodes[i].kind == NODE_SOURCE) run->nodes[i].src.ended = true;
    run_leave(run);
}

void stk_run_cancel(stk_run *run)
{
    if (run->generation != stk_fork_generation()) return;
    run_lock(run);
    run_end(run);
    run_leave(run);
}

stk_err stk_run_last_items(stk_run *run, size_t max, stk_item **items, size_t *n)
{
    *n = 0;
    if (run->generation != stk_fork_generation()) return STK_EFORK;
    int results = 0;
    run_lock(run);
    while (*n < max) {
        const stk_err err = look_at_sink(run);
        if (err && err != STK_EEPOCH) break;
        const size_t took = err ? 0 : take_results(run, max - *n, items + *n);
        if (err) items[(*n)++] = NULL;
        *n += took;
        results += (int)took;
    }
    if (*n == max) (void)look_at_sink(run); /* which keeps a failure */
    atomic_fetch_add_explicit(&run->refs, results, memory_order_relaxed);
    run_end(run);
    run_leave(run);
    return STK_OK;
}

static bool is_over(const stk_run *run) STK_REQUIRES(run_role)
{
    return run->retired && run->client_gone && run->io_lanes == 0;
}

/* Only foreign sources run: until when they are waited for.  STK_NEVER: other work is under way. */
static int64_t foreign_sources_until(const stk_run *run) STK_REQUIRES(run_role)
{
    int32_t running = 0;
    int64_t last = 0;
    for (size_t i = 0; i < run->num_nodes; i++) {
        const node *n = &run->nodes[i];
        if (n->running == 0 || !node_is_foreign_source(n)) continue;
        running += n->running;
        if (n->since > last) last = n->since;
    }
    const bool only = running > 0 && run->tasks == running && run->active == 0;
    return only && run->io_lanes == 0 ? last + FOREIGN_SOURCE_NS : STK_NEVER;
}

static stk_err stop_until(stk_run *run, int64_t deadline, stk_diag *diag)
{
    stk_err err = STK_OK;
    bool left = false;
    stk_run_cancel(run);
    run_lock(run);
    while (!err && !left && !is_over(run)) {
        const int64_t blocked = foreign_sources_until(run);
        const int64_t grace = run->ended + FOREIGN_SOURCE_NS; /* it may have waited for others */
        const int64_t patience = blocked > grace ? blocked : grace;
        const int64_t until = patience < deadline && blocked != STK_NEVER ? patience : deadline;
        if (run_wait(run, &run->idle, until)) continue;
        left = blocked <= until && blocked != STK_NEVER;
        if (!left) err = run_say_late(run, blocked != STK_NEVER, diag);
    }
    stk_executor *ex = NULL;
    if (is_over(run)) {
        ex = run->executor; /* nothing of the run needs it any more */
        if (ex) run->refused = stk_executor_refused(ex);
        run->executor = NULL;
    }
    run_unlock(run);
    stk_executor_unref(&ex);
    return err;
}

stk_err stk_run_stop(stk_run *run, int64_t timeout, stk_diag *diag)
{
    if (run->generation != stk_fork_generation())
        return stk_diag_set(diag, STK_EFORK,
                            "this run was started before fork: the parent stops it");
    return stop_until(run, stk_deadline_ns(timeout), diag);
}

bool stk_run_is_over(stk_run *run)
{
    if (run->generation != stk_fork_generation()) return false;
    run_lock(run);
    const bool over = is_over(run);
    run_unlock(run);
    return over;
}

void stk_run_free(stk_run **prun)
{
    stk_run *run = *prun;
    *prun = NULL;
    if (!run || run->generation != stk_fork_generation()) return;
    stk_executor *ex = run->executor ? stk_executor_ref(run->executor) : NULL;
    (void)stop_until(run, stk_deadline_ns(FREE_WAIT_NS), NULL); /* what is late frees the run */
    run_unref(run, 1);
    stk_executor_unref(&ex);
}
