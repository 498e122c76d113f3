#include "graph/plan.h"

#include <stoker/port.h>

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

stk_err stk_plan_new(stk_plan **out)
{
    stk_plan *plan = *out = stk_alloc_zero(1, sizeof(*plan));
    if (!plan) return STK_ENOMEM;
    atomic_init(&plan->refs, 1);
    return STK_OK;
}

stk_plan *stk_plan_ref(stk_plan *plan)
{
    atomic_fetch_add_explicit(&plan->refs, 1, memory_order_relaxed);
    return plan;
}

void stk_plan_free(stk_plan **pplan)
{
    stk_plan *plan = *pplan;
    *pplan = NULL;
    if (!plan || atomic_fetch_sub_explicit(&plan->refs, 1, memory_order_acq_rel) != 1) return;
    stk_source_unref(&plan->source);
    for (size_t i = 0; i < plan->num_inputs; i++) stk_plan_free(&plan->inputs[i]);
    for (size_t i = 0; i < plan->num_stages; i++) {
        stk_op_unref(&plan->stages[i].op);
        for (size_t k = 0; k < plan->stages[i].num_paths; k++)
            stk_plan_free(&plan->stages[i].paths[k]);
    }
    stk_free(plan);
}

/* Keeps the first error of building. */
static void STK_PRINTF(3, 4) fail(stk_plan *plan, stk_err err, const char *fmt, ...)
{
    if (plan->err) return;
    plan->err = plan->diag.err = err;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(plan->diag.text, sizeof(plan->diag.text), fmt, ap);
    va_end(ap);
}

void stk_plan_source(stk_plan *plan, stk_source *source)
{
    if (!source)
        fail(plan, STK_EINVAL, "the source was not made (NULL): its constructor's diag says why");
    else if (plan->source || plan->num_inputs)
        fail(plan, STK_EINVAL,
             "the plan has a source already: a plan has one, or a merge of several");
    else {
        plan->source = source;
        return;
    }
    stk_source_unref(&source);
}

void stk_plan_foreign_source(stk_plan *plan, stk_source *source, uint32_t group)
{
    if (group >= STK_MAX_GROUPS)
        fail(plan, STK_EINVAL, "group %u: it must be less than %d", group, STK_MAX_GROUPS);
    plan->source_group = group;
    stk_plan_source(plan, source);
}

void stk_plan_limit(stk_plan *plan, int64_t max_failures, double max_failure_rate)
{
    plan->max_failures = max_failures;
    plan->max_failure_rate = max_failure_rate;
    if (!(max_failure_rate >= 0 && max_failure_rate <= 1))
        fail(plan, STK_EINVAL, "max_failure_rate is %g: it must be in (0, 1]", max_failure_rate);
}

/* A new last stage, or NULL with the error kept. */
static stage_plan *add(stk_plan *plan, stage_kind kind, const char *name,
                       const stk_stage_opts *opts)
{
    if (plan->sink) fail(plan, STK_EINVAL, "stage '%s' comes after the sink", name);
    if (plan->num_stages == STK_MAX_STAGES)
        fail(plan, STK_ELIMIT, "more than %d stages in a plan", STK_MAX_STAGES);
    if (opts && opts->name) name = opts->name;
    if (strlen(name) >= STK_NAME_SIZE)
        fail(plan, STK_EINVAL, "the stage name '%s' is longer than %d bytes", name,
             STK_NAME_SIZE - 1);
    if (plan->err) return NULL;
    stage_plan *s = &plan->stages[plan->num_stages++];
    s->kind = kind;
    snprintf(s->name, sizeof(s->name), "%s", name);
    if (opts) s->opts = *opts;
    s->opts.name = NULL; /* borrowed: the copy is s->name */
    return s;
}

