/* aggregate(n): lists of n items, made in C.  One run uses it at a time: its stage runs one item
 * after the other. */
#include "lane.h"

typedef struct collate {
    ext_state *state;
    Py_ssize_t n;
    bool drop_last;
    stk_foreign *list; /* what has been collected, or NULL */
} collate;

static stk_err no_memory(stk_diag *diag)
{
    PyErr_Clear();
    return stk_diag_set(diag, STK_ENOMEM, "no memory for a list of samples");
}

static stk_err collate_run(const void *params, void *unused, stk_item *item, stk_diag *diag)
{
    (void)unused;
    collate *c = (collate *)(uintptr_t)params;
    PyObject *value = ext_item_take_value(item);
    if (!value) value = ext_item_value(c->state, item);
    if (!value) return ext_item_fail(c->state, item, NULL, NULL, diag);
    if (!c->list) {
        PyObject *list = PyList_New(0);
        c->list = list ? ext_foreign_new(c->state, list) : NULL;
        Py_XDECREF(list);
    }
    PyObject *list = c->list ? stk_foreign_handle(c->list) : NULL;
    const bool added = list && PyList_Append(list, value) == 0;
    Py_DECREF(value);
    if (!added) return no_memory(diag);
    if (PyList_GET_SIZE(list) < c->n) return STK_ESKIP;
    stk_item_clear(item);
    stk_item_set_foreign(item, &c->list);
    return STK_OK;
}

static stk_err collate_flush(const void *params, void *unused, stk_item *out, stk_diag *diag)
{
    (void)unused;
    (void)diag;
    collate *c = (collate *)(uintptr_t)params;
    if (!c->list) return STK_ESKIP;
    if (c->drop_last) {
        stk_foreign_unref(&c->list);
        return STK_ESKIP;
    }
    stk_item_set_foreign(out, &c->list);
    return STK_OK;
}

static void collate_fini(void *params)
{
    collate *c = params;
    stk_foreign_unref(&c->list);
    PyMem_RawFree(c);
}

static void collate_print(const void *params, char *dst, size_t size)
{
    const collate *c = params;
    snprintf(dst, size, "lists of %lld%s", (long long)c->n, c->drop_last ? ", drop_last" : "");
}

static const stk_op_class collate_class = {
    .name = "aggregate",
    .in = STK_KIND_ANY,
    .out = STK_KIND_FOREIGN,
    .run = collate_run,
    .flush = collate_flush,
    .fini = collate_fini,
    .print = collate_print,
};

PyObject *ext_op_collate(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"n", "drop_last", NULL};
    Py_ssize_t n;
    int drop_last;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "np:op_collate", names, &n, &drop_last))
        return NULL;
    if (n < 1) {
        PyErr_SetString(PyExc_ValueError, "n must be at least 1");
        return NULL;
    }
    collate *c = PyMem_RawCalloc(1, sizeof(*c));
    if (!c) return PyErr_NoMemory();
    c->state = PyModule_GetState(module);
    c->n = n;
    c->drop_last = drop_last;
    stk_op *core = stk_op_new(&collate_class, c);
    return ext_op_give(module, &core, &(stk_diag){.err = STK_ENOMEM});
}
