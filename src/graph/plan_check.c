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

/* What flows into a stage. */
typedef struct flow {
    stk_kind kind;
    uint32_t decoded; /* bit i: part i is an array, although the kind is bytes: others still are */
    stk_source *source;
} flow;

static flow flow_after(const stage_plan *s, flow in);

/* What comes from one of several plans: where one gives foreign objects, whoever takes these takes
 * what the others give, too. */
static flow flow_of_any(size_t n, const flow *flows)
{
    for (size_t i = 0; i < n; i++)
        if (flows[i].kind == STK_KIND_FOREIGN) return flows[i];
    return flows[0];
}

static bool same_flow(const flow *a, const flow *b)
{
    return a->kind == b->kind && a->decoded == b->decoded;
}

static flow flow_through(const stk_plan *plan, flow in, size_t n)
{
    for (size_t i = 0; i < n; i++) in = flow_after(&plan->stages[i], in);
    return in;
}

static flow flow_after_route(const stage_plan *s, flow in)
{
    flow flows[STK_MAX_PATHS];
    for (size_t k = 0; k < s->num_paths; k++)
        flows[k] = flow_through(s->paths[k], in, s->paths[k]->num_stages);
    return flow_of_any(s->num_paths, flows);
}

/* Parts become arrays one by one, and with the last of them the sample. */
static flow flow_after_op(const stk_op *op, flow in)
{
    const stk_op_class *cls = stk_op_get_class(op);
    flow out = in;
    size_t n;
    (void)source_parts(in.source, &n);
    if (cls->out == STK_KIND_ANY) return in;
    out.kind = cls->out;
    out.decoded = 0;
    if (cls->in != STK_KIND_BYTES || cls->out != STK_KIND_ARRAY) return out;
    const uint32_t decoded = in.decoded | op_takes(op, n), all = (UINT32_C(1) << n) - 1;
    if ((decoded & all) == all) return out;
    return (flow){STK_KIND_BYTES, decoded, in.source};
}

static flow flow_after(const stage_plan *s, flow in)
{
    switch (s->kind) {
    case STAGE_BATCH: return (flow){STK_KIND_BATCH, 0, in.source};
    case STAGE_UNBATCH: return (flow){STK_KIND_ARRAY, 0, in.source};
    case STAGE_PORT: return (flow){STK_KIND_FOREIGN, 0, in.source};
    case STAGE_ROUTE: return flow_after_route(s, in);
    case STAGE_MAP:
    case STAGE_EXPAND: break;
    }
    return flow_after_op(s->op, in);
}

static flow flow_of_source(const stk_plan *plan)
{
    const stk_kind out = plan->source ? stk_source_get_class(plan->source)->out : STK_KIND_ANY;
    flow f = {.kind = out == STK_KIND_ANY ? STK_KIND_KEY : out, .source = plan->source};
    if (plan->ported) f.kind = STK_KIND_FOREIGN;
    return f;
}

static flow flow_at(const stk_plan *plan, size_t i);

static flow flow_at_end(const stk_plan *plan)
{
    return flow_at(plan, plan->num_stages);
}

static flow flow_of_merge(const stk_plan *plan)
{
    flow flows[STK_MAX_PATHS];
    for (size_t i = 0; i < plan->num_inputs; i++) flows[i] = flow_at_end(plan->inputs[i]);
    return flow_of_any(plan->num_inputs, flows);
}

static flow flow_at(const stk_plan *plan, size_t i)
{
    const bool merges = plan->num_inputs && !plan->ported;
    return flow_through(plan, merges ? flow_of_merge(plan) : flow_of_source(plan), i);
}

