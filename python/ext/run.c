#include "lane.h"

#include <stoker/lane.h>

#include <time.h>
#include <unistd.h>

typedef struct {
    PyObject_HEAD
    stk_run *core; /* never changes; locks for itself */
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

static int64_t now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * INT64_C(1000000000) + ts.tv_nsec;
}

/* How long to wait before looking again: signals are handled by the main thread alone, so no
 * other needs to wake for them.  Python's main thread is the process's first. */
static int64_t slice(int64_t deadline)
{
    int64_t left = STK_FOREVER;
    if (deadline != STK_FOREVER) {
        left = deadline - now_ns();
        if (left < 0) left = STK_NOWAIT;
    }
    if (gettid() != getpid()) return left;
    return left == STK_FOREVER || left > SLICE_NS ? SLICE_NS : left;
}

/* STK_OK with *item NULL: a signal handler raised. */
static stk_err wait_item(stk_run *core, int64_t timeout, PyObject *grow, stk_item **item,
                         stk_diag *diag)
{
    size_t n = 0;
    *item = NULL;
    /* What is there needs no wait, and no contest for the GIL afterwards. */
    stk_err err = stk_run_next_items(core, STK_NOWAIT, 1, item, &n, diag);
    const int64_t deadline = timeout == STK_FOREVER ? STK_FOREVER : now_ns() + timeout;
    while ((err == STK_ETIMEOUT || err == STK_EAGAIN) && timeout != STK_NOWAIT) {
        if (grow != Py_None) ext_run_grow(core, grow);
        const int64_t wait = slice(deadline);
        Py_BEGIN_ALLOW_THREADS
        err = stk_run_next_items(core, wait, 1, item, &n, diag);
        Py_END_ALLOW_THREADS
        if (err != STK_ETIMEOUT && err != STK_EAGAIN) break;
        if (PyErr_CheckSignals() < 0) return STK_OK;
        if (deadline != STK_FOREVER && now_ns() >= deadline) break;
    }
    return err;
}

static PyObject *result_of(ext_state *state, stk_item **item)
{
    PyObject *value = ext_item_take_value(*item);
    stk_batch *batch = stk_item_batch(*item);
    if (!value && !batch) return ext_sample_give(state, item);
    if (batch) batch = stk_batch_ref(batch);
    stk_item_free(item);
    return value ? value : ext_batch_give(state, &batch);
}

static PyObject *run_next(PyObject *op, PyObject *const *args, Py_ssize_t num)
{
    int64_t timeout;
    if (num != 2) {
        PyErr_SetString(PyExc_TypeError, "next() takes a timeout and grow");
        return NULL;
    }
    if (!ext_timeout(args[0], &timeout)) return NULL;

    ext_state *state = PyType_GetModuleState(Py_TYPE(op)); /* final type: this is ours */
    stk_diag diag;
    stk_item *item;
    diag.err = STK_OK;
    diag.text[0] = 0;
    stk_err err = wait_item(((Run *)op)->core, timeout, args[1], &item, &diag);
    stk_foreign_drain(state->domain);
    switch (err) {
    case STK_OK: return item ? result_of(state, &item) : NULL;
    case STK_EEND: return Py_NewRef(state->codes[EXT_END]);
    case STK_EEPOCH: return Py_NewRef(state->codes[EXT_EPOCH_END]);
    case STK_EAGAIN:
    case STK_ETIMEOUT: return Py_NewRef(state->codes[EXT_TIMED_OUT]);
    case STK_ECANCELLED: return Py_NewRef(state->codes[EXT_CANCELLED]);
    default: return ext_raise(err, &diag);
    }
}

static PyObject *run_close(PyObject *op, PyObject *unused)
{
    (void)unused;
    stk_run_close(((Run *)op)->core);
    Py_RETURN_NONE;
}

static PyObject *run_cancel(PyObject *op, PyObject *unused)
{
    (void)unused;
    stk_run_cancel(((Run *)op)->core);
    Py_RETURN_NONE;
}

static PyObject *run_stop(PyObject *op, PyObject *arg)
{
    stk_run *core = ((Run *)op)->core;
    int64_t timeout;
    if (!ext_timeout(arg, &timeout)) return NULL;

    stk_diag diag = {0};
    stk_err err;
    const int64_t deadline = timeout == STK_FOREVER ? STK_FOREVER : now_ns() + timeout;
    for (;;) {
        const int64_t wait = slice(deadline);
        Py_BEGIN_ALLOW_THREADS
        err = stk_run_stop(core, wait, &diag);
        Py_END_ALLOW_THREADS
        if (err != STK_ETIMEOUT) break;
        if (PyErr_CheckSignals() < 0) return NULL;
        if (deadline != STK_FOREVER && now_ns() >= deadline) break;
    }
    ext_state *state = PyType_GetModuleState(Py_TYPE(op));
    stk_foreign_drain(state->domain);
    if (err) return ext_raise(err, &diag);
    Py_RETURN_NONE;
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
    Py_VISIT(Py_TYPE(op));
    return 0;
}

static void run_dealloc(PyObject *op)
{
    PyTypeObject *type = Py_TYPE(op);
    PyObject_GC_UnTrack(op);
    Py_BEGIN_ALLOW_THREADS /* it may wait for ops that are still running */
    stk_run_free(&((Run *)op)->core);
    Py_END_ALLOW_THREADS
    ext_state *state = PyType_GetModuleState(type);
    stk_foreign_drain(state->domain);
    type->tp_free(op);
    Py_DECREF(type);
}

static PyMethodDef run_methods[] = {
    {"next", (PyCFunction)(void (*)(void))run_next, METH_FASTCALL,
     PyDoc_STR(
         "next($self, timeout, grow, /)\n--\n\nThe next result, or END, EPOCH_END, TIMED_OUT or "
         "CANCELLED; any other failure is raised.  grow(group), or None: asks for a lane.")},
    {"close", run_close, METH_NOARGS,
     PyDoc_STR("close($self, /)\n--\n\nNo more samples begin; those in flight still arrive.")},
    {"cancel", run_cancel, METH_NOARGS,
     PyDoc_STR("cancel($self, /)\n--\n\nEnds every waiting or later read.")},
    {"stop", run_stop, METH_O,
     PyDoc_STR("stop($self, timeout, /)\n--\n\nCancels and waits until no op is running.")},
    {"stats", run_stats, METH_NOARGS,
     PyDoc_STR("stats($self, /)\n--\n\nWhat each stage and queue did.")},
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
