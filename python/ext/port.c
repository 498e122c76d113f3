#include "lane.h"

#include <stoker/port.h>
#include <structmember.h>

/* A stage of a run that the event loop serves. */
typedef struct {
    PyObject_HEAD
    PyObject *run; /* a Run; never changes, as the next two */
    stk_run *core;
    size_t stage;
} Port;

/* An item on its way through the event loop, until it is put.  Threads: the loop's; any may read
 * value, id and epoch, to say what a stage is at. */
typedef struct {
    PyObject_HEAD
    PyObject *value; /* what the op is given, NULL once it has a result: in a critical section */
    stk_item *item;  /* NULL: put */
    Port *port;      /* never changes, as the next two */
    long long id, epoch;
} Slip;

#define MAX_TAKEN 64 /* items of one take or put */

static ext_state *state_of(PyObject *op)
{
    return PyType_GetModuleState(Py_TYPE(op)); /* final types: this is ours */
}

PyObject *ext_port(PyObject *module, PyObject *args)
{
    ext_state *state = PyModule_GetState(module);
    PyObject *run;
    Py_ssize_t stage;
    if (!PyArg_ParseTuple(args, "On:port", &run, &stage)) return NULL;
    stk_run *core = ext_run_borrow(state, run);
    Port *self = core ? (Port *)state->port_type->tp_alloc(state->port_type, 0) : NULL;
    if (!self) return NULL;
    self->run = Py_NewRef(run);
    self->core = core;
    self->stage = (size_t)stage;
    return (PyObject *)self;
}

/* The value, which it no longer has: a new reference, or NULL. */
static PyObject *slip_take(Slip *self)
{
    PyObject *value;
    Py_BEGIN_CRITICAL_SECTION(self);
    value = self->value;
    self->value = NULL;
    Py_END_CRITICAL_SECTION();
    return value;
}

/* Takes *item either way. */
static PyObject *slip_give(Port *port, stk_item **item, PyObject *value)
{
    ext_state *state = state_of((PyObject *)port);
    Slip *self = (Slip *)state->slip_type->tp_alloc(state->slip_type, 0);
    if (!self) {
        stk_item_free(item);
        return NULL;
    }
    self->id = stk_item_id(*item);
    self->epoch = stk_item_epoch(*item);
    self->item = *item;
    *item = NULL;
    self->port = (Port *)Py_NewRef(port);
    self->value = Py_XNewRef(value);
    return (PyObject *)self;
}

/* A list of slips: what cannot become one for lack of memory is lost with the exception. */
static PyObject *slips_of(Port *port, stk_item **items, size_t n)
{
    PyObject *list = PyList_New((Py_ssize_t)n);
    for (size_t i = 0; i < n; i++) {
        PyObject *value = list ? ext_item_value(state_of((PyObject *)port), items[i]) : NULL;
        PyObject *slip = value ? slip_give(port, &items[i], value) : NULL;
        Py_XDECREF(value);
        if (slip)
            PyList_SET_ITEM(list, (Py_ssize_t)i, slip);
        else
            Py_CLEAR(list);
        stk_item_free(&items[i]);
    }
    return list;
}

static PyObject *port_take(PyObject *op, PyObject *args)
{
    Port *self = (Port *)op;
    Py_ssize_t input, max;
    if (!PyArg_ParseTuple(args, "nn:take", &input, &max)) return NULL;
    if (max < 1) {
        PyErr_SetString(PyExc_ValueError, "take() takes at least one");
        return NULL;
    }
    stk_item *items[MAX_TAKEN];
    size_t n = 0;
    stk_err err = stk_port_take(self->core, self->stage, (size_t)input,
                                max < MAX_TAKEN ? (size_t)max : MAX_TAKEN, items, &n);
    ext_state *state = state_of(op);
    stk_foreign_drain(state->domain);
    switch (err) {
    case STK_OK: return slips_of(self, items, n);
    case STK_EAGAIN: Py_RETURN_NONE;
    case STK_EEPOCH: return Py_NewRef(state->codes[EXT_EPOCH_END]);
    case STK_EEND: return Py_NewRef(state->codes[EXT_END]);
    case STK_ECANCELLED: return Py_NewRef(state->codes[EXT_CANCELLED]);
    default: return ext_raise(err, NULL);
    }
}

/* None: there is no result. */
static bool slip_settle(ext_state *state, Slip *self, PyObject *value)
{
    PyObject *given = slip_take(self);
    if (self->item && value != Py_None) {
        PyObject *result = Py_NewRef(value);
        if (given) result = ext_sample_follow(state, given, result);
        Py_XDECREF(given);
        return result && ext_item_set_value(state, self->item, result);
    }
    Py_XDECREF(given);
    if (!self->item) return true;
    Py_XDECREF(ext_item_take_value(self->item));
    stk_port_skip(self->item);
    return true;
}

