/* Python callables as ops. */
#include "lane.h"

/* Handles, since the last run of a plan may drop its ops on any thread. */
typedef struct py_op {
    ext_state *state; /* of the module, which the Op that Python holds keeps: see ext_lane */
    stk_foreign *callable;
    stk_foreign *report;
    stk_foreign *ended; /* of a generator function that wants to know which have ended; or NULL */
    stk_op_class cls;   /* its own: what comes out depends on who takes it */
    ext_taker taker;    /* the engine's stage behind it */
    char text[200];
} py_op;

static void py_op_fini(void *params)
{
    py_op *op = params;
    stk_foreign_unref(&op->callable);
    stk_foreign_unref(&op->report);
    stk_foreign_unref(&op->ended);
    PyMem_RawFree(op);
}

static void py_op_print(const void *params, char *dst, size_t size)
{
    const py_op *op = params;
    snprintf(dst, size, "%s", op->text);
}

static PyObject *callable_of(const py_op *op)
{
    return stk_foreign_handle(op->callable);
}

static stk_err failed(const py_op *op, stk_item *item, PyObject *value, stk_diag *diag)
{
    return ext_item_fail(op->state, item, op->report ? stk_foreign_handle(op->report) : NULL, value,
                         diag);
}

/* Makes `result`, a reference that it takes, what the item carries; `value` is what the op was
 * given. False with an exception. */
static bool give(const py_op *op, stk_item *item, PyObject *value, PyObject *result)
{
    if (op->taker.kind == STK_KIND_ANY) {
        result = value ? ext_sample_follow(op->state, value, result) : result;
        return result && ext_item_set_value(op->state, item, result);
    }
    const bool good = ext_item_set_native(op->state, item, &op->taker, value, result);
    Py_DECREF(result);
    return good;
}

static stk_err skip(stk_item *item)
{
    Py_XDECREF(ext_item_take_value(item));
    return STK_ESKIP;
}

static stk_err map_run(const void *params, void *state, stk_item *item, stk_diag *diag)
{
    (void)state;
    const py_op *op = params;
    stk_err err = STK_OK;
    PyObject *value = ext_item_value(op->state, item);
    PyObject *result = value ? PyObject_CallOneArg(callable_of(op), value) : NULL;
    if (result == Py_None) {
        Py_DECREF(result);
        err = skip(item);
    }
    else if (!result || !give(op, item, value, result)) {
        err = failed(op, item, value, diag);
    }
    Py_XDECREF(value);
    return err;
}

/* What the item carries, for the engine's stage behind it; what that one's like has made stays. */
static stk_err convert_run(const void *params, void *state, stk_item *item, stk_diag *diag)
{
    (void)state;
    const py_op *op = params;
    if (!stk_item_foreign(item) && !stk_item_batch(item) == (op->taker.kind != STK_KIND_BATCH))
        return STK_OK;
    PyObject *value = ext_item_value(op->state, item);
    stk_err err = STK_OK;
    if (!value || !ext_item_set_native(op->state, item, &op->taker, NULL, value))
        err = failed(op, item, value, diag);
    Py_XDECREF(value);
    return err;
}

/* The callable gives an iterable for each item; the cursor is its iterator. */
static stk_err expand_begin(const py_op *op, stk_item *in, stk_item *out, void **cursor,
                            stk_diag *diag)
{
    PyObject *value = ext_item_value(op->state, in);
    PyObject *made = value ? PyObject_CallOneArg(callable_of(op), value) : NULL;
    PyObject *iterator = made ? PyObject_GetIter(made) : NULL;
    stk_foreign *f = iterator ? ext_foreign_new(op->state, iterator) : NULL;
    if (f && !stk_item_foreign(in) && !ext_item_set_value(op->state, in, Py_NewRef(value)))
        stk_foreign_unref(&f); /* what it was given stays at hand: its outputs follow it */
    stk_err err = f ? STK_OK : failed(op, out, value, diag);
    Py_XDECREF(iterator);
    Py_XDECREF(made);
    Py_XDECREF(value);
    *cursor = f;
    return err;
}

static void tell_ended(const py_op *op, stk_foreign *cursor)
{
    if (!op->ended) return;
    PyObject *told = PyObject_CallOneArg(stk_foreign_handle(op->ended), stk_foreign_handle(cursor));
    if (!told) PyErr_WriteUnraisable(stk_foreign_handle(op->ended));
    Py_XDECREF(told);
}

static stk_err expand_next(const void *params, void *state, void **cursor, stk_item *in,
                           int64_t index, stk_item *out, stk_diag *diag)
{
    (void)state;
    (void)index;
    const py_op *op = params;
    if (!*cursor) {
        stk_err err = expand_begin(op, in, out, cursor, diag);
        if (err) return err;
    }
    PyObject *value;
    do value = PyIter_Next(stk_foreign_handle(*cursor));
    while (value == Py_None && (Py_DECREF(value), !stk_item_cancelled(out))); /* which skips */
    if (value == Py_None) return STK_ESKIP;
    if (!value && !PyErr_Occurred()) {
        tell_ended(op, *cursor);
        return STK_EEND;
    }
    const bool over = !value;
    PyObject *given = ext_item_value(op->state, in);
    stk_err err = STK_OK;
    if (!given) Py_CLEAR(value);
    if (!value || !give(op, out, given, value)) err = failed(op, out, given, diag);
    if (over) tell_ended(op, *cursor);
    Py_XDECREF(given);
    return err;
}

static void expand_end(const void *params, void *cursor)
{
    (void)params;
    stk_foreign *f = cursor;
    stk_foreign_unref(&f); /* perhaps without the GIL: a generator is closed when it is drained */
}

