#include "ext.h"

#include <structmember.h>

/* A plain value: what a stage of Python, or the reader, sees of an item that is no batch. */
typedef struct {
    PyObject_HEAD
    PyObject *id, *key, *label, *epoch, *data, *parts;
} Sample;

/* An array or bytes as a Field; what has neither is its path. */
static PyObject *part_value(ext_state *state, const stk_item *item, size_t part)
{
    stk_tensor view = stk_item_array(item, part);
    stk_buffer *mem = stk_item_array_buffer(item, part);
    if (view.data && mem) {
        mem = stk_buffer_ref(mem);
        return ext_field_give(state, &view, &mem, false);
    }
    stk_buffer *bytes = stk_item_bytes(item, part);
    if (bytes) {
        const stk_spec spec = {STK_UINT8, 1, {(int64_t)stk_buffer_size(bytes)}};
        view = stk_tensor_over((void *)stk_buffer_data(bytes), &spec);
        bytes = stk_buffer_ref(bytes);
        return ext_field_give(state, &view, &bytes, true);
    }
    char key[EXT_KEY_SIZE];
    if (stk_item_key(item, part, key, sizeof(key)) == STK_OK) return PyUnicode_DecodeFSDefault(key);
    Py_RETURN_NONE;
}

static PyObject *parts_of(ext_state *state, const stk_item *item)
{
    const size_t n = stk_item_num_parts(item);
    PyObject *parts = PyTuple_New((Py_ssize_t)n);
    for (size_t i = 0; parts && i < n; i++) {
        PyObject *value = part_value(state, item, i);
        if (value)
            PyTuple_SET_ITEM(parts, (Py_ssize_t)i, value);
        else
            Py_CLEAR(parts);
    }
    return parts;
}

static PyObject *key_of(const stk_item *item)
{
    char key[EXT_KEY_SIZE];
    if (stk_item_key(item, 0, key, sizeof(key)) != STK_OK) Py_RETURN_NONE;
    return PyUnicode_DecodeFSDefault(key);
}

/* The source's column "label" for this sample. */
static PyObject *label_of(ext_state *state, const stk_item *item)
{
    stk_spec spec;
    _Alignas(16) uint8_t value[64];
    size_t size;
    if (stk_item_column(item, "label", &spec, value, sizeof(value), &size) != STK_OK)
        Py_RETURN_NONE;
    if (spec.dtype == STK_DTYPE_NONE) return ext_text(*(const char **)value);
    if (spec.ndim == 0 && spec.dtype == STK_INT64) return PyLong_FromLongLong(*(int64_t *)value);
    if (spec.ndim == 0 && spec.dtype == STK_FLOAT64) return PyFloat_FromDouble(*(double *)value);
    stk_buffer *mem = NULL;
    stk_err err = stk_buffer_new(size ? size : 1, &mem);
    if (err) return ext_raise(err, NULL);
    memcpy(stk_buffer_writable(mem), value, size);
    stk_tensor view = stk_tensor_over(stk_buffer_writable(mem), &spec);
    return ext_field_give(state, &view, &mem, false);
}

PyObject *ext_sample_of(ext_state *state, const stk_item *item)
{
    Sample *self = (Sample *)state->sample_type->tp_alloc(state->sample_type, 0);
    if (!self) return NULL;
    self->id = PyLong_FromLongLong(stk_item_id(item));
    self->epoch = PyLong_FromLongLong(stk_item_epoch(item));
    self->key = key_of(item);
    self->label = label_of(state, item);
    self->parts = parts_of(state, item);
    if (self->id && self->epoch && self->key && self->label && self->parts) {
        self->data = Py_NewRef(PyTuple_GET_ITEM(self->parts, 0));
        return (PyObject *)self;
    }
    Py_DECREF(self);
    return NULL;
}

PyObject *ext_sample_give(ext_state *state, stk_item **item)
{
    PyObject *sample = ext_sample_of(state, *item);
    stk_item_free(item);
    return sample;
}

