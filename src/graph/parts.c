/* Which parts samples have, and what they are called: those of their source, then those that ops
 * have added. */
#include <string.h>

#include "data/batch.h"
#include "graph/steps.h"

/* --- of a plan --- */

const char *const *source_parts(stk_source *source, size_t *n)
{
    static const char *const image[] = {"image"};
    const stk_source_class *cls = source ? stk_source_get_class(source) : NULL;
    *n = 1;
    return cls && cls->parts ? cls->parts(stk_source_params(source), n) : image;
}

uint32_t op_takes(const stk_op *op, size_t n)
{
    const stk_op_class *cls = stk_op_get_class(op);
    const uint32_t some = cls->takes ? cls->takes(stk_op_params(op)) : 0;
    return some ? some : (UINT32_C(1) << n) - 1;
}

static bool is_column(stk_source *source, const char *name)
{
    const stk_source_class *cls = source ? stk_source_get_class(source) : NULL;
    size_t n = 0;
    const stk_column *columns =
        cls && cls->columns ? cls->columns(stk_source_params(source), &n) : NULL;
    for (size_t i = 0; i < n; i++)
        if (!strcmp(columns[i].name, name)) return true;
    return !strcmp(name, "label"); /* ops and stages of another runtime may give it */
}

static bool is_among(const char *name, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!strcmp(name, names[i])) return true;
    return false;
}

/* What ops have added so far. */
typedef struct added_names {
    size_t n;
    const char *names[STK_MAX_PARTS];
} added_names;

static stk_err add_name(const stage_plan *s, const char *name, stk_source *source, added_names *all,
                        stk_diag *diag)
{
    size_t n;
    const char *const *names = source_parts(source, &n);
    if (is_among(name, names, n) || is_among(name, all->names, all->n) || is_column(source, name) ||
        stk_batch_has_always(name))
        return stk_diag_set(diag, STK_EINVAL,
                            "stage '%s' adds a part '%s', but samples have something of that name "
                            "already: give the part another one",
                            s->name, name);
    if (n + all->n >= STK_MAX_PARTS)
        return stk_diag_set(diag, STK_EINVAL, "stage '%s' adds a part '%s': more than %d parts",
                            s->name, name, STK_MAX_PARTS);
    all->names[all->n++] = name;
    return STK_OK;
}

static stk_err add_names(const stage_plan *s, stk_source *source, added_names *all, stk_diag *diag)
{
    const stk_op_class *cls = stk_op_get_class(s->op);
    if (!cls->adds) return STK_OK;
    if (s->kind != STAGE_MAP || cls->flush || cls->out != STK_KIND_ARRAY)
        return stk_diag_set(diag, STK_EINVAL,
                            "stage '%s' adds parts: only maps that give arrays can", s->name);
    for (size_t i = 0;; i++) {
        stk_spec spec = {0};
        const char *name = cls->adds(stk_op_params(s->op), i, &spec);
        if (!name) return STK_OK;
        const stk_err err = add_name(s, name, source, all, diag);
        if (err) return err;
    }
}

static bool same_names(const added_names *a, const added_names *b)
{
    if (a->n != b->n) return false;
    for (size_t i = 0; i < a->n; i++)
        if (strcmp(a->names[i], b->names[i])) return false;
    return true;
}

static stk_err check_stages(const stk_plan *plan, stk_source *source, added_names *all,
                            stk_diag *diag);

static stk_err check_paths(const stage_plan *s, stk_source *source, added_names *all,
                           stk_diag *diag)
{
    const added_names before = *all;
    for (size_t k = 0; k < s->num_paths; k++) {
        added_names path = before;
        const stk_err err = check_stages(s->paths[k], source, &path, diag);
        if (err) return err;
        if (k > 0 && !same_names(all, &path))
            return stk_diag_set(diag, STK_EINVAL,
                                "stage '%s': path %zu adds other parts than path 0", s->name, k);
        *all = path;
    }
    return STK_OK;
}

static stk_err check_stages(const stk_plan *plan, stk_source *source, added_names *all,
                            stk_diag *diag)
{
    stk_err err = STK_OK;
    for (size_t i = 0; i < plan->num_stages && !err; i++) {
        const stage_plan *s = &plan->stages[i];
        if (s->kind == STAGE_MAP || s->kind == STAGE_EXPAND) err = add_names(s, source, all, diag);
        if (s->kind == STAGE_ROUTE) err = check_paths(s, source, all, diag);
        if (!err && all->n && s->kind == STAGE_EXPAND && s->op && !s->opts.group &&
            stk_op_get_class(s->op) != &unbatch_class)
            err = stk_diag_set(diag, STK_EINVAL,
                               "stage '%s' makes new samples, which would lose the part '%s'",
                               s->name, all->names[0]);
    }
    return err;
}

static stk_err check_plan(const stk_plan *plan, added_names *all, stk_diag *diag)
{
    for (size_t k = 0; k < plan->num_inputs; k++) {
        added_names input = {0};
        const stk_err err = check_plan(plan->inputs[k], &input, diag);
        if (err) return err;
        if (k > 0 && !same_names(all, &input))
            return stk_diag_set(diag, STK_EINVAL,
                                "input %zu of the merge adds other parts than input 0", k);
        *all = input;
    }
    return check_stages(plan, plan_first_source(plan), all, diag);
}

stk_err plan_check_parts(const stk_plan *plan, stk_diag *diag)
{
    added_names all = {0};
    return check_plan(plan, &all, diag);
}

/* --- of a run --- */

/* The stage whose items flow there. */
static const stage *stage_before(const edge *e)
{
    const node *n = e->from;
    while (n->num_stages == 0) n = n->kind == NODE_JOIN ? n->edges[0]->from : n->in->from;
    return &n->stages[n->num_stages - 1];
}

void stage_set_parts(stage *s, const edge *in)
{
    const stage *before = in ? stage_before(in) : NULL;
    if (before) {
        s->num_added = before->num_added;
        memcpy(s->added, before->added, sizeof(s->added));
    }
    const stk_op_class *cls = s->op ? stk_op_get_class(s->op) : NULL;
    stk_spec spec;
    for (size_t i = 0; cls && cls->adds && cls->adds(stk_op_params(s->op), i, &spec); i++)
        s->added[s->num_added++] = (struct added){s->op, i};
}

static const char *added_name(const struct added *a, stk_spec *spec)
{
    *spec = (stk_spec){0};
    return stk_op_get_class(a->op)->adds(stk_op_params(a->op), a->index, spec);
}

const char *stage_part_name(const stage *s, stk_source *source, size_t i)
{
    size_t n;
    stk_spec spec;
    const char *const *names = source_parts(source, &n);
    if (i < n) return names[i];
    return i - n < s->num_added ? added_name(&s->added[i - n], &spec) : NULL;
}

void stage_part_spec(const stage *s, const stage *binder, stk_source *source, size_t i,
                     stk_spec *out)
{
    size_t n;
    (void)source_parts(source, &n);
    *out = (stk_spec){0};
    if (i >= n) (void)added_name(&s->added[i - n], out);
    for (; i < n && binder && out->dtype == STK_DTYPE_NONE; binder = binder->before)
        if (binder->binds && op_takes(binder->op, n) >> i & 1)
            stk_op_get_class(binder->op)->spec(stk_op_params(binder->op), i, out);
}
