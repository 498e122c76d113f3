/* Running a task: the ops themselves, without the lock. */
#include <string.h>

#include "graph/steps.h"

#define MAX_SUBSTITUTES 16 /* attempts for one place, then the failure is raised */
#define GROUP 8            /* items of a long burst that are timed together, or an eighth of it */
#define OVERRUN_NS 200000  /* a burst that took longer gives what it has not begun back */

void *lane_state(lane *l, stage *s, stk_err *err, stk_diag *diag)
{
    const stk_op_class *cls = stk_op_get_class(s->op);
    if (!cls->open || l->opened[s->index]) return l->states[s->index];
    *err = cls->open(stk_op_params(s->op), &l->states[s->index], diag);
    l->opened[s->index] = *err == STK_OK;
    return *err ? NULL : l->states[s->index];
}

static uint64_t bytes_of(const stk_item *item)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < item->num_parts; i++) {
        const part *p = &item->parts[i];
        if (p->bytes) sum += stk_buffer_size(p->bytes);
        if (!p->array.data) continue;
        uint64_t n = stk_dtype_size(p->array.dtype);
        for (int32_t d = 0; d < p->array.ndim; d++) n *= (uint64_t)p->array.shape[d];
        sum += n;
    }
    return sum;
}

void tally_took(tally *y, int64_t ns, size_t num)
{
    if (y->num_took == MAX_TOOK || num == 0) return;
    y->took[y->num_took].ns = ns;
    y->took[y->num_took++].num = (uint32_t)num;
}

/* One attempt.  Times and counts it; the caller decides what a failure means. */
static stk_err attempt(lane *l, stage *s, stk_item *item, stk_diag *diag)
{
    const stk_op_class *cls = stk_op_get_class(s->op);
    tally *y = &l->tally[s->index];
    const int64_t begin = l->now;
    stk_err err = STK_OK;
    atomic_store_explicit(&l->at, s, memory_order_relaxed);
    atomic_store_explicit(&l->at_id, item->id, memory_order_relaxed);
    item->stage = s;
    item->passed |= UINT64_C(1) << s->index;
    diag->err = STK_OK;
    diag->os_error = diag->part = 0;
    diag->fatal = false;
    diag->text[0] = 0;
    void *state = lane_state(l, s, &err, diag);
    if (!err) err = cls->run(stk_op_params(s->op), state, item, diag);
    if (err == STK_ESKIP) {
        item_clear_data(item);
        item->state = ITEM_GAP;
        err = STK_OK;
    }
    if (l->timed) {
        l->now = stk_clock_ns(); /* one reading an op: its end is the next one's begin */
        y->busy_ns += l->now - begin;
        if (!err) tally_took(y, l->now - begin, l->stands_for);
    }
    if (err) {
        y->failed += err != STK_ECANCELLED || !stk_item_cancelled(item);
        if (diag->err != err || !diag->text[0]) stk_diag_set(diag, err, "%s", stk_err_str(err));
        return err;
    }
    y->items++;
    y->bytes += bytes_of(item);
    return STK_OK;
}

/* The stages from the source to `s`, for a sample that takes another's place. */
static stk_err attempt_chain(lane *l, stage *s, stk_item *item, stk_diag *diag, stage **failed)
{
    if (s->before) {
        stk_err err = attempt_chain(l, s->before, item, diag, failed);
        if (err) return err;
    }
    *failed = s;
    return attempt(l, s, item, diag);
}

static void note(stk_item *item, stage *s, const stk_diag *diag)
{
    failure *f = failure_new(s, item, diag);
    if (!f) return; /* no memory: still counted, only not listed */
    f->next = NULL;
    failure **at = &item->failures;
    while (*at) at = &(*at)->next;
    *at = f;
}

/* Puts another sample in the place of `item`. */
static bool substitute(lane *l, stage *s, stk_item *item)
{
    node *source = s->source;
    const stk_source_class *cls = stk_source_get_class(source->source);
    const int64_t id = item->id, epoch = item->epoch;
    for (int i = 0; i < MAX_SUBSTITUTES; i++) {
        stk_diag diag;
        stage *failed = s;
        item_clear_data(item);
        item_forget(item);
        item->num_parts = 1; /* those that ops have added are gone, as of a new item */
        if (cls->substitute(source->src.cursor, item, id, epoch, i) != STK_OK) break;
        if (attempt_chain(l, s, item, &diag, &failed) == STK_OK) {
            item->state = ITEM_VALUE;
            item->substituted = true;
            l->tally[s->index].substituted++;
            return true;
        }
        note(item, failed, &diag);
        if (diag.fatal) break;
    }
    stk_item_set_id(item, id, epoch);
    return false;
}

static void fail_item(lane *l, stage *s, stk_item *item, const stk_diag *diag)
{
    if (diag->err == STK_ECANCELLED && stk_item_cancelled(item)) {
        item->state = ITEM_GAP;
        item_clear_data(item);
        return;
    }
    note(item, s, diag);
    item_clear_data(item);
    switch (diag->fatal ? STK_RAISE : s->plan->opts.on_error) {
    case STK_SKIP: item->state = ITEM_GAP; return;
    case STK_SUBSTITUTE:
        if (substitute(l, s, item)) return;
        break;
    case STK_RAISE: break;
    }
    item_clear_data(item);
    item->state = ITEM_ERROR;
    if (!item->failures) run_fail(item, s, diag);
}

