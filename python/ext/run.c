#include "lane.h"

#include <stoker/lane.h>

#include <string.h>
#include <time.h>
#include <unistd.h>

#define EXT_AHEAD 64 /* results that one read may take, where they are cheap */

typedef struct {
    PyObject_HEAD
    stk_run *core; /* never changes; locks for itself */

    /* Results taken ahead, the next one last; guarded by the object's critical section. */
    PyObject **ahead;
    size_t num_ahead;
} Run;

/* How long the main thread waits before it looks for Ctrl-C. */
static const int64_t SLICE_NS = 100 * 1000 * 1000;

PyObject *ext_run_give(ext_state *state, stk_run **run)
{
    Run *self = (Run *)state->run_type->tp_alloc(state->run_type, 0);
    if (!self) {
        Py_BEGIN_ALLOW_THREADS
        stk_run_free(run);
        Py_END_ALLOW_THREADS
        return NULL;
    }
    self->core = *run;
    *run = NULL;
    return (PyObject *)self;
}

stk_run *ext_run_borrow(ext_state *state, PyObject *op)
{
    if (Py_IS_TYPE(op, state->run_type)) return ((Run *)op)->core;
    PyErr_Format(PyExc_TypeError, "expected a Run, not %.80s", Py_TYPE(op)->tp_name);
    return NULL;
}

/* How long to wait before looking again: signals are handled by the main thread alone, so no
 * other needs to wake for them.  Python's main thread is the process's first. */
static int64_t slice(int64_t deadline)
{
    int64_t left = STK_FOREVER;
    if (deadline != STK_FOREVER) {
        left = deadline - ext_now_ns();
        if (left < 0) left = STK_NOWAIT;
    }
    if (gettid() != getpid()) return left;
    return left == STK_FOREVER || left > SLICE_NS ? SLICE_NS : left;
}

/* What one wait gives. */
typedef struct taken {
    stk_item *items[EXT_AHEAD];
    size_t n; /* 0 with STK_OK: a signal handler raised */
    stk_diag diag;
} taken;

static stk_err wait_items(stk_run *core, int64_t timeout, PyObject *grow, taken *t)
{
    const size_t burst = stk_run_burst(core), most = burst < EXT_AHEAD ? burst : EXT_AHEAD;
    t->n = 0;
    t->diag.err = STK_OK;
    t->diag.text[0] = 0;
    /* What is there needs no wait, and no contest for the GIL afterwards. */
    stk_err err = stk_run_next_items(core, STK_NOWAIT, most, t->items, &t->n, &t->diag);
    const int64_t deadline = timeout == STK_FOREVER ? STK_FOREVER : ext_now_ns() + timeout;
    while ((err == STK_ETIMEOUT || err == STK_EAGAIN) && timeout != STK_NOWAIT) {
        if (grow != Py_None && !ext_run_grow(core, grow)) return STK_OK;
        const int64_t wait = slice(deadline);
        Py_BEGIN_ALLOW_THREADS
        err = stk_run_next_items(core, wait, most, t->items, &t->n, &t->diag);
        Py_END_ALLOW_THREADS
        if (err != STK_ETIMEOUT && err != STK_EAGAIN) break;
        if (PyErr_CheckSignals() < 0) return STK_OK;
        if (deadline != STK_FOREVER && ext_now_ns() >= deadline) break;
    }
    return err;
}

static PyObject *result_of(ext_state *state, stk_item *item)
{
    PyObject *value = ext_item_take_value(item);
    if (value) return value;
    stk_batch *batch = stk_item_batch(item);
    if (!batch) return ext_sample_of(state, item);
    batch = stk_batch_ref(batch);
    return ext_batch_give(state, &batch);
}

