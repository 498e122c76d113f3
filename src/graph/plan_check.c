#include <assert.h>
#include <string.h>

#include "graph/plan.h"

bool stage_in_order(const stage_plan *s)
{
    return s->opts.order == STK_ORDER_INPUT;
}

bool plan_is_one_to_one(const stk_plan *path)
{
    for (size_t i = 0; i < path->num_stages; i++) {
        const stage_plan *s = &path->stages[i];
        if (s->kind != STAGE_MAP && s->kind != STAGE_ROUTE) return false;
        if (!stage_in_order(s)) return false;
        for (size_t k = 0; k < s->num_paths; k++)
            if (!plan_is_one_to_one(s->paths[k])) return false;
    }
    return true;
}

static const stk_plan *first_input(const stk_plan *plan)
{
    while (!plan->source && plan->num_inputs) plan = plan->inputs[0];
    return plan;
}

stk_source *plan_first_source(const stk_plan *plan)
{
    return first_input(plan)->source;
}

static stk_kind kind_after(const stage_plan *s, stk_kind in);

/* What comes from one of several plans: where one gives foreign objects, whoever takes these takes
 * what the others give, too. */
static stk_kind kind_of_any(size_t n, const stk_kind *kinds)
{
    for (size_t i = 0; i < n; i++)
        if (kinds[i] == STK_KIND_FOREIGN) return STK_KIND_FOREIGN;
    return kinds[0];
}

static stk_kind kind_through(const stk_plan *plan, stk_kind in, size_t n)
{
    for (size_t i = 0; i < n; i++) in = kind_after(&plan->stages[i], in);
    return in;
}

static stk_kind kind_after_route(const stage_plan *s, stk_kind in)
{
    stk_kind kinds[STK_MAX_PATHS];
    for (size_t k = 0; k < s->num_paths; k++)
        kinds[k] = kind_through(s->paths[k], in, s->paths[k]->num_stages);
    return kind_of_any(s->num_paths, kinds);
}

static stk_kind kind_after(const stage_plan *s, stk_kind in)
{
    switch (s->kind) {
    case STAGE_BATCH: return STK_KIND_BATCH;
    case STAGE_UNBATCH: return STK_KIND_ARRAY;
    case STAGE_PORT: return STK_KIND_FOREIGN;
    case STAGE_ROUTE: return kind_after_route(s, in);
    case STAGE_MAP:
    case STAGE_EXPAND: break;
    }
    const stk_kind out = stk_op_get_class(s->op)->out;
    return out == STK_KIND_ANY ? in : out;
}

static stk_kind kind_of_source(const stk_plan *plan)
{
    if (plan->ported) return STK_KIND_FOREIGN;
    const stk_kind out = plan->source ? stk_source_get_class(plan->source)->out : STK_KIND_ANY;
    return out == STK_KIND_ANY ? STK_KIND_KEY : out;
}

static stk_kind kind_of_merge(const stk_plan *plan)
{
    stk_kind kinds[STK_MAX_PATHS];
    for (size_t i = 0; i < plan->num_inputs; i++)
        kinds[i] = plan_kind_at(plan->inputs[i], plan->inputs[i]->num_stages);
    return kind_of_any(plan->num_inputs, kinds);
}

stk_kind plan_kind_at(const stk_plan *plan, size_t i)
{
    return kind_through(
        plan, plan->num_inputs && !plan->ported ? kind_of_merge(plan) : kind_of_source(plan), i);
}

static const char *remedy(stk_kind want, stk_kind have)
{
    if (want == STK_KIND_BYTES && have == STK_KIND_KEY) return ": put a read stage before it";
    if (want == STK_KIND_ARRAY && have == STK_KIND_BYTES) return ": put a decoder before it";
    if (want == STK_KIND_ARRAY && have == STK_KIND_KEY)
        return ": put a read stage and a decoder before it";
    if (want == STK_KIND_BATCH) return ": put a batch stage before it";
    if (have == STK_KIND_BATCH) return ": put it before the batch stage";
    return "";
}

static stk_err check_path(const stk_plan *path, stk_kind in, stk_diag *diag);

