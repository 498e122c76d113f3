#include "tests/op_run.h"

#include "base/alloc.h"

static uint8_t value_at(int64_t id, size_t part, size_t i)
{
    uint32_t x = (uint32_t)(i * 2654435761u) ^ (uint32_t)(id * 40503 + (int64_t)part * 977);
    x ^= x >> 15, x *= 2246822519u, x ^= x >> 13;
    return (uint8_t)(x >> 8);
}

void op_run_fill(int64_t id, size_t part, uint8_t *dst, size_t n)
{
    for (size_t i = 0; i < n; i++) dst[i] = value_at(id, part, i);
}

static uint64_t seed_of(const void *params)
{
    return ((const op_run *)params)->seed;
}

static stk_err open_source(void *params, const stk_source_env *env, void **out, stk_diag *diag)
{
    (void)env, (void)diag;
    ((op_run *)params)->position = 0;
    *out = params;
    return STK_OK;
}

static void close_source(void *cursor)
{
    (void)cursor;
}

static stk_err next_sample(void *cursor, stk_item *item, stk_diag *diag)
{
    op_run *r = cursor;
    (void)diag;
    if (r->position == r->samples * (r->index + 1)) return STK_EEND;
    if (r->parts > 1 && stk_item_set_num_parts(item, r->parts)) return STK_EINVAL;
    stk_item_set_id(item, r->position++, 0);
    return STK_OK;
}

static const char *const *parts_of(void *params, size_t *n)
{
    static const char *const names[] = {"image", "mask"};
    *n = ((op_run *)params)->parts > 1 ? 2 : 1;
    return names;
}

static const stk_column *columns_of(void *params, size_t *n)
{
    static const stk_column label = {.name = "label", .spec = {.dtype = STK_INT64}};
    *n = ((op_run *)params)->labels;
    return &label;
}

static stk_err column_of(void *params, size_t column, int64_t id, void *dst)
{
    (void)params, (void)column;
    const int64_t label = id % 10;
    memcpy(dst, &label, sizeof(label));
    return STK_OK;
}

/* Rows of the last axes with a gap behind each. */
static stk_err make_strided(stk_item *item, size_t part, const stk_spec *spec, size_t n)
{
    stk_buffer *mem;
    const int32_t axis = spec->ndim - 3;
    const size_t rows = n / (size_t)(spec->shape[axis + 1] * spec->shape[axis + 2]);
    const size_t row = n / rows;
    stk_err err = stk_buffer_new(rows * (row + 5), &mem);
    if (err) return err;
    uint8_t *p = stk_buffer_writable(mem);
    memset(p, 1, rows * (row + 5));
    for (size_t i = 0; i < n; i++)
        p[i / row * (row + 5) + i % row] = value_at(stk_item_id(item), part, i);
    stk_tensor t = stk_tensor_over(p, spec);
    for (int32_t d = 0; d <= axis; d++)
        t.strides[d] = t.strides[d] / (int64_t)row * (int64_t)(row + 5);
    stk_item_set_array(item, part, &t, &mem);
    return STK_OK;
}

static stk_err make_part(op_run *r, stk_item *item, size_t part)
{
    const stk_spec *spec = &r->spec[part];
    stk_tensor t;
    size_t n;
    stk_err err = stk_spec_bytes(spec, &n);
    if (err) return err;
    if (r->where == OP_RUN_STRIDED) return make_strided(item, part, spec, n);
    if (r->where != OP_RUN_SHARED) {
        err = stk_item_new_array(item, part, spec, &t);
        if (err) return err;
        op_run_fill(stk_item_id(item), part, t.data, n);
        stk_item_commit_array(item, part);
        return STK_OK;
    }
    stk_buffer *mem;
    err = stk_buffer_new(n, &mem);
    if (err) return err;
    op_run_fill(stk_item_id(item), part, stk_buffer_writable(mem), n);
    t = stk_tensor_over(stk_buffer_writable(mem), spec);
    if (stk_item_id(item) == 0 && part == 0) r->kept = stk_buffer_ref(mem);
    stk_item_set_array(item, part, &t, &mem);
    return STK_OK;
}

