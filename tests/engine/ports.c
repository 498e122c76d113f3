#include "tests/engine/ports.h"

void kit_port_hear(void *ctx)
{
    kit_port *p = ctx;
    pthread_mutex_lock(&p->lock);
    p->news++;
    pthread_cond_signal(&p->changed);
    pthread_mutex_unlock(&p->lock);
}

void kit_port_await(kit_port *p)
{
    pthread_mutex_lock(&p->lock);
    while (p->news == p->seen) pthread_cond_wait(&p->changed, &p->lock);
    p->seen = p->news;
    pthread_mutex_unlock(&p->lock);
}

static void *work(void *arg)
{
    kit_port *p = arg;
    stk_run_set_notify(p->run, 1, kit_port_hear, p);
    p->serve(p->ctx);
    stk_port_close(p->run, p->index);
    stk_port_close(p->run, p->index); /* twice does no harm */
    stk_run_set_notify(p->run, 1, NULL, NULL);
    return NULL;
}

void kit_port_start(kit_port *p, stk_plan *plan, bool epoch_ends)
{
    const stk_run_opts two = {.num_threads = 2, .epoch_ends = epoch_ends};
    stk_diag diag = {0};
    const stk_err err = stk_run_start(plan, &two, &p->run, &diag);
    if (err) fprintf(stderr, "%s\n", diag.text);
    CHECK_EQ(err, STK_OK);
    stk_plan_free(&plan);
    CHECK_EQ(pthread_mutex_init(&p->lock, NULL), 0);
    CHECK_EQ(pthread_cond_init(&p->changed, NULL), 0);
    CHECK_EQ(pthread_create(&p->thread, NULL, work, p), 0);
}

void kit_port_end(kit_port *p)
{
    stk_run_cancel(p->run);
    CHECK_EQ(pthread_join(p->thread, NULL), 0);
    stk_run_free(&p->run);
    pthread_cond_destroy(&p->changed);
    pthread_mutex_destroy(&p->lock);
}

stk_err kit_port_take(kit_port *p, size_t input, size_t max, stk_item **items, size_t *n)
{
    for (;;) {
        const stk_err err = stk_port_take(p->run, p->index, input, max, items, n);
        if (err != STK_EAGAIN) return err;
        kit_port_await(p);
    }
}

bool kit_port_put(kit_port *p, stk_item **items, size_t n)
{
    for (size_t at = 0; at < n;) {
        size_t done;
        const stk_err err = stk_port_put(p->run, p->index, items + at, n - at, 1000, &done);
        at += done;
        if (err == STK_ECANCELLED) {
            for (; at < n; at++) stk_item_free(&items[at]);
            return false;
        }
        CHECK(err == STK_OK || (err == STK_EAGAIN && at < n));
        if (err == STK_EAGAIN) kit_port_await(p);
    }
    return true;
}

bool kit_port_mark(kit_port *p)
{
    for (;;) {
        const stk_err err = stk_port_mark(p->run, p->index, p->epochs);
        if (err == STK_OK) return p->epochs++, true;
        if (err == STK_ECANCELLED) return false;
        if (err == STK_EAGAIN) kit_port_await(p);
    }
}

size_t kit_port_read(kit_port *p, int64_t *ids, size_t max, stk_err *end, stk_diag *diag)
{
    size_t n = 0;
    for (*end = STK_OK; n < max;) {
        stk_item *item;
        size_t one;
        const stk_err err = stk_run_next_items(p->run, STK_FOREVER, 1, &item, &one, diag);
        if (err == STK_EEPOCH) {
            ids[n++] = KIT_EPOCH_END;
            continue;
        }
        *end = err;
        if (err) break;
        ids[n++] = stk_item_id(item);
        stk_item_free(&item);
    }
    return n;
}
