#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "graph/steps.h"

static void copy_stage(const stage *s, int32_t running, stk_stage_stats *out)
{
    snprintf(out->name, sizeof(out->name), "%s", s->plan ? s->plan->name : s->kind);
    out->kind = s->kind;
    out->concurrency = s->concurrency;
    out->blocking = s->op && stk_op_get_class(s->op)->flags & STK_OP_BLOCKING;
    out->running = running;
    out->items = s->items;
    out->failed = s->failed;
    out->substituted = s->substituted;
    out->bytes = s->bytes;
    out->busy_ns = s->busy_ns;
    out->wait_in_ns = s->wait_in_ns;
    out->wait_out_ns = s->wait_out_ns;
    out->times = s->times;
}

/* Where no stage fills it, a join does, which belongs to its route, or the step before the sink. */
static size_t stage_of(const stk_run *run, const edge *e)
{
    const node *n = e->from;
    if (n->kind == NODE_JOIN) n = n->twin;
    if (e == run->sink || n->num_stages == 0) return run->num_stages - 1;
    return n->stages[n->num_stages - 1].index;
}

static void copy_queue(const stk_run *run, const edge *e, double elapsed, stk_queue_stats *out)
{
    memcpy(out->name, e->name, sizeof(out->name));
    out->stage = stage_of(run, e);
    out->capacity = e->window;
    out->len = e->len;
    out->puts = e->puts;
    out->gets = e->gets;
    out->put_wait_ns = e->put.all_ns;
    out->get_wait_ns = e->get.all_ns;
    out->put_waits = e->put.times;
    out->get_waits = e->get.times;
    out->occupancy = elapsed > 0 ? e->filled_ns / elapsed : 0;
    out->full = elapsed > 0 ? e->full_ns / elapsed : 0;
    out->empty = elapsed > 0 ? e->empty_ns / elapsed : 0;
}

static int32_t running_in(const stk_run *run, const stage *s)
{
    for (size_t i = 0; i < run->num_nodes; i++) {
        const node *n = &run->nodes[i];
        if (n->num_stages && s >= n->stages && s < n->stages + n->num_stages) return n->running;
    }
    return 0;
}

static void fill(stk_run *run, stk_stats *out) STK_REQUIRES(run_role)
{
    run_tick(run, stk_clock_ns());
    out->elapsed_ns = run->ticked - run->started;
    out->first_result_ns = run->first_result ? run->first_result - run->started : -1;
    out->results = run->results;
    out->num_threads = run->num_threads;
    out->threads_refused = run->executor ? stk_executor_refused(run->executor) : run->refused;
    out->num_io_threads = run->io_made;
    for (size_t i = 0; i < run->num_stages; i++)
        copy_stage(&run->stages[i], running_in(run, &run->stages[i]), &out->stages[i]);
    for (size_t i = 0; i < run->num_edges; i++)
        copy_queue(run, &run->edges[i], (double)out->elapsed_ns, &out->queues[i]);
}

stk_err stk_run_stats(stk_run *run, stk_stats **out)
{
    *out = NULL;
    if (run->generation != stk_fork_generation()) return STK_EFORK;
    stk_stats *s = stk_alloc_zero(1, sizeof(*s));
    if (!s) return STK_ENOMEM;
    s->num_stages = run->num_stages;
    s->num_queues = run->num_edges;
    s->stages = stk_alloc_zero(s->num_stages, sizeof(*s->stages));
    s->queues = stk_alloc_zero(s->num_queues, sizeof(*s->queues));
    if (!s->stages || !s->queues) {
        stk_stats_free(&s);
        return STK_ENOMEM;
    }
    run_lock(run);
    fill(run, s);
    const bool over = run->result == STK_EEND;
    run_unlock(run);
    stats_verdict(s, over);
    *out = s;
    return STK_OK;
}

void stk_stats_free(stk_stats **ps)
{
    stk_stats *s = *ps;
    *ps = NULL;
    if (!s) return;
    stk_free(s->stages);
    stk_free(s->queues);
    stk_free(s);
}

static stk_err copy_failures(const failure *f, stk_failure *out, size_t *n)
{
    for (; f; f = f->next) {
        const size_t size = strlen(f->what.key) + 1;
        char *key = stk_alloc(size);
        if (!key) return STK_ENOMEM;
        memcpy(key, f->what.key, size);
        out[*n] = f->what;
        out[*n].cause = f->what.cause ? stk_foreign_ref(f->what.cause) : NULL;
        out[(*n)++].key = key;
    }
    return STK_OK;
}

stk_err stk_run_failures(stk_run *run, stk_failure **out, size_t *n)
{
    *out = NULL;
    *n = 0;
    if (run->generation != stk_fork_generation()) return STK_EFORK;
    stk_failure *copy = stk_alloc_zero(MAX_KEPT_FAILURES, sizeof(*copy));
    if (!copy) return STK_ENOMEM;
    size_t made = 0;
    run_lock(run);
    stk_err err = copy_failures(run->kept, copy, &made);
    run_unlock(run);
    if (err) {
        stk_failures_free(&copy, made);
        return err;
    }
    *out = copy;
    *n = made;
    return STK_OK;
}

stk_err stk_run_causes(stk_run *run, stk_failure **out, size_t *n)
{
    *out = NULL;
    *n = 0;
    if (run->generation != stk_fork_generation()) return STK_EFORK;
    run_lock(run);
    const failure *first = run->result_failure; /* never changes once it is there */
    run_unlock(run);
    size_t num = 0, made = 0;
    for (const failure *f = first; f; f = f->next) num++;
    if (num == 0) return STK_OK;
    stk_failure *copy = stk_alloc_zero(num, sizeof(*copy));
    if (!copy) return STK_ENOMEM;
    stk_err err = copy_failures(first, copy, &made);
    if (err) {
        stk_failures_free(&copy, made);
        return err;
    }
    *out = copy;
    *n = made;
    return STK_OK;
}

void stk_failures_free(stk_failure **failures, size_t n)
{
    for (size_t i = 0; *failures && i < n; i++) {
        stk_free((*failures)[i].key);
        stk_foreign_unref(&(*failures)[i].cause);
    }
    stk_free(*failures);
    *failures = NULL;
}
