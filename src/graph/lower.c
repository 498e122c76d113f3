/* From a checked plan to the nodes and edges of a run. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "graph/steps.h"

#define DEFAULT_IO_CONCURRENCY 16 /* reads in flight hide the latency of a disk or a network */
#define MAX_BATCHES_WAITING 4     /* behind a batch stage items are large */

static void count(const stk_plan *plan, stk_run *run)
{
    run->num_stages += 1 + plan->num_stages; /* with its source or merge */
    run->num_nodes += 1 + plan->num_stages;
    for (size_t i = 0; i < plan->num_inputs; i++) count(plan->inputs[i], run);
    for (size_t i = 0; i < plan->num_stages; i++) {
        run->num_nodes += plan->stages[i].num_paths ? 1 : 0; /* the join */
        for (size_t k = 0; k < plan->stages[i].num_paths; k++) count(plan->stages[i].paths[k], run);
    }
}

static size_t most_parts(const stk_plan *plan)
{
    size_t most = 1;
    if (plan->source) {
        const stk_source_class *cls = stk_source_get_class(plan->source);
        if (cls->parts) (void)cls->parts(stk_source_params(plan->source), &most);
    }
    for (size_t i = 0; i < plan->num_inputs; i++) {
        const size_t n = most_parts(plan->inputs[i]);
        if (n > most) most = n;
    }
    return most;
}

static size_t most_added(const stk_run *run)
{
    size_t most = 0;
    for (size_t i = 0; i < run->num_stages; i++)
        if (run->stages[i].num_added > most) most = run->stages[i].num_added;
    return most;
}

/* The same key for the same op in the same place among its likes: another stage before it does
 * not change its random numbers.  FNV-1a of the name, mixed with the ordinal. */
static uint64_t rng_key(const stk_run *run, const stk_op_class *cls)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325), ordinal = 0;
    for (const char *p = cls->name; *p; p++) hash = (hash ^ (uint8_t)*p) * UINT64_C(0x100000001b3);
    for (size_t i = 0; i < run->num_stages; i++)
        ordinal += run->stages[i].op && stk_op_get_class(run->stages[i].op) == cls;
    return stk_mix64(hash + ordinal);
}

static stage *new_stage(stk_run *run, const char *kind, const stage_plan *plan, const edge *in)
{
    stage *s = &run->stages[run->num_stages];
    s->kind = kind;
    s->plan = plan;
    s->index = (uint32_t)run->num_stages;
    s->op = plan ? plan->op : NULL;
    if (s->op) s->rng_key = rng_key(run, stk_op_get_class(s->op));
    stage_set_parts(s, in);
    run->num_stages++;
    return s;
}

static node *new_node(stk_run *run, node_kind kind, stage *s, edge *in)
{
    node *n = &run->nodes[run->num_nodes++];
    n->kind = kind;
    n->run = run;
    n->stages = s;
    n->num_stages = s ? 1 : 0;
    n->in = in;
    if (in) in->to = n;
    n->concurrency = 1;
    n->depth = run->depth;
    n->cost_ns = -1;
    if (s && s->plan) n->order = s->plan->opts.order;
    if (s && s->plan) n->group = s->plan->opts.group;
    return n;
}

static edge *new_edge(stk_run *run, node *from)
{
    edge *e = &run->edges[run->num_edges++];
    e->from = from;
    from->out = e;
    return e;
}

static void set_window(edge *e, int64_t capacity)
{
    e->fixed = capacity > 0;
    e->window = capacity > 0 ? (uint32_t)capacity : 2;
}

static edge *lower_plan(stk_run *run, const stk_plan *plan, edge *in);

static int32_t concurrency_of(const stk_run *run, const stage_plan *p, bool blocking)
{
    if (p->opts.concurrency) return p->opts.concurrency;
    return blocking ? DEFAULT_IO_CONCURRENCY : run->num_threads;
}

/* CPU stages without a say of their own run in one hop. */
static bool fuses(const edge *in, const stage_plan *p, bool blocking)
{
    const node *n = in->from;
    return n->kind == NODE_MAP && !n->blocking && !blocking && !in->fixed && !n->group &&
           !p->opts.group && n->order == p->opts.order &&
           n->stages[n->num_stages - 1].plan->opts.concurrency == p->opts.concurrency;
}

