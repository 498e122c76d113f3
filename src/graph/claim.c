/* What a worker may do next: the ready work furthest downstream that has credit. */
#include <assert.h>

#include "graph/steps.h"

#define BURST_NS \
    50e3 /* cheap items travel together, for as long as a lock and a wake-up cost little of it */
#define WINDOW_NS 200e3 /* a wider window for cheap items: this much work, at most EDGE_RING */

size_t node_burst(const node *n)
{
    if (n->cost_ns < 0) return 1;
    const double k = BURST_NS / (n->cost_ns + 1);
    return k < 1 ? 1 : k > MAX_BURST ? MAX_BURST : (size_t)k;
}

/* The time between two items of the edge since this was asked last. */
static double interval(edge *e)
{
    const int64_t now = e->from->run->ticked, ns = now - e->asked_ns;
    const uint64_t gets = e->gets - e->asked_gets;
    e->asked_ns = now;
    e->asked_gets = e->gets;
    return (double)ns / (double)(gets + 1);
}

/* Between foreign stages nobody knows how much memory an item holds, so a window grows only while
 * it is what holds two quick stages up: it was full, and then ran empty, and items pass quickly,
 * whoever makes them.  What waits in it is then little work, and what is made in little time is
 * little memory. */
static void grow(edge *e)
{
    if (!e->starved) return;
    const double each = interval(e);
    if (e->to && e->to->kind == NODE_PASS && e->to->out->len > 0) { /* the reader does not wait */
        e->starved = false;
        return;
    }
    e->starved = e->was_full = false;
    const double from = e->from->cost_ns, to = e->to ? e->to->cost_ns : 0;
    const double most_of_both = from > to ? from : to;
    const double cost = each > most_of_both ? each : most_of_both;
    if (from < 0 || (to < 0 && e->to->kind <= NODE_ROUTE)) return; /* who is quick is not known */
    const double most = 8 * WINDOW_NS / (cost + 1);
    const uint32_t w = most > EDGE_RING ? EDGE_RING : (uint32_t)most;
    const uint32_t next = 2 * e->window < w ? 2 * e->window : w;
    if (next > e->window) e->window = next;
    if (e->to && e->to->kind == NODE_PASS && e->window >= 2 * MAX_BURST)
        atomic_store_explicit(&e->from->run->wide, true, memory_order_relaxed);
}

/* Cheap on both sides: many may be on their way without using much memory or time. */
void edge_widen(edge *e)
{
    if (e->adaptive) grow(e);
    if (e->fixed || e->adaptive || !e->to) return;
    const double from = e->from->cost_ns, to = e->to->cost_ns;
    const double cost = from > to ? from : to;
    if (from < 0 || to < 0 || cost * EDGE_RING > WINDOW_NS * 8) return;
    const uint32_t w = cost < WINDOW_NS / EDGE_RING ? EDGE_RING : (uint32_t)(WINDOW_NS / cost);
    if (w > e->window) e->window = w;
}

void edge_deliver(edge *e, stk_item *item)
{
    if (e->bind) batch_plan_slot(e->bind, item);
    edge_append(e, item);
}

static void give_task(node *n, task *t, bool flush)
{
    t->node = n;
    t->done = 0;
    t->end = STK_OK;
    t->flush = flush;
    t->shared = n->group && n->kind != NODE_ROUTE && !flush;
    if (t->shared) shared_begin(t);
    n->running++;
    n->run->tasks++;
}

/* In completion order the end of an epoch, or of the run, may not overtake, nor be overtaken. */
static bool is_barrier(const stk_item *item)
{
    return item->state == ITEM_MARK || item->state == ITEM_ERROR;
}

static bool pass_barrier(node *n)
{
    const stk_item *item = edge_peek(n->in);
    if (!item || !is_barrier(item)) return false;
    if (n->running > 0 || n->returned || !edge_room(n->out)) return false;
    if (node_folds(n) && !n->flushed) return false;
    n->flushed = false;
    edge_append(n->out, edge_take(n->in));
    return true;
}

/* A fold gives what it holds before the next end. */
static bool can_flush(const node *n)
{
    if (!node_folds(n) || n->flushed || n->running > 0 || n->returned || !edge_room(n->out))
        return false;
    const stk_item *item = edge_peek(n->in);
    return item ? is_barrier(item) : edge_done(n->in);
}

static bool claim_flush(node *n, task *t) STK_REQUIRES(run_role)
{
    if (!can_flush(n)) return false;
    t->items[0] = run_item_get(n->run);
    if (!t->items[0]) {
        run_abort(n->run, STK_ENOMEM, "no memory for a result");
        return false;
    }
    stk_item_set_id(t->items[0], n->fold.id, n->fold.epoch);
    t->items[0]->source = n->fold.source;
    t->items[0]->more = UINT64_MAX; /* what comes next is another's, if anything comes */
    n->out->reserved++;
    t->num = 1;
    give_task(n, t, true);
    return true;
}