/* The item stays as it is, and goes down that path. */
static bool slip_send(Slip *self, PyObject *number)
{
    const long path = PyLong_AsLong(number);
    if (path == -1 && PyErr_Occurred()) return false;
    Py_XDECREF(slip_take(self));
    if (self->item) stk_item_set_path(self->item, (size_t)path);
    return true;
}

static PyObject *port_slip(PyObject *op, PyObject *args)
{
    Port *self = (Port *)op;
    PyObject *value;
    long long id, epoch;
    if (!PyArg_ParseTuple(args, "OLL:slip", &value, &id, &epoch)) return NULL;
    stk_item *item = stk_port_item(self->core, self->stage);
    if (!item) return Py_NewRef(state_of(op)->codes[EXT_CANCELLED]);
    stk_item_set_id(item, id, epoch);
    stk_port_more(item);
    if (!ext_item_set_value(state_of(op), item, Py_NewRef(value))) {
        stk_item_free(&item);
        return NULL;
    }
    return slip_give(self, &item, NULL);
}

static PyObject *port_put(PyObject *op, PyObject *args)
{
    Port *self = (Port *)op;
    ext_state *state = state_of(op);
    PyObject *list;
    double busy;
    if (!PyArg_ParseTuple(args, "O!d:put", &PyList_Type, &list, &busy)) return NULL;
    stk_item *items[MAX_TAKEN];
    Py_ssize_t n = PyList_GET_SIZE(list);
    if (n > MAX_TAKEN) n = MAX_TAKEN;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *slip = PyList_GET_ITEM(list, i);
        if (!Py_IS_TYPE(slip, state->slip_type) || !((Slip *)slip)->item) {
            PyErr_SetString(PyExc_TypeError, "put() takes slips that were not put");
            return NULL;
        }
        items[i] = ((Slip *)slip)->item;
    }
    size_t done = 0;
    stk_err err =
        stk_port_put(self->core, self->stage, items, (size_t)n, (int64_t)(busy * 1e9), &done);
    for (size_t i = 0; i < done; i++) ((Slip *)PyList_GET_ITEM(list, (Py_ssize_t)i))->item = NULL;
    if (err == STK_ECANCELLED) return PyLong_FromLong(-1);
    if (err && err != STK_EAGAIN) return ext_raise(err, NULL);
    return PyLong_FromSize_t(done);
}

/* What an async op has come to: one of `result`, `waits_for` and `exc`; the references are new. */
typedef struct {
    PyObject *context; /* its own copy of the caller's */
    PyObject *steps;   /* its coroutine; NULL: it could not be called */
    PyObject *result, *waits_for, *exc;
} begun;

/* Calls an async op and runs what it gives to its first wait.  False: an exception that is not the
 * op's. */
static bool begin_op(PyObject *call, PyObject *value, begun *b)
{
    *b = (begun){.context = PyContext_CopyCurrent()};
    if (!b->context) return false;
    if (PyContext_Enter(b->context) < 0) {
        Py_CLEAR(b->context);
        return false;
    }
    b->steps = PyObject_CallOneArg(call, value);
    PyObject *got = NULL;
    switch (b->steps ? PyIter_Send(b->steps, Py_None, &got) : PYGEN_ERROR) {
    case PYGEN_RETURN: b->result = got; break;
    case PYGEN_NEXT: b->waits_for = got; break;
    case PYGEN_ERROR: b->exc = ext_take_exception(); break;
    }
    if (PyContext_Exit(b->context) == 0) return true;
    Py_CLEAR(b->context);
    Py_CLEAR(b->steps);
    Py_CLEAR(b->result);
    Py_CLEAR(b->waits_for);
    Py_CLEAR(b->exc);
    return false;
}

static PyObject *stopped_at(Py_ssize_t i, begun *b)
{
    if (!b->steps) b->steps = Py_NewRef(Py_None);
    return Py_BuildValue("nNNN", i, b->steps, b->waits_for ? b->waits_for : b->exc, b->context);
}

#define RUN_NS 50000 /* then what is done goes on, although there is more to do */

/* One by one, as long as ops end without a wait: gives (how many, None, None, None), or of the one
 * that did not (its index, its coroutine, what it waits for, its context) or (its index, its
 * coroutine or None, its exception, its context). */
