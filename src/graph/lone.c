#include "graph/lone.h"

#include <assert.h>

#include "base/alloc.h"
#include "graph/steps.h"

#define MAX_FREE_SLABS 4 /* bytes and arrays of one sample, most often */

/* As much of a run as functions of items look at. */
struct stk_lone {
    stk_run run;
    stage stage;
    stk_origin origin;
    stk_source *source;
    stk_item *item;
};

static uint64_t seed_of(const void *params)
{
    return ((const stk_origin *)params)->seed;
}

stk_err stk_lone_new(stk_lone **out)
{
    static const stk_source_class cls = {.name = "lone", .seed = seed_of};
    stk_lone *l = *out = stk_alloc_zero(1, sizeof(*l));
    if (!l) return STK_ENOMEM;
    l->run.max_parts = STK_MAX_PARTS;
    l->run.cancel_fd = -1;
    l->source = stk_source_new(&cls, &l->origin);
    l->item = stk_alloc_zero(1, item_size(STK_MAX_PARTS));
    stk_err err = l->source && l->item ? STK_OK : STK_ENOMEM;
    if (l->item) l->item->run = &l->run;
    if (!err) err = stk_slab_pool_new(MAX_FREE_SLABS, &l->run.slabs);
    if (err) stk_lone_free(out);
    return err;
}

void stk_lone_free(stk_lone **pl)
{
    stk_lone *l = *pl;
    *pl = NULL;
    if (!l) return;
    run_item_drop(&l->item);
    stk_source_unref(&l->source);
    stk_slab_pool_unref(&l->run.slabs);
    stk_free(l);
}

stk_item *stk_lone_begin(stk_lone *l, const stk_origin *origin, size_t parts)
{
    stk_item *item = l->item;
    assert(parts > 0 && parts <= STK_MAX_PARTS);
    item_clear_data(item);
    l->origin = *origin;
    l->stage.rng_key = origin->stage;
    item->state = ITEM_VALUE;
    item->source = l->source;
    item->stage = &l->stage;
    item->id = origin->id;
    item->epoch = origin->epoch;
    item->index = origin->index;
    item->num_parts = parts;
    return item;
}

stk_err stk_lone_memory(stk_lone *l, size_t size, stk_buffer **out)
{
    return stk_slab_take(l->run.slabs, size, out);
}