static stk_item *take_for_map(node *n)
{
    stk_item *item = n->returned;
    if (item) {
        n->returned = item->link;
        return item;
    }
    if (n->order == STK_ORDER_COMPLETION) {
        item = edge_peek(n->in);
        if (!item || is_barrier(item) || !edge_room(n->out)) return NULL;
        n->out->reserved++;
        return edge_take(n->in);
    }
    const uint64_t limit = n->out->low + n->out->window;
    if (!n->in_turn) return edge_take_any(n->in, limit);
    return n->in->low < limit ? edge_take(n->in) : NULL;
}

static bool claim_map(node *n, task *t) STK_REQUIRES(run_role)
{
    if (n->running >= n->concurrency || n->failed) return false;
    if (n->in_turn && n->concurrency == 1 && n->running > 0) return false;
    edge_widen(n->in);
    edge_widen(n->out);
    while (n->order == STK_ORDER_COMPLETION && pass_barrier(n)) continue;
    const size_t most = node_burst(n);
    t->num = 0;
    while (t->num < most) {
        stk_item *item = take_for_map(n);
        if (!item) break;
        item->link = NULL;
        t->items[t->num++] = item;
    }
    if (t->num == 0) return claim_flush(n, t);
    give_task(n, t, false);
    return true;
}

static bool claim_source(node *n, task *t) STK_REQUIRES(run_role)
{
    if (n->running > 0 || n->src.ended || n->src.waiting) return false;
    edge_widen(n->out);
    const size_t most = n->cost_ns < 0 && !n->group ? 4 : node_burst(n);
    t->num = 0;
    while (t->num < most && edge_room(n->out)) {
        stk_item *item = run_item_get(n->run);
        if (!item) {
            run_abort(n->run, STK_ENOMEM, "no memory for a sample");
            break;
        }
        item->source = n->source;
        t->items[t->num++] = item;
        n->out->reserved++;
    }
    if (t->num == 0) return false;
    n->src.woken = false;
    give_task(n, t, false);
    return true;
}

static bool claim_batch(node *n, task *t)
{
    assembly *a = n->batch.submitted;
    if (!a || n->running >= n->concurrency) return false;
    n->batch.submitted = a->link;
    if (!a->link) n->batch.submitted_tail = NULL;
    t->assembly = a;
    give_task(n, t, false);
    return true;
}

#define LOOK_AHEAD 32 /* items that may wait for room on their path */

static size_t route_room(const node *n)
{
    if (n->twin->order == STK_ORDER_INPUT) return n->route.head ? 0 : MAX_BURST;
    return n->route.waiting < LOOK_AHEAD ? LOOK_AHEAD - n->route.waiting : 0;
}

static bool claim_route(node *n, task *t)
{
    const size_t room = route_room(n);
    if (n->running > 0 || room == 0) return false;
    t->num = 0;
    while (t->num < node_burst(n) && t->num < room) {
        stk_item *item = edge_take(n->in);
        if (!item) break;
        t->items[t->num++] = item;
    }
    if (t->num == 0) return false;
    give_task(n, t, false);
    return true;
}

static bool claim(node *n, task *t) STK_REQUIRES(run_role)
{
    switch (n->kind) {
    case NODE_SOURCE: return claim_source(n, t);
    case NODE_MAP: return claim_map(n, t);
    case NODE_BATCH: return claim_batch(n, t);
    case NODE_ROUTE: return claim_route(n, t);
    case NODE_EXPAND:
        if (!expand_claim(n, t)) return false;
        give_task(n, t, false);
        return true;
    case NODE_JOIN:
    case NODE_PORT:
    case NODE_PASS:
    case NODE_MERGE: break; /* they only move: settle */
    }
    return false;
}

bool run_claim(stk_run *run, const lane *l, task *t)
{
    for (size_t i = run->num_nodes; i-- > 0;) {
        node *n = &run->nodes[i];
        if (n->group == l->group && n->blocking == l->blocking && claim(n, t)) return true;
    }
    return false;
}

/* How many items a claim could take now: exact enough to decide who is woken. */
size_t node_ready(const node *n)
{
    switch (n->kind) {
    case NODE_SOURCE:
        return n->running == 0 && !n->src.ended && !n->src.waiting && edge_room(n->out);
    case NODE_MAP: {
        if (n->running >= n->concurrency || n->failed) return 0;
        if (n->returned) return 1;
        if (n->order == STK_ORDER_COMPLETION) {
            if (can_flush(n)) return 1;
            const stk_item *item = edge_peek(n->in);
            if (!item || !edge_room(n->out)) return 0;
            return is_barrier(item) ? n->running == 0 : n->in->len;
        }
        if (n->in_turn)
            return edge_peek(n->in) && edge_room_at(n->out, n->in->low) ? n->in->len : 0;
        return edge_any_below(n->in, n->out->low + n->out->window) ? n->in->len : 0;
    }
    case NODE_BATCH: return n->batch.submitted && n->running < n->concurrency;
    case NODE_ROUTE: return n->running == 0 && route_room(n) && edge_peek(n->in);
    case NODE_EXPAND: return expand_ready(n);
    case NODE_JOIN:
    case NODE_PORT:
    case NODE_PASS:
    case NODE_MERGE: break;
    }
    return 0;
}
