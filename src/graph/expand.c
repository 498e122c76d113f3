/*
 * Expand stages: one input becomes many outputs, made one at a time, so that nothing is parked: an
 * expansion whose outputs have no room is put aside and goes on when there is some.
 *
 *     head ─► [in 7: 3 outputs wait] ─► [in 8: 2 wait] ─► [in 9: running]
 *
 * In input order only the head's outputs leave; in completion order everybody's.
 */
#include "base/alloc.h"
#include "graph/steps.h"

#define MAX_WAITING 8 /* outputs of one input that may wait before it is put aside */

static bool can_go_on(const expansion *x)
{
    return !x->running && !x->done && x->len < MAX_WAITING;
}

static bool can_open(const node *n)
{
    const stk_item *item = edge_peek(n->in);
    if (!item || n->expand.open >= n->concurrency) return false;
    /* the end of an epoch waits until all before it is through */
    return item->state != ITEM_MARK || n->order == STK_ORDER_INPUT || !n->expand.head;
}

size_t expand_ready(const node *n)
{
    if (n->running >= n->concurrency) return 0;
    for (const expansion *x = n->expand.head; x; x = x->link)
        if (can_go_on(x)) return 1;
    return can_open(n);
}

static expansion *open_next(node *n) STK_REQUIRES(run_role)
{
    if (!can_open(n)) return NULL;
    expansion *x = stk_alloc_zero(1, sizeof(*x));
    if (!x) {
        run_abort(n->run, STK_ENOMEM, "no memory for an expansion");
        return NULL;
    }
    x->in = edge_take(n->in);
    x->in->link = NULL;
    run_judge(n->run, x->in);
    if (n->expand.tail)
        n->expand.tail->link = x;
    else
        n->expand.head = x;
    n->expand.tail = x;
    n->expand.open++;
    if (x->in->state == ITEM_VALUE) return x;
    x->head = x->tail = x->in; /* what is no sample goes through as it is */
    x->len = 1;
    x->in = NULL;
    x->done = true;
    return NULL;
}

bool expand_claim(node *n, task *t)
{
    if (n->running >= n->concurrency) return false;
    expansion *x = n->expand.head;
    while (x && !can_go_on(x)) x = x->link;
    if (!x) x = open_next(n);
    if (!x) return false;
    t->num = 0;
    while (t->num < MAX_WAITING - x->len) {
        stk_item *out = run_item_get(n->run);
        if (!out) {
            run_abort(n->run, STK_ENOMEM, "no memory for a sample");
            break;
        }
        out->source = x->in->source;
        out->id = x->in->id;
        out->epoch = x->in->epoch;
        out->substituted = x->in->substituted;
        out->more = UINT64_MAX;
        t->items[t->num++] = out;
    }
    if (t->num == 0) return false;
    x->running = true;
    t->expansion = x;
    return true;
}

static void end_cursor(const stage *s, expansion *x)
{
    const stk_op_class *cls = stk_op_get_class(s->op);
    if (x->cursor && cls->expand_end) cls->expand_end(stk_op_params(s->op), x->cursor);
    x->cursor = NULL;
}