static PyObject *port_run(PyObject *op, PyObject *args)
{
    ext_state *state = state_of(op);
    PyObject *call, *list;
    int routes;
    if (!PyArg_ParseTuple(args, "OO!p:run", &call, &PyList_Type, &list, &routes)) return NULL;
    const int64_t begin = ext_now_ns();
    const Py_ssize_t n = PyList_GET_SIZE(list);
    Py_ssize_t i = 0;
    for (; i < n; i++) {
        if (i % 16 == 15 && ext_now_ns() - begin > RUN_NS) break;
        Slip *slip = (Slip *)PyList_GET_ITEM(list, i);
        if (!Py_IS_TYPE(slip, state->slip_type) || !slip->value) {
            PyErr_SetString(PyExc_TypeError, "run() takes slips that have no result yet");
            return NULL;
        }
        begun b;
        if (!begin_op(call, slip->value, &b)) return NULL;
        if (!b.result) return stopped_at(i, &b);
        Py_DECREF(b.steps);
        Py_DECREF(b.context);
        const bool set = routes ? slip_send(slip, b.result) : slip_settle(state, slip, b.result);
        Py_DECREF(b.result);
        if (!set) return NULL;
    }
    return Py_BuildValue("nOOO", i, Py_None, Py_None, Py_None);
}

static PyObject *port_mark(PyObject *op, PyObject *arg)
{
    Port *self = (Port *)op;
    const long long epoch = PyLong_AsLongLong(arg);
    if (epoch == -1 && PyErr_Occurred()) return NULL;
    stk_err err = stk_port_mark(self->core, self->stage, epoch);
    if (err == STK_ECANCELLED) return PyLong_FromLong(-1);
    if (err && err != STK_EAGAIN) return ext_raise(err, NULL);
    return PyLong_FromLong(err == STK_OK);
}

static PyObject *port_close(PyObject *op, PyObject *unused)
{
    (void)unused;
    stk_port_close(((Port *)op)->core, ((Port *)op)->stage);
    Py_RETURN_NONE;
}

static int port_traverse(PyObject *op, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(op));
    Py_VISIT(((Port *)op)->run);
    return 0;
}

static void port_dealloc(PyObject *op)
{
    PyTypeObject *type = Py_TYPE(op);
    PyObject_GC_UnTrack(op);
    Py_CLEAR(((Port *)op)->run);
    type->tp_free(op);
    Py_DECREF(type);
}

static PyMethodDef port_methods[] = {
    {"take", port_take, METH_VARARGS,
     PyDoc_STR(
         "take($self, input, max, /)\n--\n\nA list of Slips; None: not yet; or EPOCH_END, END, "
         "CANCELLED.")},
    {"slip", port_slip, METH_VARARGS,
     PyDoc_STR("slip($self, value, id, epoch, /)\n--\n\nA Slip with a result; or CANCELLED.")},
    {"put", port_put, METH_VARARGS,
     PyDoc_STR("put($self, slips, busy, /)\n--\n\nHow many of the first 64 slips had room; -1: the "
               "stage is over.")},
    {"run", port_run, METH_VARARGS,
     PyDoc_STR(
         "run($self, call, slips, routes, /)\n--\n\nAwaits call(value) of one slip after the "
         "other, as long "
         "as none waits: (how many, None, None, None); (index, coroutine, what it waits for, its "
         "context); or (index, coroutine or None, exception, context).")},
    {"mark", port_mark, METH_O,
     PyDoc_STR("mark($self, epoch, /)\n--\n\nThe end of an epoch: 1, 0 without room, or -1.")},
    {"close", port_close, METH_NOARGS, PyDoc_STR("close($self, /)\n--\n\nNo more puts.")},
    {NULL, NULL, 0, NULL}, /* end */
};

/* clang-format off */
static PyType_Slot port_slots[] = {
    {Py_tp_doc, (void *)"A stage of a run that the event loop serves."},
    {Py_tp_traverse, port_traverse},
    {Py_tp_dealloc, port_dealloc},
    {Py_tp_methods, port_methods},
    {0, NULL},
};
/* clang-format on */

PyType_Spec ext_port_spec = {
    .name = "stoker._stoker.Port",
    .basicsize = sizeof(Port),
    .flags = EXT_TYPE_FLAGS,
    .slots = port_slots,
};

/* --- slips --- */

static PyObject *slip_set(PyObject *op, PyObject *value)
{
    if (!slip_settle(state_of(op), (Slip *)op, value)) return NULL;
    Py_RETURN_NONE;
}

static PyObject *slip_close(PyObject *op, PyObject *unused)
{
    (void)unused;
    Slip *self = (Slip *)op;
    if (!slip_settle(state_of(op), self, Py_None)) return NULL;
    if (self->item) stk_port_close_results(self->item);
    Py_RETURN_NONE;
}

static PyObject *slip_release(PyObject *op, PyObject *unused)
{
    (void)unused;
    Slip *self = (Slip *)op;
    Py_XDECREF(slip_take(self));
    if (!self->item) Py_RETURN_NONE;
    Py_XDECREF(ext_item_take_value(self->item));
    stk_item_clear(self->item);
    Py_RETURN_NONE;
}

