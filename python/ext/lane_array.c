/* Arrays of Python's, seen without a copy: the buffer protocol, DLPack, NumPy's interface. */
#include "lane.h"

#include "column.h"
#include "dlpack.h"

#include <string.h>

/* Runs on any thread: the object is released by one that has the GIL. */
static void release(void *data, size_t size, void *ctx)
{
    (void)data;
    (void)size;
    stk_foreign *keeper = ctx;
    stk_foreign_unref(&keeper);
}

stk_buffer *ext_hold(ext_state *state, PyObject *keeper, void *data, size_t size)
{
    stk_foreign *f = ext_foreign_new(state, keeper);
    if (!f) return NULL;
    stk_buffer *mem;
    stk_err err = stk_buffer_wrap(data, size, release, f, &mem);
    if (!err) return mem;
    stk_foreign_unref(&f);
    ext_raise(err, NULL);
    return NULL;
}

static ext_found unsupported(const char *format)
{
    PyErr_Format(PyExc_TypeError, "arrays of elements '%s' are not supported", format);
    return EXT_RAISED;
}

/* `view`, complete, in memory that lives as long as `keeper`. */
static ext_found give(ext_state *state, PyObject *keeper, stk_tensor *view, stk_buffer **mem)
{
    static char nothing; /* an array without elements need not have an address */
    const stk_spec spec = stk_tensor_spec(view);
    size_t bytes;
    stk_err err = stk_spec_bytes(&spec, &bytes);
    if (err) {
        PyErr_Format(PyExc_ValueError, "an array of %d dimensions is too large", view->ndim);
        return EXT_RAISED;
    }
    if (bytes == 0 && !view->data) view->data = &nothing;
    if (!view->data) {
        PyErr_SetString(PyExc_ValueError, "the array has no memory");
        return EXT_RAISED;
    }
    *mem = ext_hold(state, keeper, view->data, bytes);
    return *mem ? EXT_FOUND : EXT_RAISED;
}

static bool check_ndim(int64_t ndim)
{
    if (ndim >= 0 && ndim <= STK_MAX_NDIM) return true;
    PyErr_Format(PyExc_ValueError, "an array of %lld dimensions: at most %d are possible",
                 (long long)ndim, STK_MAX_NDIM);
    return false;
}

/* --- the buffer protocol --- */

static ext_found of_buffer(ext_state *state, PyObject *value, stk_tensor *view, stk_buffer **mem)
{
    PyObject *keeper = PyMemoryView_FromObject(value);
    if (!keeper) return EXT_RAISED;
    const Py_buffer *b = PyMemoryView_GET_BUFFER(keeper);
    ext_found found = EXT_RAISED;
    *view = (stk_tensor){.data = b->buf, .dtype = ext_buffer_dtype(b), .ndim = b->ndim};
    if (view->dtype == STK_DTYPE_NONE)
        (void)unsupported(b->format ? b->format : "B");
    else if (b->suboffsets)
        PyErr_SetString(PyExc_TypeError, "arrays of pointers to rows are not supported");
    else if (check_ndim(b->ndim)) {
        for (int i = 0; i < b->ndim; i++) {
            view->shape[i] = b->shape[i];
            view->strides[i] = b->strides[i];
        }
        found = give(state, keeper, view, mem);
    }
    Py_DECREF(keeper);
    return found;
}

/* --- DLPack --- */

static stk_dtype of_code(dlpack_dtype t)
{
    static const stk_dtype ints[] = {
        [1] = STK_INT8, [2] = STK_INT16, [4] = STK_INT32, [8] = STK_INT64};
    static const stk_dtype uints[] = {
        [1] = STK_UINT8, [2] = STK_UINT16, [4] = STK_UINT32, [8] = STK_UINT64};
    static const stk_dtype floats[] = {[2] = STK_FLOAT16, [4] = STK_FLOAT32, [8] = STK_FLOAT64};
    const size_t size = t.bits / 8;
    if (t.lanes != 1 || t.bits % 8 || size > 8) return STK_DTYPE_NONE;
    switch (t.code) {
    case DLPACK_INT: return ints[size];
    case DLPACK_UINT: return uints[size];
    case DLPACK_FLOAT: return size == 1 ? STK_DTYPE_NONE : floats[size];
    case DLPACK_BFLOAT: return size == 2 ? STK_BFLOAT16 : STK_DTYPE_NONE;
    case DLPACK_BOOL: return size == 1 ? STK_BOOL : STK_DTYPE_NONE;
    default: return STK_DTYPE_NONE;
    }
}

