/*
 * Merges: several inputs, one sequence, by a fixed rule.  An input at the end of its epoch waits
 * for the others; when all are there, one end of the epoch goes on.
 */
#include "base/rng.h"
#include "graph/steps.h"

static bool waits(const node *n, size_t k)
{
    return n->merge.marked[k] || n->lost >> k & 1 || edge_done(n->edges[k]);
}

/* All inputs are at the end of theirs: one mark goes on. */
static bool epoch_end(node *n) STK_REQUIRES(run_role)
{
    bool any = false;
    for (size_t k = 0; k < n->num_edges; k++) {
        if (!waits(n, k)) return false;
        any |= n->merge.marked[k];
    }
    if (!any || !edge_room(n->out)) return false;
    stk_item *mark = NULL;
    for (size_t k = 0; k < n->num_edges; k++) {
        if (!n->merge.marked[k]) continue;
        n->merge.marked[k] = false;
        stk_item *item = edge_take(n->edges[k]);
        if (mark)
            run_item_put(n->run, &item);
        else
            mark = item;
    }
    edge_deliver(n->out, mark);
    return true;
}

/* The input whose turn it is, among those that do not wait.  The draw depends on nothing but the
 * seed and how many results came before it. */
static size_t choose(node *n)
{
    const stk_plan *plan = n->plan;
    if (!plan->weighted) {
        size_t k = n->merge.turn;
        while (waits(n, k)) k = (k + 1) % n->num_edges;
        return k;
    }
    double sum = 0;
    for (size_t k = 0; k < n->num_edges; k++) sum += waits(n, k) ? 0 : plan->weights[k];
    const uint64_t bits = stk_mix64(plan->merge_seed ^ stk_mix64(n->merge.draws));
    double x = (double)(bits >> 11) * 0x1p-53 * sum;
    size_t last = 0;
    for (size_t k = 0; k < n->num_edges; k++) {
        if (waits(n, k)) continue;
        last = k;
        x -= plan->weights[k];
        if (x < 0) break;
    }
    return last;
}

/* Whether an input waits is only known when its next result is there: so the rule looks at all
 * of them before it draws, and the sequence does not depend on who was quick. */
static bool all_known(node *n)
{
    for (size_t k = 0; k < n->num_edges; k++) {
        if (waits(n, k)) continue;
        const stk_item *item = edge_peek(n->edges[k]);
        if (!item) return false;
        if (item->state == ITEM_MARK) n->merge.marked[k] = true;
    }
    return true;
}

/* Keeps the failure of input k, which is its next result, until the others are through.  What is
 * behind it would never be seen: it goes, since others may not get past it, on a route say. */
static bool lose(node *n, size_t k) STK_REQUIRES(run_role)
{
    bool moved = false;
    if (!(n->lost >> k & 1)) {
        edge_end_sources(n->edges[k]);
        run_fail_too(n->run, &n->failure, edge_take(n->edges[k]));
        moved = true;
    }
    n->lost |= UINT32_C(1) << k;
    for (stk_item *item; (item = edge_take(n->edges[k])); moved = true) run_item_put(n->run, &item);
    return moved;
}

static bool pass_failure(node *n)
{
    if (!n->failure || !edge_room(n->out)) return false;
    for (size_t k = 0; k < n->num_edges; k++)
        if (!waits(n, k)) return false;
    edge_append(n->out, n->failure);
    n->failure = NULL;
    return true;
}

static bool take_all(node *n, size_t k) STK_REQUIRES(run_role)
{
    bool moved = false;
    while (!n->merge.marked[k]) {
        const stk_item *item = edge_peek(n->edges[k]);
        if (n->lost >> k & 1 || (item && item->state == ITEM_ERROR)) return lose(n, k) || moved;
        if (!item || !edge_room(n->out)) break;
        moved = true;
        n->merge.marked[k] = item->state == ITEM_MARK;
        if (n->merge.marked[k]) break;
        if (n->num_stages) n->stages[0].items++;
        edge_deliver(n->out, edge_take(n->edges[k]));
    }
    return moved;
}

bool merge_as_they_come(node *n)
{
    bool moved = false;
    for (size_t k = 0; k < n->num_edges && k < STK_MAX_PATHS; k++) moved |= take_all(n, k);
    return pass_failure(n) || epoch_end(n) || moved;
}

bool merge_settle(node *n)
{
    if (n->plan->arrival) return merge_as_they_come(n);
    bool moved = false;
    for (;;) {
        if (epoch_end(n)) moved = true;
        if (!all_known(n) || !edge_room(n->out)) return moved;
        size_t left = 0;
        for (size_t k = 0; k < n->num_edges; k++) left += !waits(n, k);
        if (left == 0) {
            if (!epoch_end(n)) return moved;
            moved = true;
            continue;
        }
        const size_t k = choose(n);
        n->merge.turn = (k + 1) % n->num_edges;
        n->merge.draws++;
        n->stages[0].items++;
        edge_deliver(n->out, edge_take(n->edges[k]));
        moved = true;
    }
}
