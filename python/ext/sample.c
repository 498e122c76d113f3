#include "sample.h"

#include <structmember.h>

typedef ext_sample Sample;

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

/* The parts behind the first; *out stays NULL if there are none. */
static bool rest_of(ext_state *state, const stk_item *item, PyObject **out)
{
    const size_t n = stk_item_num_parts(item);
    if (n < 2) return true;
    PyObject *rest = *out = PyTuple_New((Py_ssize_t)n - 1);
    for (size_t i = 1; rest && i < n; i++) {
        PyObject *value = part_value(state, item, i);
        if (!value) return false;
        PyTuple_SET_ITEM(rest, (Py_ssize_t)i - 1, value);
    }
    return rest;
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
    if (spec.dtype == STK_DTYPE_NONE) return PyUnicode_DecodeFSDefault(*(const char **)value);
    if (spec.ndim == 0 && spec.dtype == STK_BOOL) return PyBool_FromLong(*value);
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
    stk_source *source = stk_item_source(item);
    self->source = source ? stk_source_ref(source) : NULL;
    self->followed = true;
    self->id = PyLong_FromLongLong(stk_item_id(item));
    self->epoch = PyLong_FromLongLong(stk_item_epoch(item));
    self->key = key_of(item);
    self->label = label_of(state, item);
    self->data = part_value(state, item, 0);
    if (self->id && self->epoch && self->key && self->label && self->data &&
        rest_of(state, item, &self->rest))
        return (PyObject *)self;
    Py_DECREF(self);
    return NULL;
}

PyObject *ext_sample_with(ext_state *state, PyObject *op, PyObject *data)
{
    const Sample *from = (const Sample *)op;
    Sample *self = (Sample *)state->sample_type->tp_alloc(state->sample_type, 0);
    if (!self) return NULL;
    self->data = Py_NewRef(data);
    self->source = from->source ? stk_source_ref(from->source) : NULL;
    Py_BEGIN_CRITICAL_SECTION(op); /* its user may have kept it */
    self->id = Py_NewRef(from->id);
    self->epoch = Py_NewRef(from->epoch);
    self->key = Py_NewRef(from->key ? from->key : Py_None);
    self->label = Py_NewRef(from->label ? from->label : Py_None);
    self->rest = Py_XNewRef(from->rest);
    self->followed = from->followed;
    Py_END_CRITICAL_SECTION();
    return (PyObject *)self;
}

PyObject *ext_sample_follow(ext_state *state, PyObject *value, PyObject *result)
{
    if (!Py_IS_TYPE(value, state->sample_type) || !((Sample *)value)->followed) return result;
    if (Py_IS_TYPE(result, state->sample_type)) {
        ((Sample *)result)->followed = true;
        return result;
    }
    PyObject *made = ext_sample_with(state, value, result);
    Py_DECREF(result);
    return made;
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
    if (self->id && self->epoch) return (PyObject *)self;
    Py_DECREF(self);
    return NULL;
}

static PyObject *sample_get_parts(PyObject *op, void *closure)
{
    (void)closure;
    const Sample *self = (Sample *)op;
    PyObject *data, *rest;
    Py_BEGIN_CRITICAL_SECTION(op);
    data = Py_NewRef(self->data ? self->data : Py_None);
    rest = Py_XNewRef(self->rest);
    Py_END_CRITICAL_SECTION();
    PyObject *parts = PyTuple_Pack(1, data);
    if (parts && rest) Py_SETREF(parts, PySequence_Concat(parts, rest));
    Py_DECREF(data);
    Py_XDECREF(rest);
    return parts;
}

static int sample_set_parts(PyObject *op, PyObject *value, void *closure)
{
    (void)closure;
    Sample *self = (Sample *)op;
    PyObject *parts = value ? PySequence_Tuple(value) : NULL;
    if (!parts || PyTuple_GET_SIZE(parts) == 0) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "a sample has at least one part");
        Py_XDECREF(parts);
        return -1;
    }
    const Py_ssize_t n = PyTuple_GET_SIZE(parts);
    PyObject *rest = n > 1 ? PyTuple_GetSlice(parts, 1, n) : NULL;
    const bool good = n == 1 || rest;
    PyObject *data = good ? Py_NewRef(PyTuple_GET_ITEM(parts, 0)) : NULL;
    Py_DECREF(parts);
    if (!good) return -1;
    Py_BEGIN_CRITICAL_SECTION(op);
    PyObject *before = self->data;
    self->data = data;
    data = before;
    before = self->rest;
    self->rest = rest;
    rest = before;
    Py_END_CRITICAL_SECTION();
    Py_XDECREF(data);
    Py_XDECREF(rest);
    return 0;
}

