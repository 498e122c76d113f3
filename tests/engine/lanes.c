#include "tests/engine/lanes.h"

#include "base/alloc.h"

static void grow(uint32_t group, void *ctx)
{
    kit_lanes_add(ctx, group);
}

typedef struct start {
    kit_lanes *all;
    uint32_t group;
} start;

static void *work(void *arg)
{
    const start s = *(start *)arg;
    free(arg);
    stk_lane *lane;
    stk_err err;
    do err = stk_lane_new(s.all->run, s.group, grow, s.all, &lane);
    while (err == STK_ENOMEM); /* somebody's TORTURE */
    while (!err) {
        err = stk_lane_work(lane);
        if (err == STK_EAGAIN) err = stk_lane_wait(lane, STK_FOREVER);
    }
    CHECK_EQ(err, STK_ECANCELLED);
    stk_lane_free(&lane);
    return NULL;
}

stk_err kit_lanes_try(kit_lanes *l, stk_plan *plan, const stk_run_opts *opts, int limit,
                      stk_diag *diag)
{
    const stk_run_opts two = {.num_threads = 2};
    *l = (kit_lanes){.limit = limit};
    CHECK_EQ(pthread_mutex_init(&l->lock, NULL), 0);
    stk_err err = stk_run_start(plan, opts ? opts : &two, &l->run, diag);
    stk_plan_free(&plan);
    if (err) pthread_mutex_destroy(&l->lock);
    return err;
}

stk_run *kit_lanes_start(kit_lanes *l, stk_plan *plan, const stk_run_opts *opts, int limit)
{
    stk_diag diag = {0};
    const stk_err err = kit_lanes_try(l, plan, opts, limit, &diag);
    if (err) fprintf(stderr, "%s\n", diag.text);
    CHECK_EQ(err, STK_OK);
    return l->run;
}

void kit_lanes_add(kit_lanes *l, uint32_t group)
{
    CHECK(group < STK_MAX_GROUPS);
    pthread_mutex_lock(&l->lock);
    if (l->made[group] < l->limit) {
        start *s = malloc(sizeof(*s));
        *s = (start){l, group};
        l->made[group]++;
        CHECK(l->num < KIT_MAX_LANES);
        CHECK_EQ(pthread_create(&l->threads[l->num++], NULL, work, s), 0);
    }
    pthread_mutex_unlock(&l->lock);
}

void kit_lanes_grow(kit_lanes *l)
{
    const uint64_t shortage = stk_run_short_groups(l->run);
    for (uint32_t g = 1; g < STK_MAX_GROUPS; g++)
        if (shortage >> g & 1) kit_lanes_add(l, g);
}

int64_t kit_lanes_next(kit_lanes *l, int64_t timeout, stk_diag *diag)
{
    stk_item *item;
    size_t n;
    stk_err err;
    while ((err = stk_run_next_items(l->run, timeout, 1, &item, &n, diag)) == STK_EAGAIN)
        kit_lanes_grow(l);
    if (err) return err;
    const int64_t id = stk_item_id(item);
    stk_item_free(&item);
    return id;
}

size_t kit_lanes_read(kit_lanes *l, int64_t *ids, size_t max, stk_err *end, stk_diag *diag)
{
    for (size_t n = 0;; n++) {
        const int64_t id = kit_lanes_next(l, STK_FOREVER, diag);
        CHECK(n < max || id < 0);
        *end = (stk_err)id;
        if (id < 0 && id != STK_EEPOCH) return n;
        ids[n] = id == STK_EEPOCH ? KIT_EPOCH_END : id;
    }
}

void kit_lanes_end(kit_lanes *l)
{
    stk_run_cancel(l->run); /* lanes use the run until they have seen it */
    for (int i = 0;; i++) {
        pthread_mutex_lock(&l->lock);
        const bool more = i < l->num;
        pthread_mutex_unlock(&l->lock);
        if (!more) break;
        CHECK_EQ(pthread_join(l->threads[i], NULL), 0);
    }
    stk_run_free(&l->run);
    pthread_mutex_destroy(&l->lock);
}

static stk_err hook_run(const void *params, void *state, stk_item *item, stk_diag *diag)
{
    (void)state;
    const kit_hook *h = params;
    return h->run ? h->run(h->ctx, item, diag) : STK_OK;
}

static stk_err hook_flush(const void *params, void *state, stk_item *out, stk_diag *diag)
{
    (void)state;
    const kit_hook *h = params;
    return h->flush ? h->flush(h->ctx, out, diag) : STK_ESKIP;
}

static stk_op *make(const stk_op_class *cls, kit_hook hook)
{
    kit_hook *params = stk_alloc(sizeof(*params));
    if (!params) return NULL;
    *params = hook;
    return stk_op_new(cls, params);
}

stk_op *kit_hook_op(kit_hook hook)
{
    static const stk_op_class cls = {.name = "hook", .run = hook_run, .fini = stk_free};
    return make(&cls, hook);
}

stk_op *kit_blocking_hook_op(kit_hook hook)
{
    static const stk_op_class cls = {
        .name = "blocking_hook", .flags = STK_OP_BLOCKING, .run = hook_run, .fini = stk_free};
    return make(&cls, hook);
}

stk_op *kit_fold_op(kit_hook hook)
{
    static const stk_op_class cls = {
        .name = "fold", .run = hook_run, .flush = hook_flush, .fini = stk_free};
    return make(&cls, hook);
}
