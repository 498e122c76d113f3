/*
 * Routes: the router names a path, the item goes there; the join takes the paths' results.
 *
 * In input order the route writes a ticket for each item, and the join takes from the path that
 * the next ticket names, up to the last of the results that one item may have become on its path.
 * In order of completion the join takes what is there.
 *
 * The end of an epoch is sent down every path, so that it arrives behind all of its samples, and
 * that folds on each give what they hold.  In input order it has one ticket, for which the join
 * empties one path after the other up to its mark, and gives one of these on.
 */
#include <assert.h>
#include <limits.h>
#include <stdio.h>

#include "base/alloc.h"
#include "graph/steps.h"

#define MAX_TICKETS 32768 /* between a route and its join; more wait */
#define MARK_TICKET UINT8_MAX

static_assert(STK_MAX_PATHS <= MARK_TICKET, "a ticket holds any path");

/* -1 for what no int holds. */
static int choose_path(const stage *s, const stk_item *item)
{
    if (s->plan->router) return s->plan->router(item, s->plan->router_ctx);
    return item->path <= INT_MAX ? (int)item->path : -1;
}

static void fail_choice(stage *s, stk_item *item, int path, size_t num_paths)
{
    stk_diag diag;
    stk_diag_set(&diag, STK_EINVAL, "the router said path %d, but there are %zu", path, num_paths);
    run_fail_or_skip(item, s, &diag);
}

/* What is no sample, or has no path, goes down the first. */
void route_exec(task *t)
{
    stage *s = &t->node->stages[0];
    for (; t->done < t->num; t->done++) {
        stk_item *item = t->items[t->done];
        const bool chooses = item->state == ITEM_VALUE;
        item->stage = s;
        const int path = chooses ? choose_path(s, item) : 0;
        item->path = 0;
        if (!chooses) continue;
        item->passed |= UINT64_C(1) << s->index;
        if (path >= 0 && (size_t)path < t->node->num_edges)
            item->path = (size_t)path;
        else
            fail_choice(s, item, path, t->node->num_edges);
    }
}

void route_finish(task *t)
{
    node *n = t->node;
    for (size_t i = 0; i < t->num; i++) {
        stk_item *item = t->items[i];
        item->link = NULL;
        if (item->state == ITEM_VALUE)
            n->stages[0].items++;
        else if (item->state != ITEM_MARK && item->passed >> n->stages[0].index & 1)
            n->stages[0].failed++;
        if (n->route.tail)
            n->route.tail->link = item;
        else
            n->route.head = item;
        n->route.tail = item;
        n->route.waiting++;
    }
}

static bool has_ticket(const node *join)
{
    return join->order != STK_ORDER_INPUT || join->route.last - join->route.first < MAX_TICKETS;
}

static void write_ticket(node *join, uint8_t ticket)
{
    if (join->order != STK_ORDER_INPUT) return;
    join->route.tickets[join->route.last++ % MAX_TICKETS] = ticket;
}

static bool send(node *n, stk_item *item)
{
    edge *to = n->edges[item->path];
    if (!edge_room(to) || !has_ticket(n->twin)) return false;
    write_ticket(n->twin, (uint8_t)item->path);
    if (n->twin->order == STK_ORDER_INPUT) item->more &= ~(UINT64_C(1) << n->depth);
    edge_append(to, item);
    return true;
}

/* The end of an epoch, down every path. */
static bool broadcast(node *n, stk_item *mark) STK_REQUIRES(run_role)
{
    stk_item *copies[STK_MAX_PATHS] = {mark};
    if (!has_ticket(n->twin)) return false;
    for (size_t k = 0; k < n->num_edges; k++)
        if (!edge_room(n->edges[k])) return false;
    for (size_t k = 1; k < n->num_edges; k++) {
        copies[k] = run_item_get(n->run);
        if (copies[k]) {
            copies[k]->state = ITEM_MARK;
            copies[k]->epoch = mark->epoch;
            continue;
        }
        while (--k > 0) run_item_put(n->run, &copies[k]);
        run_abort(n->run, STK_ENOMEM, "no memory for the end of an epoch");
        return false;
    }
    write_ticket(n->twin, MARK_TICKET);
    for (size_t k = 0; k < n->num_edges; k++) edge_append(n->edges[k], copies[k]);
    return true;
}