static void check_opts(stk_plan *plan, const stage_plan *s)
{
    const stk_stage_opts *o = &s->opts;
    if (o->concurrency < 0 || o->concurrency > STK_MAX_CONCURRENCY)
        fail(plan, STK_EINVAL,
             "stage '%s': concurrency is %d: it must be from 1 to %d, or 0 to let the "
             "engine choose",
             s->name, (int)o->concurrency, STK_MAX_CONCURRENCY);
    if (o->capacity < 0 || o->capacity > STK_MAX_CAPACITY)
        fail(plan, STK_EINVAL,
             "stage '%s': capacity is %d: it must be from 1 to %d, or 0 to let the "
             "engine choose",
             s->name, (int)o->capacity, STK_MAX_CAPACITY);
    if (o->group >= STK_MAX_GROUPS)
        fail(plan, STK_EINVAL, "stage '%s': group %u: it must be less than %d", s->name, o->group,
             STK_MAX_GROUPS);
    if (o->order != STK_ORDER_INPUT && o->order != STK_ORDER_COMPLETION)
        fail(plan, STK_EINVAL, "stage '%s': unknown order %d", s->name, (int)o->order);
    if (o->on_error < STK_RAISE || o->on_error > STK_SUBSTITUTE)
        fail(plan, STK_EINVAL, "stage '%s': unknown failure policy %d", s->name, (int)o->on_error);
    if (!(o->max_failure_rate >= 0 && o->max_failure_rate <= 1))
        fail(plan, STK_EINVAL, "stage '%s': max_failure_rate is %g: it must be in (0, 1]", s->name,
             o->max_failure_rate);
    if (o->on_error != STK_SKIP && (o->max_failures != 0 || o->max_failure_rate > 0))
        fail(plan, STK_EINVAL,
             "stage '%s': max_failures counts skipped samples: it goes with the "
             "policy skip only",
             s->name);
}

void stk_plan_pipe(stk_plan *plan, stk_op *op, const stk_stage_opts *opts)
{
    if (!op) {
        fail(plan, STK_EINVAL,
             "stage %zu: the op was not made (NULL): its constructor's diag says why",
             plan->num_stages);
        return;
    }
    const stk_op_class *cls = stk_op_get_class(op);
    stage_plan *s = add(plan, cls->expand ? STAGE_EXPAND : STAGE_MAP, cls->name, opts);
    if (!s) {
        stk_op_unref(&op);
        return;
    }
    s->op = op;
    check_opts(plan, s);
    if (!cls->expand == !cls->run)
        fail(plan, STK_EINVAL, "op '%s' must have either run or expand", cls->name);
    if (cls->flush) { /* one after the other, and what comes out has a place of its own */
        s->opts.order = STK_ORDER_COMPLETION;
        s->opts.concurrency = 1;
    }
    if ((cls->expand || cls->flush) && s->opts.on_error == STK_SUBSTITUTE)
        fail(plan, STK_EINVAL, "stage '%s' makes %s: a failure can't be substituted there", s->name,
             cls->expand ? "many of one" : "one of many");
}

void stk_plan_batch(stk_plan *plan, size_t n, const stk_batch_opts *opts)
{
    stage_plan *s = add(plan, STAGE_BATCH, opts && opts->name ? opts->name : "batch", NULL);
    if (!s) return;
    s->batch_size = n;
    if (opts) s->batch = *opts;
    s->batch.name = NULL;
    s->opts.capacity = s->batch.capacity;
    if (n == 0 || n > STK_MAX_BATCH)
        fail(plan, STK_EINVAL, "stage '%s': a batch of %zu: it must be from 1 to %d", s->name, n,
             STK_MAX_BATCH);
    check_opts(plan, s);
}

void stk_plan_unbatch(stk_plan *plan, const stk_stage_opts *opts)
{
    stk_op *op = stk_op_new(&unbatch_class, NULL);
    if (op)
        stk_plan_pipe(plan, op, opts);
    else
        fail(plan, STK_ENOMEM, "no memory for an unbatch stage");
}