static stk_err check_route(const stage_plan *s, stk_kind in, stk_diag *diag)
{
    for (size_t k = 0; k < s->num_paths; k++) {
        const stk_plan *path = s->paths[k];
        if (path->source || path->num_inputs || path->sink || path->num_stages == 0)
            return stk_diag_set(diag, STK_EINVAL,
                                "stage '%s': path %zu must have stages, and no source or sink",
                                s->name, k);
        stk_err err = check_path(path, in, diag);
        if (err) {
            stk_diag_prefix(diag, "path %zu of stage '%s'", k, s->name);
            return err;
        }
        const stk_kind out = kind_after(s, in);
        if (out != STK_KIND_FOREIGN && kind_through(path, in, path->num_stages) != out)
            return stk_diag_set(diag, STK_EINVAL, "stage '%s': path %zu ends in %s, path 0 in %s",
                                s->name, k, stk_kind_str(kind_through(path, in, path->num_stages)),
                                stk_kind_str(out));
        if (stage_in_order(s) && s->router && !plan_is_one_to_one(path))
            return stk_diag_set(
                diag, STK_EINVAL,
                "stage '%s' rejoins in input order, so path %zu may only hold maps in input "
                "order: use the order completion for others",
                s->name, k);
    }
    return STK_OK;
}

static stk_err check_stage(const stage_plan *s, stk_kind in, stk_diag *diag)
{
    stk_kind want = STK_KIND_ANY;
    switch (s->kind) {
    case STAGE_MAP:
    case STAGE_EXPAND: want = stk_op_get_class(s->op)->in; break;
    case STAGE_UNBATCH: want = STK_KIND_BATCH; break;
    case STAGE_PORT: break;
    case STAGE_BATCH: want = in == STK_KIND_KEY ? STK_KIND_KEY : STK_KIND_ARRAY; break;
    case STAGE_ROUTE: return check_route(s, in, diag);
    }
    if (want == STK_KIND_ANY || want == in) return STK_OK;
    return stk_diag_set(diag, STK_EINVAL, "stage '%s' takes %s but gets %s%s", s->name,
                        stk_kind_str(want), stk_kind_str(in), remedy(want, in));
}

static stk_err check_path(const stk_plan *path, stk_kind in, stk_diag *diag)
{
    for (size_t i = 0; i < path->num_stages; i++) {
        const stage_plan *s = &path->stages[i];
        if (s->opts.on_error == STK_SUBSTITUTE)
            return stk_diag_set(diag, STK_EINVAL,
                                "stage '%s' is on a path of a route: a failure can't be "
                                "substituted there",
                                s->name);
        stk_err err = check_stage(s, in, diag);
        if (err) return err;
        in = kind_after(s, in);
    }
    return STK_OK;
}

/* A substitute passes the stages from its source on: they must be a chain of maps, which one thread
 * can run. */
static stk_err check_substitutes(const stk_plan *plan, stk_diag *diag)
{
    bool chain = plan->source && stk_source_get_class(plan->source)->substitute;
    const stage_plan *foreign = NULL;
    for (size_t i = 0; i < plan->num_stages; i++) {
        const stage_plan *s = &plan->stages[i];
        chain &= s->kind == STAGE_MAP && !stk_op_get_class(s->op)->flush;
        if (s->opts.group)
            foreign = s;
        else if (s->opts.on_error == STK_SUBSTITUTE && foreign)
            return stk_diag_set(diag, STK_EINVAL,
                                "stage '%s': a failure can't be substituted behind stage '%s', "
                                "which runs on threads of another runtime",
                                s->name, foreign->name);
        if (s->opts.on_error == STK_SUBSTITUTE && !chain)
            return stk_diag_set(
                diag, STK_EINVAL,
                "stage '%s': a failure can be substituted only where maps lead from one "
                "source with a known listing to it",
                s->name);
    }
    return STK_OK;
}

/* Samples of another runtime may bring labels of their own: then only their batch can tell. */
static bool same_columns(const stk_plan *a, const stk_plan *b)
{
    a = first_input(a);
    b = first_input(b);
    if (!a->source || !b->source || a->source_group || b->source_group) return true;
    const stk_source_class *ca = stk_source_get_class(a->source);
    const stk_source_class *cb = stk_source_get_class(b->source);
    size_t na = 0, nb = 0;
    const stk_column *x = ca->columns ? ca->columns(stk_source_params(a->source), &na) : NULL;
    const stk_column *y = cb->columns ? cb->columns(stk_source_params(b->source), &nb) : NULL;
    if (na != nb) return false;
    for (size_t i = 0; i < na; i++)
        if (strcmp(x[i].name, y[i].name) || !stk_spec_equal(&x[i].spec, &y[i].spec)) return false;
    return true;
}