static const stk_op_class map_class = {
    .name = "python",
    .in = STK_KIND_ANY,
    .out = STK_KIND_FOREIGN,
    .run = map_run,
    .fini = py_op_fini,
    .print = py_op_print,
};

static const stk_op_class convert_class = {
    .name = "convert",
    .in = STK_KIND_ANY,
    .out = STK_KIND_FOREIGN,
    .run = convert_run,
    .fini = py_op_fini,
    .print = py_op_print,
};

static const stk_op_class expand_class = {
    .name = "python_generator",
    .in = STK_KIND_ANY,
    .out = STK_KIND_FOREIGN,
    .expand = expand_next,
    .expand_end = expand_end,
    .fini = py_op_fini,
    .print = py_op_print,
};

/* A router says which path its item takes, and passes it on as it is. */
static stk_err route_run(const void *params, void *state, stk_item *item, stk_diag *diag)
{
    (void)state;
    const py_op *op = params;
    PyObject *value = ext_item_value(op->state, item);
    PyObject *result = value ? PyObject_CallOneArg(callable_of(op), value) : NULL;
    stk_err err = result ? STK_OK : failed(op, item, value, diag);
    Py_XDECREF(value);
    if (err) return err;
    const long path = PyLong_AsLong(result);
    Py_DECREF(result);
    if (path == -1 && PyErr_Occurred()) return failed(op, item, NULL, diag);
    stk_item_set_path(item, (size_t)path);
    return STK_OK;
}

static const stk_op_class route_class = {
    .name = "python_router",
    .in = STK_KIND_ANY,
    .out = STK_KIND_ANY,
    .run = route_run,
    .fini = py_op_fini,
    .print = py_op_print,
};

/* An Aggregator: an object with accumulate(item) and flush(). */
static stk_err fold_give(const py_op *op, stk_item *item, PyObject *result, PyObject *value,
                         stk_diag *diag)
{
    if (!result) return failed(op, item, value, diag);
    if (result == Py_None) {
        Py_DECREF(result);
        return skip(item);
    }
    if (!give(op, item, NULL, result)) return failed(op, item, NULL, diag);
    return STK_OK;
}

static stk_err fold_run(const void *params, void *state, stk_item *item, stk_diag *diag)
{
    (void)state;
    const py_op *op = params;
    PyObject *value = ext_item_value(op->state, item);
    PyObject *result =
        value ? PyObject_CallMethod(callable_of(op), "accumulate", "(O)", value) : NULL;
    stk_err err = fold_give(op, item, result, value, diag);
    Py_XDECREF(value);
    return err;
}

static stk_err fold_flush(const void *params, void *state, stk_item *out, stk_diag *diag)
{
    (void)state;
    const py_op *op = params;
    return fold_give(op, out, PyObject_CallMethod(callable_of(op), "flush", NULL), NULL, diag);
}

static const stk_op_class fold_class = {
    .name = "python_aggregator",
    .in = STK_KIND_ANY,
    .out = STK_KIND_FOREIGN,
    .run = fold_run,
    .flush = fold_flush,
    .fini = py_op_fini,
    .print = py_op_print,
};

static const char *const kinds[] = {"map", "expand", "route", "fold", "convert", NULL};
static const stk_op_class *const classes[] = {&map_class, &expand_class, &route_class, &fold_class,
                                              &convert_class};

/* The stage behind it that takes `kind` (as stk_kind_str says it, or None for a stage of Python).
 */
static bool set_taker(py_op *op, PyObject *kind, const char *name)
{
    static const stk_kind takers[] = {STK_KIND_KEY, STK_KIND_BYTES, STK_KIND_ARRAY, STK_KIND_BATCH};
    if (kind == Py_None) return true;
    for (size_t i = 0; i < sizeof(takers) / sizeof(*takers); i++) {
        if (!PyUnicode_Check(kind) ||
            PyUnicode_CompareWithASCIIString(kind, stk_kind_str(takers[i])) != 0)
            continue;
        op->taker.kind = op->cls.out = takers[i];
        snprintf(op->taker.name, sizeof(op->taker.name), "%s", name);
        return true;
    }
    PyErr_Format(PyExc_ValueError, "no stage takes %R", kind);
    return false;
}

PyObject *ext_op_python(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"kind", "callable", "report", "text", "takes", "taker", NULL};
    PyObject *kind, *callable, *report, *takes = Py_None;
    const char *text, *taker = "";
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOOs|Os:op_python", names, &kind, &callable,
                                     &report, &text, &takes, &taker))
        return NULL;
    const int chosen = ext_choice("kind", kind, kinds);
    if (chosen < 0) return NULL;
    ext_state *state = PyModule_GetState(module);
    py_op *op = PyMem_RawCalloc(1, sizeof(*op));
    if (!op) return PyErr_NoMemory();
    op->state = state;
    op->cls = *classes[chosen];
    op->callable = ext_foreign_new(state, callable);
    if (report != Py_None) op->report = ext_foreign_new(state, report);
    if (PyObject_HasAttrString(callable, "_stoker_ended")) {
        PyObject *ended = PyObject_GetAttrString(callable, "_stoker_ended");
        op->ended = ended ? ext_foreign_new(state, ended) : NULL;
        Py_XDECREF(ended);
    }
    snprintf(op->text, sizeof(op->text), "%s", text);
    if (!set_taker(op, takes, taker) || !op->callable || (report != Py_None && !op->report)) {
        py_op_fini(op);
        return NULL;
    }
    stk_op *core = stk_op_new(&op->cls, op);
    return ext_op_give(module, &core, &(stk_diag){.err = STK_ENOMEM});
}
