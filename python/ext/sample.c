#include "ext.h"

/* The item is given back when `hold` goes: so a Field of its array needs nothing but memory. */
typedef struct {
    PyObject_HEAD
    stk_item *item; /* never changes, as all fields */
    stk_buffer *hold;
} Sample;

static void give_back(void *data, size_t size, void *ctx)
{
    (void)data;
    (void)size;
    stk_item *item = ctx;
    stk_item_free(&item);
}

PyObject *ext_sample_give(ext_state *state, stk_item **item)
{
    static const uint8_t nothing;
    Sample *self = (Sample *)state->sample_type->tp_alloc(state->sample_type, 0);
    stk_err err = STK_ENOMEM;
    if (self) err = stk_buffer_wrap((void *)&nothing, 0, give_back, *item, &self->hold);
    if (err) {
        stk_item_free(item);
        Py_XDECREF(self);
        return PyErr_Occurred() ? NULL : PyErr_NoMemory();
    }
    self->item = *item;
    *item = NULL;
    return (PyObject *)self;
}

/* An array or bytes as a Field; what has neither is its path. */
static PyObject *part_value(PyObject *op, size_t part)
{
    Sample *self = (Sample *)op;
    ext_state *state = PyType_GetModuleState(Py_TYPE(op)); /* final type: this is ours */
    stk_tensor view = stk_item_array(self->item, part);
    if (view.data) {
        stk_buffer *mem = stk_buffer_ref(self->hold);
        return ext_field_give(state, &view, &mem, false);
    }
    stk_buffer *bytes = stk_item_bytes(self->item, part);
    if (bytes) {
        const stk_spec spec = {STK_UINT8, 1, {(int64_t)stk_buffer_size(bytes)}};
        view = stk_tensor_over((void *)stk_buffer_data(bytes), &spec);
        bytes = stk_buffer_ref(bytes);
        return ext_field_give(state, &view, &bytes, true);
    }
    char key[EXT_KEY_SIZE];
    if (stk_item_key(self->item, part, key, sizeof(key)) == STK_OK)
        return PyUnicode_DecodeFSDefault(key);
    Py_RETURN_NONE;
}

static PyObject *sample_get_data(PyObject *op, void *closure)
{
    (void)closure;
    return part_value(op, 0);
}

static PyObject *sample_get_parts(PyObject *op, void *closure)
{
    (void)closure;
    const size_t n = stk_item_num_parts(((Sample *)op)->item);
    PyObject *parts = PyTuple_New((Py_ssize_t)n);
    for (size_t i = 0; parts && i < n; i++) {
        PyObject *value = part_value(op, i);
        if (value)
            PyTuple_SET_ITEM(parts, (Py_ssize_t)i, value);
        else
            Py_CLEAR(parts);
    }
    return parts;
}

static PyObject *sample_get_key(PyObject *op, void *closure)
{
    (void)closure;
    char key[EXT_KEY_SIZE];
    if (stk_item_key(((Sample *)op)->item, 0, key, sizeof(key)) != STK_OK) Py_RETURN_NONE;
    return PyUnicode_DecodeFSDefault(key);
}

static PyObject *sample_get_id(PyObject *op, void *closure)
{
    (void)closure;
    return PyLong_FromLongLong(stk_item_id(((Sample *)op)->item));
}

static PyObject *sample_get_epoch(PyObject *op, void *closure)
{
    (void)closure;
    return PyLong_FromLongLong(stk_item_epoch(((Sample *)op)->item));
}

static PyObject *sample_repr(PyObject *op)
{
    PyObject *key = sample_get_key(op, NULL);
    if (!key) return NULL;
    const stk_item *item = ((Sample *)op)->item;
    PyObject *text =
        PyUnicode_FromFormat("Sample(id=%lld, epoch=%lld, key=%R)", (long long)stk_item_id(item),
                             (long long)stk_item_epoch(item), key);
    Py_DECREF(key);
    return text;
}

static int sample_traverse(PyObject *op, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(op));
    return 0;
}

static void sample_dealloc(PyObject *op)
{
    PyTypeObject *type = Py_TYPE(op);
    PyObject_GC_UnTrack(op);
    stk_buffer_unref(&((Sample *)op)->hold);
    type->tp_free(op);
    Py_DECREF(type);
}

static PyGetSetDef sample_getset[] = {
    {"id", sample_get_id, NULL, PyDoc_STR("Its index in the source's listing."), NULL},
    {"epoch", sample_get_epoch, NULL, PyDoc_STR("The epoch, from 0."), NULL},
    {"key", sample_get_key, NULL, PyDoc_STR("The path of its first part."), NULL},
    {"data", sample_get_data, NULL, PyDoc_STR("What the last stage made of its first part."), NULL},
    {"parts", sample_get_parts, NULL, PyDoc_STR("What the last stage made of each part."), NULL},
    {NULL, NULL, NULL, NULL, NULL}, /* end */
};

/* clang-format off */
static PyType_Slot sample_slots[] = {
    {Py_tp_doc, (void *)"One sample of a pipeline without a batch stage."},
    {Py_tp_traverse, sample_traverse},
    {Py_tp_dealloc, sample_dealloc},
    {Py_tp_repr, sample_repr},
    {Py_tp_getset, sample_getset},
    {0, NULL},
};
/* clang-format on */

PyType_Spec ext_sample_spec = {
    .name = "stoker._stoker.Sample",
    .basicsize = sizeof(Sample),
    .flags = EXT_TYPE_FLAGS,
    .slots = sample_slots,
};
