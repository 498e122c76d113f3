#include "source/indexed.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "source/order.h"

/* So often a source hears how far its reader has come, so that it can look ahead. */
#define TELL_EVERY 256

struct cursor {
    stk_indexed *x;
    stk_watcher watcher;
    stk_look known;
    int64_t epoch, step;
    int64_t shuffled_epoch; /* that `shuffle` is of; -1: none */
    stk_permutation shuffle;
};

uint64_t stk_indexed_seed(const void *params)
{
    return ((const stk_indexed *)params)->order.seed;
}

uint64_t stk_indexed_batch_seed(const void *params)
{
    const stk_order_opts *o = &((const stk_indexed *)params)->order;
    return o->rank ? stk_mix64(o->seed ^ stk_mix64((uint64_t)o->rank)) : o->seed;
}

stk_err stk_indexed_open(void *params, const stk_source_env *env, void **cursor, stk_diag *diag)
{
    stk_indexed *x = params;
    *cursor = NULL;
    stk_err err = x->ops->start(x, diag);
    if (err) return err;
    struct cursor *c = stk_alloc_zero(1, sizeof(*c));
    if (!c) return stk_diag_set(diag, STK_ENOMEM, "no memory to read the source");
    *c = (struct cursor){
        .x = x,
        .watcher = {.wake = env->wake, .ctx = env->ctx},
        .shuffled_epoch = -1,
    };
    *cursor = c;
    return STK_OK;
}

void stk_indexed_close(void *cursor)
{
    struct cursor *c = cursor;
    if (!c) return;
    c->x->ops->forget(c->x, &c->watcher);
    stk_free(c);
}

stk_err stk_indexed_next_id(void *cursor, int64_t *id, int64_t *epoch, stk_diag *diag)
{
    struct cursor *c = cursor;
    const stk_order_opts *o = &c->x->order;
    *id = STK_ORDER_GAP;
    *epoch = c->epoch;
    if (o->epochs >= 0 && c->epoch == o->epochs) return STK_EEND;

    /* Without a shuffle the position is the sample: it can be had before the total is known. */
    const int64_t position = stk_order_position(o, c->step);
    const int64_t wanted = o->shuffle ? INT64_MAX : position + 1;
    if (!c->known.complete && (c->known.available < wanted || c->step % TELL_EVERY == 0)) {
        stk_err err = c->x->ops->look(c->x, wanted, &c->watcher, &c->known, diag);
        if (err) return err;
    }
    if (!o->shuffle && position < c->known.available) {
        *id = position;
        c->step++;
        return STK_OK;
    }

    const int64_t count = c->known.available;
    if (c->step == stk_order_steps(o, count)) {
        c->epoch++;
        c->step = 0;
        return STK_EEPOCH;
    }
    if (c->shuffled_epoch != c->epoch) {
        stk_order_epoch(o, count, c->epoch, &c->shuffle);
        c->shuffled_epoch = c->epoch;
    }
    *id = stk_order_index(o, count, &c->shuffle, c->step++);
    return *id == STK_ORDER_GAP ? STK_ENOTFOUND : STK_OK;
}

/* Makes `item` that sample. */
static stk_err set_sample(const stk_indexed *x, stk_item *item, int64_t id, int64_t epoch)
{
    stk_item_set_id(item, id, epoch);
    return stk_item_set_num_parts(item, x->num_parts ? x->num_parts : 1);
}

stk_err stk_indexed_next(void *cursor, stk_item *item, stk_diag *diag)
{
    struct cursor *c = cursor;
    int64_t id, epoch;
    stk_err err = stk_indexed_next_id(cursor, &id, &epoch, diag);
    return err ? err : set_sample(c->x, item, id, epoch);
}

/* Reads only what never changes of the cursor: `next` may be running. */
stk_err stk_indexed_substitute_id(void *cursor, int64_t id, int64_t epoch, int attempt,
                                  int64_t *other)
{
    struct cursor *c = cursor;
    int64_t count;
    *other = STK_ORDER_GAP;
    stk_err err = c->x->ops->wait(c->x, &count, NULL);
    return err ? err : stk_order_substitute(&c->x->order, count, id, epoch, attempt, other);
}

stk_err stk_indexed_substitute(void *cursor, stk_item *item, int64_t id, int64_t epoch, int attempt)
{
    struct cursor *c = cursor;
    int64_t other;
    stk_err err = stk_indexed_substitute_id(cursor, id, epoch, attempt, &other);
    return err ? err : set_sample(c->x, item, other, epoch);
}

int64_t stk_indexed_length(void *params)
{
    stk_indexed *x = params;
    stk_look look;
    const stk_err err = x->ops->look(x, INT64_MAX, NULL, &look, NULL);
    return err ? -1 : stk_order_steps(&x->order, look.available);
}

int64_t stk_indexed_epochs(void *params)
{
    return ((const stk_indexed *)params)->order.epochs;
}

stk_indexed *stk_indexed_of(const stk_source *s)
{
    return stk_source_get_class(s)->open == stk_indexed_open ? stk_source_params(s) : NULL;
}

void stk_indexed_print(const stk_indexed *x, char *dst, size_t size)
{
    const stk_order_opts *o = &x->order;
    char rank[64] = "", epochs[40] = "";
    if (o->world_size > 1)
        snprintf(rank, sizeof(rank), ", rank %lld of %lld", (long long)o->rank,
                 (long long)o->world_size);
    if (o->epochs < 0)
        snprintf(epochs, sizeof(epochs), ", endless");
    else if (o->epochs > 1)
        snprintf(epochs, sizeof(epochs), ", %lld epochs", (long long)o->epochs);
    snprintf(dst, size, "%s%s%s", o->shuffle ? ", shuffled" : "", rank, epochs);
}
