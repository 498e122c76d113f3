#include "graph/item.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "graph/lone.h"
#include "graph/steps.h"

size_t item_size(size_t max_parts)
{
    return sizeof(stk_item) + max_parts * sizeof(part);
}

void failure_free(failure **list)
{
    while (*list) {
        failure *f = *list;
        *list = f->next;
        stk_free(f->what.key);
        stk_foreign_unref(&f->what.cause);
        stk_free(f);
    }
}

static void clear_part(part *p)
{
    stk_buffer_unref(&p->bytes);
    stk_buffer_unref(&p->mem);
    stk_buffer_unref(&p->next_mem);
    p->array.data = p->next.data = NULL;
}

/* Looks before it calls: most of an item is empty, and it is cleared more than once on its way. */
void item_clear_data(stk_item *item)
{
    for (size_t i = 0; i < item->num_parts; i++) {
        part *p = &item->parts[i];
        if (p->bytes || p->mem || p->next_mem || p->array.data || p->next.data) clear_part(p);
    }
    if (item->batch) stk_batch_unref(&item->batch);
    if (item->foreign) stk_foreign_unref(&item->foreign);
}

size_t stk_item_num_parts(const stk_item *item)
{
    return item->num_parts;
}

stk_err stk_item_set_num_parts(stk_item *item, size_t n)
{
    if (n == 0 || n > item->run->max_parts) return STK_EINVAL;
    for (size_t i = n; i < item->num_parts; i++) {
        clear_part(&item->parts[i]);
        stk_free(item->parts[i].key);
        item->parts[i].key = NULL;
    }
    item->num_parts = n;
    return STK_OK;
}

stk_origin stk_item_origin(const stk_item *item)
{
    const stk_source_class *cls = item->source ? stk_source_get_class(item->source) : NULL;
    uint64_t (*seed)(const void *) = cls ? cls->seed : NULL;
    if (item->is_batch && cls && cls->batch_seed) seed = cls->batch_seed;
    return (stk_origin){
        .seed = seed ? seed(stk_source_params(item->source)) : 0,
        .stage = item->stage ? item->stage->rng_key : 0,
        .id = item->id,
        .epoch = item->epoch,
        .index = item->index,
    };
}

void stk_item_random(const stk_item *item, uint32_t n, uint32_t out[4])
{
    const stk_origin o = stk_item_origin(item);
    const uint64_t mixed = stk_mix64(o.seed ^ stk_mix64(o.stage ^ stk_mix64((uint64_t)o.index)));
    const uint32_t key[2] = {(uint32_t)mixed, (uint32_t)(mixed >> 32)};
    const uint32_t counter[4] = {(uint32_t)o.id, (uint32_t)((uint64_t)o.id >> 32),
                                 (uint32_t)o.epoch, n};
    stk_philox(key, counter, out);
}

bool stk_item_cancelled(const stk_item *item)
{
    return run_cancelled(item->run);
}

stk_buffer *stk_item_bytes(const stk_item *item, size_t i)
{
    return i < item->num_parts ? item->parts[i].bytes : NULL;
}

void stk_item_set_bytes(stk_item *item, size_t i, stk_buffer **bytes)
{
    assert(i < item->num_parts);
    clear_part(&item->parts[i]);
    item->parts[i].bytes = *bytes;
    *bytes = NULL;
}

stk_tensor stk_item_array(const stk_item *item, size_t i)
{
    return i < item->num_parts ? item->parts[i].array : (stk_tensor){0};
}

stk_err stk_item_new_array(stk_item *item, size_t i, const stk_spec *spec, stk_tensor *out)
{
    *out = (stk_tensor){0};
    if (i >= item->num_parts) return STK_EINVAL;
    part *p = &item->parts[i];
    stk_buffer_unref(&p->next_mem);
    size_t bytes;
    stk_err err = stk_spec_bytes(spec, &bytes);
    if (err) return err;

    void *data = NULL;
    if (item->assembly && item->stage->binds) {
        err = assembly_slot(item->assembly, i, item->slot, spec, &data);
    }
    else {
        err = stk_slab_take(item->run->slabs, bytes, &p->next_mem);
        if (!err) data = stk_buffer_writable(p->next_mem);
    }
    if (err) return err;
    *out = p->next = stk_tensor_over(data, spec);
    return STK_OK;
}

void stk_item_commit_array(stk_item *item, size_t i)
{
    part *p = &item->parts[i];
    assert(p->next.data);
    stk_buffer_unref(&p->bytes);
    stk_buffer_unref(&p->mem);
    p->array = p->next;
    p->mem = p->next_mem;
    p->next_mem = NULL;
    p->next.data = NULL;
}

void stk_item_set_array(stk_item *item, size_t i, const stk_tensor *t, stk_buffer **mem)
{
    assert(i < item->num_parts);
    clear_part(&item->parts[i]);
    item->parts[i].array = *t;
    item->parts[i].mem = *mem;
    *mem = NULL;
}

stk_buffer *stk_item_array_buffer(const stk_item *item, size_t i)
{
    return i < item->num_parts ? item->parts[i].mem : NULL;
}

void stk_item_set_path(stk_item *item, size_t path)
{
    item->path = path;
}

size_t stk_item_path(const stk_item *item)
{
    return item->path;
}

bool stk_item_more(const stk_item *item)
{
    return item->unfinished;
}

stk_batch *stk_item_batch(const stk_item *item)
{
    return item->batch;
}

stk_err stk_item_set_batch(stk_item *item, stk_batch **batch)
{
    stk_err err = stk_batch_own(batch);
    if (err) return err;
    item_clear_data(item);
    item->batch = *batch;
    *batch = NULL;
    return STK_OK;
}

void stk_item_clear(stk_item *item)
{
    item_clear_data(item);
}

stk_foreign *stk_item_foreign(const stk_item *item)
{
    return item->foreign;
}

stk_foreign *stk_item_take_foreign(stk_item *item)
{
    stk_foreign *f = item->foreign;
    item->foreign = NULL;
    return f;
}

void stk_item_set_foreign(stk_item *item, stk_foreign **f)
{
    stk_foreign_unref(&item->foreign);
    item->foreign = *f;
    *f = NULL;
}

void stk_item_free(stk_item **item)
{
    stk_items_free(item, *item ? 1 : 0);
}

void stk_items_free(stk_item **items, size_t n)
{
    if (n == 0) return;
    stk_run *run = items[0]->run;
    if (run->generation != stk_fork_generation()) { /* then they are the parent's */
        memset(items, 0, n * sizeof(*items));
        return;
    }
    for (size_t i = 0; i < n; i++) item_clear_data(items[i]);
    run_lock(run);
    bool news = false;
    for (size_t i = 0; i < n; i++) {
        news |= port_returned(items[i]);
        run_item_put(run, &items[i]);
    }
    if (news)
        run_leave(run);
    else
        run_unlock(run);
    run_unref(run, (int)n);
}
