#include "av.h"

#include "dlpack.h"

#include <string.h>

/* An array and the memory that it lies in: nothing else of a batch or a run. */
typedef struct {
    PyObject_HEAD
    stk_tensor view; /* never changes, as all fields */
    stk_buffer *mem;
    bool readonly;
} Field;

_Static_assert(sizeof(Py_ssize_t) == sizeof(int64_t), "buffers borrow shape and strides");

/* How NumPy and the buffer protocol spell an element. */
typedef struct spelling {
    stk_dtype dtype;
    char format[2];
    char typestr[4];
} spelling;

static const spelling spellings[] = {
    {STK_BOOL, "?", "|b1"},    {STK_UINT8, "B", "|u1"},   {STK_INT8, "b", "|i1"},
    {STK_UINT16, "H", "<u2"},  {STK_INT16, "h", "<i2"},   {STK_UINT32, "I", "<u4"},
    {STK_INT32, "i", "<i4"},   {STK_UINT64, "L", "<u8"},  {STK_INT64, "l", "<i8"},
    {STK_FLOAT16, "e", "<f2"}, {STK_FLOAT32, "f", "<f4"}, {STK_FLOAT64, "d", "<f8"},
};

static const char NO_BFLOAT16[] =
    "bfloat16 has no format in NumPy or the buffer protocol: use torch.from_dlpack(field)";

/* NULL for bfloat16, which neither of them knows. */
static const spelling *spelling_of(stk_dtype dtype)
{
    for (size_t i = 0; i < sizeof(spellings) / sizeof(*spellings); i++)
        if (spellings[i].dtype == dtype) return &spellings[i];
    return NULL;
}

static PyObject *make(PyTypeObject *type, const stk_tensor *view, stk_buffer **mem, bool readonly)
{
    Field *self = (Field *)type->tp_alloc(type, 0);
    if (!self) {
        stk_buffer_unref(mem);
        return NULL;
    }
    self->view = *view;
    self->readonly = readonly;
    self->mem = *mem;
    *mem = NULL;
    return (PyObject *)self;
}

PyObject *ext_field_give(ext_state *state, const stk_tensor *view, stk_buffer **mem, bool readonly)
{
    return make(state->field_type, view, mem, readonly);
}

PyObject *ext_cpu_buffer_give(ext_state *state, const stk_tensor *view, stk_buffer **mem)
{
    return make(state->cpu_buffer_type, view, mem, false);
}

bool ext_field_borrow(ext_state *state, PyObject *op, stk_tensor *view, stk_buffer **mem)
{
    if (!Py_IS_TYPE(op, state->field_type) && !Py_IS_TYPE(op, state->cpu_buffer_type)) return false;
    *view = ((Field *)op)->view;
    *mem = ((Field *)op)->mem;
    return true;
}

static size_t count(const stk_tensor *view)
{
    size_t n = 1;
    for (int32_t i = 0; i < view->ndim; i++) n *= (size_t)view->shape[i];
    return n;
}

/* The whole description, as PyBUF_FULL wants it. */
static void fill(Field *self, Py_buffer *out)
{
    stk_tensor *view = &self->view;
    const spelling *s = spelling_of(view->dtype);
    *out = (Py_buffer){
        .buf = view->data,
        .len = (Py_ssize_t)(count(view) * stk_dtype_size(view->dtype)),
        .itemsize = (Py_ssize_t)stk_dtype_size(view->dtype),
        .readonly = self->readonly,
        .ndim = view->ndim,
        .format = s ? (char *)s->format : NULL,
        .shape = view->ndim ? (Py_ssize_t *)view->shape : NULL,
        .strides = view->ndim ? (Py_ssize_t *)view->strides : NULL,
    };
}