static stk_err make_run(const void *params, void *state, stk_item *item, stk_diag *diag)
{
    op_run *r = *(op_run *const *)params;
    stk_err err = STK_OK;
    (void)state, (void)diag;
    for (size_t i = 0; i < stk_item_num_parts(item) && !err; i++) err = make_part(r, item, i);
    return err;
}

static void make_spec(const void *params, size_t part, stk_spec *out)
{
    const op_run *r = *(op_run *const *)params;
    if (r->where == OP_RUN_SLOT) *out = r->spec[part];
}

static stk_op *maker(op_run *r)
{
    static const stk_op_class cls = {
        .name = "make",
        .flags = STK_OP_ALONE,
        .in = STK_KIND_KEY,
        .out = STK_KIND_ARRAY,
        .run = make_run,
        .spec = make_spec,
        .fini = stk_free,
    };
    op_run **params = stk_alloc(sizeof(*params));
    if (!params) return NULL;
    *params = r;
    return stk_op_new(&cls, params);
}

stk_err op_run_go(op_run *r, stk_op *op)
{
    static const stk_source_class cls = {
        .name = "numbers",
        .seed = seed_of,
        .open = open_source,
        .close = close_source,
        .next = next_sample,
        .parts = parts_of,
        .columns = columns_of,
        .column = column_of,
    };
    const bool batched = op && stk_op_get_class(op)->in == STK_KIND_BATCH;
    stk_plan *plan;
    stk_run *run = NULL;
    r->batch = NULL;
    r->diag = (stk_diag){0};
    stk_err err = stk_plan_new(&plan);
    if (err) {
        stk_op_unref(&op);
        return err;
    }
    stk_plan_source(plan, stk_source_new(&cls, r));
    stk_plan_pipe(plan, maker(r), NULL);
    if (!batched) stk_plan_pipe(plan, op, NULL);
    stk_plan_batch(plan, (size_t)r->samples, NULL);
    if (batched) stk_plan_pipe(plan, op, NULL);
    stk_plan_sink(plan, 2);
    const stk_run_opts opts = {.num_threads = r->threads ? r->threads : 2};
    err = stk_run_start(plan, &opts, &run, &r->diag);
    for (int64_t i = 0; i <= r->index && !err; i++) {
        stk_batch_unref(&r->batch);
        err = stk_run_next(run, STK_FOREVER, &r->batch, &r->diag);
    }
    stk_run_free(&run);
    stk_plan_free(&plan);
    return err;
}

stk_tensor op_run_field(const op_run *r, const char *name)
{
    stk_tensor t;
    CHECK(r->batch);
    CHECK_EQ(stk_batch_array(r->batch, (size_t)stk_batch_find(r->batch, name), &t, NULL), STK_OK);
    return t;
}

void op_run_end(op_run *r)
{
    stk_batch_unref(&r->batch);
    stk_buffer_unref(&r->kept);
}

void op_run_refused(op_run *r, stk_op *op, const char *words)
{
    CHECK(op);
    CHECK_EQ(op_run_go(r, op), STK_EINVAL);
    if (!strstr(r->diag.text, words))
        fprintf(stderr, "\"%s\" has no \"%s\"\n", r->diag.text, words);
    CHECK(strstr(r->diag.text, words));
    op_run_end(r);
}

stk_err op_run_torture(op_run *r, stk_op *op)
{
    stk_err err = op ? op_run_go(r, op) : STK_ENOMEM;
    if (!err && !stk_fault_armed()) err = STK_ENOMEM; /* it coped */
    /* Constructors that failed inside of the plan are its bad argument. */
    CHECK(!err || err == STK_ENOMEM || err == STK_EAGAIN || err == STK_EINVAL);
    op_run_end(r);
    return err;
}