static const dlpack_tensor *tensor_in(PyObject *capsule)
{
    if (PyCapsule_IsValid(capsule, "dltensor"))
        return &((dlpack_managed *)PyCapsule_GetPointer(capsule, "dltensor"))->tensor;
    const dlpack_versioned *m = PyCapsule_GetPointer(capsule, "dltensor_versioned");
    if (!m) return NULL;
    if (m->major == 1) return &m->tensor;
    PyErr_Format(PyExc_BufferError, "DLPack %u is not known: version 1 is", (unsigned)m->major);
    return NULL;
}

/* The capsule is not consumed, but kept: its end, with the GIL, is that of what it holds. */
static ext_found of_capsule(ext_state *state, PyObject *capsule, stk_tensor *view, stk_buffer **mem)
{
    const dlpack_tensor *t = tensor_in(capsule);
    if (!t || !check_ndim(t->ndim)) return EXT_RAISED;
    if (t->device.device_type != DLPACK_CPU && t->device.device_type != DLPACK_CUDA_HOST) {
        PyErr_Format(PyExc_BufferError,
                     "the array is on a device (%d, %d), not in the CPU's memory",
                     (int)t->device.device_type, (int)t->device.device_id);
        return EXT_RAISED;
    }
    *view = (stk_tensor){.dtype = of_code(t->dtype), .ndim = t->ndim};
    if (view->dtype == STK_DTYPE_NONE) return unsupported("of that DLPack type");
    if (t->data) view->data = (uint8_t *)t->data + t->byte_offset;
    int64_t stride = (int64_t)stk_dtype_size(view->dtype);
    const int64_t item = stride;
    for (int32_t i = t->ndim - 1; i >= 0; i--) {
        view->shape[i] = t->shape[i];
        view->strides[i] = t->strides ? t->strides[i] * item : stride;
        if (!t->strides && __builtin_mul_overflow(stride, t->shape[i], &stride)) stride = 0;
    }
    return give(state, capsule, view, mem);
}

static ext_found of_dlpack(ext_state *state, PyObject *value, stk_tensor *view, stk_buffer **mem)
{
    PyObject *capsule = PyObject_CallMethod(value, "__dlpack__", NULL);
    if (!capsule) return EXT_RAISED;
    ext_found found = of_capsule(state, capsule, view, mem);
    Py_DECREF(capsule);
    return found;
}

/* --- NumPy's interface --- */

static bool typestr(PyObject *text, stk_dtype *out)
{
    const char *s = text && PyUnicode_Check(text) ? PyUnicode_AsUTF8(text) : NULL;
    *out = STK_DTYPE_NONE;
    if (!s || strlen(s) != 3 || !strchr("<|=", s[0])) return false;
    const dlpack_dtype t = {
        .code = s[1] == 'b'   ? DLPACK_BOOL
                : s[1] == 'i' ? DLPACK_INT
                : s[1] == 'u' ? DLPACK_UINT
                : s[1] == 'f' ? DLPACK_FLOAT
                              : UINT8_MAX,
        .bits = (uint8_t)(s[2] >= '1' && s[2] <= '8' ? 8 * (s[2] - '0') : 0),
        .lanes = 1,
    };
    *out = of_code(t);
    return *out != STK_DTYPE_NONE;
}

/* A tuple of numbers; false with an exception. */
static bool extents(PyObject *tuple, int64_t *out, int32_t want)
{
    if (!tuple || !PyTuple_Check(tuple) || (want >= 0 && PyTuple_GET_SIZE(tuple) != want)) {
        PyErr_SetString(PyExc_TypeError, "__array_interface__: shape and strides must be tuples");
        return false;
    }
    if (!check_ndim(PyTuple_GET_SIZE(tuple))) return false;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); i++) {
        out[i] = PyLong_AsLongLong(PyTuple_GET_ITEM(tuple, i));
        if (out[i] == -1 && PyErr_Occurred()) return false;
    }
    return true;
}

