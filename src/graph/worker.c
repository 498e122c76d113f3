/*
 * The threads of a run: CPU workers, which come from the executor, and I/O threads of its own.
 *
 * Nobody polls.  Whoever changes something decides in run_leave who can now go on, and wakes them,
 * one at a time: a thread that comes wakes the next one if there is work for it.
 */
#include <stoker/trace.h>

#include "base/alloc.h"
#include "graph/steps.h"

#define SLOW_NS 50e3  /* a thread that is at work this long will not look around soon */
#define WORTH_NS 30e3 /* ready work worth a wake-up beside threads that will look around soon */
/* The same where only one of them runs at a time anyway and no item takes QUICK_NS (a tenth less
 * processor time for items that cost nothing, in pairs), and for foreign ops while the reader has
 * enough to do (a fifth to a half, beside a loop that asks for 1,000 items a second). */
#define PATIENT_WORTH_NS 1e6
#define QUICK_NS 5e3
#define LEAST_WINDOW 3    /* of a queue that is filled a half at a time */
#define REST_NS 10000000  /* so long, and then it is filled whatever is left */
#define WAITS_NS 1e6      /* reads that take this long wait for a disk or a network */
#define SLICE_NS 10000000 /* how long a run keeps a worker that another run waits for */

/* What is ready in one class of work, and whether those at work will be back soon. */
typedef struct outlook {
    bool ready, slow;
    double cost_ns, longest_ns; /* of all that is ready, and of one item */
} outlook;

/* Readers may let credit gather: while enough results wait behind them, one wake-up can serve
 * many reads.  So may foreign ops that cost less than a wake-up, if not for long: beside a loop
 * that asks for 1,000 items a second, three of them took a third of the processor time. */
static bool urgent(const node *n)
{
    const edge *out = n->out;
    if (!out || !edge_peek(out)) return true; /* a consumer that misses its next one is served */
    const bool large = out->window > 2 * MAX_BURST;
    const bool quick = n->cost_ns >= 0 && n->cost_ns < SLOW_NS;
    if (n->group && !large) {
        const bool read_next = out->to && out->to->kind == NODE_PASS; /* results are ready behind */
        const uint32_t rest = read_next ? 0 : out->window / 2;
        if (!quick || out->fixed || out->window < LEAST_WINDOW || out->len <= rest) return true;
        return stk_clock_ns() - n->since >= REST_NS;
    }
    const bool refills = n->group || (n->blocking && n->kind == NODE_MAP);
    return !refills || out->len <= out->window / 4;
}

static outlook look(stk_run *run, bool blocking, uint32_t g) STK_REQUIRES(run_role)
{
    outlook o = {0};
    for (size_t i = 0; i < run->num_nodes; i++) {
        const node *n = &run->nodes[i];
        if (n->blocking != blocking || n->group != g) continue;
        const bool known = n->cost_ns >= 0;
        if (n->running > 0 &&
            (!known || n->cost_ns > SLOW_NS || (double)(run->ticked - n->since) > 2 * SLOW_NS))
            o.slow = true;
        const size_t ready = node_ready(n);
        if (!ready) continue;
        if (urgent(n)) o.ready = true;
        o.cost_ns += known ? n->cost_ns * (double)ready : 2 * WORTH_NS;
        if (!known || n->cost_ns > o.longest_ns) o.longest_ns = known ? n->cost_ns : WORTH_NS;
    }
    return o;
}

/* More workers than processors would share them between the first batch and what comes after it:
 * until there is a result, they only delay it. */
static int32_t most_workers(const stk_run *run)
{
    const int32_t usable = run->results == 0 ? run->processors : run->num_threads;
    return usable < run->num_threads ? usable : run->num_threads;
}

static bool wants_worker(stk_run *run) STK_REQUIRES(run_role)
{
    if (run->active + run->coming >= most_workers(run)) return false;
    const outlook o = look(run, false, 0);
    if (!o.ready) return false;
    return run->active + run->coming == 0 || o.slow || o.cost_ns > WORTH_NS;
}

/* Reads of what is in memory cost processor time, and more of them at once than processors do not
 * make the first result come earlier: those that wait, and are waited for, do. */