/* Puts values[1..n) in front of what other readers may have kept meanwhile. */
static bool keep_rest(Run *self, PyObject *const *values, size_t n)
{
    bool kept = true;
    if (n == 1) return true;
    Py_BEGIN_CRITICAL_SECTION(self);
    const size_t before = self->num_ahead;
    PyObject **ahead = PyMem_Realloc(self->ahead, (before + n - 1) * sizeof(*ahead));
    kept = ahead;
    if (kept) {
        self->ahead = ahead;
        memmove(ahead + n - 1, ahead, before * sizeof(*ahead));
        for (size_t i = 1; i < n; i++) ahead[n - 1 - i] = values[i];
        self->num_ahead = before + n - 1;
    }
    Py_END_CRITICAL_SECTION();
    return kept;
}

/* The first of them is given, the others are kept for later reads. */
static PyObject *keep(Run *self, ext_state *state, taken *t)
{
    PyObject *values[EXT_AHEAD];
    size_t n = 0;
    while (n < t->n && (values[n] = result_of(state, t->items[n]))) n++;
    const bool all = n == t->n;
    stk_items_free(t->items, t->n);
    if (all && keep_rest(self, values, n)) return values[0];
    while (n > 0) Py_DECREF(values[--n]); /* no memory: they are lost, and the read says so */
    return PyErr_Occurred() ? NULL : PyErr_NoMemory();
}

PyObject *ext_run_pop(PyObject *op)
{
    Run *self = (Run *)op;
    PyObject *value = NULL;
    Py_BEGIN_CRITICAL_SECTION(self);
    if (self->num_ahead > 0) value = self->ahead[--self->num_ahead];
    Py_END_CRITICAL_SECTION();
    return value;
}

static PyObject *run_next(PyObject *op, PyObject *const *args, Py_ssize_t num)
{
    int64_t timeout;
    if (num != 2) {
        PyErr_SetString(PyExc_TypeError, "next() takes a timeout and grow");
        return NULL;
    }
    if (!ext_timeout(args[0], &timeout)) return NULL;
    PyObject *ready = ext_run_pop(op);
    if (ready) return ready;

    ext_state *state = PyType_GetModuleState(Py_TYPE(op)); /* final type: this is ours */
    taken t;
    stk_err err = wait_items(((Run *)op)->core, timeout, args[1], &t);
    stk_foreign_drain(state->domain);
    switch (err) {
    case STK_OK: return t.n > 0 ? keep((Run *)op, state, &t) : NULL;
    case STK_EEND: return Py_NewRef(state->codes[EXT_END]);
    case STK_EEPOCH: return Py_NewRef(state->codes[EXT_EPOCH_END]);
    case STK_EAGAIN:
    case STK_ETIMEOUT: return Py_NewRef(state->codes[EXT_TIMED_OUT]);
    case STK_ECANCELLED: return Py_NewRef(state->codes[EXT_CANCELLED]);
    default: return ext_raise(err, &t.diag);
    }
}

/* Moves results to the list; those that cannot be moved are lost with the exception. */
static bool append_results(ext_state *state, PyObject *list, stk_item **items, size_t n)
{
    bool good = true;
    for (size_t i = 0; i < n; i++) {
        PyObject *value = NULL;
        if (good && !items[i])
            value = Py_NewRef(state->codes[EXT_EPOCH_END]);
        else if (good)
            value = result_of(state, items[i]);
        good = value && PyList_Append(list, value) == 0;
        Py_XDECREF(value);
        stk_item_free(&items[i]);
    }
    return good;
}

static PyObject *run_last(PyObject *op, PyObject *arg)
{
    ext_state *state = PyType_GetModuleState(Py_TYPE(op));
    const Py_ssize_t max = PyLong_AsSsize_t(arg);
    if (max == -1 && PyErr_Occurred()) return NULL;
    PyObject *list = PyList_New(0);
    stk_item **items = PyMem_New(stk_item *, max);
    size_t n = 0;
    bool good = list && items;
    for (PyObject *value; good && PyList_GET_SIZE(list) < max && (value = ext_run_pop(op));) {
        good = PyList_Append(list, value) == 0;
        Py_DECREF(value);
    }
    stk_err err = STK_OK;
    if (good)
        err =
            stk_run_last_items(((Run *)op)->core, (size_t)(max - PyList_GET_SIZE(list)), items, &n);
    good = good && !err && append_results(state, list, items, n);
    PyMem_Free(items);
    if (good) return list;
    Py_XDECREF(list);
    if (err) return ext_raise(err, NULL);
    return PyErr_Occurred() ? NULL : PyErr_NoMemory();
}