/* Where the memory is, and in *keeper, a new reference, what keeps it. */
static void *memory_of(PyObject *value, PyObject *data, size_t bytes, PyObject **keeper)
{
    if (data && PyTuple_Check(data) && PyTuple_GET_SIZE(data) == 2) {
        *keeper = Py_NewRef(value);
        return PyLong_AsVoidPtr(PyTuple_GET_ITEM(data, 0));
    }
    *keeper = data && data != Py_None ? PyMemoryView_FromObject(data) : NULL;
    if (!*keeper) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "__array_interface__ without data");
        return NULL;
    }
    const Py_buffer *b = PyMemoryView_GET_BUFFER(*keeper);
    if (PyBuffer_IsContiguous(b, 'C') && (size_t)b->len >= bytes) return b->buf;
    PyErr_SetString(PyExc_ValueError, "__array_interface__: the data is too short for the shape");
    return NULL;
}

static ext_found of_interface(ext_state *state, PyObject *value, PyObject *interface,
                              stk_tensor *view, stk_buffer **mem)
{
    if (!PyDict_Check(interface)) {
        PyErr_SetString(PyExc_TypeError, "__array_interface__ must be a dict");
        return EXT_RAISED;
    }
    PyObject *shape = PyDict_GetItemString(interface, "shape");
    PyObject *strides = PyDict_GetItemString(interface, "strides");
    PyObject *text = PyDict_GetItemString(interface, "typestr");
    PyObject *keeper = NULL;
    stk_spec spec = {0};
    size_t bytes;
    if (!typestr(text, &spec.dtype)) return unsupported("of that __array_interface__");
    if (!extents(shape, spec.shape, -1)) return EXT_RAISED;
    spec.ndim = (int32_t)PyTuple_GET_SIZE(shape);
    if (stk_spec_bytes(&spec, &bytes)) {
        PyErr_SetString(PyExc_ValueError, "__array_interface__: a bad shape");
        return EXT_RAISED;
    }
    *view = stk_tensor_over(NULL, &spec);
    const bool strided = strides && strides != Py_None;
    if (strided && !extents(strides, view->strides, spec.ndim)) return EXT_RAISED;
    PyObject *data = PyDict_GetItemString(interface, "data");
    if (strided && !(data && PyTuple_Check(data))) {
        PyErr_SetString(PyExc_TypeError, "__array_interface__: strides need an address");
        return EXT_RAISED;
    }
    view->data = memory_of(value, data, bytes, &keeper);
    ext_found found = PyErr_Occurred() ? EXT_RAISED : give(state, keeper, view, mem);
    Py_XDECREF(keeper);
    return found;
}

/* An attribute, a new reference; NULL: there is none, or *raised. */
static PyObject *attribute(PyObject *value, const char *name, bool *raised)
{
    PyObject *found = PyObject_GetAttrString(value, name);
    if (found) return found;
    *raised = !PyErr_ExceptionMatches(PyExc_AttributeError);
    if (!*raised) PyErr_Clear();
    return NULL;
}

ext_found ext_array_of(ext_state *state, PyObject *value, stk_tensor *view, stk_buffer **mem)
{
    bool raised = false;
    if (ext_field_borrow(state, value, view, mem)) {
        *mem = stk_buffer_ref(*mem);
        return EXT_FOUND;
    }
    *mem = NULL;
    if (PyObject_CheckBuffer(value)) return of_buffer(state, value, view, mem);
    PyObject *found = attribute(value, "__dlpack__", &raised);
    if (found) {
        Py_DECREF(found);
        return of_dlpack(state, value, view, mem);
    }
    found = raised ? NULL : attribute(value, "__array_interface__", &raised);
    if (!found) return raised ? EXT_RAISED : EXT_NOT_FOUND;
    const ext_found what = of_interface(state, value, found, view, mem);
    Py_DECREF(found);
    return what;
}

ext_found ext_bytes_of(ext_state *state, PyObject *value, stk_buffer **mem)
{
    *mem = NULL;
    if (!PyObject_CheckBuffer(value)) return EXT_NOT_FOUND;
    PyObject *keeper = PyMemoryView_FromObject(value);
    if (!keeper) return EXT_RAISED;
    const Py_buffer *b = PyMemoryView_GET_BUFFER(keeper);
    stk_tensor view;
    if (!PyBuffer_IsContiguous(b, 'C'))
        PyErr_SetString(PyExc_BufferError, "the bytes are not contiguous");
    else if (ext_field_borrow(state, value, &view, mem) && view.data == stk_buffer_data(*mem) &&
             (size_t)b->len == stk_buffer_size(*mem))
        *mem = stk_buffer_ref(*mem); /* as they came out of the engine */
    else
        *mem = ext_hold(state, keeper, b->buf, (size_t)b->len);
    Py_DECREF(keeper);
    return *mem ? EXT_FOUND : EXT_RAISED;
}
