#include <stoker/port.h>

#include "graph/steps.h"
#include "graph/times.h"

#define MAX_HELD 32768 /* by one port: as many as there are between a route and its join */

static node *node_of(stk_run *run, size_t index)
{
    for (size_t i = 0; i < run->num_nodes; i++) {
        node *n = &run->nodes[i];
        if (n->kind == NODE_PORT && n->stages[0].index == index) return n;
    }
    return NULL;
}

static bool over(const node *n)
{
    return n->failed || n->closed || n->port.done || run_cancelled(n->run);
}

/* Nothing that was taken before it is still with the other runtime. */
static bool is_due(const node *n, const stk_item *held)
{
    return held->seq <= n->port.returned || n->port.done;
}

static void hold(node *n, stk_item *item)
{
    item->seq = n->port.taken;
    item->link = NULL;
    if (n->port.tail)
        n->port.tail->link = item;
    else
        n->port.head = item;
    n->port.tail = item;
    n->port.num_held++;
}

static stk_item *take_held(node *n)
{
    stk_item *item = n->port.head;
    n->port.head = item->link;
    if (!n->port.head) n->port.tail = NULL;
    n->port.num_held--;
    return item;
}

/* Gaps whose turn has come go on; at the end of an epoch they wait for its mark. */
static bool let_go(node *n) STK_REQUIRES(run_role)
{
    bool moved = false;
    while (n->port.head && is_due(n, n->port.head) && edge_room(n->out)) {
        if (n->port.head->state == ITEM_MARK && !n->port.done) break;
        stk_item *item = take_held(n);
        if (item->state == ITEM_MARK)
            run_item_put(n->run, &item); /* it was never put */
        else
            edge_deliver(n->out, item);
        moved = true;
    }
    return moved;
}

bool port_returned(stk_item *item)
{
    node *n = item->taker;
    item->taker = NULL;
    if (!n) return false;
    n->port.returned++;
    return n->port.head && is_due(n, n->port.head);
}

/* For a put: gaps that are due go first. */
static bool has_room(node *n) STK_REQUIRES(run_role)
{
    (void)let_go(n);
    return edge_room(n->out);
}

/* A gap goes past the port, for which it needs room, or is held.  Its failures are counted before
 * that: if they are too many it stays, as the error behind all that was taken. */
static bool can_take(const node *n, size_t k)
{
    const stk_item *head = edge_peek(n->edges[k]);
    if (!head) return false;
    if (head->state == ITEM_GAP)
        return (n->port.holds && n->port.num_held < MAX_HELD) || edge_room(n->out);
    return head->state == ITEM_VALUE;
}

/* The failure of a stage before this one waits here until the port has put all that it will. */
static stk_err end_input(const node *n, size_t k)
{
    const stk_item *item = edge_peek(n->edges[k]);
    if (item && item->state == ITEM_GAP) return STK_EAGAIN;
    if (!item) return edge_done(n->edges[k]) ? STK_EEND : STK_EAGAIN;
    if (item->state == ITEM_MARK) return STK_EEPOCH;
    return STK_EEND; /* the failure, or what the first one leaves behind */
}

static stk_err take_locked(node *n, size_t k, size_t max, stk_item **items, size_t *num)
    STK_REQUIRES(run_role)
{
    edge *e = n->edges[k];
    edge_widen(e);
    while (*num < max) {
        stk_item *head = edge_peek(e);
        if (head && head->state == ITEM_GAP) run_judge(n->run, head);
        if (!can_take(n, k)) break;
        stk_item *item = edge_take(e);
        if (item->state == ITEM_VALUE) {
            n->port.taken++;
            item->taker = n;
            items[(*num)++] = item;
        }
        else if (n->port.holds) {
            /* One too many: whoever has what was taken may want more before it gives any back. */
            if (n->port.num_held == MAX_HELD && n->port.head->state == ITEM_GAP)
                edge_deliver(n->out, take_held(n));
            hold(n, item);
        }
        else {
            edge_deliver(n->out, item);
        }
    }
    if (*num > 0) return STK_OK;
    stk_err err = end_input(n, k);
    if (err == STK_EAGAIN) n->port.want_in |= UINT32_C(1) << k;
    if (err != STK_EEPOCH) return err;
    stk_item *mark = edge_take(e);
    if (n->port.holds)
        hold(n, mark);
    else
        run_item_put(n->run, &mark);
    return STK_EEPOCH;
}