static PyObject *run_look(PyObject *op, PyObject *unused)
{
    (void)unused;
    stk_diag diag = {0};
    size_t n;
    stk_err err = stk_run_next_items(((Run *)op)->core, STK_NOWAIT, 0, NULL, &n, &diag);
    switch (err) {
    case STK_OK:
    case STK_EEND:
    case STK_EEPOCH:
    case STK_EAGAIN:
    case STK_ETIMEOUT:
    case STK_ECANCELLED: Py_RETURN_NONE;
    default: return ext_raise(err, &diag);
    }
}

static PyObject *run_close(PyObject *op, PyObject *unused)
{
    (void)unused;
    stk_run_close(((Run *)op)->core);
    Py_RETURN_NONE;
}

static PyObject *run_ended(PyObject *op, PyObject *unused)
{
    (void)unused;
    return PyBool_FromLong(stk_run_ended(((Run *)op)->core));
}

static PyObject *run_cancel(PyObject *op, PyObject *unused)
{
    (void)unused;
    stk_run_cancel(((Run *)op)->core);
    Py_RETURN_NONE;
}

static void drop_ahead(Run *self)
{
    PyObject **ahead;
    size_t n;
    Py_BEGIN_CRITICAL_SECTION(self);
    ahead = self->ahead;
    n = self->num_ahead;
    self->ahead = NULL;
    self->num_ahead = 0;
    Py_END_CRITICAL_SECTION();
    while (n > 0) Py_DECREF(ahead[--n]);
    PyMem_Free(ahead);
}

static PyObject *run_stop(PyObject *op, PyObject *arg)
{
    stk_run *core = ((Run *)op)->core;
    int64_t timeout;
    if (!ext_timeout(arg, &timeout)) return NULL;
    drop_ahead((Run *)op);

    stk_diag diag = {0};
    stk_err err;
    const int64_t deadline = timeout == STK_FOREVER ? STK_FOREVER : ext_now_ns() + timeout;
    for (;;) {
        const int64_t wait = slice(deadline);
        Py_BEGIN_ALLOW_THREADS
        err = stk_run_stop(core, wait, &diag);
        Py_END_ALLOW_THREADS
        if (err != STK_ETIMEOUT) break;
        if (PyErr_CheckSignals() < 0) return NULL;
        if (deadline != STK_FOREVER && ext_now_ns() >= deadline) break;
    }
    ext_state *state = PyType_GetModuleState(Py_TYPE(op));
    stk_foreign_drain(state->domain);
    if (err) return ext_raise(err, &diag);
    return PyBool_FromLong(stk_run_is_over(core));
}

static PyObject *run_stats(PyObject *op, PyObject *unused)
{
    (void)unused;
    stk_stats *stats = NULL;
    stk_err err = stk_run_stats(((Run *)op)->core, &stats);
    if (err) return ext_raise(err, NULL);
    PyObject *dict = ext_stats_dict(stats);
    stk_stats_free(&stats);
    return dict;
}

static PyObject *run_figures(PyObject *op, PyObject *before)
{
    return ext_run_figures(((Run *)op)->core, before);
}

typedef stk_err ask(stk_run *run, stk_failure **out, size_t *n);

static PyObject *failures_of(PyObject *op, ask *get)
{
    stk_failure *failures = NULL;
    size_t n = 0;
    stk_err err = get(((Run *)op)->core, &failures, &n);
    if (err) return ext_raise(err, NULL);
    PyObject *list = ext_failures_list(failures, n);
    stk_failures_free(&failures, n);
    return list;
}