stk_kind plan_kind_at(const stk_plan *plan, size_t i)
{
    return flow_at(plan, i).kind;
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

static stk_err check_path(const stk_plan *path, flow in, stk_diag *diag);

static stk_err check_route(const stage_plan *s, flow in, stk_diag *diag)
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
        const flow out = flow_after(s, in), end = flow_through(path, in, path->num_stages);
        if (out.kind != STK_KIND_FOREIGN && !same_flow(&end, &out))
            return stk_diag_set(diag, STK_EINVAL, "stage '%s': path %zu ends in %s, path 0 in %s%s",
                                s->name, k, stk_kind_str(end.kind), stk_kind_str(out.kind),
                                end.kind == out.kind ? " of other parts" : "");
        if (stage_in_order(s) && s->router && !plan_is_one_to_one(path))
            return stk_diag_set(
                diag, STK_EINVAL,
                "stage '%s' rejoins in input order, so path %zu may only hold maps in input "
                "order: use the order completion for others",
                s->name, k);
    }
    return STK_OK;
}

/* The first part of `bits`, which samples have. */
static const char *name_of(uint32_t bits, const flow *in)
{
    size_t n;
    const char *const *names = source_parts(in->source, &n);
    return names[__builtin_ctz(bits)];
}

/* An op that takes bytes: those parts must be there, and no arrays yet. */
static stk_err check_takes(const stage_plan *s, const flow *in, stk_diag *diag)
{
    size_t n;
    (void)source_parts(in->source, &n);
    const uint32_t takes = op_takes(s->op, n);
    if (takes >> n)
        return stk_diag_set(diag, STK_EINVAL, "stage '%s' takes part %d, but samples have %zu",
                            s->name, 31 - __builtin_clz(takes), n);
    if (takes & in->decoded)
        return stk_diag_set(diag, STK_EINVAL,
                            "stage '%s' takes the part '%s', which a stage before it has decoded: "
                            "name the parts that it shall take",
                            s->name, name_of(takes & in->decoded, in));
    return STK_OK;
}

static stk_err check_kind(const stage_plan *s, stk_kind want, const flow *in, stk_diag *diag)
{
    size_t n;
    (void)source_parts(in->source, &n);
    const uint32_t left = ((UINT32_C(1) << n) - 1) & ~in->decoded;
    const bool foreign = s->kind == STAGE_PORT || s->opts.group;
    if (in->decoded && (foreign || want == STK_KIND_ARRAY))
        return stk_diag_set(diag, STK_EINVAL,
                            "stage '%s' gets samples whose part '%s' still holds bytes: decode all "
                            "parts before it",
                            s->name, name_of(left, in));
    if (want == STK_KIND_ANY || want == in->kind) return STK_OK;
    return stk_diag_set(diag, STK_EINVAL, "stage '%s' takes %s but gets %s%s", s->name,
                        stk_kind_str(want), stk_kind_str(in->kind), remedy(want, in->kind));
}

static stk_err check_stage(const stage_plan *s, flow in, stk_diag *diag)
{
    stk_kind want = STK_KIND_ANY;
    switch (s->kind) {
    case STAGE_MAP:
    case STAGE_EXPAND: want = stk_op_get_class(s->op)->in; break;
    case STAGE_UNBATCH: want = STK_KIND_BATCH; break;
    case STAGE_PORT: break;
    case STAGE_BATCH: want = in.kind == STK_KIND_KEY ? STK_KIND_KEY : STK_KIND_ARRAY; break;
    case STAGE_ROUTE: return check_route(s, in, diag);
    }
    const stk_err err = check_kind(s, want, &in, diag);
    return err || want != STK_KIND_BYTES ? err : check_takes(s, &in, diag);
}

static stk_err check_path(const stk_plan *path, flow in, stk_diag *diag)
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
        in = flow_after(s, in);
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
        const flow all = flow_at(plan, 0), end = flow_at_end(input);
        if (!plan->ported && all.kind != STK_KIND_FOREIGN && !same_flow(&end, &all))
            return stk_diag_set(diag, STK_EINVAL, "input %zu of the merge gives %s, input 0 %s%s",
                                i, stk_kind_str(end.kind), stk_kind_str(all.kind),
                                end.kind == all.kind ? " of other parts" : "");
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
        err = check_stage(&plan->stages[i], flow_at(plan, i), diag);
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