static int32_t most_io(const stk_run *run)
{
    if (!run->limited || run->processors > run->io_most) return run->io_most;
    for (size_t i = 0; i < run->num_nodes; i++) {
        const node *n = &run->nodes[i];
        if (n->blocking && n->kind == NODE_MAP && n->cost_ns > WAITS_NS && n->out->len == 0)
            return run->io_most;
    }
    return run->processors;
}

static bool wants_io(stk_run *run) STK_REQUIRES(run_role)
{
    const int32_t busy = run->io_lanes - run->io_waiting;
    if (busy + run->io_coming >= most_io(run)) return false;
    const outlook o = look(run, true, 0);
    if (!o.ready) return false;
    return busy + run->io_coming == 0 || o.slow || o.cost_ns > 2 * WORTH_NS;
}

bool run_is_ahead(const stk_run *run)
{
    return run->reading == 0 && edge_peek(run->sink);
}

int64_t group_rests_until(const stk_run *run, uint32_t g)
{
    int64_t last = 0;
    for (size_t i = 0; i < run->num_nodes; i++)
        if (run->nodes[i].group == g && run->nodes[i].since > last) last = run->nodes[i].since;
    return last && stk_clock_ns() < last + REST_NS ? last + REST_NS : STK_NEVER;
}

bool group_is_ready(stk_run *run, uint32_t g)
{
    return look(run, false, g).ready;
}

bool group_wants_lane(stk_run *run, uint32_t g)
{
    const group *p = &run->groups[g];
    const outlook o = look(run, false, g);
    if (!o.ready) return false;
    const bool quick = p->exclusive && o.longest_ns < QUICK_NS;
    const double worth = quick || run_is_ahead(run) ? PATIENT_WORTH_NS : WORTH_NS;
    return p->inside - p->waiting + p->coming == 0 || o.slow || o.cost_ns > worth;
}

bool reader_has_news(stk_run *run)
{
    return run->result || edge_peek(run->sink) || edge_done(run->sink) ||
           run_short_groups(run) & ~run->told || run_cancelled(run);
}

static void *io_work(void *arg);

/* One more I/O thread, if the system has one: those that run do without. */
static void start_io(stk_run *run, int32_t index)
{
    lane *l = &run->lanes[run->num_threads + index];
    atomic_fetch_add_explicit(&run->refs, 1, memory_order_relaxed);
    if (stk_thread_start(&l->thread, "stoker-io", io_work, l) == STK_OK) {
        (void)pthread_detach(l->thread.os); /* the run waits for it by counting */
        return;
    }
    run_lock(run);
    run->io_lanes--;
    run->io_most = index; /* no use in asking again */
    stk_cond_broadcast(&run->idle);
    run_unlock(run);
    run_unref(run, 1);
}

/* Nothing runs, and nothing can: what was begun came to no result, an incomplete batch say. */
static bool is_stuck(const stk_run *run) STK_REQUIRES(run_role)
{
    if (run->tasks > 0) return false;
    for (size_t i = 0; i < run->num_nodes; i++) {
        const node *n = &run->nodes[i];
        if (node_ready(n) > 0 || (n->kind == NODE_SOURCE && n->src.waiting)) return false;
    }
    return true;
}

/* The limits hold until the first result is read or, if nobody waits for it, is there. */
static void lift_limits(stk_run *run) STK_REQUIRES(run_role)
{
    if (!run->limited) return;
    const bool read = run->results > 0;
    if (!read && (edge_peek(run->sink) ? run->reading > 0 : !is_stuck(run))) return;
    run->limited = false;
    for (size_t i = 0; i < run->num_edges; i++) run->edges[i].limit = 0;
}