stk_err stk_port_take(stk_run *run, size_t index, size_t input, size_t max, stk_item **items,
                      size_t *num)
{
    *num = 0;
    if (run->generation != stk_fork_generation()) return STK_EFORK;
    node *n = node_of(run, index);
    if (!n || input >= n->num_edges || max == 0) return STK_EINVAL;
    stk_err err = STK_ECANCELLED;
    run_lock(run);
    if (!over(n)) {
        const size_t most = node_burst(n);
        run_tick(run, stk_clock_ns());
        err = take_locked(n, input, max < most ? max : most, items, num);
        atomic_fetch_add_explicit(&run->refs, (int)*num, memory_order_relaxed);
    }
    run_leave(run);
    return err;
}

stk_item *stk_port_item(stk_run *run, size_t index)
{
    stk_item *item = NULL;
    node *n = node_of(run, index);
    if (!n || run->generation != stk_fork_generation()) return NULL;
    run_lock(run);
    const bool is_over = over(n);
    if (!is_over) item = run_item_get(run);
    if (item) {
        atomic_fetch_add_explicit(&run->refs, 1, memory_order_relaxed);
        run_unlock(run);
        return item;
    }
    if (!is_over) run_abort(run, STK_ENOMEM, "no memory for a result");
    run_leave(run);
    return NULL;
}

static void put_one(node *n, stk_item *item) STK_REQUIRES(run_role)
{
    stage *s = &n->stages[0];
    if (!item->closing) item->passed |= UINT64_C(1) << s->index;
    if (item->state == ITEM_VALUE) s->items++;
    n->out->reserved++; /* put_result gives it back */
    (void)port_returned(item);
    put_result(n, item);
}

static void count_times(stage *s, stk_item *const *items, size_t num, int64_t busy)
{
    size_t good = 0;
    for (size_t i = 0; i < num; i++) good += items[i]->state != ITEM_ERROR && !items[i]->failures;
    if (busy > 0 && good > 0) times_add(&s->times, busy / (int64_t)num, good);
}

stk_err stk_port_put(stk_run *run, size_t index, stk_item **items, size_t num, int64_t busy,
                     size_t *done)
{
    *done = 0;
    if (run->generation != stk_fork_generation()) return STK_EFORK;
    node *n = node_of(run, index);
    if (!n) return STK_EINVAL;
    run_lock(run);
    stk_err err = over(n) ? STK_ECANCELLED : STK_OK;
    if (!err) {
        run_tick(run, stk_clock_ns());
        n->stages[0].busy_ns += busy;
        if (num > 0) node_learn(n, (double)busy / (double)num);
        count_times(&n->stages[0], items, num, busy);
        edge_widen(n->out);
        while (*done < num && !n->failed && has_room(n)) {
            put_one(n, items[*done]);
            items[(*done)++] = NULL;
        }
        if (n->failed)
            err = STK_ECANCELLED;
        else if (*done < num)
            err = STK_EAGAIN;
        n->port.want_out |= err == STK_EAGAIN; /* another put may be waiting */
    }
    run_leave(run);
    if (*done > 0) run_unref(run, (int)*done); /* the caller has one of its own */
    return err;
}

/* Gaps before the end of an epoch go first: all that is left of it is with somebody who lost it. */
static bool can_mark(node *n) STK_REQUIRES(run_role)
{
    while (n->port.head && n->port.head->state == ITEM_GAP && edge_room(n->out))
        edge_deliver(n->out, take_held(n));
    return edge_room(n->out);
}

stk_err stk_port_mark(stk_run *run, size_t index, int64_t epoch)
{
    if (run->generation != stk_fork_generation()) return STK_EFORK;
    node *n = node_of(run, index);
    if (!n) return STK_EINVAL;
    run_lock(run);
    stk_err err = over(n) ? STK_ECANCELLED : can_mark(n) ? STK_OK : STK_EAGAIN;
    stk_item *mark = err ? NULL : n->port.head ? take_held(n) : run_item_get(run);
    n->port.want_out |= err == STK_EAGAIN;
    if (mark) {
        mark->state = ITEM_MARK;
        stk_item_set_id(mark, -1, epoch);
        edge_deliver(n->out, mark);
    }
    else if (!err) {
        run_abort(run, STK_ENOMEM, "no memory for the end of an epoch");
        err = STK_ENOMEM;
    }
    run_leave(run);
    return err;
}