static edge *lower_map(stk_run *run, const stage_plan *p, edge *in)
{
    const bool blocking = !p->opts.group && stk_op_get_class(p->op)->flags & STK_OP_BLOCKING;
    stage *s = new_stage(run, "map", p, in);
    s->concurrency = concurrency_of(run, p, blocking);
    if (in->from->num_stages > 0) { /* substitutes come along a chain of maps */
        const node *from = in->from;
        s->source = from->stages[0].source;
        s->before = from->kind == NODE_MAP ? &from->stages[from->num_stages - 1] : NULL;
    }
    if (fuses(in, p, blocking)) {
        in->from->num_stages++;
        set_window(in, p->opts.capacity);
        return in;
    }
    node *n = new_node(run, NODE_MAP, s, in);
    n->blocking = blocking;
    n->concurrency = s->concurrency;
    n->in_turn = n->order == STK_ORDER_COMPLETION || n->concurrency == 1;
    n->fold.id = -1;
    if (n->blocking && in->from->kind == NODE_SOURCE && !in->from->group)
        in->from->blocking = true; /* else busy CPU workers would let the readers run dry */
    edge *out = new_edge(run, n);
    set_window(out, p->opts.capacity);
    return out;
}

static edge *lower_expand(stk_run *run, const stage_plan *p, edge *in)
{
    const stk_op_class *cls = stk_op_get_class(p->op);
    const bool blocking = !p->opts.group && cls->flags & STK_OP_BLOCKING;
    stage *s = new_stage(run, cls == &unbatch_class ? "unbatch" : "expand", p, in);
    node *n = new_node(run, NODE_EXPAND, s, in);
    n->blocking = blocking;
    n->concurrency = s->concurrency = concurrency_of(run, p, blocking);
    edge *out = new_edge(run, n);
    set_window(out, p->opts.capacity);
    return out;
}

static edge *lower_batch(stk_run *run, const stage_plan *p, edge *in)
{
    stage *s = new_stage(run, "batch", p, in);
    node *n = new_node(run, NODE_BATCH, s, in);
    n->concurrency = s->concurrency = run->num_threads;
    n->batch_size = p->batch_size;
    edge *out = new_edge(run, n);
    set_window(out, p->opts.capacity);
    return out;
}

static edge *lower_route(stk_run *run, const stage_plan *p, edge *in)
{
    stage *s = new_stage(run, "route", p, in);
    s->concurrency = 1;
    node *route = new_node(run, NODE_ROUTE, s, in);
    route->in_turn = true;
    route->num_edges = p->num_paths;
    edge *ends[STK_MAX_PATHS];
    run->depth += p->opts.order == STK_ORDER_INPUT;
    for (size_t k = 0; k < p->num_paths; k++) {
        edge *begin = new_edge(run, route);
        set_window(begin, 0);
        route->edges[k] = begin;
        ends[k] = lower_plan(run, p->paths[k], begin);
    }
    route->out = NULL;
    run->depth = route->depth;
    node *join = new_node(run, NODE_JOIN, NULL, NULL);
    join->order = p->opts.order;
    join->num_edges = p->num_paths;
    for (size_t k = 0; k < p->num_paths; k++) {
        join->edges[k] = ends[k];
        ends[k]->to = join;
    }
    route->twin = join;
    join->twin = route;
    edge *out = new_edge(run, join);
    set_window(out, p->opts.capacity);
    return out;
}

static edge *lower_port(stk_run *run, const stage_plan *p, edge *in)
{
    stage *s = new_stage(run, "port", p, in);
    node *n = new_node(run, NODE_PORT, s, NULL);
    n->port.holds = n->order == STK_ORDER_INPUT;
    n->order = STK_ORDER_COMPLETION; /* of the puts */
    n->concurrency = s->concurrency = p->opts.concurrency ? p->opts.concurrency : 1;
    n->num_edges = 1;
    n->edges[0] = in;
    in->to = n;
    edge *out = new_edge(run, n);
    set_window(out, p->opts.capacity);
    return out;
}

static edge *lower_begin(stk_run *run, const stk_plan *plan)
{
    edge *ends[STK_MAX_PATHS];
    for (size_t i = 0; i < plan->num_inputs; i++) ends[i] = lower_plan(run, plan->inputs[i], NULL);
    const bool begins = plan->num_inputs == 0;
    stage *s = new_stage(run, begins ? "source" : "merge", NULL, begins ? NULL : ends[0]);
    s->concurrency = 1;
    const node_kind kind = plan->ported ? NODE_PORT : begins ? NODE_SOURCE : NODE_MERGE;
    node *n = new_node(run, kind, s, NULL);
    if (plan->ported) n->order = STK_ORDER_COMPLETION;
    n->source = plan->source;
    n->group = plan->source_group;
    n->plan = plan;
    if (plan->source) s->source = n;
    n->num_edges = plan->num_inputs;
    for (size_t i = 0; i < plan->num_inputs; i++) {
        n->edges[i] = ends[i];
        ends[i]->to = n;
    }
    edge *out = new_edge(run, n);
    set_window(out, 0);
    return out;
}

