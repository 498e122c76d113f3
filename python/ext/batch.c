#include "lane.h"

typedef struct {
    PyObject_HEAD
    stk_batch *core; /* never changes */
} Batch;

PyObject *ext_batch_give(ext_state *state, stk_batch **batch)
{
    Batch *self = (Batch *)state->batch_type->tp_alloc(state->batch_type, 0);
    if (!self) {
        stk_batch_unref(batch);
        return NULL;
    }
    self->core = *batch;
    *batch = NULL;
    return (PyObject *)self;
}

stk_batch *ext_batch_borrow(ext_state *state, PyObject *op)
{
    return Py_IS_TYPE(op, state->batch_type) ? ((Batch *)op)->core : NULL;
}

/* A field of strings is a list of str; any other is a Field. */
static PyObject *field_value(PyObject *op, size_t field)
{
    const stk_batch *core = ((Batch *)op)->core;
    if (!stk_batch_field_is_strings(core, field)) {
        stk_tensor view;
        stk_buffer *mem;
        stk_err err = stk_batch_array(core, field, &view, &mem);
        if (err) return ext_raise(err, NULL);
        return ext_field_give(PyType_GetModuleState(Py_TYPE(op)), &view, &mem,
                              false); /* final type: this is ours */
    }

    const size_t n = stk_batch_size(core);
    PyObject *list = PyList_New((Py_ssize_t)n);
    for (size_t i = 0; list && i < n; i++) {
        const char *text = stk_batch_string(core, field, i);
        PyObject *value = text ? PyUnicode_DecodeFSDefault(text) : Py_NewRef(Py_None);
        if (value)
            PyList_SET_ITEM(list, (Py_ssize_t)i, value);
        else
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *batch_fields(PyObject *op, PyObject *unused)
{
    (void)unused;
    const stk_batch *core = ((Batch *)op)->core;
    const size_t n = stk_batch_num_fields(core);
    PyObject *names = PyTuple_New((Py_ssize_t)n);
    for (size_t i = 0; names && i < n; i++) {
        PyObject *name = PyUnicode_DecodeFSDefault(stk_batch_field_name(core, i));
        if (name)
            PyTuple_SET_ITEM(names, (Py_ssize_t)i, name);
        else
            Py_CLEAR(names);
    }
    return names;
}

/* The number of the field called `name`, -1 if there is none, -2 with an exception. */
static int find(PyObject *op, PyObject *name)
{
    PyObject *bytes;
    if (!PyUnicode_Check(name)) return -1;
    if (!PyUnicode_FSConverter(name, &bytes)) {
        if (!PyErr_ExceptionMatches(PyExc_ValueError)) return -2;
        PyErr_Clear(); /* a NUL, or what no name can hold: not a field */
        return -1;
    }
    const int field = stk_batch_find(((Batch *)op)->core, PyBytes_AS_STRING(bytes));
    Py_DECREF(bytes);
    return field;
}

static void raise_missing(PyObject *op, PyObject *type, PyObject *name)
{
    PyObject *names = batch_fields(op, NULL);
    const bool label = PyUnicode_Check(name) && !PyUnicode_CompareWithASCIIString(name, "label");
    if (names)
        PyErr_Format(type, "the batch has no field %R: it has %R%s", name, names,
                     label ? "; give the source labels" : "");
    Py_XDECREF(names);
}

static PyObject *batch_getattro(PyObject *op, PyObject *name)
{
    PyObject *value = PyObject_GenericGetAttr(op, name);
    if (value || !PyErr_ExceptionMatches(PyExc_AttributeError)) return value;
    PyErr_Clear();
    const int field = find(op, name);
    if (field >= 0) return field_value(op, (size_t)field);
    if (field == -1) raise_missing(op, PyExc_AttributeError, name);
    return NULL;
}

static PyObject *batch_get_key(PyObject *op, void *closure)
{
    (void)closure;
    const stk_batch *core = ((Batch *)op)->core;
    const size_t n = stk_batch_size(core);
    PyObject *list = PyList_New((Py_ssize_t)n);
    for (size_t i = 0; list && i < n; i++) {
        char key[EXT_KEY_SIZE];
        stk_err err = stk_batch_key(core, i, key, sizeof(key));
        PyObject *value = NULL;
        if (!err)
            value = PyUnicode_DecodeFSDefault(key);
        else if (err == STK_ENOTFOUND)
            value = Py_NewRef(Py_None);
        else
            ext_raise(err, NULL);
        if (value)
            PyList_SET_ITEM(list, (Py_ssize_t)i, value);
        else
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *batch_subscript(PyObject *op, PyObject *name)
{
    const int field = find(op, name);
    if (field >= 0) return field_value(op, (size_t)field);
    if (field < -1) return NULL;
    if (PyUnicode_Check(name) && PyUnicode_CompareWithASCIIString(name, "key") == 0)
        return batch_get_key(op, NULL);
    raise_missing(op, PyExc_KeyError, name);
    return NULL;
}

static int batch_contains(PyObject *op, PyObject *name)
{
    const int field = find(op, name);
    return field < -1 ? -1 : field >= 0;
}

static PyObject *batch_get_size(PyObject *op, void *closure)
{
    (void)closure;
    return PyLong_FromSize_t(stk_batch_size(((Batch *)op)->core));
}

static PyObject *batch_get_epoch(PyObject *op, void *closure)
{
    (void)closure;
    return PyLong_FromLongLong(stk_batch_epoch(((Batch *)op)->core));
}

static PyObject *batch_get_index(PyObject *op, void *closure)
{
    (void)closure;
    return PyLong_FromLongLong(stk_batch_index(((Batch *)op)->core));
}

static Py_ssize_t batch_length(PyObject *op)
{
    return (Py_ssize_t)stk_batch_size(((Batch *)op)->core);
}

/* A batch without samples is still a batch. */
static int batch_bool(PyObject *op)
{
    (void)op;
    return 1;
}

static PyObject *batch_repr(PyObject *op)
{
    const stk_batch *core = ((Batch *)op)->core;
    PyObject *names = batch_fields(op, NULL);
    if (!names) return NULL;
    PyObject *text = PyUnicode_FromFormat("Batch(size=%zu, epoch=%lld, index=%lld, fields=%R)",
                                          stk_batch_size(core), (long long)stk_batch_epoch(core),
                                          (long long)stk_batch_index(core), names);
    Py_DECREF(names);
    return text;
}

static int batch_traverse(PyObject *op, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(op));
    return 0;
}

static void batch_dealloc(PyObject *op)
{
    PyTypeObject *type = Py_TYPE(op);
    PyObject_GC_UnTrack(op);
    stk_batch_unref(&((Batch *)op)->core);
    type->tp_free(op);
    Py_DECREF(type);
}

static PyMethodDef batch_methods[] = {
    {"fields", batch_fields, METH_NOARGS,
     PyDoc_STR("fields($self, /)\n--\n\nThe names of the fields.")},
    {"__reduce__", ext_batch_reduce, METH_NOARGS,
     PyDoc_STR("__reduce__($self, /)\n--\n\nFor pickle: memory of fields may travel outside.")},
    {NULL, NULL, 0, NULL}, /* end */
};

static PyGetSetDef batch_getset[] = {
    {"key", batch_get_key, NULL, PyDoc_STR("The path of each sample."), NULL},
    {"size", batch_get_size, NULL, PyDoc_STR("How many samples are in it."), NULL},
    {"epoch", batch_get_epoch, NULL, PyDoc_STR("The epoch, from 0."), NULL},
    {"index", batch_get_index, NULL, PyDoc_STR("Its number within the epoch, from 0."), NULL},
    {NULL, NULL, NULL, NULL, NULL}, /* end */
};

PyDoc_STRVAR(batch_doc, "n samples, field by field: batch.image, batch[\"label\"], batch.key...");

/* clang-format off */
static PyType_Slot batch_slots[] = {
    {Py_tp_doc, (void *)batch_doc},
    {Py_tp_traverse, batch_traverse},
    {Py_tp_dealloc, batch_dealloc},
    {Py_tp_getattro, batch_getattro},
    {Py_tp_repr, batch_repr},
    {Py_tp_methods, batch_methods},
    {Py_tp_getset, batch_getset},
    {Py_nb_bool, batch_bool},
    {Py_mp_length, batch_length},
    {Py_mp_subscript, batch_subscript},
    {Py_sq_contains, batch_contains},
    {0, NULL},
};
/* clang-format on */

PyType_Spec ext_batch_spec = {
    .name = "stoker._stoker.Batch",
    .basicsize = sizeof(Batch),
    .flags = EXT_TYPE_FLAGS,
    .slots = batch_slots,
};
