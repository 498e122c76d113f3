#include "ext.h"

#include <stoker/port.h>

/* Built by one thread and checked by the first start; the critical sections make a second
 * thread wait rather than break it. */
typedef struct {
    PyObject_HEAD
    stk_plan *core; /* never changes */
} Plan;

PyObject *ext_plan(PyObject *module, PyObject *unused)
{
    (void)unused;
    PyTypeObject *type = ((ext_state *)PyModule_GetState(module))->plan_type;
    Plan *self = (Plan *)type->tp_alloc(type, 0);
    if (!self) return NULL;
    stk_err err = stk_plan_new(&self->core);
    if (!err) return (PyObject *)self;
    Py_DECREF(self);
    return ext_raise(err, NULL);
}

static stk_plan *core_of(PyObject *op)
{
    return ((Plan *)op)->core;
}

static ext_state *state_of(PyObject *op)
{
    return PyType_GetModuleState(Py_TYPE(op)); /* final type: this is ours */
}

static PyObject *plan_source(PyObject *op, PyObject *arg)
{
    stk_source *source = ext_source_borrow(state_of(op), arg);
    if (!source) return NULL;
    Py_BEGIN_CRITICAL_SECTION(op);
    stk_plan_source(core_of(op), stk_source_ref(source));
    Py_END_CRITICAL_SECTION();
    Py_RETURN_NONE;
}

static PyObject *plan_foreign_source(PyObject *op, PyObject *args)
{
    PyObject *handle;
    unsigned group;
    if (!PyArg_ParseTuple(args, "OI:foreign_source", &handle, &group)) return NULL;
    stk_source *source = ext_source_borrow(state_of(op), handle);
    if (!source) return NULL;
    Py_BEGIN_CRITICAL_SECTION(op);
    stk_plan_foreign_source(core_of(op), stk_source_ref(source), group);
    Py_END_CRITICAL_SECTION();
    Py_RETURN_NONE;
}

/* The numbers as people count: 0 allows none, and a negative number any. */
static int64_t limit_of(long long max_failures)
{
    return max_failures > 0 ? max_failures : max_failures == 0 ? -1 : 0;
}

static PyObject *plan_limit(PyObject *op, PyObject *args)
{
    long long max_failures;
    double rate;
    if (!PyArg_ParseTuple(args, "Ld:limit", &max_failures, &rate)) return NULL;
    Py_BEGIN_CRITICAL_SECTION(op);
    stk_plan_limit(core_of(op), limit_of(max_failures), rate);
    Py_END_CRITICAL_SECTION();
    Py_RETURN_NONE;
}

/* In the order of the enums of stoker/plan.h. */
static const char *const orders[] = {"input", "completion", NULL};
static const char *const policies[] = {"raise", "skip", "substitute", NULL};

static PyObject *plan_pipe(PyObject *op, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"op",
                            "name",
                            "concurrency",
                            "order",
                            "on_error",
                            "max_failures",
                            "max_failure_rate",
                            "shared_limit",
                            "group",
                            NULL};
    PyObject *handle, *order = NULL, *on_error = NULL;
    stk_stage_opts opts = {0};
    long long max_failures = -1;
    int shared_limit = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$ziUULdpI:pipe", names, &handle, &opts.name,
                                     &opts.concurrency, &order, &on_error, &max_failures,
                                     &opts.max_failure_rate, &shared_limit, &opts.group))
        return NULL;
    if (!order || !on_error) {
        PyErr_SetString(PyExc_TypeError, "pipe() needs order and on_error");
        return NULL;
    }
    const int chosen = ext_choice("output_order", order, orders);
    const int policy = chosen < 0 ? -1 : ext_choice("on_error", on_error, policies);
    stk_op *core = policy < 0 ? NULL : ext_op_borrow(state_of(op), handle);
    if (!core) return NULL;
    opts.order = (stk_order)chosen;
    opts.on_error = (stk_on_error)policy;
    opts.max_failures = limit_of(max_failures);
    opts.shared_limit = shared_limit;

    Py_BEGIN_CRITICAL_SECTION(op);
    stk_plan_pipe(core_of(op), stk_op_ref(core), &opts);
    Py_END_CRITICAL_SECTION();
    Py_RETURN_NONE;
}