void run_leave(stk_run *run)
{
    run_settle(run);
    lift_limits(run);
    const bool cancelled = run_cancelled(run);
    const bool retire = cancelled && run->tasks == 0 && !run->retiring;
    if (retire) run->retiring = true;
    if (run->reading > 0 && reader_has_news(run)) stk_cond_broadcast(&run->reader);
    if (cancelled && run->tasks > 0) stk_cond_broadcast(&run->idle); /* few may be waited for */

    const uint64_t news = cancelled || run->num_groups > 1 ? run_port_news(run) : 0;
    run->notifying += news != 0;
    bool worker = false;
    int32_t io = -1;
    if (!cancelled) {
        run_wake_groups(run);
        run_ask_watcher(run);
        worker = wants_worker(run);
        run->coming += worker;
        if (wants_io(run)) {
            if (run->io_waiting > run->io_coming) {
                run->io_coming++;
                stk_cond_signal(&run->io);
            }
            else if (run->io_made < run->io_most) {
                run->io_lanes++;
                io = run->io_made++;
            }
        }
    }
    /* A stop that does not wait for this thread may give the run's executor up meanwhile. */
    stk_executor *ex = worker ? stk_executor_ref(run->executor) : NULL;
    run_unlock(run);
    if (worker) stk_executor_wake(ex, &run->client);
    stk_executor_unref(&ex);
    if (news) run_notify(run, news);
    if (io >= 0) start_io(run, io);
    if (retire) run_retire(run);
}

/* Runs one task, if there is one: the lock is given up and taken again. */
bool lane_step(stk_run *run, lane *l, task *t) STK_REQUIRES(run_role)
{
    run_settle(run);
    if (run_cancelled(run)) return false;
    if (!run_claim(run, l, t)) return false;
    t->began = stk_clock_ns();
    run_tick(run, t->began);
    if (t->node->running == 1) t->node->since = t->began;
    const uint64_t shortage = lane_shortage(l);
    lane_begins(l, t);
    l->current = t;
    run_leave(run);
    lane_tell(l, shortage);
    const char *name = stage_name(&t->node->stages[0]);
    if (l->on_stage) l->on_stage(name, l->on_stage_ctx);
    const uint64_t slice = stk_trace_begin(name);
    task_exec(l, t);
    stk_trace_end(slice);
    run_lock(run);
    l->current = NULL;
    run_finish(t, l);
    return true;
}

bool run_work(stk_client *client, int32_t worker)
{
    stk_run *run = (stk_run *)client;
    lane *l = &run->lanes[worker];
    const int64_t begin = stk_clock_ns();
    bool more = false;
    task t = {0};
    run_lock(run);
    if (run->coming > 0) run->coming--;
    run->active++;
    while (!more && lane_step(run, l, &t))
        more = stk_executor_contended(run->executor) && stk_clock_ns() - begin > SLICE_NS;
    run->active--;
    run_leave(run);
    return more;
}

static void *io_work(void *arg)
{
    lane *l = arg;
    stk_run *run = l->run;
    task t = {0};
    run_lock(run);
    while (!run_cancelled(run)) {
        if (lane_step(run, l, &t)) continue;
        if (run_cancelled(run)) break;
        run->io_waiting++;
        run_leave(run); /* what the last step changed */
        run_lock(run);
        while (run->io_coming == 0 && !run_cancelled(run)) (void)run_wait(run, &run->io, STK_NEVER);
        run->io_waiting--;
        if (run->io_coming > 0) run->io_coming--;
    }
    run->io_lanes--;
    stk_cond_broadcast(&run->idle);
    run_leave(run);
    run_unref(run, 1);
    return NULL;
}

stk_err run_start_io(stk_run *run, stk_diag *diag)
{
    int64_t most = 0;
    for (size_t i = 0; i < run->num_nodes; i++)
        if (run->nodes[i].blocking && run->nodes[i].kind != NODE_SOURCE)
            most += run->nodes[i].concurrency;
    run_lock(run);
    run->io_most = most < STK_MAX_IO_THREADS ? (int32_t)most : STK_MAX_IO_THREADS;
    const bool some = most > 0;
    if (some) {
        run->io_lanes++;
        run->io_made++;
    }
    run_unlock(run);
    if (!some) return STK_OK;
    start_io(run, 0);
    run_lock(run);
    const bool started = run->io_lanes > 0;
    run_unlock(run);
    if (started) return STK_OK;
    return stk_diag_set(diag, STK_EAGAIN,
                        "the system refused a thread for reading: raise the limit on "
                        "processes (ulimit -u)");
}
