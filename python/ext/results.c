#include "ext.h"

#include <structmember.h>

/* The base of PipelineIterator: results that a run has taken ahead need no Python code; for all
 * else it calls its method _refill. */
typedef struct {
    PyObject_HEAD
    PyObject *run; /* a Run, or None: then _refill is always called */
} Results;

/* A new reference, or NULL: another reader may be changing it. */
static PyObject *run_of(PyObject *op)
{
    PyObject *run;
    Py_BEGIN_CRITICAL_SECTION(op);
    run = Py_XNewRef(((Results *)op)->run);
    Py_END_CRITICAL_SECTION();
    return run;
}

static PyObject *results_next(PyObject *op)
{
    ext_state *state = ext_state_of(Py_TYPE(op));
    if (!state) return NULL;
    PyObject *run = run_of(op);
    PyObject *value = run && Py_IS_TYPE(run, state->run_type) ? ext_run_pop(run) : NULL;
    Py_XDECREF(run);
    return value ? value : PyObject_CallMethod(op, "_refill", NULL);
}

static int results_traverse(PyObject *op, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(op));
    Py_VISIT(((Results *)op)->run);
    return 0;
}

static int results_clear(PyObject *op)
{
    Py_CLEAR(((Results *)op)->run);
    return 0;
}

static void results_dealloc(PyObject *op)
{
    PyTypeObject *type = Py_TYPE(op);
    PyObject_GC_UnTrack(op);
    (void)results_clear(op);
    type->tp_free(op);
    Py_DECREF(type);
}

static PyMemberDef results_members[] = {
    {"_run", T_OBJECT, offsetof(Results, run), 0, PyDoc_STR("The Run whose results it gives.")},
    {NULL, 0, 0, 0, NULL}, /* end */
};

/* clang-format off */
static PyType_Slot results_slots[] = {
    {Py_tp_doc, (void *)"What iterates a pipeline; see stoker.pipeline.PipelineIterator."},
    {Py_tp_traverse, results_traverse},
    {Py_tp_clear, results_clear},
    {Py_tp_dealloc, results_dealloc},
    {Py_tp_iter, PyObject_SelfIter},
    {Py_tp_iternext, results_next},
    {Py_tp_members, results_members},
    {0, NULL},
};
/* clang-format on */

PyType_Spec ext_results_spec = {
    .name = "stoker._stoker.Results",
    .basicsize = sizeof(Results),
    .flags =
        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = results_slots,
};
