#include "tests/engine/kit.h"

#include <sched.h>
#include <time.h>

#include <stoker/lane.h>

#include "base/alloc.h"
#include "base/thread.h"

static void spin(int64_t ns)
{
    const int64_t end = stk_clock_ns() + ns;
    while (stk_clock_ns() < end) continue;
}

typedef struct cursor {
    kit_source *s;
    stk_source_env env;
    int64_t position, epoch;
    bool marked, held;
} cursor;

static stk_err source_open(void *params, const stk_source_env *env, void **out, stk_diag *diag)
{
    (void)diag;
    cursor *c = *out = stk_alloc_zero(1, sizeof(*c));
    if (!c) return STK_ENOMEM;
    c->s = params;
    c->env = *env;
    return STK_OK;
}

static void source_close(void *p)
{
    stk_free(p);
}

static stk_err end_of_epoch(cursor *c)
{
    c->position = 0;
    c->epoch++;
    return STK_EEPOCH;
}

static stk_err source_next(void *p, stk_item *item, stk_diag *diag)
{
    cursor *c = p;
    kit_source *s = c->s;
    if (s->epochs >= 0 && c->epoch == s->epochs) return STK_EEND;
    if (c->position == s->samples) return end_of_epoch(c);
    if (c->position == s->hold_at && !c->held) {
        c->held = true;
        s->held_wake = c->env.wake;
        atomic_store(&s->held_ctx, c->env.ctx);
        return STK_EAGAIN;
    }
    if (s->spin_ns) spin(s->spin_ns);
    if (c->position == s->fail_at)
        return stk_diag_set(diag, s->fail_with, "planned failure of the source");
    if (c->position == s->gap_at) {
        c->position++;
        return STK_ENOTFOUND;
    }
    stk_item_set_id(item, s->first_id + c->position++, c->epoch);
    return STK_OK;
}

static stk_err source_substitute(void *p, stk_item *item, int64_t id, int64_t epoch, int attempt)
{
    const kit_source *s = ((cursor *)p)->s;
    if (s->samples < 2) return STK_EEND;
    stk_item_set_id(item, s->first_id + (id - s->first_id + attempt + 1) % s->samples, epoch);
    return STK_OK;
}

static int64_t source_length(void *p)
{
    return ((kit_source *)p)->samples;
}

static int64_t source_epochs(void *p)
{
    return ((kit_source *)p)->epochs;
}

static stk_err source_key(void *p, int64_t id, size_t i, char *dst, size_t size)
{
    (void)p, (void)i;
    return (size_t)snprintf(dst, size, "sample-%" PRId64, id) < size ? STK_OK : STK_ELIMIT;
}

static const stk_source_class source_class = {
    .name = "counting",
    .open = source_open,
    .close = source_close,
    .next = source_next,
    .substitute = source_substitute,
    .length = source_length,
    .epochs = source_epochs,
    .key = source_key,
    .reproducible = true,
};

stk_source *kit_source_new(kit_source *params)
{
    return stk_source_new(&source_class, params);
}

void kit_release(kit_source *s)
{
    void *ctx;
    while (!(ctx = atomic_exchange(&s->held_ctx, NULL))) sched_yield();
    s->held_wake(ctx);
}

kit_source kit_counting(int64_t n)
{
    return (kit_source){.samples = n, .epochs = 1, .fail_at = -1, .gap_at = -1, .hold_at = -1};
}

void kit_pause(int64_t ns)
{
    const struct timespec t = {.tv_nsec = ns};
    clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL); /* check: allow sleep: it is what is tested */
}

static void enter(const kit_op *o)
{
    if (o->calls) atomic_fetch_add(o->calls, 1);
    if (!o->at_once) return;
    const int64_t n = atomic_fetch_add(o->at_once, 1) + 1;
    int64_t most = atomic_load(o->at_once_max);
    while (n > most && !atomic_compare_exchange_weak(o->at_once_max, &most, n)) continue;
}

