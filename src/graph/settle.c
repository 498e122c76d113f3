/* What needs no op: results put down, moved on, ends passed on, time counted. */
#include "graph/steps.h"
#include "graph/times.h"

static void add_tally(stk_run *run, lane *l)
{
    for (size_t i = 0; i < run->num_stages; i++) {
        tally *y = &l->tally[i];
        stage *s = &run->stages[i];
        s->items += y->items;
        s->failed += y->failed;
        s->substituted += y->substituted;
        s->bytes += y->bytes;
        s->busy_ns += y->busy_ns;
        for (uint32_t k = 0; k < y->num_took; k++)
            times_add(&s->times, y->took[k].ns, y->took[k].num);
        y->items = y->failed = y->substituted = y->bytes = 0;
        y->busy_ns = 0;
        y->num_took = 0;
    }
}

/* Rises at once and falls slowly: after one slow item the next ones travel alone for a while.  A
 * foreign lane may lose its processor, or its runtime's lock, in the middle of a burst, and what is
 * stuck there is taken apart: so its estimate takes some steps to rise. */
void node_learn(node *n, double cost)
{
    if (n->group && n->cost_ns >= 0 && cost > 2 * n->cost_ns + 1000) cost = 2 * n->cost_ns + 1000;
    n->cost_ns = cost > n->cost_ns ? cost : n->cost_ns - (n->cost_ns - cost) / 8;
}

bool node_folds(const node *n)
{
    return n->kind == NODE_MAP && stk_op_get_class(n->stages[0].op)->flush;
}

void edge_end_sources(const edge *e)
{
    node *n = e->from;
    if (n->kind == NODE_SOURCE) {
        n->src.ended = true;
        return;
    }
    if (n->in) edge_end_sources(n->in);
    for (size_t k = 0; !n->in && k < n->num_edges; k++) edge_end_sources(n->edges[k]);
}

/* A foreign stage stops at its first failure that ends the run: what is behind it would never be
 * seen. */
static void stop_at(node *n) STK_REQUIRES(run_role)
{
    n->failed = n->order == STK_ORDER_COMPLETION;
    if (n->in) edge_end_sources(n->in);
    for (size_t k = 0; !n->in && k < n->num_edges; k++) edge_end_sources(n->edges[k]);
}

void put_result(node *n, stk_item *item)
{
    const bool ordered = n->order == STK_ORDER_INPUT;
    const bool folds = node_folds(n);
    if (folds || (n->group && (!ordered || n->concurrency == 1))) run_judge(n->run, item);
    if (folds) n->fold.id = item->id, n->fold.epoch = item->epoch, n->fold.source = item->source;
    if (n->group && item->state == ITEM_ERROR) stop_at(n);
    if (ordered) {
        edge_put(n->out, item, item->seq);
        return;
    }
    n->out->reserved--;
    if (item->state == ITEM_GAP && folds && n->depth == 0) /* what a fold has taken in */
        run_item_put(n->run, &item);
    else
        edge_deliver(n->out, item);
}

/* The oldest first: an item that waits for another mostly waits for one that came before it. */
void put_back(node *n, stk_item **items, size_t begin, size_t end)
{
    stk_item **at = &n->returned;
    for (size_t i = begin; i < end; i++) {
        if (i > begin && items[i]->seq < items[i - 1]->seq) at = &n->returned;
        while (*at && (*at)->seq < items[i]->seq) at = &(*at)->link;
        items[i]->link = *at;
        *at = items[i];
        at = &items[i]->link;
    }
}

static void finish_map(node *n, task *t) STK_REQUIRES(run_role)
{
    const size_t end = t->shared ? shared_rest(t) : t->num;
    for (size_t i = t->shared ? t->collected : 0; i < t->done; i++) put_result(n, t->items[i]);
    if (t->flush) n->flushed = true;
    put_back(n, t->items, t->done, end);
}

