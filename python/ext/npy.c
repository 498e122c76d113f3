#include "io.h"

#include <string.h>

#include <stoker/npy.h>

/* Bytes of another object, which keeps them where they are as long as it lives.  NumPy lets go of
 * a buffer once it has its address, and unpacks a memoryview: of this it keeps the object. */
typedef struct {
    PyObject_HEAD
    Py_buffer view; /* never changes */
} Held;

static bool is_bytes(const Py_buffer *b)
{
    const char *format = b->format ? b->format : "B";
    return b->ndim == 1 && strlen(format) == 1 && strchr("Bbc", *format) &&
           PyBuffer_IsContiguous(b, 'C');
}

/* NULL with an exception. */
static Held *hold(ext_state *state, PyObject *data)
{
    Held *self = (Held *)state->held_type->tp_alloc(state->held_type, 0);
    if (self && PyObject_GetBuffer(data, &self->view, PyBUF_FULL_RO) < 0)
        Py_CLEAR(self);
    else if (self && !is_bytes(&self->view)) {
        Py_CLEAR(self);
        stk_diag diag;
        ext_raise(stk_diag_set(&diag, STK_EINVAL,
                               "Expected a one-dimensional, C-contiguous byte buffer."),
                  &diag);
    }
    return self;
}

PyObject *ext_held(ext_state *state, PyObject *data)
{
    return (PyObject *)hold(state, data);
}

static PyObject *shape_of(const stk_npy *npy)
{
    PyObject *shape = PyTuple_New(npy->ndim);
    for (int32_t i = 0; shape && i < npy->ndim; i++) {
        PyObject *extent = PyLong_FromLongLong(npy->shape[i]);
        if (extent)
            PyTuple_SET_ITEM(shape, i, extent);
        else
            Py_CLEAR(shape);
    }
    return shape;
}

PyObject *ext_npy_header(PyObject *module, PyObject *data)
{
    Held *held = hold(PyModule_GetState(module), data);
    if (!held) return NULL;
    stk_npy npy;
    stk_diag diag = {0};
    const stk_err err = stk_npy_parse(held->view.buf, (size_t)held->view.len, &npy, &diag);
    PyObject *shape = err ? ext_raise(err, &diag) : shape_of(&npy);
    if (!shape) {
        Py_DECREF(held);
        return NULL;
    }
    return Py_BuildValue("sNsnN", npy.descr, shape, npy.fortran ? "F" : "C",
                         (Py_ssize_t)npy.data_offset, held);
}

static int held_getbuffer(PyObject *op, Py_buffer *out, int flags)
{
    const Py_buffer *view = &((Held *)op)->view;
    return PyBuffer_FillInfo(out, op, view->buf, view->len, view->readonly, flags);
}

static int held_traverse(PyObject *op, visitproc visit, void *arg)
{
    Py_VISIT(((Held *)op)->view.obj);
    Py_VISIT(Py_TYPE(op));
    return 0;
}

static void held_dealloc(PyObject *op)
{
    PyTypeObject *type = Py_TYPE(op);
    PyObject_GC_UnTrack(op);
    PyBuffer_Release(&((Held *)op)->view);
    type->tp_free(op);
    Py_DECREF(type);
}

/* clang-format off */
static PyType_Slot held_slots[] = {
    {Py_tp_doc, (void *)"Bytes of another object, which stay where they are."},
    {Py_tp_traverse, held_traverse},
    {Py_tp_dealloc, held_dealloc},
    {Py_bf_getbuffer, held_getbuffer},
    {0, NULL},
};
/* clang-format on */

PyType_Spec ext_held_spec = {
    .name = "stoker._stoker.Held",
    .basicsize = sizeof(Held),
    .flags = EXT_TYPE_FLAGS,
    .slots = held_slots,
};