static edge *lower_plan(stk_run *run, const stk_plan *plan, edge *in)
{
    if (!in) in = lower_begin(run, plan);
    for (size_t i = 0; i < plan->num_stages; i++) {
        const stage_plan *p = &plan->stages[i];
        switch (p->kind) {
        case STAGE_MAP: in = lower_map(run, p, in); break;
        case STAGE_EXPAND:
        case STAGE_UNBATCH: in = lower_expand(run, p, in); break;
        case STAGE_BATCH: in = lower_batch(run, p, in); break;
        case STAGE_ROUTE: in = lower_route(run, p, in); break;
        case STAGE_PORT: in = lower_port(run, p, in); break;
        }
    }
    return in;
}

/* The edge whose places lead one by one into `e`, if an op between makes arrays of a known spec:
 * that op binds, its arrays are made in their slots.  *stop: something between forbids it. */
static edge *find_binder(edge *e, bool *stop);

/* Whether each place behind a join is one before its route. */
static bool keeps_places(const node *join)
{
    if (join->kind != NODE_JOIN || join->order != STK_ORDER_INPUT) return false;
    for (const node *n = join->twin; n < join; n++)
        if (n->kind == NODE_EXPAND) return false;
    return true;
}

static edge *origin(edge *e) /* where the places of `e` were decided */
{
    for (;;) {
        const node *n = e->from;
        if (n->kind == NODE_MAP && n->order == STK_ORDER_INPUT)
            e = n->in;
        else if (keeps_places(n))
            e = n->twin->in;
        else if (n->kind == NODE_ROUTE)
            e = n->in;
        else
            return e;
    }
}

/* Whether the arrays that `s` makes are of a known spec. */
static bool knows_spec(const stage *s)
{
    const stk_op_class *cls = stk_op_get_class(s->op);
    stk_spec spec = {0};
    if (!cls->spec || cls->out != STK_KIND_ARRAY) return false;
    cls->spec(stk_op_params(s->op), (size_t)__builtin_ctz(op_takes(s->op, STK_MAX_PARTS)), &spec);
    return spec.dtype != STK_DTYPE_NONE;
}

/* Several may bind that take different parts, one after the other. */
static edge *find_in_map(node *n, bool *stop)
{
    edge *found = NULL;
    for (;;) {
        for (size_t i = n->num_stages; i-- > 0;) {
            stage *s = &n->stages[i];
            const stk_op_class *cls = stk_op_get_class(s->op);
            const bool all = !cls->takes || !cls->takes(stk_op_params(s->op));
            s->binds = knows_spec(s);
            if (s->binds) found = origin(n->in);
            if (s->binds ? !all : !all || cls->flags & STK_OP_IN_PLACE) continue;
            *stop = !s->binds;
            return found;
        }
        node *before = n->in->from;
        if (before->kind != NODE_MAP || before->order != STK_ORDER_INPUT) break;
        n = before;
    }
    return found ? found : find_binder(n->in, stop);
}

static void unbind(edge *e, const node *route)
{
    for (; e->from != route && e->from->in; e = e->from->in)
        for (size_t i = 0; i < e->from->num_stages; i++) e->from->stages[i].binds = false;
}

static edge *find_binder(edge *e, bool *stop)
{
    node *n = e->from;
    if (n->kind == NODE_MAP && n->order == STK_ORDER_INPUT) return find_in_map(n, stop);
    if (!keeps_places(n)) return NULL;
    edge *found = NULL;
    size_t bound = 0;
    for (size_t k = 0; k < n->num_edges; k++) {
        edge *o = find_binder(n->edges[k], stop);
        if (o) found = o, bound++;
    }
    if (bound == n->num_edges) return found;
    if (bound == 0 && !*stop) return find_binder(n->twin->in, stop);
    for (size_t k = 0; k < n->num_edges; k++) unbind(n->edges[k], n->twin);
    *stop = true;
    return NULL;
}

static const char *name_of(const node *n, bool last)
{
    if (!n || n->kind == NODE_PASS) return last ? "ready" : "sink";
    if (n->kind == NODE_JOIN) return "join";
    const stage *s = &n->stages[last ? n->num_stages - 1 : 0];
    return s->plan ? s->plan->name : s->kind;
}

