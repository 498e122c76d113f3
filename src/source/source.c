#include <stoker/source.h>

#include <assert.h>
#include <stdatomic.h>

#include "base/alloc.h"
#include "source/indexed.h"

struct stk_source {
    const stk_source_class *cls; /* never changes */
    void *params;                /* the pointer never changes */
    atomic_size_t refs;
};

stk_source *stk_source_new(const stk_source_class *cls, void *params)
{
    stk_source *s = stk_alloc_zero(1, sizeof(*s));
    if (!s) {
        if (cls->fini) cls->fini(params);
        return NULL;
    }
    s->cls = cls;
    s->params = params;
    atomic_init(&s->refs, 1);
    return s;
}

stk_source *stk_source_ref(stk_source *s)
{
    const size_t before = atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
    assert(before > 0);
    (void)before;
    return s;
}

void stk_source_unref(stk_source **ps)
{
    stk_source *s = *ps;
    *ps = NULL;
    if (!s || atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) != 1) return;
    if (s->cls->fini) s->cls->fini(s->params);
    stk_free(s);
}

const stk_source_class *stk_source_get_class(const stk_source *s)
{
    return s->cls;
}

void *stk_source_params(const stk_source *s)
{
    return s->params;
}

stk_err stk_source_count(stk_source *s, int64_t *n, stk_diag *diag)
{
    *n = 0;
    stk_indexed *x = stk_indexed_of(s);
    if (!x)
        return stk_diag_set(diag, STK_EUNSUPPORTED,
                            "%s: the number of samples is not known before the end", s->cls->name);
    stk_err err = x->ops->start(x, diag);
    return err ? err : x->ops->wait(x, n, diag);
}

size_t stk_source_memory(const stk_source *s)
{
    stk_indexed *x = stk_indexed_of(s);
    return x ? x->ops->memory(x) : 0;
}