static PyObject *run_failures(PyObject *op, PyObject *unused)
{
    (void)unused;
    return failures_of(op, stk_run_failures);
}

static PyObject *run_causes(PyObject *op, PyObject *unused)
{
    (void)unused;
    return failures_of(op, stk_run_causes);
}

static int run_traverse(PyObject *op, visitproc visit, void *arg)
{
    const Run *self = (Run *)op;
    for (size_t i = 0; i < self->num_ahead; i++) Py_VISIT(self->ahead[i]);
    Py_VISIT(Py_TYPE(op));
    return 0;
}

static void run_dealloc(PyObject *op)
{
    PyTypeObject *type = Py_TYPE(op);
    PyObject_GC_UnTrack(op);
    drop_ahead((Run *)op);
    Py_BEGIN_ALLOW_THREADS /* it may wait for ops that are still running */
    stk_run_free(&((Run *)op)->core);
    Py_END_ALLOW_THREADS
    ext_drain(type);
    type->tp_free(op);
    Py_DECREF(type);
}

static PyMethodDef run_methods[] = {
    {"next", (PyCFunction)(void (*)(void))run_next, METH_FASTCALL,
     PyDoc_STR(
         "next($self, timeout, grow, /)\n--\n\nThe next result, or END, EPOCH_END, TIMED_OUT or "
         "CANCELLED; any other failure is raised.  grow(group), or None: asks for a lane.")},
    {"last", run_last, METH_O,
     PyDoc_STR(
         "last($self, max, /)\n--\n\nCancels; a list of up to max results that were there, and "
         "of EPOCH_ENDs among them.")},
    {"look", run_look, METH_NOARGS,
     PyDoc_STR("look($self, /)\n--\n\nRaises the failure that the next read would find.")},
    {"close", run_close, METH_NOARGS,
     PyDoc_STR("close($self, /)\n--\n\nNo more samples begin; those in flight still arrive.")},
    {"cancel", run_cancel, METH_NOARGS,
     PyDoc_STR("cancel($self, /)\n--\n\nEnds every waiting or later read.")},
    {"ended", run_ended, METH_NOARGS,
     PyDoc_STR("ended($self, /)\n--\n\nWhether no op begins any more.")},
    {"stop", run_stop, METH_O,
     PyDoc_STR("stop($self, timeout, /)\n--\n\n"
               "Cancels, drops what was taken ahead and waits until no op is running; False: a "
               "source in Python is, which nobody waits for.")},
    {"stats", run_stats, METH_NOARGS,
     PyDoc_STR("stats($self, /)\n--\n\nWhat each stage and queue did.")},
    {"figures", run_figures, METH_O,
     PyDoc_STR("figures($self, before, /)\n--\n\nWhat tasks and queues did, and a snapshot.")},
    {"failures", run_failures, METH_NOARGS,
     PyDoc_STR("failures($self, /)\n--\n\nThe first failures of samples, as dicts.")},
    {"causes", run_causes, METH_NOARGS,
     PyDoc_STR("causes($self, /)\n--\n\nWhat reads failed with, and behind it what led to it.")},
    {NULL, NULL, 0, NULL}, /* end */
};

/* clang-format off */
static PyType_Slot run_slots[] = {
    {Py_tp_doc, (void *)"One execution of a plan; use stoker.Pipeline."},
    {Py_tp_traverse, run_traverse},
    {Py_tp_dealloc, run_dealloc},
    {Py_tp_methods, run_methods},
    {0, NULL},
};
/* clang-format on */

PyType_Spec ext_run_spec = {
    .name = "stoker._stoker.Run",
    .basicsize = sizeof(Run),
    .flags = EXT_TYPE_FLAGS,
    .slots = run_slots,
};
