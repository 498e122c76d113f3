/*
 * Bursts of foreign lanes: while one runs, others may take it apart.
 *
 *     items   done, taken away │ done │ running │ nobody has begun
 *                      collected   finished   span.next          span.end
 *
 * A foreign op may wait for anything: for another item of the same burst, or for the reader to get
 * the item before.  So results may not stay in a burst whose next item takes long, nor may items
 * that another lane could run.  Whoever has nothing to do (a lane, the reader) takes a burst that
 * is overdue apart: results go on, items that nobody has begun go back to the node, and the burst
 * ends with the item that runs.  One of those that wait watches: it waits until the next burst is
 * overdue, and where nobody watches, run_leave wakes somebody who then does.
 *
 * Threads: the lane begins items without the run's lock, by compare-and-swap on `span`, and says
 *          with `finished` that they are done; all else is done with the lock.
 */
#include "graph/steps.h"

#define OVERDUE_NS                                                                 \
    1000000 /* bursts are made for 50 us: one that takes 20 times as long is stuck \
             */

static uint64_t pack(uint64_t next, uint64_t end)
{
    return end << 32 | next;
}

void shared_begin(task *t)
{
    t->collected = 0;
    atomic_store_explicit(&t->cut, false, memory_order_relaxed);
    atomic_store_explicit(&t->finished, 0, memory_order_relaxed);
    atomic_store_explicit(&t->span, pack(0, t->num), memory_order_relaxed);
}

bool shared_next(task *t, size_t *i)
{
    uint64_t span = atomic_load_explicit(&t->span, memory_order_relaxed);
    do {
        *i = (uint32_t)span;
        if (*i == span >> 32) return false;
    } while (!atomic_compare_exchange_weak_explicit(&t->span, &span, pack(*i + 1, span >> 32),
                                                    memory_order_relaxed, memory_order_relaxed));
    return true;
}

size_t shared_rest(task *t)
{
    uint64_t span = atomic_load_explicit(&t->span, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&t->span, &span,
                                                  pack((uint32_t)span, (uint32_t)span),
                                                  memory_order_relaxed, memory_order_relaxed))
        continue;
    return span >> 32;
}

/* Items go back in front: they are older than what waits on the edge. */
static bool give_back(task *t)
{
    node *n = t->node;
    if (n->kind != NODE_MAP || t->flush) return false;
    const size_t end = shared_rest(t);
    const size_t begun = (uint32_t)atomic_load_explicit(&t->span, memory_order_relaxed);
    for (size_t i = end; i-- > begun;) {
        t->items[i]->link = n->returned;
        n->returned = t->items[i];
    }
    return end > begun;
}

static bool collect(task *t) STK_REQUIRES(run_role)
{
    node *n = t->node;
    const size_t done = atomic_load_explicit(&t->finished, memory_order_acquire);
    if (t->collected == done) return false;
    for (; t->collected < done; t->collected++) {
        stk_item *item = t->items[t->collected];
        if (n->kind == NODE_EXPAND) {
            expand_add_output(t->expansion, item);
        }
        else if (n->kind == NODE_SOURCE) {
            n->out->reserved--;
            edge_deliver(n->out, item);
        }
        else {
            put_result(n, item);
        }
    }
    return true;
}

/* It may hold, or come to hold, more than the one item that is running. */
static bool is_open(task *t)
{
    return t && t->shared && t->num > 1 && !atomic_load_explicit(&t->cut, memory_order_relaxed);
}

int64_t run_take_apart(stk_run *run, bool *taken)
{
    int64_t due = STK_NEVER, now = 0;
    *taken = false;
    run->watch_asked = false;
    for (lane *l = run->lent; l; l = l->link) {
        task *t = l->current;
        if (!is_open(t)) continue;
        if (!now) now = stk_clock_ns();
        if (now - t->began < OVERDUE_NS) {
            if (t->began + OVERDUE_NS < due) due = t->began + OVERDUE_NS;
            continue;
        }
        atomic_store_explicit(&t->cut, true, memory_order_relaxed);
        *taken |= collect(t);
        *taken |= give_back(t);
    }
    return due;
}

void run_watch(stk_run *run, stk_cond *c, int64_t due, int64_t deadline)
{
    const bool watches = due != STK_NEVER && run->watching == 0;
    run->watching += watches;
    (void)run_wait(run, c, watches && due < deadline ? due : deadline);
    run->watching -= watches;
    run->watch_asked = false; /* who was asked may have something else to do */
}

void run_ask_watcher(stk_run *run)
{
    const lane *l = run->lent;
    if (run->watching || run->watch_asked) return;
    while (l && !is_open(l->current)) l = l->link;
    if (!l) return;
    for (size_t g = 1; g < run->num_groups && !run->watch_asked; g++) {
        if (run->groups[g].waiting <= run->groups[g].coming) continue;
        stk_cond_signal(&run->groups[g].work);
        run->watch_asked = true;
    }
    if (run->watch_asked || run->reading == 0) return;
    stk_cond_broadcast(&run->reader);
    run->watch_asked = true;
}