void stk_plan_route(stk_plan *plan, stk_router_fn *router, void *ctx, size_t n,
                    stk_plan *const *paths, const stk_stage_opts *opts)
{
    stage_plan *s = NULL;
    if (n == 0 || n > STK_MAX_PATHS)
        fail(plan, STK_EINVAL, "a route needs from 1 to %d paths, not %zu", STK_MAX_PATHS, n);
    else
        s = add(plan, STAGE_ROUTE, "route", opts);
    for (size_t i = 0; i < n; i++) {
        stk_plan *path = paths[i];
        if (!path)
            fail(plan, STK_EINVAL, "path %zu of a route is NULL", i);
        else if (path->err)
            fail(plan, path->err, "path %zu: %s", i, path->diag.text);
        if (s && path)
            s->paths[s->num_paths++] = path;
        else
            stk_plan_free(&path);
    }
    if (!s) return;
    s->router = router;
    s->router_ctx = ctx;
    check_opts(plan, s);
    if (s->opts.on_error == STK_SUBSTITUTE)
        fail(plan, STK_EINVAL, "stage '%s': a router's failure can't be substituted", s->name);
}

void stk_plan_merge(stk_plan *plan, size_t n, stk_plan *const *inputs, const double *weights,
                    uint64_t seed)
{
    const bool good = n > 0 && n <= STK_MAX_PATHS && !plan->source && !plan->num_inputs;
    if (!good)
        fail(plan, STK_EINVAL, "a merge of %zu inputs: it takes from 1 to %d, in place of a source",
             n, STK_MAX_PATHS);
    for (size_t i = 0; i < n; i++) {
        stk_plan *input = inputs[i];
        if (!input)
            fail(plan, STK_EINVAL, "input %zu of a merge is NULL", i);
        else if (input->err)
            fail(plan, input->err, "input %zu: %s", i, input->diag.text);
        if (good && weights && !(weights[i] > 0 && weights[i] < 1e12))
            fail(plan, STK_EINVAL, "weight %zu of a merge is %g: it must be more than 0", i,
                 weights[i]);
        if (!good || !input) {
            stk_plan_free(&input);
            continue;
        }
        plan->weights[plan->num_inputs] = weights ? weights[i] : 1;
        plan->inputs[plan->num_inputs++] = input;
    }
    plan->weighted = weights != NULL;
    plan->merge_seed = seed;
}

void stk_plan_merge_any(stk_plan *plan, size_t n, stk_plan *const *inputs)
{
    stk_plan_merge(plan, n, inputs, NULL, 0);
    plan->arrival = true;
}

void stk_plan_port(stk_plan *plan, const stk_stage_opts *opts)
{
    stage_plan *s = add(plan, STAGE_PORT, "port", opts);
    if (!s) return;
    check_opts(plan, s);
    if (s->opts.group == 0)
        fail(plan, STK_EINVAL, "stage '%s': a port needs a group that serves it", s->name);
}

void stk_plan_port_source(stk_plan *plan, uint32_t group)
{
    if (plan->source || plan->num_inputs || plan->ported)
        fail(plan, STK_EINVAL, "the plan has a source already");
    if (group == 0 || group >= STK_MAX_GROUPS)
        fail(plan, STK_EINVAL, "group %u: it must be from 1 to %d", group, STK_MAX_GROUPS - 1);
    plan->ported = true;
    plan->source_group = group;
}

void stk_plan_port_merge(stk_plan *plan, size_t n, stk_plan *const *inputs, uint32_t group)
{
    stk_plan_port_source(plan, group);
    plan->ported = false;
    stk_plan_merge(plan, n, inputs, NULL, 0);
    plan->ported = true;
}

void stk_plan_sink(stk_plan *plan, size_t buffer_size)
{
    if (plan->sink)
        fail(plan, STK_EINVAL, "the plan has a sink already");
    else if (buffer_size == 0 || buffer_size > STK_MAX_SINK)
        fail(plan, STK_EINVAL, "a sink for %zu results: it must be from 1 to %d", buffer_size,
             STK_MAX_SINK);
    else
        plan->sink = buffer_size;
}
