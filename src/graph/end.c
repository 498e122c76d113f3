/* The end of a run: stop, give everything in flight back, free. */
#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/failpoint.h"
#include "graph/steps.h"

void run_end(stk_run *run)
{
    if (run_cancelled(run)) return;
    run_tick(run, stk_clock_ns());
    run->ended = run->ticked;
    run->closed = true;
    atomic_store_explicit(&run->cancelled, true, memory_order_relaxed);
    stk_cond_broadcast(&run->reader);
    stk_cond_broadcast(&run->io);
    for (size_t g = 1; g < run->num_groups; g++) stk_cond_broadcast(&run->groups[g].work);
    if (run->cancel_fd >= 0) (void)eventfd_write(run->cancel_fd, 1);
}

/* Once, for all ops of the run: they never read it. */
stk_err stk_item_cancel_fd(stk_item *item, int *out, stk_diag *diag)
{
    stk_run *run = item->run;
    stk_err err = STK_OK;
    run_lock(run);
    if (run->cancel_fd < 0 && !stk_failpoint("run.eventfd"))
        run->cancel_fd = eventfd(run_cancelled(run), EFD_CLOEXEC | EFD_NONBLOCK);
    if (run->cancel_fd < 0)
        err = stk_diag_errno(diag, errno, "no descriptor to wait for the end of the run");
    *out = run->cancel_fd;
    run_unlock(run);
    return err;
}

void run_abort(stk_run *run, stk_err err, const char *text)
{
    if (!run->result) run->result = stk_diag_set(&run->result_diag, err, "%s", text);
    run_end(run);
}

void lane_close(lane *l)
{
    for (size_t k = 0; l->opened && k < l->run->num_stages; k++) {
        if (!l->opened[k]) continue;
        const stk_op_class *cls = stk_op_get_class(l->run->stages[k].op);
        l->opened[k] = false;
        if (cls->close) cls->close(l->states[k]);
    }
}

static void close_states(stk_run *run)
{
    for (int32_t i = 0; run->lanes && i < run->num_threads + STK_MAX_IO_THREADS; i++)
        lane_close(&run->lanes[i]);
}

static void close_cursors(stk_run *run)
{
    for (size_t i = 0; i < run->num_nodes; i++) {
        node *n = &run->nodes[i];
        if (n->kind == NODE_EXPAND) expand_end_cursors(n);
        if (n->kind != NODE_SOURCE || !n->src.cursor) continue;
        stk_source_get_class(n->source)->close(n->src.cursor);
        n->src.cursor = NULL;
    }
}

static void put_all(stk_run *run, edge *e) STK_REQUIRES(run_role)
{
    stk_item *item;
    while ((item = edge_take_any(e, e->next))) run_item_put(run, &item);
}

static void free_in_flight(stk_run *run) STK_REQUIRES(run_role)
{
    for (size_t i = 0; i < run->num_edges; i++) put_all(run, &run->edges[i]);
    for (size_t i = 0; i < run->num_stages; i++)
        failure_free(&run->stages[i].latest); /* nothing is judged any more */
    for (size_t i = 0; i < run->num_nodes; i++) {
        node *n = &run->nodes[i];
        while (n->returned) {
            stk_item *item = n->returned;
            n->returned = item->link;
            run_item_put(run, &item);
        }
        run_item_put(run, &n->failure);
        if (n->kind == NODE_BATCH) batch_retire(n);
        if (n->kind == NODE_EXPAND) expand_retire(n);
        if (n->kind == NODE_ROUTE) route_retire(n);
        if (n->kind == NODE_PORT) port_retire(n);
    }
}

void run_retire(stk_run *run)
{
    /* One thread only, and no task runs: ops and cursors are told without the lock. */
    close_cursors(run);
    close_states(run);
    stk_executor *ex = stk_executor_ref(run->executor); /* `gone` may drop the run's */
    run_lock(run);
    free_in_flight(run);
    stk_slab_pool_drain(run->slabs);
    if (run->cancel_fd >= 0) close(run->cancel_fd);
    run->cancel_fd = -1;
    run->retired = true;
    stk_cond_broadcast(&run->idle);
    run_unlock(run);
    stk_executor_detach(ex, &run->client);
    stk_executor_unref(&ex);
}

void run_gone(stk_client *client)
{
    stk_run *run = (stk_run *)client;
    run_lock(run);
    run->client_gone = true;
    stk_cond_broadcast(&run->idle);
    run_unlock(run);
    run_unref(run, 1);
}

static void destroy(stk_run *run)
{
    while (run->pool) {
        stk_item *item = run->pool;
        run->pool = item->link;
        run_item_drop(&item);
    }
    failure_free(&run->kept);
    failure_free(&run->result_failure);
    for (size_t i = 0; run->stages && i < run->num_stages; i++)
        failure_free(&run->stages[i].latest);
    for (int32_t i = 0; run->lanes && i < run->num_threads + STK_MAX_IO_THREADS; i++) {
        stk_free(run->lanes[i].states);
        stk_free(run->lanes[i].opened);
        stk_free(run->lanes[i].tally);
    }
    for (size_t g = 0; g < run->num_groups; g++) stk_cond_fini(&run->groups[g].work);
    for (size_t i = 0; run->edges && i < run->num_edges; i++) edge_fini(&run->edges[i]);
    for (size_t i = 0; run->nodes && i < run->num_nodes; i++)
        if (run->nodes[i].kind == NODE_JOIN) route_close(&run->nodes[i]);
    stk_free(run->lanes);
    stk_free(run->groups);
    stk_free(run->stages);
    stk_free(run->nodes);
    stk_free(run->edges);
    stk_slab_pool_unref(&run->slabs);
    stk_plan_free(&run->plan);
    stk_cond_fini(&run->idle);
    stk_cond_fini(&run->io);
    stk_cond_fini(&run->reader);
    stk_mutex_fini(&run->lock);
    if (run->cancel_fd >= 0) close(run->cancel_fd);
    stk_executor *ex = run->executor;
    stk_free(run);
    stk_executor_unref(&ex); /* may end the thread that runs this */
}

void run_unref(stk_run *run, int n)
{
    if (atomic_fetch_sub_explicit(&run->refs, n, memory_order_acq_rel) == n) destroy(run);
}