static PyObject *sample_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"data", "id", "key", "label", "epoch", NULL};
    PyObject *data = Py_None, *id = NULL, *key = Py_None, *label = Py_None, *epoch = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O$O!OOO!:Sample", names, &data, &PyLong_Type,
                                     &id, &key, &label, &PyLong_Type, &epoch))
        return NULL;
    Sample *self = (Sample *)type->tp_alloc(type, 0);
    if (!self) return NULL;
    self->id = id ? Py_NewRef(id) : PyLong_FromLong(-1);
    self->epoch = epoch ? Py_NewRef(epoch) : PyLong_FromLong(0);
    self->key = Py_NewRef(key);
    self->label = Py_NewRef(label);
    self->data = Py_NewRef(data);
    self->parts = PyTuple_Pack(1, data);
    if (self->id && self->epoch && self->parts) return (PyObject *)self;
    Py_DECREF(self);
    return NULL;
}

static PyObject *sample_repr(PyObject *op)
{
    const Sample *self = (Sample *)op;
    return PyUnicode_FromFormat("Sample(id=%S, epoch=%S, key=%R)", self->id, self->epoch,
                                self->key);
}

static int sample_traverse(PyObject *op, visitproc visit, void *arg)
{
    Sample *self = (Sample *)op;
    Py_VISIT(Py_TYPE(op));
    Py_VISIT(self->key);
    Py_VISIT(self->label);
    Py_VISIT(self->data);
    Py_VISIT(self->parts);
    return 0;
}

static int sample_clear(PyObject *op)
{
    Sample *self = (Sample *)op;
    Py_CLEAR(self->id);
    Py_CLEAR(self->epoch);
    Py_CLEAR(self->key);
    Py_CLEAR(self->label);
    Py_CLEAR(self->data);
    Py_CLEAR(self->parts);
    return 0;
}

static void sample_dealloc(PyObject *op)
{
    PyTypeObject *type = Py_TYPE(op);
    PyObject_GC_UnTrack(op);
    (void)sample_clear(op);
    type->tp_free(op);
    Py_DECREF(type);
}

static PyMemberDef sample_members[] = {
    {"id", T_OBJECT_EX, offsetof(Sample, id), READONLY,
     PyDoc_STR("Its index in the source's listing; -1 of a Sample that a program made.")},
    {"epoch", T_OBJECT_EX, offsetof(Sample, epoch), READONLY, PyDoc_STR("The epoch, from 0.")},
    {"key", T_OBJECT_EX, offsetof(Sample, key), 0, PyDoc_STR("The path of its first part.")},
    {"label", T_OBJECT_EX, offsetof(Sample, label), 0, PyDoc_STR("Its label, or None.")},
    {"data", T_OBJECT_EX, offsetof(Sample, data), 0,
     PyDoc_STR("What the last stage made of its first part.")},
    {"parts", T_OBJECT_EX, offsetof(Sample, parts), READONLY,
     PyDoc_STR("What the last stage made of each part.")},
    {NULL, 0, 0, 0, NULL}, /* end */
};

/* clang-format off */
static PyType_Slot sample_slots[] = {
    {Py_tp_doc, (void *)"Sample(data=None, *, id=-1, key=None, label=None, epoch=0)\n--\n\n"
                        "One sample between stages, or of a pipeline without a batch stage."},
    {Py_tp_new, sample_new},
    {Py_tp_traverse, sample_traverse},
    {Py_tp_clear, sample_clear},
    {Py_tp_dealloc, sample_dealloc},
    {Py_tp_repr, sample_repr},
    {Py_tp_members, sample_members},
    {0, NULL},
};
/* clang-format on */

PyType_Spec ext_sample_spec = {
    .name = "stoker._stoker.Sample",
    .basicsize = sizeof(Sample),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = sample_slots,
};