static PyObject *plan_batch(PyObject *op, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"n", "drop_last", "keep_empty", NULL};
    Py_ssize_t n;
    int drop_last, keep_empty;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "n$pp:batch", names, &n, &drop_last,
                                     &keep_empty))
        return NULL;
    if (n < 1) {
        PyErr_SetString(PyExc_ValueError, "n must be at least 1");
        return NULL;
    }
    const stk_batch_opts opts = {.drop_last = drop_last, .keep_empty = keep_empty};
    Py_BEGIN_CRITICAL_SECTION(op);
    stk_plan_batch(core_of(op), (size_t)n, &opts);
    Py_END_CRITICAL_SECTION();
    Py_RETURN_NONE;
}

static PyObject *plan_unbatch(PyObject *op, PyObject *unused)
{
    (void)unused;
    Py_BEGIN_CRITICAL_SECTION(op);
    stk_plan_unbatch(core_of(op), NULL);
    Py_END_CRITICAL_SECTION();
    Py_RETURN_NONE;
}

/* The cores of a sequence of plans, each with a new reference; the number of them, or 0 with an
 * exception. */
static size_t plans_of(PyObject *op, PyObject *list, stk_plan **out)
{
    PyObject *fast = PySequence_Fast(list, "expected a sequence of plans");
    if (!fast) return 0;
    const Py_ssize_t n = PySequence_Fast_GET_SIZE(fast);
    bool good = n > 0 && n <= STK_MAX_PATHS;
    if (!good)
        PyErr_Format(PyExc_ValueError, "%zd pipelines side by side: 1 to %d are possible", n,
                     STK_MAX_PATHS);
    for (Py_ssize_t i = 0; good && i < n; i++) {
        PyObject *plan = PySequence_Fast_GET_ITEM(fast, i);
        good = Py_IS_TYPE(plan, Py_TYPE(op));
        if (!good) PyErr_SetString(PyExc_TypeError, "expected plans");
    }
    for (Py_ssize_t i = 0; good && i < n; i++)
        out[i] = stk_plan_ref(core_of(PySequence_Fast_GET_ITEM(fast, i)));
    Py_DECREF(fast);
    return good ? (size_t)n : 0;
}

static PyObject *plan_route(PyObject *op, PyObject *args)
{
    PyObject *list, *order;
    stk_stage_opts opts = {0};
    if (!PyArg_ParseTuple(args, "OsU:route", &list, &opts.name, &order)) return NULL;
    const int chosen = ext_choice("output_order", order, orders);
    stk_plan *paths[STK_MAX_PATHS];
    const size_t n = chosen < 0 ? 0 : plans_of(op, list, paths);
    if (n == 0) return NULL;
    opts.order = (stk_order)chosen;
    Py_BEGIN_CRITICAL_SECTION(op);
    stk_plan_route(core_of(op), NULL, NULL, n, paths, &opts);
    Py_END_CRITICAL_SECTION();
    Py_RETURN_NONE;
}

static PyObject *plan_merge(PyObject *op, PyObject *args)
{
    PyObject *list;
    int arrival;
    if (!PyArg_ParseTuple(args, "Op:merge", &list, &arrival)) return NULL;
    stk_plan *inputs[STK_MAX_PATHS];
    const size_t n = plans_of(op, list, inputs);
    if (n == 0) return NULL;
    Py_BEGIN_CRITICAL_SECTION(op);
    if (arrival)
        stk_plan_merge_any(core_of(op), n, inputs);
    else
        stk_plan_merge(core_of(op), n, inputs, NULL, 0);
    Py_END_CRITICAL_SECTION();
    Py_RETURN_NONE;
}