static int field_getbuffer(PyObject *op, Py_buffer *out, int flags)
{
    Field *self = (Field *)op;
    const char *why = NULL;
    fill(self, out);
    if ((flags & PyBUF_WRITABLE) && self->readonly)
        why = "the field is read-only";
    else if ((flags & PyBUF_FORMAT) && !out->format)
        why = NO_BFLOAT16;
    else if ((flags & PyBUF_STRIDES) != PyBUF_STRIDES && !PyBuffer_IsContiguous(out, 'C'))
        why = "the field is not contiguous";
    else if ((flags & PyBUF_C_CONTIGUOUS) == PyBUF_C_CONTIGUOUS && !PyBuffer_IsContiguous(out, 'C'))
        why = "the field is not contiguous";
    else if ((flags & PyBUF_F_CONTIGUOUS) == PyBUF_F_CONTIGUOUS && !PyBuffer_IsContiguous(out, 'F'))
        why = "the field is not contiguous in Fortran's order";
    if (why) {
        out->obj = NULL;
        PyErr_SetString(PyExc_BufferError, why);
        return -1;
    }
    if (!(flags & PyBUF_FORMAT)) out->format = NULL;
    if ((flags & PyBUF_ND) != PyBUF_ND) out->shape = NULL;
    if ((flags & PyBUF_STRIDES) != PyBUF_STRIDES) out->strides = NULL;
    out->obj = Py_NewRef(op);
    return 0;
}

static PyObject *tuple_of(const int64_t *values, int32_t n)
{
    PyObject *tuple = PyTuple_New(n);
    for (int32_t i = 0; tuple && i < n; i++) {
        PyObject *value = PyLong_FromLongLong(values[i]);
        if (value)
            PyTuple_SET_ITEM(tuple, i, value);
        else
            Py_CLEAR(tuple);
    }
    return tuple;
}

static PyObject *field_get_shape(PyObject *op, void *closure)
{
    (void)closure;
    return tuple_of(((Field *)op)->view.shape, ((Field *)op)->view.ndim);
}

static PyObject *field_get_strides(PyObject *op, void *closure)
{
    (void)closure;
    return tuple_of(((Field *)op)->view.strides, ((Field *)op)->view.ndim);
}

static PyObject *field_get_dtype(PyObject *op, void *closure)
{
    (void)closure;
    return PyUnicode_InternFromString(stk_dtype_str(((Field *)op)->view.dtype));
}

static PyObject *field_get_nbytes(PyObject *op, void *closure)
{
    (void)closure;
    const stk_tensor *view = &((Field *)op)->view;
    return PyLong_FromSize_t(count(view) * stk_dtype_size(view->dtype));
}

static PyObject *field_get_ndim(PyObject *op, void *closure)
{
    (void)closure;
    return PyLong_FromLong(((Field *)op)->view.ndim);
}

static PyObject *field_get_readonly(PyObject *op, void *closure)
{
    (void)closure;
    return PyBool_FromLong(((Field *)op)->readonly);
}

static PyObject *field_get_interface(PyObject *op, void *closure)
{
    (void)closure;
    Field *self = (Field *)op;
    const spelling *s = spelling_of(self->view.dtype);
    if (!s) {
        PyErr_SetString(PyExc_AttributeError, NO_BFLOAT16);
        return NULL;
    }
    PyObject *shape = field_get_shape(op, NULL);
    PyObject *strides = field_get_strides(op, NULL);
    PyObject *data = PyLong_FromVoidPtr(self->view.data);
    if (!shape || !strides || !data) {
        Py_XDECREF(shape);
        Py_XDECREF(strides);
        Py_XDECREF(data);
        return NULL;
    }
    return Py_BuildValue("{s:i,s:N,s:s,s:(NO),s:N}", "version", 3, "shape", shape, "typestr",
                         s->typestr, "data", data, self->readonly ? Py_True : Py_False, "strides",
                         strides);
}

/* Exactly what NumPy gives for an array like it. */
static PyObject *buffer_get_interface(PyObject *op, void *closure)
{
    (void)closure;
    Field *self = (Field *)op;
    const char *typestr = spelling_of(self->view.dtype)->typestr; /* frames are no bfloat16 */
    PyObject *shape = field_get_shape(op, NULL);
    PyObject *data = PyLong_FromVoidPtr(self->view.data);
    if (!shape || !data) {
        Py_XDECREF(shape);
        Py_XDECREF(data);
        return NULL;
    }
    return Py_BuildValue("{s:(NO),s:O,s:[(ss)],s:s,s:N,s:i}", "data", data, Py_False, "strides",
                         Py_None, "descr", "", typestr, "typestr", typestr, "shape", shape,
                         "version", 3);
}