/* The common part of every op: counting, waiting, failing. */
static stk_err act(const void *params, const stk_item *item, stk_diag *diag)
{
    const kit_op *o = params;
    const int64_t id = stk_item_id(item);
    enter(o);
    if (o->spin_ns) spin(o->spin_ns);
    if (o->sleep_ns) kit_pause(o->sleep_ns);
    while (o->gate && !atomic_load(o->gate) && (o->stubborn || !stk_item_cancelled(item)))
        sched_yield();
    if (o->at_once) atomic_fetch_sub(o->at_once, 1);
    if (!(o->fail_every && id % o->fail_every == 0) && !(o->fail_id && id == o->fail_id))
        return STK_OK;
    stk_diag_set(diag, STK_ECORRUPT, "planned failure");
    diag->fatal = o->fatal;
    return STK_ECORRUPT;
}

static const stk_spec one = {.dtype = STK_INT64, .ndim = 1, .shape = {1}};

static stk_err put(stk_item *item, int64_t value)
{
    stk_tensor t;
    stk_err err = stk_item_new_array(item, 0, &one, &t);
    if (err) return err;
    memcpy(t.data, &value, sizeof(value));
    stk_item_commit_array(item, 0);
    return STK_OK;
}

static stk_err value_run(const void *params, void *state, stk_item *item, stk_diag *diag)
{
    (void)state;
    stk_err err = act(params, item, diag);
    return err ? err : put(item, stk_item_id(item) * 10);
}

static stk_err same_run(const void *params, void *state, stk_item *item, stk_diag *diag)
{
    (void)state;
    return act(params, item, diag);
}

static stk_err add_run(const void *params, void *state, stk_item *item, stk_diag *diag)
{
    (void)state;
    stk_err err = act(params, item, diag);
    int64_t *value = stk_item_array(item, 0).data;
    if (!err) ++*value;
    return err;
}

static stk_err random_run(const void *params, void *state, stk_item *item, stk_diag *diag)
{
    (void)state;
    uint32_t words[4];
    stk_err err = act(params, item, diag);
    stk_item_random(item, 0, words);
    int64_t *value = stk_item_array(item, 0).data;
    if (!err) *value += words[0] % 1000;
    return err;
}

static stk_err repeat_expand(const void *params, void *state, void **at, stk_item *in,
                             int64_t index, stk_item *out, stk_diag *diag)
{
    (void)state;
    if (!*at && !(*at = stk_alloc(1))) return STK_ENOMEM;
    stk_err err = act(params, in, diag);
    if (err) return err;
    if (index >= stk_item_id(in) % 4) return STK_EEND;
    return put(out, *(int64_t *)stk_item_array(in, 0).data + index);
}

static void repeat_end(const void *params, void *at)
{
    (void)params;
    stk_free(at);
}

static void known(const void *params, size_t i, stk_spec *out)
{
    (void)i;
    if (!((const kit_op *)params)->no_spec) *out = one;
}

static const stk_op_class classes[] = {
    {.name = "value",
     .in = STK_KIND_KEY,
     .out = STK_KIND_ARRAY,
     .flags = STK_OP_ALONE,
     .run = value_run,
     .spec = known,
     .fini = stk_free},
    {.name = "same", .run = same_run, .flags = STK_OP_IN_PLACE, .fini = stk_free},
    {.name = "add",
     .in = STK_KIND_ARRAY,
     .out = STK_KIND_ARRAY,
     .flags = STK_OP_IN_PLACE | STK_OP_ALONE,
     .run = add_run,
     .fini = stk_free},
    {.name = "random",
     .in = STK_KIND_ARRAY,
     .out = STK_KIND_ARRAY,
     .flags = STK_OP_IN_PLACE | STK_OP_ALONE,
     .run = random_run,
     .fini = stk_free},
    {.name = "batch_sum",
     .in = STK_KIND_BATCH,
     .out = STK_KIND_BATCH,
     .flags = STK_OP_ALONE,
     .run = same_run,
     .fini = stk_free},
    {.name = "repeat",
     .in = STK_KIND_ARRAY,
     .out = STK_KIND_ARRAY,
     .expand = repeat_expand,
     .expand_end = repeat_end,
     .fini = stk_free},
    {.name = "blocking_value",
     .in = STK_KIND_KEY,
     .out = STK_KIND_ARRAY,
     .flags = STK_OP_BLOCKING,
     .run = value_run,
     .spec = known,
     .fini = stk_free},
    {.name = "blocking_same",
     .flags = STK_OP_BLOCKING | STK_OP_IN_PLACE,
     .run = same_run,
     .fini = stk_free},
    {.name = "reading_value",
     .in = STK_KIND_KEY,
     .out = STK_KIND_ARRAY,
     .flags = STK_OP_BLOCKING | STK_OP_ALONE,
     .run = value_run,
     .spec = known,
     .fini = stk_free},
};