static PyObject *plan_port(PyObject *op, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"name",         "concurrency",      "on_error",
                            "max_failures", "max_failure_rate", "shared_limit",
                            "group",        "in_order",         NULL};
    stk_stage_opts opts = {0};
    PyObject *on_error;
    long long max_failures;
    int shared_limit, in_order;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "siULdpIp:port", names, &opts.name,
                                     &opts.concurrency, &on_error, &max_failures,
                                     &opts.max_failure_rate, &shared_limit, &opts.group, &in_order))
        return NULL;
    opts.order = in_order ? STK_ORDER_INPUT : STK_ORDER_COMPLETION;
    const int policy = ext_choice("on_error", on_error, policies);
    if (policy < 0) return NULL;
    opts.on_error = (stk_on_error)policy;
    opts.max_failures = limit_of(max_failures);
    opts.shared_limit = shared_limit;
    Py_BEGIN_CRITICAL_SECTION(op);
    stk_plan_port(core_of(op), &opts);
    Py_END_CRITICAL_SECTION();
    Py_RETURN_NONE;
}

static PyObject *plan_port_source(PyObject *op, PyObject *arg)
{
    const unsigned long group = PyLong_AsUnsignedLong(arg);
    if (PyErr_Occurred()) return NULL;
    Py_BEGIN_CRITICAL_SECTION(op);
    stk_plan_port_source(core_of(op), (uint32_t)group);
    Py_END_CRITICAL_SECTION();
    Py_RETURN_NONE;
}

static PyObject *plan_port_merge(PyObject *op, PyObject *args)
{
    PyObject *list;
    unsigned group;
    if (!PyArg_ParseTuple(args, "OI:port_merge", &list, &group)) return NULL;
    stk_plan *inputs[STK_MAX_PATHS];
    const size_t n = plans_of(op, list, inputs);
    if (n == 0) return NULL;
    Py_BEGIN_CRITICAL_SECTION(op);
    stk_plan_port_merge(core_of(op), n, inputs, group);
    Py_END_CRITICAL_SECTION();
    Py_RETURN_NONE;
}

static PyObject *plan_sink(PyObject *op, PyObject *arg)
{
    const Py_ssize_t size = PyNumber_AsSsize_t(arg, PyExc_OverflowError);
    if (size == -1 && PyErr_Occurred()) return NULL;
    if (size < 1) {
        PyErr_SetString(PyExc_ValueError, "buffer_size must be at least 1");
        return NULL;
    }
    Py_BEGIN_CRITICAL_SECTION(op);
    stk_plan_sink(core_of(op), (size_t)size);
    Py_END_CRITICAL_SECTION();
    Py_RETURN_NONE;
}

static PyObject *plan_check(PyObject *op, PyObject *unused)
{
    (void)unused;
    stk_diag diag = {0};
    stk_err err;
    Py_BEGIN_CRITICAL_SECTION(op);
    err = stk_plan_check(core_of(op), &diag);
    Py_END_CRITICAL_SECTION();
    if (err) return ext_raise(err, &diag);
    Py_RETURN_NONE;
}

static PyObject *plan_str(PyObject *op)
{
    char *text = NULL;
    stk_err err;
    Py_BEGIN_CRITICAL_SECTION(op);
    err = stk_plan_print(core_of(op), &text);
    Py_END_CRITICAL_SECTION();
    if (err) return ext_raise(err, NULL);
    PyObject *made = ext_text(text);
    stk_text_free(&text);
    return made;
}

static PyObject *plan_length(PyObject *op, PyObject *unused)
{
    (void)unused;
    int64_t n;
    Py_BEGIN_CRITICAL_SECTION(op);
    n = stk_plan_length(core_of(op));
    Py_END_CRITICAL_SECTION();
    return PyLong_FromLongLong(n);
}

static PyObject *plan_start(PyObject *op, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"num_threads", "epoch_ends", NULL};
    int num_threads, epoch_ends;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "ip:start", names, &num_threads, &epoch_ends))
        return NULL;
    PyObject *checked = plan_check(op, NULL); /* from here on any thread may use it */
    if (!checked) return NULL;
    Py_DECREF(checked);

    const stk_run_opts opts = {.num_threads = num_threads, .epoch_ends = epoch_ends};
    stk_diag diag = {0};
    stk_err err;
    stk_run *run = NULL;
    Py_BEGIN_ALLOW_THREADS
    err = stk_run_start(core_of(op), &opts, &run, &diag);
    Py_END_ALLOW_THREADS
    if (err) return ext_raise(err, &diag);
    return ext_run_give(state_of(op), &run);
}