/* NumPy asks for this last: without it, an element that it does not know would quietly become
 * an array of one object. */
static PyObject *field_array(PyObject *op, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"dtype", "copy", NULL};
    PyObject *dtype = Py_None, *copy = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OO:__array__", names, &dtype, &copy))
        return NULL;
    if (!spelling_of(((Field *)op)->view.dtype)) {
        PyErr_SetString(PyExc_TypeError, NO_BFLOAT16);
        return NULL;
    }
    PyObject *numpy = PyImport_ImportModule("numpy");
    PyObject *view = numpy ? PyMemoryView_FromObject(op) : NULL;
    PyObject *made = NULL;
    if (view) {
        const int copied = PyObject_IsTrue(copy);
        if (copied >= 0)
            made = PyObject_CallMethod(numpy, copied ? "array" : "asarray", "OO", view, dtype);
    }
    Py_XDECREF(view);
    Py_XDECREF(numpy);
    return made;
}

/* A capsule over a copy of the field. */
static PyObject *copied_capsule(Field *self, bool versioned)
{
    Py_buffer from;
    fill(self, &from);
    stk_buffer *mem = NULL;
    stk_err err = stk_buffer_new((size_t)from.len, &mem);
    if (err) return ext_raise(err, NULL);

    PyObject *capsule = NULL;
    void *to = stk_buffer_writable(mem);
    if (PyBuffer_ToContiguous(to, &from, from.len, 'C') == 0) {
        const stk_spec spec = stk_tensor_spec(&self->view);
        const stk_tensor view = stk_tensor_over(to, &spec);
        capsule = ext_dlpack_capsule(&view, mem, versioned, false, true);
    }
    stk_buffer_unref(&mem);
    return capsule;
}

/* Whether dl_device=(type, id) is where the field is; -1 with an exception. */
static int on_cpu(PyObject *device)
{
    if (device == Py_None) return 1;
    int type, id;
    if (!PyArg_Parse(device, "(ii);dl_device must be a pair of numbers", &type, &id)) return -1;
    return type == DLPACK_CPU && id == 0;
}

static PyObject *field_dlpack(PyObject *op, PyObject *args, PyObject *kwargs)
{
    Field *self = (Field *)op;
    static char *names[] = {"stream", "max_version", "dl_device", "copy", NULL};
    PyObject *stream = Py_None, *max_version = Py_None, *device = Py_None, *copy = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$OOOO:__dlpack__", names, &stream,
                                     &max_version, &device, &copy))
        return NULL;

    int major = 0, minor = 0;
    if (max_version != Py_None &&
        !PyArg_Parse(max_version, "(ii);max_version must be a pair of numbers", &major, &minor))
        return NULL;
    const int here = on_cpu(device);
    const int copied = copy == Py_None ? 0 : PyObject_IsTrue(copy);
    if (here < 0 || copied < 0) return NULL;
    if (!here) {
        PyErr_SetString(PyExc_BufferError, "the field is in the memory of the CPU, device (1, 0)");
        return NULL;
    }
    if (stream != Py_None) {
        PyErr_SetString(PyExc_BufferError, "stream must be None: the field is in the CPU's memory");
        return NULL;
    }
    if (copied) return copied_capsule(self, major >= 1);
    if (self->readonly && major < 1) {
        PyErr_SetString(PyExc_BufferError,
                        "the field is read-only, which DLPack can say from version 1.0 on only: "
                        "ask for copy=True");
        return NULL;
    }
    return ext_dlpack_capsule(&self->view, self->mem, major >= 1, self->readonly, false);
}

static PyObject *field_dlpack_device(PyObject *op, PyObject *unused)
{
    (void)op;
    (void)unused;
    return Py_BuildValue("(ii)", DLPACK_CPU, 0);
}

static Py_ssize_t field_length(PyObject *op)
{
    const stk_tensor *view = &((Field *)op)->view;
    if (view->ndim) return (Py_ssize_t)view->shape[0];
    PyErr_SetString(PyExc_TypeError, "a field without dimensions has no len()");
    return -1;
}