static void exec_stage(lane *l, stage *s, stk_item *item)
{
    if (item->state == ITEM_GAP && item->padding && s->plan->opts.on_error == STK_SUBSTITUTE) {
        item->padding = !substitute(l, s, item); /* ranks stay level */
        return;
    }
    if (item->state != ITEM_VALUE) return;
    stk_diag diag;
    if (attempt(l, s, item, &diag)) fail_item(l, s, item, &diag);
}

/* False: there are no more. */
static bool exec_item(lane *l, task *t)
{
    const node *n = t->node;
    size_t k = t->done;
    if (t->shared ? !shared_next(t, &k) : k == t->num) return false;
    stk_item *item = t->items[k];
    for (size_t i = 0; i < n->num_stages; i++) exec_stage(l, &n->stages[i], item);
    t->done = k + 1;
    if (t->shared) atomic_store_explicit(&t->finished, (uint32_t)t->done, memory_order_release);
    return true;
}

/* Times the first of some items stage by stage and the others as a whole, shared out in the same
 * proportion: reading the clock costs as much as moving a cheap item. */
static void exec_group(lane *l, task *t, size_t num)
{
    const node *n = t->node;
    int64_t spent[STK_MAX_STAGES], sum = 0;
    for (size_t i = 0; i < n->num_stages; i++) spent[i] = -l->tally[n->stages[i].index].busy_ns;
    l->stands_for = num;
    (void)exec_item(l, t);
    l->stands_for = 1;
    for (size_t i = 0; i < n->num_stages; i++) {
        spent[i] += l->tally[n->stages[i].index].busy_ns;
        sum += spent[i];
    }
    l->timed = false;
    for (size_t k = 1; k < num && exec_item(l, t); k++) continue;
    l->timed = true;
    const int64_t begin = l->now;
    l->now = stk_clock_ns();
    for (size_t i = 0; i < n->num_stages; i++) {
        const double part_of =
            sum > 0 ? (double)spent[i] / (double)sum : 1.0 / (double)n->num_stages;
        l->tally[n->stages[i].index].busy_ns += (int64_t)((double)(l->now - begin) * part_of);
    }
}

static void exec_map(lane *l, task *t)
{
    const node *n = t->node;
    const size_t few = t->num > 8 * GROUP ? t->num / 8 : GROUP;
    while (t->done < t->num) {
        const size_t left = t->num - t->done;
        if (t->num >= 2 * GROUP)
            exec_group(l, t, left < few ? left : few);
        else if (!exec_item(l, t))
            break;
        if (t->done < t->num && l->now - t->began > OVERRUN_NS) break;
        if (run_cancelled(n->run)) break;
    }
}

/* What a fold holds, as an item of its own. */
static void exec_flush(lane *l, task *t)
{
    stage *s = &t->node->stages[0];
    const stk_op_class *cls = stk_op_get_class(s->op);
    stk_item *out = t->items[0];
    tally *y = &l->tally[s->index];
    stk_diag diag = {.err = STK_OK};
    stk_err err = STK_OK;
    out->stage = s;
    void *state = lane_state(l, s, &err, &diag);
    if (!err) err = cls->flush(stk_op_params(s->op), state, out, &diag);
    y->busy_ns += stk_clock_ns() - t->began;
    t->done = 1;
    if (!err) return;
    if (err == STK_ESKIP) {
        out->state = ITEM_GAP;
        return;
    }
    y->failed++;
    if (diag.err != err || !diag.text[0]) stk_diag_set(&diag, err, "%s", stk_err_str(err));
    fail_item(l, s, out, &diag);
}

static void exec_source(lane *l, task *t)
{
    const stk_source_class *cls = stk_source_get_class(t->node->source);
    tally *y = &l->tally[t->node->stages[0].index];
    t->diag.text[0] = 0;
    t->diag.err = STK_OK;
    for (size_t k = 0; !t->end && (t->shared ? shared_next(t, &k) : k < t->num); k = t->done) {
        stk_item *item = t->items[k];
        stk_err err = cls->next(t->node->src.cursor, item, &t->diag);
        if (err == STK_EEPOCH) {
            item->state = ITEM_MARK;
            stk_item_set_id(item, -1, t->node->src.epoch++);
        }
        else if (err == STK_ENOTFOUND) {
            item->state = ITEM_GAP;
            item->padding = true;
            stk_item_set_id(item, -1, t->node->src.epoch);
        }
        else {
            t->end = err;
        }
        if (err == STK_OK) y->items++;
        if (!t->end) t->done++;
        if (!t->shared) continue;
        atomic_store_explicit(&t->finished, (uint32_t)t->done, memory_order_release);
        if (t->done % GROUP == 0 && stk_clock_ns() - t->began > OVERRUN_NS) break;
        if (stk_item_cancelled(item)) break;
    }
    y->busy_ns += stk_clock_ns() - t->began;
}

void task_exec(lane *l, task *t)
{
    l->now = t->began;
    l->timed = true;
    l->stands_for = 1;
    switch (t->node->kind) {
    case NODE_SOURCE: exec_source(l, t); break;
    case NODE_MAP: t->flush ? exec_flush(l, t) : exec_map(l, t); break;
    case NODE_EXPAND: expand_exec(l, t); break;
    case NODE_BATCH: batch_finalize(t); break;
    case NODE_ROUTE: route_exec(t); break;
    case NODE_JOIN:
    case NODE_PORT:
    case NODE_PASS:
    case NODE_MERGE: break;
    }
}