static bool has_batches(const stk_plan *plan)
{
    for (size_t i = 0; i < plan->num_stages; i++) {
        const stage_plan *s = &plan->stages[i];
        if (s->kind == STAGE_BATCH) return true;
        for (size_t k = 0; k < s->num_paths; k++)
            if (has_batches(s->paths[k])) return true;
    }
    return false;
}

static stk_err check_whole(const stk_plan *plan, bool is_input, bool batched, stk_diag *diag);

/* batched: samples of different inputs may meet in a batch. */
static stk_err check_merge(const stk_plan *plan, bool batched, stk_diag *diag)
{
    for (size_t i = 0; i < plan->num_inputs; i++) {
        const stk_plan *input = plan->inputs[i];
        stk_err err = check_whole(input, true, batched, diag);
        if (err) {
            stk_diag_prefix(diag, "input %zu of the merge", i);
            return err;
        }
        const stk_kind all = plan_kind_at(plan, 0);
        if (!plan->ported && all != STK_KIND_FOREIGN &&
            plan_kind_at(input, input->num_stages) != all)
            return stk_diag_set(diag, STK_EINVAL, "input %zu of the merge gives %s, input 0 %s", i,
                                stk_kind_str(plan_kind_at(input, input->num_stages)),
                                stk_kind_str(all));
        if (batched && !plan->ported && !same_columns(plan, input))
            return stk_diag_set(diag, STK_EINVAL,
                                "input %zu of the merge has other columns or labels than "
                                "input 0: batches need the same",
                                i);
    }
    return STK_OK;
}

static size_t count_stages(const stk_plan *plan)
{
    size_t n = 1 + plan->num_stages;
    for (size_t i = 0; i < plan->num_inputs; i++) n += count_stages(plan->inputs[i]);
    for (size_t i = 0; i < plan->num_stages; i++)
        for (size_t k = 0; k < plan->stages[i].num_paths; k++)
            n += count_stages(plan->stages[i].paths[k]);
    return n;
}

static stk_err check_whole(const stk_plan *plan, bool is_input, bool batched, stk_diag *diag)
{
    if (plan->err) return stk_diag_set(diag, plan->err, "%s", plan->diag.text);
    if (!plan->source && !plan->num_inputs && !plan->ported)
        return stk_diag_set(diag, STK_EINVAL,
                            "the plan has no source: add one with stk_plan_source");
    if (!is_input && !plan->sink)
        return stk_diag_set(diag, STK_EINVAL, "the plan has no sink: add one with stk_plan_sink");
    if (is_input && plan->sink)
        return stk_diag_set(diag, STK_EINVAL, "an input of a merge must have no sink");
    stk_err err = check_merge(plan, batched || has_batches(plan), diag);
    for (size_t i = 0; !err && i < plan->num_stages; i++)
        err = check_stage(&plan->stages[i], plan_kind_at(plan, i), diag);
    return err ? err : check_substitutes(plan, diag);
}

stk_err stk_plan_check(stk_plan *plan, stk_diag *diag)
{
    stk_err err = check_whole(plan, false, false, diag);
    if (!err) err = plan_check_parts(plan, diag);
    if (err) return err;
    if (count_stages(plan) + 1 > STK_MAX_STAGES) /* and the reader */
        return stk_diag_set(diag, STK_ELIMIT, "%zu stages in all: at most %d fit in one run",
                            count_stages(plan) + 1, STK_MAX_STAGES);
    return STK_OK;
}

static int64_t source_length(const stk_plan *plan)
{
    int64_t n = 0;
    if (plan->ported) return -1;
    if (plan->source) {
        const stk_source_class *cls = stk_source_get_class(plan->source);
        return cls->length ? cls->length(stk_source_params(plan->source)) : -1;
    }
    for (size_t i = 0; i < plan->num_inputs; i++) {
        const int64_t part = stk_plan_length(plan->inputs[i]);
        if (part < 0) return -1;
        n += part;
    }
    return n;
}

int64_t stk_plan_length(stk_plan *plan)
{
    int64_t n = source_length(plan);
    for (size_t i = 0; i < plan->num_stages && n >= 0; i++) {
        const stage_plan *s = &plan->stages[i];
        const int64_t size = (int64_t)s->batch_size;
        if (s->kind == STAGE_BATCH)
            n = s->batch.drop_last ? n / size : n / size + (n % size != 0);
        else if (s->kind == STAGE_EXPAND || s->kind == STAGE_UNBATCH || s->kind == STAGE_PORT)
            n = -1;
        else if (s->kind == STAGE_ROUTE && !plan_is_one_to_one(s->paths[0]))
            n = -1;
    }
    return n;
}