static PyObject *field_repr(PyObject *op)
{
    PyObject *shape = field_get_shape(op, NULL);
    if (!shape) return NULL;
    PyObject *text = PyUnicode_FromFormat("%s(%R, %s)", strrchr(Py_TYPE(op)->tp_name, '.') + 1,
                                          shape, stk_dtype_str(((Field *)op)->view.dtype));
    Py_DECREF(shape);
    return text;
}

static int field_traverse(PyObject *op, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(op)); /* an instance of a heap type owns its type */
    return 0;
}

static void field_dealloc(PyObject *op)
{
    PyTypeObject *type = Py_TYPE(op);
    PyObject_GC_UnTrack(op);
    stk_buffer_unref(&((Field *)op)->mem);
    ext_drain(type); /* memory of Python's goes with its last view */
    type->tp_free(op);
    Py_DECREF(type);
}

PyObject *ext_field_of(PyObject *module, PyObject *args)
{
    PyObject *data, *shape;
    const char *dtype;
    int readonly;
    if (!PyArg_ParseTuple(args, "OsO!p:field_of", &data, &dtype, &PyTuple_Type, &shape, &readonly))
        return NULL;
    stk_spec spec = {.dtype = stk_dtype_parse(dtype), .ndim = (int32_t)PyTuple_GET_SIZE(shape)};
    size_t bytes = 0;
    bool fits = PyTuple_GET_SIZE(shape) <= STK_MAX_NDIM;
    for (Py_ssize_t i = 0; fits && i < PyTuple_GET_SIZE(shape); i++) {
        spec.shape[i] = PyLong_AsLongLong(PyTuple_GET_ITEM(shape, i));
        if (spec.shape[i] == -1 && PyErr_Occurred()) return NULL;
    }
    ext_state *state = PyModule_GetState(module);
    stk_buffer *mem;
    const ext_found found = ext_bytes_of(state, data, &mem);
    if (found == EXT_RAISED) return NULL;
    fits = fits && found == EXT_FOUND && !stk_spec_bytes(&spec, &bytes) &&
           bytes == stk_buffer_size(mem);
    if (!fits) {
        stk_buffer_unref(&mem);
        PyErr_SetString(PyExc_ValueError, "the bytes do not make such a field");
        return NULL;
    }
    const stk_tensor view = stk_tensor_over((void *)stk_buffer_data(mem), &spec);
    return ext_field_give(state, &view, &mem, readonly);
}

/* The bytes of the field in C's order: itself where the protocol may take them without a copy. */
static PyObject *packed(PyObject *op, int protocol)
{
    const stk_tensor *view = &((Field *)op)->view;
    if (protocol >= 5 && stk_tensor_contiguous(view) && spelling_of(view->dtype))
        return PyPickleBuffer_FromObject(op);
    PyObject *bytes =
        PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(count(view) * stk_dtype_size(view->dtype)));
    if (bytes) stk_tensor_pack(view, PyBytes_AS_STRING(bytes));
    return bytes;
}

static PyObject *field_reduce(PyObject *op, PyObject *arg)
{
    const long protocol = PyLong_AsLong(arg);
    if (protocol == -1 && PyErr_Occurred()) return NULL;
    PyObject *module = PyType_GetModule(Py_TYPE(op));
    PyObject *make = module ? PyObject_GetAttrString(module, "field_of") : NULL;
    PyObject *data = make ? packed(op, (int)protocol) : NULL;
    PyObject *shape = data ? field_get_shape(op, NULL) : NULL;
    if (!shape) {
        Py_XDECREF(data);
        Py_XDECREF(make);
        return NULL;
    }
    return Py_BuildValue("N(NsNO)", make, data, stk_dtype_str(((Field *)op)->view.dtype), shape,
                         ((Field *)op)->readonly ? Py_True : Py_False);
}

