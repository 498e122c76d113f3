/*
 * Batches: samples are assigned to places when their order is decided (plan_slot), decoded into
 * their slots by any thread, collected in order, and made into an stk_batch by one task.
 */
#include <string.h>

#include "base/alloc.h"
#include "graph/steps.h"

static assembly *assembly_new(node *n)
{
    assembly *a = stk_alloc_zero(1, sizeof(*a));
    if (!a) return NULL;
    a->refs = 1;
    a->node = n;
    a->items = stk_alloc_zero(n->batch_size, sizeof(stk_item *));
    if (!a->items || stk_mutex_init(&a->lock)) {
        stk_free(a->items);
        stk_free(a);
        return NULL;
    }
    return a;
}

void assembly_unref(assembly **pa)
{
    assembly *a = *pa;
    *pa = NULL;
    if (!a || --a->refs > 0) return;
    for (size_t i = 0; i < STK_MAX_PARTS; i++) stk_buffer_unref(&a->slots[i].mem);
    stk_mutex_fini(&a->lock);
    stk_free(a->items);
    stk_free(a);
}

void batch_plan_slot(node *n, stk_item *item)
{
    if (item->state == ITEM_MARK) {
        assembly_unref(&n->batch.planning);
        n->batch.slots_planned = 0;
        return;
    }
    if (item->state == ITEM_ERROR) return;
    if (!n->batch.planning && n->batch.slots_planned == 0) n->batch.planning = assembly_new(n);
    if (n->batch.planning) { /* without memory the sample is copied instead, or fails there */
        item->assembly = n->batch.planning;
        item->assembly->refs++;
        item->slot = n->batch.slots_planned;
    }
    if (++n->batch.slots_planned == n->batch_size) {
        assembly_unref(&n->batch.planning);
        n->batch.slots_planned = 0;
    }
}

stk_err assembly_slot(assembly *a, size_t i, size_t slot, const stk_spec *spec, void **out)
{
    size_t bytes;
    stk_err err = stk_spec_bytes(spec, &bytes);
    if (err) return err;
    struct slots *s = &a->slots[i];
    stk_mutex_lock(&a->lock);
    if (!s->mem) {
        if (bytes > SIZE_MAX / 2 / a->node->batch_size)
            err = STK_ELIMIT;
        else
            err = stk_slab_take(a->node->run->slabs, bytes * a->node->batch_size, &s->mem);
        s->spec = *spec;
    }
    else if (!stk_spec_equal(&s->spec, spec)) {
        err = STK_EINVAL;
    }
    /* Each slot has one writer at a time: the thread that runs the slot's sample. */
    if (!err) *out = (uint8_t *)(uintptr_t)stk_buffer_data(s->mem) + slot * bytes;
    stk_mutex_unlock(&a->lock);
    return err;
}

static void release(stk_run *run, assembly **pa) STK_REQUIRES(run_role)
{
    assembly *a = *pa;
    for (size_t i = 0; i < a->planned; i++) run_item_put(run, &a->items[i]);
    a->planned = 0;
    assembly_unref(pa);
}

/* What was collected becomes a task.  False: no room for its batch. */
static bool submit(node *n) STK_REQUIRES(run_role)
{
    assembly *a = n->batch.collecting;
    const stk_batch_opts *o = &n->stages[0].plan->batch;
    if (!a) return true;
    if ((o->drop_last && a->planned < n->batch_size) || (a->values == 0 && !o->keep_empty)) {
        release(n->run, &n->batch.collecting);
        n->batch.index++;
        return true;
    }
    if (!edge_room(n->out)) return false;
    n->batch.collecting = NULL;
    a->epoch = a->items[0]->epoch;
    a->index = n->batch.index++;
    a->items[0]->seq = n->out->next++; /* the first item will carry the batch */
    a->link = NULL;
    if (n->batch.submitted_tail)
        n->batch.submitted_tail->link = a;
    else
        n->batch.submitted = a;
    n->batch.submitted_tail = a;
    return true;
}

/* Ends and errors go on by themselves, behind what came before them. */
static bool forward(node *n, const stk_item *item) STK_REQUIRES(run_role)
{
    if (item->state == ITEM_ERROR) {
        if (n->batch.collecting) release(n->run, &n->batch.collecting);
    }
    else if (!submit(n)) {
        return false;
    }
    if (!edge_room(n->out)) return false;
    if (item->state == ITEM_MARK) n->batch.index = 0;
    edge_append(n->out, edge_take(n->in));
    return true;
}

static bool collect_one(node *n, stk_item *item) STK_REQUIRES(run_role)
{
    assembly *a = n->batch.collecting;
    if (!a) {
        if (item->assembly && item->slot == 0) {
            a = item->assembly;
            a->refs++;
        }
        else {
            a = assembly_new(n);
        }
        if (!a) {
            stk_diag diag;
            stk_diag_set(&diag, STK_ENOMEM, "no memory for a batch");
            run_fail(item, &n->stages[0], &diag);
            return true;
        }
        n->batch.collecting = a;
    }
    if (a->planned + 1 == n->batch_size && !edge_room(n->out)) return false;
    a->items[a->planned++] = edge_take(n->in);
    a->values += item->state == ITEM_VALUE;
    return a->planned < n->batch_size || submit(n);
}

bool batch_collect(node *n)
{
    bool moved = false;
    for (;;) {
        stk_item *item = edge_peek(n->in);
        if (!item) break;
        run_judge(n->run, item);
        const bool sample = item->state == ITEM_VALUE || item->state == ITEM_GAP;
        if (!(sample ? collect_one(n, item) : forward(n, item))) break;
        moved = true;
    }
    if (edge_done(n->in) && n->batch.collecting && submit(n)) moved = true;
    return moved;
}

void batch_finish(task *t)
{
    node *n = t->node;
    assembly *a = t->assembly;
    stk_item *carrier = a->items[0];
    a->items[0] = NULL;
    item_clear_data(carrier);
    item_forget(carrier);
    failure_free(&carrier->failures);
    assembly_unref(&carrier->assembly);
    carrier->num_parts = 1;
    carrier->is_batch = true;
    carrier->state = ITEM_VALUE;
    carrier->epoch = a->epoch;
    carrier->id = a->index;
    carrier->index = 0;
    carrier->batch = t->batch;
    t->batch = NULL;
    if (t->end) {
        run_fail(carrier, &n->stages[0], &t->diag);
        n->stages[0].failed++;
    }
    else {
        n->stages[0].items++;
    }
    edge_put(n->out, carrier, carrier->seq);
    release(n->run, &t->assembly);
}

void batch_retire(node *n)
{
    if (n->batch.collecting) release(n->run, &n->batch.collecting);
    assembly_unref(&n->batch.planning);
    while (n->batch.submitted) {
        assembly *a = n->batch.submitted;
        n->batch.submitted = a->link;
        release(n->run, &a);
    }
    n->batch.submitted_tail = NULL;
}