void expand_exec(lane *l, task *t)
{
    stage *s = &t->node->stages[0];
    const stk_op_class *cls = stk_op_get_class(s->op);
    tally *y = &l->tally[s->index];
    expansion *x = t->expansion;
    t->diag.err = STK_OK;
    t->diag.text[0] = 0;
    t->diag.fatal = false;
    void *state = lane_state(l, s, &t->end, &t->diag);
    for (size_t k = 0; !t->end && (t->shared ? shared_next(t, &k) : k < t->num); k = t->done) {
        stk_item *out = t->items[k];
        out->stage = x->in->stage = s;
        out->index = x->index;
        out->passed = UINT64_C(1) << s->index;
        t->end = item_inherit(out, x->in);
        if (t->end) break;
        t->end =
            cls->expand(stk_op_params(s->op), state, &x->cursor, x->in, x->index, out, &t->diag);
        if (t->end == STK_ESKIP) {
            item_clear_data(out);
            out->state = ITEM_GAP;
            t->end = STK_OK;
        }
        if (t->end) break;
        x->index++;
        t->done++;
        y->items++;
        if (!t->shared) continue;
        atomic_store_explicit(&t->finished, (uint32_t)t->done, memory_order_release);
        if (stk_item_cancelled(out)) break;
    }
    if (t->end) end_cursor(s, x);
    const int64_t busy = stk_clock_ns() - t->began;
    y->busy_ns += busy;
    if (t->done > 0) tally_took(y, busy / (int64_t)t->done, t->done);
    if (!t->end || t->end == STK_EEND) return;
    y->failed++;
    if (t->diag.err != t->end) stk_diag_set(&t->diag, t->end, "%s", stk_err_str(t->end));
}

void expand_add_output(expansion *x, stk_item *item)
{
    item->link = NULL;
    if (x->tail)
        x->tail->link = item;
    else
        x->head = item;
    x->tail = item;
    x->len++;
}

/* The failed output stands for what the input did not become. */
static void add_failure(node *n, expansion *x, stk_item *item, const stk_diag *diag)
{
    run_fail_or_skip(item, &n->stages[0], diag);
    item->more = x->in->more;
    expand_add_output(x, item);
}

/* Nobody knew that the output before it was the last: the join of a route has to. */
static void add_closing(expansion *x, stk_item *item)
{
    item_clear_data(item);
    item->state = ITEM_GAP;
    item->passed = 0;
    item->closing = true;
    item->more = x->in->more;
    expand_add_output(x, item);
}

void expand_finish(task *t)
{
    node *n = t->node;
    expansion *x = t->expansion;
    size_t i = t->shared ? t->collected : 0;
    for (; i < t->done; i++) expand_add_output(x, t->items[i]);
    if (t->end && t->end != STK_EEND)
        add_failure(n, x, t->items[i++], &t->diag);
    else if (t->end && n->depth > 0)
        add_closing(x, t->items[i++]);
    for (; i < t->num; i++) run_item_put(n->run, &t->items[i]);
    x->running = false;
    x->done = t->end != STK_OK;
    if (x->done) run_item_put(n->run, &x->in);
}

static bool move_outputs(node *n, expansion *x) STK_REQUIRES(run_role)
{
    bool moved = false;
    while (x->head && edge_room(n->out)) {
        stk_item *item = x->head;
        x->head = item->link;
        if (!x->head) x->tail = NULL;
        x->len--;
        edge_deliver(n->out, item);
        moved = true;
    }
    return moved;
}

static void remove_expansion(node *n, expansion **at, expansion *before)
{
    expansion *x = *at;
    *at = x->link;
    if (n->expand.tail == x) n->expand.tail = before;
    n->expand.open--;
    stk_free(x);
}

bool expand_settle(node *n)
{
    bool moved = false;
    expansion **at = &n->expand.head, *before = NULL;
    while (*at) {
        expansion *x = *at;
        moved |= move_outputs(n, x);
        if (x->done && !x->head) {
            remove_expansion(n, at, before);
            moved = true;
            continue;
        }
        if (n->order == STK_ORDER_INPUT) break;
        before = x;
        at = &x->link;
    }
    return moved;
}

void expand_end_cursors(node *n)
{
    for (expansion *x = n->expand.head; x; x = x->link) end_cursor(&n->stages[0], x);
}

void expand_retire(node *n)
{
    while (n->expand.head) {
        expansion *x = n->expand.head;
        while (x->head) {
            stk_item *item = x->head;
            x->head = item->link;
            run_item_put(n->run, &item);
        }
        run_item_put(n->run, &x->in);
        remove_expansion(n, &n->expand.head, NULL);
    }
}