static PyObject *slip_restore(PyObject *op, PyObject *value)
{
    Slip *self = (Slip *)op;
    if (self->item && !ext_item_set_value(state_of(op), self->item, Py_NewRef(value))) return NULL;
    Py_RETURN_NONE;
}

static PyObject *slip_route(PyObject *op, PyObject *path)
{
    if (!slip_send((Slip *)op, path)) return NULL;
    Py_RETURN_NONE;
}

static PyObject *slip_fail(PyObject *op, PyObject *args)
{
    Slip *self = (Slip *)op;
    PyObject *exc;
    int fatal;
    if (!PyArg_ParseTuple(args, "Op:fail", &exc, &fatal)) return NULL;
    Py_XDECREF(slip_take(self));
    if (!self->item) Py_RETURN_NONE;
    stk_diag diag;
    ext_describe(exc, &diag);
    diag.fatal |= fatal;
    if (!ext_item_set_value(state_of(op), self->item, Py_NewRef(exc))) return NULL;
    stk_port_fail(self->port->core, self->port->stage, self->item, &diag);
    Py_RETURN_NONE;
}

static PyObject *slip_get_value(PyObject *op, void *closure)
{
    (void)closure;
    PyObject *value;
    Py_BEGIN_CRITICAL_SECTION(op);
    value = Py_NewRef(((Slip *)op)->value ? ((Slip *)op)->value : Py_None);
    Py_END_CRITICAL_SECTION();
    return value;
}

static int slip_traverse(PyObject *op, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(op));
    Py_VISIT(((Slip *)op)->value);
    Py_VISIT(((Slip *)op)->port);
    return 0;
}

static int slip_clear(PyObject *op)
{
    Py_CLEAR(((Slip *)op)->value);
    return 0;
}

static void slip_dealloc(PyObject *op)
{
    PyTypeObject *type = Py_TYPE(op);
    Slip *self = (Slip *)op;
    PyObject_GC_UnTrack(op);
    Py_CLEAR(self->value);
    if (self->item) { /* never put: its value goes with it */
        Py_XDECREF(ext_item_take_value(self->item));
        stk_item_free(&self->item);
    }
    Py_CLEAR(self->port);
    type->tp_free(op);
    Py_DECREF(type);
}

static PyMethodDef slip_methods[] = {
    {"set", slip_set, METH_O,
     PyDoc_STR("set($self, value, /)\n--\n\nIts result; None: it has none.")},
    {"close", slip_close, METH_NOARGS, PyDoc_STR("close($self, /)\n--\n\nEnds its results.")},
    {"release", slip_release, METH_NOARGS,
     PyDoc_STR("release($self, /)\n--\n\nKeeps its value alive no longer.")},
    {"restore", slip_restore, METH_O,
     PyDoc_STR("restore($self, value, /)\n--\n\nThat value goes on, as it is.")},
    {"route", slip_route, METH_O,
     PyDoc_STR("route($self, path, /)\n--\n\nIts value stays, and it goes down that path.")},
    {"fail", slip_fail, METH_VARARGS,
     PyDoc_STR("fail($self, exception, fatal, /)\n--\n\nIt failed; fatal, or an exception of the "
               "kind that ends programs: the stage did.")},
    {NULL, NULL, 0, NULL}, /* end */
};

static PyMemberDef slip_members[] = {
    {"id", T_LONGLONG, offsetof(Slip, id), READONLY, PyDoc_STR("The item's number.")},
    {"epoch", T_LONGLONG, offsetof(Slip, epoch), READONLY, PyDoc_STR("The item's epoch.")},
    {NULL, 0, 0, 0, NULL}, /* end */
};

static PyGetSetDef slip_getset[] = {
    {"value", slip_get_value, NULL, PyDoc_STR("What the op is given; None: it has a result."),
     NULL},
    {NULL, NULL, NULL, NULL, NULL}, /* end */
};

/* clang-format off */
static PyType_Slot slip_slots[] = {
    {Py_tp_doc, (void *)"An item on its way through the event loop."},
    {Py_tp_traverse, slip_traverse},
    {Py_tp_clear, slip_clear},
    {Py_tp_dealloc, slip_dealloc},
    {Py_tp_methods, slip_methods},
    {Py_tp_members, slip_members},
    {Py_tp_getset, slip_getset},
    {0, NULL},
};
/* clang-format on */

PyType_Spec ext_slip_spec = {
    .name = "stoker._stoker.Slip",
    .basicsize = sizeof(Slip),
    .flags = EXT_TYPE_FLAGS,
    .slots = slip_slots,
};