static PyMethodDef field_methods[] = {
    {"__dlpack__", (PyCFunction)(void (*)(void))field_dlpack, METH_VARARGS | METH_KEYWORDS,
     PyDoc_STR("__dlpack__($self, /, *, stream=None, max_version=None, dl_device=None, copy=None)\n"
               "--\n\nA DLPack capsule that shares the field's memory.")},
    {"__dlpack_device__", field_dlpack_device, METH_NOARGS,
     PyDoc_STR("__dlpack_device__($self, /)\n--\n\n(1, 0): the CPU.")},
    {"__reduce_ex__", field_reduce, METH_O,
     PyDoc_STR("__reduce_ex__($self, protocol, /)\n--\n\nFor pickle; from protocol 5 on the memory "
               "may travel outside.")},
    {"__array__", (PyCFunction)(void (*)(void))field_array, METH_VARARGS | METH_KEYWORDS,
     PyDoc_STR("__array__($self, /, dtype=None, copy=None)\n--\n\nAs a NumPy array.")},
    {NULL, NULL, 0, NULL}, /* end */
};

static PyGetSetDef field_getset[] = {
    {"shape", field_get_shape, NULL, PyDoc_STR("Extents, outermost first."), NULL},
    {"strides", field_get_strides, NULL, PyDoc_STR("Bytes from one element to the next."), NULL},
    {"ndim", field_get_ndim, NULL, PyDoc_STR("How many extents."), NULL},
    {"dtype", field_get_dtype, NULL, PyDoc_STR("The element's name: \"uint8\"."), NULL},
    {"nbytes", field_get_nbytes, NULL, PyDoc_STR("Bytes of all elements."), NULL},
    {"readonly", field_get_readonly, NULL, PyDoc_STR("Whether it must not be written to."), NULL},
    {"__array_interface__", field_get_interface, NULL, PyDoc_STR("For NumPy."), NULL},
    {NULL, NULL, NULL, NULL, NULL}, /* end */
};

static PyGetSetDef buffer_getset[] = {
    {"shape", field_get_shape, NULL, PyDoc_STR("Extents, outermost first."), NULL},
    {"ndim", field_get_ndim, NULL, PyDoc_STR("How many extents."), NULL},
    {"dtype", field_get_dtype, NULL, PyDoc_STR("The element's name: \"uint8\"."), NULL},
    {"nbytes", field_get_nbytes, NULL, PyDoc_STR("Bytes of all elements."), NULL},
    {"__array_interface__", buffer_get_interface, NULL, PyDoc_STR("For NumPy."), NULL},
    {NULL, NULL, NULL, NULL, NULL}, /* end */
};

PyDoc_STRVAR(buffer_doc,
             "Decoded media as one array: numpy.asarray(buffer), memoryview(buffer) and\n"
             "torch.from_dlpack(buffer) share its memory, which lives as long as they do.");

PyDoc_STRVAR(field_doc, "An array of a batch: numpy.asarray(field), torch.from_dlpack(field) and\n"
                        "memoryview(field) share its memory, which lives as long as they do.");

/* clang-format off */
static PyType_Slot field_slots[] = {
    {Py_tp_doc, (void *)field_doc},
    {Py_tp_traverse, field_traverse},
    {Py_tp_dealloc, field_dealloc},
    {Py_tp_repr, field_repr},
    {Py_tp_methods, field_methods},
    {Py_tp_getset, field_getset},
    {Py_mp_length, field_length},
    {Py_bf_getbuffer, field_getbuffer},
    {0, NULL},
};

static PyType_Slot buffer_slots[] = {
    {Py_tp_doc, (void *)buffer_doc},
    {Py_tp_traverse, field_traverse},
    {Py_tp_dealloc, field_dealloc},
    {Py_tp_repr, field_repr},
    {Py_tp_methods, field_methods},
    {Py_tp_getset, buffer_getset},
    {Py_mp_length, field_length},
    {Py_bf_getbuffer, field_getbuffer},
    {0, NULL},
};
/* clang-format on */

PyType_Spec ext_cpu_buffer_spec = {
    .name = "stoker._stoker.CPUBuffer",
    .basicsize = sizeof(Field),
    .flags = EXT_TYPE_FLAGS,
    .slots = buffer_slots,
};

PyType_Spec ext_field_spec = {
    .name = "stoker._stoker.Field",
    .basicsize = sizeof(Field),
    .flags = EXT_TYPE_FLAGS,
    .slots = field_slots,
};