static PyObject *sample_repr(PyObject *op)
{
    const Sample *self = (Sample *)op;
    PyObject *key;
    Py_BEGIN_CRITICAL_SECTION(op);
    key = Py_NewRef(self->key ? self->key : Py_None);
    Py_END_CRITICAL_SECTION();
    PyObject *text =
        PyUnicode_FromFormat("Sample(id=%S, epoch=%S, key=%R)", self->id, self->epoch, key);
    Py_DECREF(key);
    return text;
}

static int sample_traverse(PyObject *op, visitproc visit, void *arg)
{
    Sample *self = (Sample *)op;
    Py_VISIT(Py_TYPE(op));
    Py_VISIT(self->key);
    Py_VISIT(self->label);
    Py_VISIT(self->data);
    Py_VISIT(self->rest);
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
    Py_CLEAR(self->rest);
    return 0;
}

static void sample_dealloc(PyObject *op)
{
    PyTypeObject *type = Py_TYPE(op);
    PyObject_GC_UnTrack(op);
    (void)sample_clear(op);
    stk_source_unref(&((Sample *)op)->source);
    type->tp_free(op);
    Py_DECREF(type);
}

PyObject *ext_sample_made(PyObject *module, PyObject *args)
{
    PyObject *parts, *id, *epoch, *key, *label;
    int followed;
    if (!PyArg_ParseTuple(args, "O!O!O!OOp:sample_of", &PyTuple_Type, &parts, &PyLong_Type, &id,
                          &PyLong_Type, &epoch, &key, &label, &followed))
        return NULL;
    const ext_state *state = PyModule_GetState(module);
    Sample *self = (Sample *)state->sample_type->tp_alloc(state->sample_type, 0);
    if (!self) return NULL;
    self->id = Py_NewRef(id);
    self->epoch = Py_NewRef(epoch);
    self->key = Py_NewRef(key);
    self->label = Py_NewRef(label);
    self->followed = followed;
    if (sample_set_parts((PyObject *)self, parts, NULL) == 0) return (PyObject *)self;
    Py_DECREF(self);
    return NULL;
}

/* Not the source, which belongs to its process. */
static PyObject *sample_reduce(PyObject *op, PyObject *unused)
{
    (void)unused;
    const Sample *self = (Sample *)op;
    PyObject *module = PyType_GetModule(Py_TYPE(op));
    PyObject *make = module ? PyObject_GetAttrString(module, "sample_of") : NULL;
    PyObject *parts = make ? sample_get_parts(op, NULL) : NULL;
    if (!parts) {
        Py_XDECREF(make);
        return NULL;
    }
    PyObject *key, *label, *followed;
    Py_BEGIN_CRITICAL_SECTION(op);
    key = Py_NewRef(self->key ? self->key : Py_None);
    label = Py_NewRef(self->label ? self->label : Py_None);
    followed = self->followed ? Py_True : Py_False;
    Py_END_CRITICAL_SECTION();
    return Py_BuildValue("N(NOONNO)", make, parts, self->id, self->epoch, key, label, followed);
}

static PyMethodDef sample_methods[] = {
    {"__reduce__", sample_reduce, METH_NOARGS,
     PyDoc_STR("__reduce__($self, /)\n--\n\nFor pickle.")},
    {NULL, NULL, 0, NULL}, /* end */
};

static PyMemberDef sample_members[] = {
    {"id", T_OBJECT_EX, offsetof(Sample, id), READONLY,
     PyDoc_STR("Its index in the source's listing; -1 of a Sample that a program made.")},
    {"epoch", T_OBJECT_EX, offsetof(Sample, epoch), READONLY, PyDoc_STR("The epoch, from 0.")},
    {"key", T_OBJECT_EX, offsetof(Sample, key), 0, PyDoc_STR("The path of its first part.")},
    {"label", T_OBJECT_EX, offsetof(Sample, label), 0, PyDoc_STR("Its label, or None.")},
    {"data", T_OBJECT_EX, offsetof(Sample, data), 0,
     PyDoc_STR("What the last stage made of its first part.")},
    {NULL, 0, 0, 0, NULL}, /* end */
};

static PyGetSetDef sample_getset[] = {
    {"parts", sample_get_parts, sample_set_parts,
     PyDoc_STR("What the last stage made of each part; `data` is the first."), NULL},
    {NULL, NULL, NULL, NULL, NULL}, /* end */
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
    {Py_tp_methods, sample_methods},
    {Py_tp_getset, sample_getset},
    {0, NULL},
};
/* clang-format on */

PyType_Spec ext_sample_spec = {
    .name = "stoker._stoker.Sample",
    .basicsize = sizeof(Sample),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = sample_slots,
};
