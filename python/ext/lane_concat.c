/* The lists that the paths of a batched router made of one batch, joined to one list again.  The
 * parts of a batch have its id, and come in the order of their paths, any number of each.  A list
 * is whole with the last part of the last path, or its end.  What a stage on a path holds back
 * comes with a later batch, or alone at the end. */
#include "lane.h"

typedef struct concat {
    ext_state *state;
    int64_t paths;
    int64_t id, epoch; /* of the batch whose parts are collected */
    stk_foreign *list; /* what there is of it, or NULL; one run uses it, one item after the other */
} concat;

static stk_err add(concat *c, stk_item *item, stk_diag *diag)
{
    PyObject *part = ext_item_value(c->state, item);
    PyObject *list = c->list ? stk_foreign_handle(c->list) : PyList_New(0);
    if (list && !c->list) {
        c->list = ext_foreign_new(c->state, list);
        Py_DECREF(list);
        if (!c->list) list = NULL;
    }
    PyObject *done = list && part ? PySequence_InPlaceConcat(list, part) : NULL;
    Py_XDECREF(done);
    Py_XDECREF(part);
    if (!done) return ext_item_fail(c->state, item, NULL, NULL, diag);
    c->id = stk_item_id(item);
    c->epoch = stk_item_epoch(item);
    return STK_OK;
}

/* Makes what was collected the item's value.  STK_ESKIP: there is nothing. */
static stk_err give(concat *c, stk_item *item)
{
    const bool empty = !c->list || PyList_GET_SIZE(stk_foreign_handle(c->list)) == 0;
    if (empty)
        stk_foreign_unref(&c->list);
    else
        stk_item_set_foreign(item, &c->list);
    return empty ? STK_ESKIP : STK_OK;
}

static stk_err concat_run(const void *params, void *unused, stk_item *item, stk_diag *diag)
{
    (void)unused;
    concat *c = (concat *)(uintptr_t)params;
    const int64_t path = (int64_t)stk_item_path(item);
    if (path == c->paths) return c->id == stk_item_id(item) ? give(c, item) : STK_ESKIP;
    const bool next = c->list && (c->id != stk_item_id(item) || c->epoch != stk_item_epoch(item));
    stk_foreign *before = NULL;
    if (next) { /* what was held back: it has no last part */
        before = c->list;
        c->list = NULL;
    }
    const bool last = path == c->paths - 1 && !stk_item_more(item);
    stk_err err = add(c, item, diag);
    if (err && next) { /* that part alone is lost, and counted */
        stk_foreign_unref(&c->list);
        c->list = before;
    }
    if (err) return err;
    if (before && PyList_GET_SIZE(stk_foreign_handle(before)) > 0) {
        stk_item_set_foreign(item, &before);
        return STK_OK;
    }
    stk_foreign_unref(&before);
    return last ? give(c, item) : STK_ESKIP;
}

static stk_err concat_flush(const void *params, void *unused, stk_item *out, stk_diag *diag)
{
    (void)unused;
    (void)diag;
    return give((concat *)(uintptr_t)params, out);
}

static void concat_fini(void *params)
{
    concat *c = params;
    stk_foreign_unref(&c->list);
    PyMem_RawFree(c);
}

static const stk_op_class concat_class = {
    .name = "concat",
    .flags = STK_OP_ENDS,
    .in = STK_KIND_ANY,
    .out = STK_KIND_FOREIGN,
    .run = concat_run,
    .flush = concat_flush,
    .fini = concat_fini,
};

PyObject *ext_op_concat(PyObject *module, PyObject *arg)
{
    const long paths = PyLong_AsLong(arg);
    if (paths == -1 && PyErr_Occurred()) return NULL;
    concat *c = PyMem_RawCalloc(1, sizeof(*c));
    if (!c) return PyErr_NoMemory();
    c->state = PyModule_GetState(module);
    c->paths = paths;
    stk_op *core = stk_op_new(&concat_class, c);
    return ext_op_give(module, &core, &(stk_diag){.err = STK_ENOMEM});
}