static void finish_source(node *n, task *t) STK_REQUIRES(run_role)
{
    const size_t collected = t->shared ? t->collected : 0;
    n->out->reserved -= t->num - collected;
    for (size_t i = collected; i < t->done; i++) edge_deliver(n->out, t->items[i]);
    size_t left = t->done;
    if (t->end == STK_EAGAIN) {
        n->src.waiting = !n->src.woken;
    }
    else if (t->end) {
        n->src.ended = true;
        if (t->end != STK_EEND) {
            if (t->diag.err != t->end || !t->diag.text[0])
                stk_diag_set(&t->diag, t->end, "%s", stk_err_str(t->end));
            run_fail(t->items[left], &n->stages[0], &t->diag);
            n->stages[0].failed++;
            edge_append(n->out, t->items[left++]);
        }
    }
    for (; left < t->num; left++) run_item_put(n->run, &t->items[left]);
}

void run_finish(task *t, lane *l)
{
    node *n = t->node;
    stk_run *run = n->run;
    const int64_t now = stk_clock_ns();
    run_tick(run, now);
    add_tally(run, l);
    if (t->done > 0) node_learn(n, (double)(now - t->began) / (double)t->done);
    if (n->kind == NODE_BATCH || n->kind == NODE_ROUTE) n->stages[0].busy_ns += now - t->began;
    switch (n->kind) {
    case NODE_SOURCE: finish_source(n, t); break;
    case NODE_MAP: finish_map(n, t); break;
    case NODE_EXPAND: expand_finish(t); break;
    case NODE_BATCH: batch_finish(t); break;
    case NODE_ROUTE: route_finish(t); break;
    case NODE_JOIN:
    case NODE_PORT:
    case NODE_PASS:
    case NODE_MERGE: break;
    }
    n->running--;
    run->tasks--;
}

static bool inputs_done(const node *n)
{
    if (n->kind == NODE_PORT) return n->port.done && !n->port.error && !n->port.head;
    if (n->kind == NODE_SOURCE) return n->src.ended || (n->run->closed && n->running == 0);
    if (n->kind != NODE_JOIN && n->kind != NODE_MERGE) return edge_done(n->in);
    for (size_t k = 0; k < n->num_edges; k++)
        if (!edge_done(n->edges[k])) return false;
    return true;
}

static bool is_empty(const node *n)
{
    switch (n->kind) {
    case NODE_MAP: return !n->returned && (!node_folds(n) || n->flushed);
    case NODE_EXPAND: return !n->expand.head;
    case NODE_BATCH: return !n->batch.collecting && !n->batch.submitted;
    case NODE_ROUTE: return !n->route.head;
    case NODE_JOIN:
    case NODE_MERGE: return !n->failure;
    case NODE_SOURCE:
    case NODE_PORT:
    case NODE_PASS: break;
    }
    return true;
}

static void drop_returned(node *n) STK_REQUIRES(run_role)
{
    while (n->returned) {
        stk_item *item = n->returned;
        n->returned = item->link;
        if (n->order == STK_ORDER_COMPLETION) n->out->reserved--;
        run_item_put(n->run, &item);
    }
}

/* Passes the end of the input on, once nothing is left inside. */
static bool close_outputs(node *n) STK_REQUIRES(run_role)
{
    if (n->closed || n->running > 0) return false;
    if (n->failed)
        drop_returned(n);
    else if (!inputs_done(n) || !is_empty(n))
        return false;
    n->closed = true;
    if (n->kind == NODE_SOURCE) n->src.ended = true;
    if (n->kind == NODE_ROUTE)
        for (size_t k = 0; k < n->num_edges; k++) edge_close(n->edges[k], n->edges[k]->next);
    else if (n->kind == NODE_MAP && n->order == STK_ORDER_INPUT)
        edge_close(n->out, n->in->end);
    else
        edge_close(n->out, n->out->next);
    return true;
}

static bool pass(node *n)
{
    bool moved = false;
    while (edge_peek(n->in) && edge_room(n->out)) {
        edge_append(n->out, edge_take(n->in));
        moved = true;
    }
    return moved;
}

