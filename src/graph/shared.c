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
 * ends with the item that runs.
 *
 * Work that is ready is left to a lane that is busy, since lanes mostly are for microseconds only.
 * Where one stays busy, another lane is woken for that work, or asked for.
 *
 * One of those that wait watches: it waits until the next burst is overdue.  Where nobody watches,
 * run_leave wakes somebody who then does; not while results wait for a reader who does something
 * else, and who looks when it comes.
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

static void give_back(task *t)
{
    const size_t end = shared_rest(t);
    const size_t begun = (uint32_t)atomic_load_explicit(&t->span, memory_order_relaxed);
    if (t->node->kind == NODE_MAP) put_back(t->node, t->items, begun, end);
}

static void collect(task *t) STK_REQUIRES(run_role)
{
    node *n = t->node;
    const size_t done = atomic_load_explicit(&t->finished, memory_order_acquire);
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
}

/* There is more in it than the item that runs, or will be. */
static bool holds_more(const task *t)
{
    const uint64_t span = atomic_load_explicit(&t->span, memory_order_relaxed);
    return (uint32_t)span < span >> 32 ||
           atomic_load_explicit(&t->finished, memory_order_relaxed) > t->collected;
}

/* Somebody could do what is left to a busy lane. */
static bool defers(stk_run *run, uint32_t g, bool can_tell) STK_REQUIRES(run_role)
{
    const group *p = &run->groups[g];
    const bool may_grow = can_tell && !(run->told >> g & 1);
    return (p->waiting > p->coming || may_grow) && group_is_ready(run, g);
}

static bool is_open(const lane *l, bool can_tell) STK_REQUIRES(run_role)
{
    const task *t = l->current;
    return t && ((t->shared && holds_more(t)) || defers(l->run, l->group, can_tell));
}

int64_t run_take_apart(stk_run *run, bool can_tell, bool *news)
{
    int64_t due = STK_NEVER, now = 0;
    *news = run->watch_asked = false;
    for (lane *l = run->lent; l; l = l->link) {
        task *t = l->current;
        if (!is_open(l, can_tell)) continue;
        if (!now) run_tick(run, now = stk_clock_ns()); /* which is how long the lanes take */
        if (now - t->began < OVERDUE_NS) {
            if (t->began + OVERDUE_NS < due) due = t->began + OVERDUE_NS;
            continue;
        }
        *news = true;
        if (!t->shared) continue;
        give_back(t);
        collect(t);
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
    if (run->watching || run->watch_asked || run_is_ahead(run)) return;
    const lane *l = run->lent;
    while (l && !is_open(l, run->reading > 0 || run->tells)) l = l->link;
    if (!l) return;
    run->watch_asked = true;
    if (run->reading > 0) {
        stk_cond_broadcast(&run->reader);
        return;
    }
    for (size_t g = 1; g < run->num_groups; g++) {
        if (run->groups[g].waiting <= run->groups[g].coming) continue;
        stk_cond_signal(&run->groups[g].work);
        return;
    }
    run->watch_asked = false;
}