void stk_port_skip(stk_item *item)
{
    item_clear_data(item);
    item->state = ITEM_GAP;
}

void stk_port_more(stk_item *item)
{
    item->more = UINT64_MAX;
}

void stk_port_close_results(stk_item *item)
{
    stk_port_skip(item);
    item->closing = true;
}

void stk_port_fail(stk_run *run, size_t index, stk_item *item, const stk_diag *diag)
{
    const node *n = node_of(run, index);
    if (!n) return;
    struct stage *s = &n->stages[0];
    run_fail_or_skip(item, s, diag);
    run_lock(run);
    s->failed++;
    run_unlock(run);
}

void stk_port_close(stk_run *run, size_t index)
{
    if (run->generation != stk_fork_generation()) return;
    node *n = node_of(run, index);
    if (!n) return;
    run_lock(run);
    if (!n->port.done) {
        n->port.done = true;
        for (size_t k = 0; k < n->num_edges; k++)
            if (!edge_done(n->edges[k])) edge_end_sources(n->edges[k]);
    }
    run_leave(run);
}

/* Drops what an input still has, but keeps the failure that may end it. */
static bool empty_input(node *n, size_t k) STK_REQUIRES(run_role)
{
    edge *e = n->edges[k];
    bool moved = false;
    for (stk_item *item; (item = edge_take_any(e, e->next)); moved = true) {
        if (item->state == ITEM_ERROR && !(n->lost >> k & 1)) {
            n->lost |= UINT32_C(1) << k;
            run_fail_too(n->run, &n->port.error, item);
        }
        else {
            run_item_put(n->run, &item);
        }
    }
    return moved;
}

static void drop_held(node *n) STK_REQUIRES(run_role)
{
    while (n->port.head) {
        stk_item *item = take_held(n);
        run_item_put(n->run, &item);
    }
}

bool port_settle(node *n)
{
    if (n->closed) return false;
    if (n->failed) drop_held(n);
    bool moved = let_go(n);
    if (!n->port.done) return moved;
    for (size_t k = 0; k < n->num_edges; k++) moved |= empty_input(n, k);
    if (n->port.error && !n->port.head && edge_room(n->out)) {
        edge_append(n->out, n->port.error);
        n->port.error = NULL;
        moved = true;
    }
    return moved;
}

void port_retire(node *n)
{
    drop_held(n);
    run_item_put(n->run, &n->port.error);
}

static bool has_news(const node *n)
{
    if (run_cancelled(n->run) || n->failed) return true;
    if (n->port.want_out && edge_room(n->out)) return true; /* what is due has gone before it */
    for (size_t k = 0; k < n->num_edges; k++)
        if (n->port.want_in >> k & 1 && (can_take(n, k) || end_input(n, k) != STK_EAGAIN))
            return true;
    return false;
}

uint64_t run_port_news(stk_run *run)
{
    const bool ends = !run->told_end && run_cancelled(run);
    run->told_end |= ends;
    uint64_t groups = ends;
    for (size_t i = 0; i < run->num_nodes; i++) {
        node *n = &run->nodes[i];
        if (n->kind != NODE_PORT || n->port.told || !has_news(n)) continue;
        n->port.told = n->failed || run_cancelled(run);
        n->port.want_in = 0;
        n->port.want_out = false;
        groups |= UINT64_C(1) << n->group;
    }
    return groups;
}

void run_notify(stk_run *run, uint64_t groups)
{
    for (uint32_t g = 0; g < run->num_groups; g++)
        if (groups >> g & 1 && run->groups[g].notify)
            run->groups[g].notify(run->groups[g].notify_ctx);
    run_lock(run);
    run->notifying--;
    stk_cond_broadcast(&run->idle);
    run_unlock(run);
}

void stk_run_set_notify(stk_run *run, uint32_t g, stk_port_notify_fn *notify, void *ctx)
{
    if (run->generation != stk_fork_generation() || g >= run->num_groups) return;
    run_lock(run);
    while (run->notifying > 0) (void)run_wait(run, &run->idle, STK_NEVER);
    run->groups[g].notify = notify;
    run->groups[g].notify_ctx = ctx;
    run_unlock(run);
}