static stk_op *make(size_t cls, const kit_op *o)
{
    kit_op *params = stk_alloc(sizeof(*params));
    if (!params) return NULL;
    *params = o ? *o : (kit_op){0};
    return stk_op_new(&classes[cls], params);
}

stk_op *kit_value(const kit_op *o)
{
    return make(o && o->reads ? 8 : o && o->blocking ? 6 : 0, o);
}

stk_op *kit_same(const kit_op *o)
{
    return make(o && o->blocking ? 7 : 1, o);
}

stk_op *kit_add(const kit_op *o)
{
    return make(2, o);
}

stk_op *kit_random(const kit_op *o)
{
    return make(3, o);
}

stk_op *kit_batch(const kit_op *o)
{
    return make(4, o);
}

stk_op *kit_repeat(const kit_op *o)
{
    return make(5, o);
}

stk_plan *kit_plan(kit_source *source, stk_op *op, const stk_stage_opts *opts)
{
    stk_plan *plan = NULL;
    if (stk_plan_new(&plan)) {
        stk_op_unref(&op);
        return NULL;
    }
    stk_plan_source(plan, kit_source_new(source));
    if (op) stk_plan_pipe(plan, op, opts);
    return plan;
}

static void add(int64_t *values, size_t max, size_t *n, int64_t value)
{
    if (*n < max) values[*n] = value;
    ++*n;
}

static void add_batch(stk_batch *b, int64_t *values, size_t max, size_t *n)
{
    const size_t size = stk_batch_size(b);
    const int field = stk_batch_find(b, "image");
    stk_tensor t;
    add(values, max, n, -1 - (int64_t)size);
    if (size == 0) return;
    CHECK_EQ(stk_batch_array(b, (size_t)field, &t, NULL), STK_OK);
    CHECK_EQ(t.shape[0], size);
    for (size_t i = 0; i < size; i++) add(values, max, n, ((int64_t *)t.data)[i]);
}

stk_err kit_read(stk_run *run, int64_t *values, size_t max, size_t *n, stk_diag *diag)
{
    *n = 0;
    for (;;) {
        stk_item *items[7];
        size_t got = 0;
        stk_err err = stk_run_next_items(run, STK_FOREVER, 7, items, &got, diag);
        if (err == STK_EAGAIN) (void)stk_run_short_groups(run); /* lanes are there, or come */
        if (err == STK_EAGAIN) continue;
        if (err) return err;
        for (size_t i = 0; i < got; i++) {
            stk_batch *b = stk_item_batch(items[i]);
            const int64_t *value = stk_item_array(items[i], 0).data;
            if (b)
                add_batch(b, values, max, n);
            else
                add(values, max, n, value ? *value : stk_item_id(items[i]));
            stk_item_free(&items[i]);
        }
    }
}

stk_err kit_run(stk_plan *plan, int32_t threads, int64_t *values, size_t max, size_t *n,
                stk_diag *diag)
{
    stk_run *run = NULL;
    *n = 0;
    stk_err err = stk_run_start(plan, &(stk_run_opts){.num_threads = threads}, &run, diag);
    stk_plan_free(&plan);
    if (err) return err;
    err = kit_read(run, values, max, n, diag);
    stk_run_free(&run);
    return err;
}
