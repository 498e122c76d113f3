/* Python iterables as sources: iterated on one lane of their own. */
#include "lane.h"

typedef struct py_source {
    ext_state *state;
    bool continuous;
    char text[200];
    stk_foreign *iterable;
    stk_foreign *iterator; /* of the pass that runs, or NULL; its lane's own, as all below */
    bool goes_on;          /* the iterable is its own iterator, and between two passes */
    int64_t given;         /* in all passes */
    int64_t pass;
} py_source;

/* A run opens its source once: what it holds is the cursor. */
static stk_err py_source_open(void *params, const stk_source_env *env, void **cursor,
                              stk_diag *diag)
{
    (void)env;
    (void)diag;
    *cursor = params;
    return STK_OK;
}

static void py_source_close(void *cursor)
{
    (void)cursor; /* the lane closes the iterator: ext_source_finish */
}

static void py_source_fini(void *params)
{
    py_source *s = params;
    stk_foreign_unref(&s->iterable);
    stk_foreign_unref(&s->iterator);
    PyMem_RawFree(s);
}

static void py_source_print(void *params, char *dst, size_t size)
{
    snprintf(dst, size, "%s", ((const py_source *)params)->text);
}

/* Calls close() of the iterator, where it has one.  False with an exception. */
static bool close_iterator(py_source *s)
{
    PyObject *iterator = stk_foreign_handle(s->iterator);
    PyObject *close = PyObject_GetAttrString(iterator, "close");
    PyObject *done = close ? PyObject_CallNoArgs(close) : NULL;
    if (!close) PyErr_Clear();
    const bool good = done || !close;
    Py_XDECREF(done);
    Py_XDECREF(close);
    return good;
}

static bool begin_pass(py_source *s)
{
    PyObject *iterator = PyObject_GetIter(stk_foreign_handle(s->iterable));
    s->iterator = iterator ? ext_foreign_new(s->state, iterator) : NULL;
    Py_XDECREF(iterator);
    return s->iterator;
}

/* What ends a pass of a continuous source; a source that is its own iterator goes on. */
static stk_err end_pass(py_source *s, stk_item *item, stk_diag *diag)
{
    const bool own = stk_foreign_handle(s->iterator) == stk_foreign_handle(s->iterable);
    const bool good = !s->continuous || own || close_iterator(s);
    stk_foreign_unref(&s->iterator);
    s->goes_on = own && s->continuous;
    s->pass++;
    if (!good) return ext_item_fail(s->state, item, NULL, NULL, diag);
    return s->continuous ? STK_EEPOCH : STK_EEND;
}

static stk_err py_source_next(void *cursor, stk_item *item, stk_diag *diag)
{
    py_source *s = cursor;
    if (!s->iterator && !begin_pass(s)) return ext_item_fail(s->state, item, NULL, NULL, diag);
    PyObject *value = PyIter_Next(stk_foreign_handle(s->iterator));
    if (!value && !PyErr_Occurred()) return end_pass(s, item, diag);
    if (!value || !ext_item_set_value(s->state, item, value))
        return ext_item_fail(s->state, item, NULL, NULL, diag);
    stk_item_set_id(item, s->given++, s->pass);
    return STK_OK;
}

static const stk_source_class py_source_class = {
    .name = "iterable",
    .open = py_source_open,
    .close = py_source_close,
    .next = py_source_next,
    .fini = py_source_fini,
    .print = py_source_print,
    .out = STK_KIND_FOREIGN,
    .reproducible = true,
};

PyObject *ext_iterable_source(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"iterable", "continuous", "text", NULL};
    PyObject *iterable;
    int continuous;
    const char *text;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "Ops:iterable_source", names, &iterable,
                                     &continuous, &text))
        return NULL;
    py_source *s = PyMem_RawCalloc(1, sizeof(*s));
    if (!s) return PyErr_NoMemory();
    s->state = PyModule_GetState(module);
    s->continuous = continuous;
    snprintf(s->text, sizeof(s->text), "%s", text);
    s->iterable = ext_foreign_new(s->state, iterable);
    if (!s->iterable) {
        py_source_fini(s);
        return NULL;
    }
    stk_source *core = stk_source_new(&py_source_class, s);
    return ext_source_give(module, &core, &(stk_diag){.err = STK_ENOMEM});
}

PyObject *ext_source_finish(PyObject *module, PyObject *op)
{
    stk_source *core = ext_source_borrow(PyModule_GetState(module), op);
    if (!core) return NULL;
    py_source *s = stk_source_get_class(core) == &py_source_class ? stk_source_params(core) : NULL;
    if (s && !s->iterator && s->goes_on) s->iterator = stk_foreign_ref(s->iterable);
    if (!s || !s->iterator) Py_RETURN_NONE;
    const bool good = close_iterator(s);
    stk_foreign_unref(&s->iterator);
    stk_foreign_drain(s->state->domain);
    if (!good) return NULL;
    Py_RETURN_NONE;
}