static int plan_traverse(PyObject *op, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(op));
    return 0;
}

static void plan_dealloc(PyObject *op)
{
    PyTypeObject *type = Py_TYPE(op);
    PyObject_GC_UnTrack(op);
    stk_plan_free(&((Plan *)op)->core);
    ext_drain(type);
    type->tp_free(op);
    Py_DECREF(type);
}

static PyMethodDef plan_methods[] = {
    {"source", plan_source, METH_O,
     PyDoc_STR("source($self, source, /)\n--\n\nWhere samples come from.")},
    {"pipe", (PyCFunction)(void (*)(void))plan_pipe, METH_VARARGS | METH_KEYWORDS,
     PyDoc_STR("Adds a stage; all keywords are needed: name, concurrency (0: the op's own), order, "
               "on_error, max_failures (negative: any), max_failure_rate (0: any); shared_limit "
               "and group, of lanes, if not False and 0.")},
    {"foreign_source", plan_foreign_source, METH_VARARGS,
     PyDoc_STR(
         "foreign_source($self, source, group, /)\n--\n\nA source that lanes of a group run.")},
    {"limit", plan_limit, METH_VARARGS,
     PyDoc_STR("limit($self, max_failures, max_failure_rate, /)\n--\n\nOf the stages with "
               "shared_limit.")},
    {"route", plan_route, METH_VARARGS,
     PyDoc_STR(
         "route($self, paths, name, output_order, /)\n--\n\nSends each item down the path that "
         "the op before it has named.")},
    {"merge", plan_merge, METH_VARARGS,
     PyDoc_STR("merge($self, inputs, arrival, /)\n--\n\nIn place of a source: in turn, or as they "
               "come.")},
    {"port", (PyCFunction)(void (*)(void))plan_port, METH_VARARGS | METH_KEYWORDS,
     PyDoc_STR("A stage that an event loop runs; all keywords are needed, as those of pipe().")},
    {"port_source", plan_port_source, METH_O,
     PyDoc_STR("port_source($self, group, /)\n--\n\nIn place of a source: what is put.")},
    {"port_merge", plan_port_merge, METH_VARARGS,
     PyDoc_STR(
         "port_merge($self, inputs, group, /)\n--\n\nIn place of a source: takes from several "
         "plans, puts what it likes.")},
    {"batch", (PyCFunction)(void (*)(void))plan_batch, METH_VARARGS | METH_KEYWORDS,
     PyDoc_STR("batch($self, n, *, drop_last, keep_empty)\n--\n\nGroups n samples.")},
    {"unbatch", plan_unbatch, METH_NOARGS,
     PyDoc_STR("unbatch($self, /)\n--\n\nTurns batches into samples.")},
    {"sink", plan_sink, METH_O,
     PyDoc_STR("sink($self, buffer_size, /)\n--\n\nHow many results may wait.")},
    {"check", plan_check, METH_NOARGS,
     PyDoc_STR("check($self, /)\n--\n\nRaises the first error of building, or of the whole.")},
    {"length", plan_length, METH_NOARGS,
     PyDoc_STR("length($self, /)\n--\n\nResults of one epoch; -1: not known.")},
    {"start", (PyCFunction)(void (*)(void))plan_start, METH_VARARGS | METH_KEYWORDS,
     PyDoc_STR("start($self, num_threads, epoch_ends)\n--\n\nA Run.")},
    {NULL, NULL, 0, NULL}, /* end */
};

/* clang-format off */
static PyType_Slot plan_slots[] = {
    {Py_tp_doc, (void *)"What to run; use stoker.PipelineBuilder."},
    {Py_tp_traverse, plan_traverse},
    {Py_tp_dealloc, plan_dealloc},
    {Py_tp_str, plan_str},
    {Py_tp_methods, plan_methods},
    {0, NULL},
};
/* clang-format on */

PyType_Spec ext_plan_spec = {
    .name = "stoker._stoker.Plan",
    .basicsize = sizeof(Plan),
    .flags = EXT_TYPE_FLAGS,
    .slots = plan_slots,
};