static bool move(node *n) STK_REQUIRES(run_role)
{
    bool moved = false;
    switch (n->kind) {
    case NODE_EXPAND: moved = expand_settle(n); break;
    case NODE_BATCH: moved = batch_collect(n); break;
    case NODE_ROUTE: moved = route_settle(n); break;
    case NODE_JOIN: moved = join_settle(n); break;
    case NODE_MERGE: moved = merge_settle(n); break;
    case NODE_PASS: moved = pass(n); break;
    case NODE_PORT: moved = port_settle(n); break;
    case NODE_SOURCE:
    case NODE_MAP: break;
    }
    return close_outputs(n) || moved;
}

/* What the reader does not want to see. */
static bool clear_sink(stk_run *run) STK_REQUIRES(run_role)
{
    bool moved = false;
    for (;;) {
        stk_item *item = edge_peek(run->sink);
        if (!item) return moved;
        run_judge(run, item);
        if (item->state == ITEM_MARK && !run->epoch_ends) run_judge_epoch(run, item);
        const bool unseen =
            item->state == ITEM_GAP || (item->state == ITEM_MARK && !run->epoch_ends);
        if (!unseen) return moved;
        item = edge_take(run->sink);
        run_item_put(run, &item);
        moved = true;
    }
}

void run_settle(stk_run *run)
{
    if (run_cancelled(run)) return;
    bool moved;
    do {
        moved = clear_sink(run);
        for (size_t i = run->num_nodes; i-- > 0;) moved |= move(&run->nodes[i]);
    } while (moved);
}

/* Where a stage with room for more work waits: for input, or for room. */
static void look_at_waits(const node *n, bool *in, bool *out)
{
    if (n->closed || n->running >= n->concurrency) return;
    switch (n->kind) {
    case NODE_SOURCE:
        *in = n->src.waiting;
        *out = !edge_room(n->out);
        return;
    case NODE_MAP:
    case NODE_EXPAND:
    case NODE_ROUTE:
    case NODE_BATCH:
        *in = n->in->len == 0 && (n->kind == NODE_MAP ? !n->returned : is_empty(n));
        *out = !*in && n->kind != NODE_ROUTE && !edge_room(n->out);
        return;
    case NODE_PORT:
        *out = n->port.want_out;
        *in = !*out && n->port.want_in;
        return;
    case NODE_PASS:
        *in = n->in->len == 0;
        *out = !*in && !edge_room(n->out);
        return;
    case NODE_JOIN:
    case NODE_MERGE: *out = !edge_room(n->out); return;
    }
}

static void tick_node(node *n, int64_t dt)
{
    bool in = false, out = false;
    look_at_waits(n, &in, &out);
    if (n->num_stages > 0 && n->kind != NODE_MERGE) {
        if (in) n->stages[0].wait_in_ns += dt;
        if (out) n->stages[n->num_stages - 1].wait_out_ns += dt;
    }
    if (n->in) waits_tick(&n->in->get, in, dt);
    if (n->out) waits_tick(&n->out->put, out, dt);
    for (size_t k = 0; n->kind != NODE_ROUTE && k < n->num_edges; k++)
        waits_tick(&n->edges[k]->get, in || n->edges[k]->len == 0, dt);
}

void run_tick(stk_run *run, int64_t now)
{
    const int64_t dt = now - run->ticked;
    if (dt <= 0 || run->ended) return;
    run->ticked = now;
    for (size_t i = 0; i < run->num_nodes; i++) tick_node(&run->nodes[i], dt);
    for (size_t i = 0; i < run->num_edges; i++) edge_tick(&run->edges[i], (double)dt);
    waits_tick(&run->sink->get, run->reading > 0, dt);
    stage *reader = &run->stages[run->num_stages - 1];
    if (run->reading > 0)
        reader->wait_in_ns += dt; /* the reader waits for a result */
    else if (run->first_result)
        reader->busy_ns += dt; /* it is busy elsewhere */
}
