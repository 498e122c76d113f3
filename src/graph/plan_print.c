#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "graph/plan.h"

/* A text that grows; once memory is out it stays NULL. */
typedef struct growing {
    char *data;
    size_t len, size;
    bool failed;
} growing;

static void STK_PRINTF(2, 3) put(growing *t, const char *fmt, ...)
{
    char line[512];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(line, sizeof(line), fmt, ap);
    va_end(ap);
    if (t->failed || n < 0) return;
    const size_t used = (size_t)n < sizeof(line) ? (size_t)n : sizeof(line) - 1;
    if (t->len + used + 1 > t->size) {
        const size_t size = (t->len + used + 1) * 2;
        char *data = stk_alloc_resize(t->data, size);
        t->failed = !data;
        if (!data) return;
        t->data = data;
        t->size = size;
    }
    memcpy(t->data + t->len, line, used + 1);
    t->len += used;
}

static void put_line(growing *t, int depth, const char *kind, const char *what, const char *more)
{
    put(t, "%*s%-8s %s%s%s\n", 2 * depth, "", kind, what, *more ? "   # " : "", more);
}

static void describe(const stage_plan *s, char *dst, size_t size)
{
    const stk_op_class *cls = s->op ? stk_op_get_class(s->op) : NULL;
    char op[256];
    if (cls && cls->print)
        cls->print(stk_op_params(s->op), op, sizeof(op));
    else if (s->kind == STAGE_BATCH)
        snprintf(op, sizeof(op), "%zu%s%s", s->batch_size, s->batch.drop_last ? ", drop_last" : "",
                 s->batch.keep_empty ? ", keep_empty" : "");
    else
        snprintf(op, sizeof(op), "%s", cls ? cls->name : s->name);
    if (cls && strcmp(s->name, cls->name))
        snprintf(dst, size, "%s: %s", s->name, op);
    else
        snprintf(dst, size, "%s", op);
}

static void options(const stage_plan *s, char *dst, size_t size)
{
    static const char *const policies[] = {"raise", "skip", "substitute"};
    char concurrency[32] = "as many as threads";
    const bool blocking = s->op && stk_op_get_class(s->op)->flags & STK_OP_BLOCKING;
    if (s->opts.concurrency || blocking)
        snprintf(concurrency, sizeof(concurrency), "%d",
                 s->opts.concurrency ? (int)s->opts.concurrency : 16);
    snprintf(dst, size, "%s at once%s, %s order, on error %s", concurrency,
             blocking ? " on I/O threads" : "", stage_in_order(s) ? "input" : "completion",
             policies[s->opts.on_error]);
}

/* ", adds mask" */
static void adds(const stage_plan *s, char *dst, size_t size)
{
    const stk_op_class *cls = s->op ? stk_op_get_class(s->op) : NULL;
    size_t used = strlen(dst);
    stk_spec spec;
    const char *name;
    for (size_t i = 0;
         cls && cls->adds && used < size && (name = cls->adds(stk_op_params(s->op), i, &spec)); i++)
        used += (size_t)snprintf(dst + used, size - used, "%s%s", i ? " " : ", adds ", name);
}

/* ", takes image mask" */
static void takes(const stage_plan *s, stk_source *source, char *dst, size_t size)
{
    const stk_op_class *cls = s->op ? stk_op_get_class(s->op) : NULL;
    const uint32_t parts = cls && cls->takes ? cls->takes(stk_op_params(s->op)) : 0;
    size_t used = strlen(dst), n;
    const char *const *names = source_parts(source, &n);
    const char *before = ", takes ";
    for (size_t i = 0; i < n && used < size; i++) {
        if (!(parts >> i & 1)) continue;
        used += (size_t)snprintf(dst + used, size - used, "%s%s", before, names[i]);
        before = " ";
    }
}

static void print_plan(growing *t, const stk_plan *plan, stk_source *source, int depth);

static void print_stage(growing *t, const stage_plan *s, stk_source *source, int depth)
{
    static const char *const kinds[] = {"map", "expand", "batch", "unbatch", "route", "port"};
    char what[320], more[256] = "";
    describe(s, what, sizeof(what));
    if (s->kind != STAGE_BATCH) options(s, more, sizeof(more));
    takes(s, source, more, sizeof(more));
    adds(s, more, sizeof(more));
    put_line(t, depth, kinds[s->kind], what, more);
    for (size_t k = 0; k < s->num_paths; k++) {
        put(t, "%*spath %zu\n", 2 * depth + 2, "", k);
        print_plan(t, s->paths[k], source, depth + 2);
    }
}

/* `source`: of the first samples. */
static void print_plan(growing *t, const stk_plan *plan, stk_source *source, int depth)
{
    if (plan->source) {
        const stk_source_class *cls = stk_source_get_class(plan->source);
        char what[320];
        snprintf(what, sizeof(what), "%s", cls->name);
        if (cls->print) cls->print(stk_source_params(plan->source), what, sizeof(what));
        put_line(t, depth, "source", what, "");
    }
    if (plan->num_inputs)
        put_line(t, depth, "merge", plan->weighted ? "weighted" : "round robin", "");
    for (size_t i = 0; i < plan->num_inputs; i++) {
        put(t, "%*sinput %zu", 2 * depth + 2, "", i);
        if (plan->weighted) put(t, ", weight %g", plan->weights[i]);
        put(t, "\n");
        print_plan(t, plan->inputs[i], plan_first_source(plan->inputs[i]), depth + 2);
    }
    for (size_t i = 0; i < plan->num_stages; i++) print_stage(t, &plan->stages[i], source, depth);
    if (plan->sink)
        put(t, "%*s%-8s %zu results wait for the reader at most\n", 2 * depth, "", "sink",
            plan->sink);
}

/* One line for each reason why two runs may differ; returns how many. */
static int reasons(growing *t, const stk_plan *plan)
{
    int n = 0;
    if (plan->source && !stk_source_get_class(plan->source)->reproducible) {
        put(t, "not reproducible: the source %s has no fixed order\n",
            stk_source_get_class(plan->source)->name);
        n++;
    }
    for (size_t i = 0; i < plan->num_inputs; i++) n += reasons(t, plan->inputs[i]);
    for (size_t i = 0; i < plan->num_stages; i++) {
        const stage_plan *s = &plan->stages[i];
        const bool alone = s->opts.concurrency == 1 && s->kind != STAGE_ROUTE;
        if (!stage_in_order(s) && !alone) {
            put(t, "not reproducible: stage '%s' gives its results in order of completion\n",
                s->name);
            n++;
        }
        for (size_t k = 0; k < s->num_paths; k++) n += reasons(t, s->paths[k]);
    }
    return n;
}

stk_err stk_plan_print(stk_plan *plan, char **out)
{
    growing t = {0};
    *out = NULL;
    print_plan(&t, plan, plan_first_source(plan), 0);
    if (reasons(&t, plan) == 0)
        put(&t, "reproducible: the same seed and data give the same results, with any number of "
                "threads\n");
    stk_diag diag;
    if (stk_plan_check(plan, &diag)) put(&t, "cannot run: %.400s\n", diag.text);
    if (t.failed) {
        stk_free(t.data);
        return STK_ENOMEM;
    }
    *out = t.data;
    return STK_OK;
}

void stk_text_free(char **text)
{
    stk_free(*text);
    *text = NULL;
}
