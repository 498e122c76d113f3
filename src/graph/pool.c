/* The lock of a run, and its items: made when needed, used again. */
#include "base/alloc.h"
#include "graph/steps.h"

void run_lock(stk_run *run) STK_TSA(no_thread_safety_analysis)
{
    stk_mutex_lock(&run->lock);
}

void run_unlock(stk_run *run) STK_TSA(no_thread_safety_analysis)
{
    stk_mutex_unlock(&run->lock);
}

bool run_wait(stk_run *run, stk_cond *c, int64_t deadline) STK_TSA(no_thread_safety_analysis)
{
    return stk_cond_wait(c, &run->lock, deadline);
}

stk_item *run_item_get(stk_run *run)
{
    stk_item *item = run->pool;
    if (item) {
        run->pool = item->link;
    }
    else {
        item = stk_alloc_zero(1, item_size(run->max_parts));
        if (!item) return NULL;
        item->run = run;
    }
    item->link = NULL;
    item->state = ITEM_VALUE;
    item->source = NULL;
    item->id = item->epoch = item->index = 0;
    item->passed = 0;
    item->stage = NULL;
    item->taker = NULL;
    item->padding = item->substituted = item->is_batch = item->closing = false;
    item->more = 0;
    item->unfinished = false;
    item->path = 0;
    item->num_parts = 1;
    return item;
}

void run_item_put(stk_run *run, stk_item **pitem)
{
    stk_item *item = *pitem;
    *pitem = NULL;
    if (!item) return;
    item_clear_data(item);
    item_forget(item);
    failure_free(&item->failures);
    assembly_unref(&item->assembly);
    item->link = run->pool;
    run->pool = item;
}

void run_item_drop(stk_item **pitem)
{
    stk_item *item = *pitem;
    *pitem = NULL;
    if (!item) return;
    item_clear_data(item);
    item_forget(item);
    failure_free(&item->failures);
    stk_free(item);
}
