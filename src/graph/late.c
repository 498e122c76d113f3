/* What a stop that gives up says: who runs what. */
#include <stdio.h>

#include "graph/steps.h"

bool node_is_foreign_source(const node *n)
{
    return n->kind == NODE_SOURCE && n->group;
}

/* Of the item at hand only a number is known, as it belongs to its lane. */
void lane_begins(lane *l, const task *t)
{
    const node *n = t->node;
    const stk_item *item = NULL;
    if (n->kind == NODE_EXPAND)
        item = t->expansion->in;
    else if ((n->kind == NODE_MAP && !t->flush) || n->kind == NODE_ROUTE)
        item = t->items[0];
    atomic_store_explicit(&l->at, &n->stages[0], memory_order_relaxed);
    atomic_store_explicit(&l->at_id, item ? item->id : -1, memory_order_relaxed);
}

/* Tasks that are waited for. */
typedef struct late {
    const lane *oldest;
    int others;
} late;

static void look_at(late *found, const lane *l, bool with_sources)
{
    const task *t = l->current;
    if (!t || (node_is_foreign_source(t->node) && !with_sources)) return;
    found->others += found->oldest != NULL;
    if (!found->oldest || t->began < found->oldest->current->began) found->oldest = l;
}

static void describe(const stage *s, char *dst, size_t size)
{
    char text[256] = "";
    const stk_op_class *cls = s->op ? stk_op_get_class(s->op) : NULL;
    if (cls && cls->print) cls->print(stk_op_params(s->op), text, sizeof(text));
    snprintf(dst, size, *text ? "op %s, " : "%s", text);
}

stk_err run_say_late(stk_run *run, bool with_sources, stk_diag *diag)
{
    late found = {0};
    for (int32_t i = 0; run->lanes && i < run->num_threads + STK_MAX_IO_THREADS; i++)
        look_at(&found, &run->lanes[i], with_sources);
    for (const lane *l = run->lent; l; l = l->link) look_at(&found, l, with_sources);
    if (!found.oldest)
        return stk_diag_set(diag, STK_ETIMEOUT, "the threads of the run have not ended yet");

    const stage *s = atomic_load_explicit(&found.oldest->at, memory_order_relaxed);
    const int64_t id = atomic_load_explicit(&found.oldest->at_id, memory_order_relaxed);
    char op[300], item[32] = "", others[32] = "";
    describe(s, op, sizeof(op));
    if (id >= 0) snprintf(item, sizeof(item), " item %lld", (long long)id);
    if (found.others) snprintf(others, sizeof(others), ", beside %d more", found.others);
    return stk_diag_set(diag, STK_ETIMEOUT,
                        "stage '%s' is still running%s (%ssince %.1f s)%s: the run ends when %s",
                        stage_name(s), item, op,
                        (double)(stk_clock_ns() - found.oldest->current->began) / 1e9, others,
                        found.others ? "they do" : "it does");
}