static void name_edge(edge *e)
{
    const char *from = name_of(e->from, true), *to = name_of(e->to, false);
    snprintf(e->name, sizeof(e->name), "%.44s -> %.44s", from, to);
}

/* The window that keeps both ends busy with that many threads. */
static uint32_t window_for(const edge *e, int32_t threads, bool batches)
{
    uint32_t w = (uint32_t)(2 * threads + 2);
    if (e->from->blocking) w += (uint32_t)e->from->concurrency;
    if (e->to && e->to->blocking) w += (uint32_t)e->to->concurrency;
    if (batches) w = threads < MAX_BATCHES_WAITING ? 2 : MAX_BATCHES_WAITING;
    return w < EDGE_RING ? w : EDGE_RING;
}

/* The engine widens it for cheap items. */
static void default_window(const stk_run *run, edge *e, bool batches)
{
    const int32_t n = run->num_threads;
    if (e->fixed) return;
    if (e->from->group || (e->to && e->to->group)) { /* two results, and what is in the making */
        e->adaptive = true;
        e->window = (uint32_t)e->from->concurrency + 2;
        return;
    }
    e->window = window_for(e, n < run->processors ? n : run->processors, batches);
    e->later = window_for(e, n, batches);
}

static bool carries_batches(const edge *e)
{
    for (const node *n = e->from; n; n = n->kind == NODE_JOIN ? n->twin->in->from
                                         : n->in              ? n->in->from
                                                              : NULL) {
        if (n->kind == NODE_BATCH) return true;
        if (n->kind == NODE_EXPAND || n->kind == NODE_MERGE || n->kind == NODE_SOURCE) return false;
    }
    return false;
}

static bool works_alone(const node *n)
{
    for (size_t i = 0; i < n->num_stages; i++)
        if (!(stk_op_get_class(n->stages[i].op)->flags & STK_OP_ALONE)) return false;
    return true;
}

/* What begins before the first result and is no part of it delays it: where it is known how many
 * samples that takes, no more begin. */
static void limit_first(stk_run *run)
{
    uint64_t need = 1;
    for (const node *n = run->sink->from; n; n = n->in->from) {
        if (n->kind == NODE_SOURCE) {
            n->out->limit = need;
            run->limited = true;
        }
        if (n->kind != NODE_BATCH && n->kind != NODE_MAP) return;
        if (n->kind == NODE_MAP && !works_alone(n)) return;
        if (n->kind == NODE_BATCH && __builtin_mul_overflow(need, n->batch_size, &need)) return;
    }
}

stk_err run_lower(stk_run *run, stk_diag *diag)
{
    count(run->plan, run);
    const size_t nodes = run->num_nodes + 2, stages = run->num_stages + 1;
    run->num_nodes = run->num_stages = 0;
    run->stages = stk_alloc_zero(stages, sizeof(*run->stages));
    run->nodes = stk_alloc_zero(nodes, sizeof(*run->nodes));
    run->edges = stk_alloc_zero(2 * nodes, sizeof(*run->edges)); /* each path counted a node */
    if (!run->stages || !run->nodes || !run->edges)
        return stk_diag_set(diag, STK_ENOMEM, "no memory for a run");

    run->sink = lower_plan(run, run->plan, NULL);
    if (run->sink->from->group) { /* results of foreign stages are made ahead of the sink's room */
        edge *made = run->sink;
        set_window(made, 0);
        run->sink = new_edge(run, new_node(run, NODE_PASS, NULL, made));
    }
    set_window(run->sink, (int64_t)run->plan->sink);
    run->max_parts = most_parts(run->plan) + most_added(run);
    stage *reader = new_stage(run, "sink", NULL, NULL);
    reader->concurrency = 1;
    for (size_t i = 0; i < run->num_edges; i++) {
        edge *e = &run->edges[i];
        name_edge(e);
        default_window(run, e, carries_batches(e));
        if (edge_init(e, e->window > e->later ? e->window : e->later))
            return stk_diag_set(diag, STK_ENOMEM, "no memory for a run");
    }
    limit_first(run);
    for (size_t i = 0; i < run->num_nodes; i++) {
        bool stop = false;
        if (run->nodes[i].kind != NODE_BATCH) continue;
        edge *from = find_binder(run->nodes[i].in, &stop);
        if (!from) continue;
        from->bind = &run->nodes[i];
        for (size_t k = 0; k < run->num_stages; k++) /* of several paths any one: they agree */
            if (run->stages[k].binds) run->nodes[i].binder = &run->stages[k];
    }
    return STK_OK;
}