/* In order of completion an item may go past others whose path has no room; an end may not. */
bool route_settle(node *n)
{
    const bool in_order = n->twin->order == STK_ORDER_INPUT;
    bool moved = false, full[STK_MAX_PATHS] = {false};
    stk_item **at = &n->route.head, *before = NULL;
    while (*at) {
        stk_item *item = *at, *next = item->link;
        const bool end = item->state == ITEM_MARK || item->state == ITEM_ERROR;
        if (end && before) break;
        const bool all = item->state == ITEM_MARK;
        if (!full[item->path] && (all ? broadcast(n, item) : send(n, item))) {
            *at = next;
            if (!next) n->route.tail = before;
            n->route.waiting--;
            moved = true;
            continue;
        }
        if (in_order || end) break;
        full[item->path] = true;
        before = item;
        at = &item->link;
    }
    return moved;
}

/* What is left of an epoch, path by path, then one mark.  A path that has failed may have none. */
static stk_item *take_to_mark(node *n, size_t *path) STK_REQUIRES(run_role)
{
    stk_item *mark = NULL;
    for (; n->route.turn < n->num_edges; n->route.turn++) {
        run_item_put(n->run, &mark); /* the next path has one, too */
        *path = n->route.turn;
        edge *e = n->edges[*path];
        stk_item *item = edge_take(e);
        if (item && item->state != ITEM_MARK) return item;
        if (!item && !edge_done(e)) return NULL;
        mark = item;
    }
    n->route.turn = 0;
    n->route.first++;
    return mark;
}

static stk_item *take_result(node *n, size_t path)
{
    stk_item *item = edge_take(n->edges[path]);
    if (item ? !(item->more >> n->depth & 1) : edge_done(n->edges[path])) n->route.first++;
    return item;
}

/* The next result, and its path.  Without a ticket comes what folds on the paths held at the end.
 */
static stk_item *take_next(node *n, size_t *path) STK_REQUIRES(run_role)
{
    while (n->route.first < n->route.last) {
        const uint64_t at = n->route.first;
        *path = n->route.tickets[at % MAX_TICKETS];
        stk_item *item = *path == MARK_TICKET ? take_to_mark(n, path) : take_result(n, *path);
        if (item || n->route.first == at) return item;
    }
    for (*path = 0; *path < n->num_edges; ++*path) {
        stk_item *item = edge_take(n->edges[*path]);
        if (item) return item;
    }
    return NULL;
}

static bool tells_ends(const node *n)
{
    const node *to = n->out->to;
    return to && to->kind == NODE_MAP && stk_op_get_class(to->stages[0].op)->flags & STK_OP_ENDS;
}

/* Of a gap, which is judged before it is none. */
static void tell_end(node *n, stk_item *item) STK_REQUIRES(run_role)
{
    run_judge(n->run, item);
    if (item->state != ITEM_GAP || item->unfinished || item->path != n->num_edges - 1) return;
    item->state = ITEM_VALUE;
    item->closing = false;
    item->path = n->num_edges;
}

static bool join_by_tickets(node *n) STK_REQUIRES(run_role)
{
    bool moved = false;
    stk_item *item;
    for (size_t path; edge_room(n->out) && (item = take_next(n, &path)); moved = true) {
        item->path = path;
        item->unfinished = item->more >> n->depth & 1;
        if (item->state == ITEM_GAP && tells_ends(n)) tell_end(n, item);
        if (item->closing && n->depth == 0)
            run_item_put(n->run, &item);
        else
            edge_deliver(n->out, item);
    }
    return moved;
}

bool join_settle(node *n)
{
    return n->order == STK_ORDER_INPUT ? join_by_tickets(n) : merge_as_they_come(n);
}

void route_retire(node *n)
{
    while (n->route.head) {
        stk_item *item = n->route.head;
        n->route.head = item->link;
        run_item_put(n->run, &item);
    }
    n->route.tail = NULL;
}

stk_err route_open(node *join, stk_diag *diag)
{
    if (join->order != STK_ORDER_INPUT) return STK_OK;
    join->route.tickets = stk_alloc(MAX_TICKETS);
    return join->route.tickets ? STK_OK : stk_diag_set(diag, STK_ENOMEM, "no memory for a route");
}

void route_close(node *join)
{
    if (join->order == STK_ORDER_INPUT) stk_free(join->route.tickets);
}
