/* Archives: in memory, or wherever a callable of Python reads them from. */
#include "io.h"

#include <string.h>

#include <stoker/zip.h>

enum {
    TINY_STORED = 64 << 10, /* bytes whose CRC takes no longer than to give the GIL away */
    TINY_DEFLATED = 4 << 10,
};

typedef struct {
    PyObject_HEAD
    stk_zip *core;      /* never changes, as all fields */
    PyObject *memory;   /* a memoryview of the archive, or NULL */
    PyObject *callable; /* read(offset, size), or NULL; called with the GIL only */
} Zip;

/* stk_zip_read_fn; what Python raised stays raised. */
static stk_err call_read(void *ctx, uint64_t offset, void *dst, size_t size, stk_diag *diag)
{
    PyObject *data = PyObject_CallFunction(ctx, "Kn", (unsigned long long)offset, (Py_ssize_t)size);
    if (!data) return STK_EFOREIGN;
    Py_buffer bytes;
    const bool found = PyObject_GetBuffer(data, &bytes, PyBUF_SIMPLE) == 0;
    Py_DECREF(data);
    if (!found) return STK_EFOREIGN;
    const bool whole = (size_t)bytes.len == size;
    if (whole) memcpy(dst, bytes.buf, size);
    PyBuffer_Release(&bytes);
    return whole ? STK_OK : stk_diag_set(diag, STK_EIO, "zip: the file ended while it was read");
}

static PyObject *raise_err(stk_err err, const stk_diag *diag)
{
    return err == STK_EFOREIGN && PyErr_Occurred() ? NULL : ext_raise(err, diag);
}

PyObject *ext_zip_open(PyObject *module, PyObject *args)
{
    PyObject *source;
    unsigned long long size, max_ratio, max_directory;
    if (!PyArg_ParseTuple(args, "OKKK:zip_open", &source, &size, &max_ratio, &max_directory))
        return NULL;
    PyTypeObject *type = ((ext_state *)PyModule_GetState(module))->zip_type;
    Zip *self = (Zip *)type->tp_alloc(type, 0);
    if (!self) return NULL;

    stk_zip_input in = {.size = size};
    if (PyCallable_Check(source)) {
        in.read = call_read;
        in.ctx = self->callable = Py_NewRef(source);
    }
    else if ((self->memory = PyMemoryView_FromObject(source))) {
        const Py_buffer *bytes = PyMemoryView_GET_BUFFER(self->memory);
        in.data = bytes->buf ? bytes->buf : "";
        in.size = (uint64_t)bytes->len;
    }
    else {
        Py_DECREF(self);
        return NULL;
    }
    stk_diag diag = {0};
    const stk_zip_opts opts = {.max_ratio = max_ratio, .max_directory = max_directory};
    const stk_err err = stk_zip_new(&in, &opts, &self->core, &diag);
    if (!err) return (PyObject *)self;
    Py_DECREF(self);
    return raise_err(err, &diag);
}

/* Where the two agree, as mostly, the quick one of both. */
static bool is_ascii(const stk_zip_entry *e)
{
    unsigned char high = 0;
    for (size_t i = 0; i < e->name_size; i++) high |= (unsigned char)e->name[i];
    return high < 0x80;
}

static PyObject *name_of(const stk_zip_entry *e)
{
    if (e->utf8 || is_ascii(e))
        return PyUnicode_DecodeUTF8(e->name, e->name_size, "surrogateescape");
    return PyUnicode_Decode(e->name, e->name_size, "cp437", NULL);
}

static PyObject *zip_entries(PyObject *op, PyObject *unused)
{
    static const char *const kinds[] = {"file", "folder", "link", "device"};
    (void)unused;
    const stk_zip *core = ((Zip *)op)->core;
    const size_t n = stk_zip_count(core);
    PyObject *list = PyList_New((Py_ssize_t)n);
    for (size_t i = 0; list && i < n; i++) {
        const stk_zip_entry *e = stk_zip_get(core, i);
        PyObject *name = name_of(e);
        PyObject *entry = NULL;
        if (name)
            entry = Py_BuildValue("NsOKK", name, kinds[e->kind],
                                  e->method == STK_ZIP_STORED ? Py_True : Py_False,
                                  (unsigned long long)e->compressed, (unsigned long long)e->size);
        if (entry)
            PyList_SET_ITEM(list, (Py_ssize_t)i, entry);
        else
            Py_CLEAR(list);
    }
    return list;
}

/* The number of an entry; -1 with an exception. */
static Py_ssize_t index_of(const Zip *self, PyObject *arg)
{
    const Py_ssize_t i = PyLong_AsSsize_t(arg);
    if (i == -1 && PyErr_Occurred()) return -1;
    if (i >= 0 && (size_t)i < stk_zip_count(self->core)) return i;
    PyErr_SetString(PyExc_IndexError, "there is no such entry");
    return -1;
}

static PyObject *zip_locate(PyObject *op, PyObject *arg)
{
    const Zip *self = (Zip *)op;
    const Py_ssize_t i = index_of(self, arg);
    if (i < 0) return NULL;
    stk_diag diag = {0};
    uint64_t at;
    const stk_err err = stk_zip_locate(self->core, (size_t)i, &at, &diag);
    return err ? raise_err(err, &diag) : PyLong_FromUnsignedLongLong(at);
}

/* Unpacks without the GIL, where it takes a while. */
static stk_err unpack(const Zip *self, size_t i, const void *data, void *dst, stk_diag *diag)
{
    const stk_zip_entry *e = stk_zip_get(self->core, i);
    if (e->size <= (e->method == STK_ZIP_STORED ? TINY_STORED : TINY_DEFLATED))
        return stk_zip_unpack(self->core, i, data, dst, diag);
    stk_err err;
    Py_BEGIN_ALLOW_THREADS
    err = stk_zip_unpack(self->core, i, data, dst, diag);
    Py_END_ALLOW_THREADS
    return err;
}

/* Memory of its own with what `raw` stands for. */
static PyObject *inflated(const Zip *self, size_t i, const void *raw)
{
    const stk_spec spec = {STK_UINT8, 1, {(int64_t)stk_zip_get(self->core, i)->size}};
    stk_buffer *mem;
    stk_diag diag = {0};
    stk_err err = stk_buffer_new((size_t)spec.shape[0], &mem);
    if (!err) err = unpack(self, i, raw, stk_buffer_writable(mem), &diag);
    if (err) {
        stk_buffer_unref(&mem);
        return ext_raise(err, &diag);
    }
    const stk_tensor view = stk_tensor_over(stk_buffer_writable(mem), &spec);
    return ext_field_give(ext_state_of(Py_TYPE(self)), &view, &mem, false);
}

/* `part` of the memoryview `whole`, checked. */
static PyObject *stored(const Zip *self, size_t i, PyObject *whole, uint64_t at)
{
    const uint8_t *bytes = PyMemoryView_GET_BUFFER(whole)->buf;
    stk_diag diag = {0};
    const stk_err err = unpack(self, i, bytes + at, NULL, &diag);
    if (err) return ext_raise(err, &diag);
    const uint64_t size = stk_zip_get(self->core, i)->size;
    return PySequence_GetSlice(whole, (Py_ssize_t)at, (Py_ssize_t)(at + size));
}

/* The entry's data, which is where `whole` says, from `at` on. */
static PyObject *unpacked(const Zip *self, size_t i, PyObject *whole, uint64_t at)
{
    const stk_zip_entry *e = stk_zip_get(self->core, i);
    const Py_buffer *bytes = PyMemoryView_GET_BUFFER(whole);
    if (at > (uint64_t)bytes->len || e->compressed > (uint64_t)bytes->len - at)
        return ext_raise(STK_EINVAL, NULL);
    if (e->method == STK_ZIP_STORED) return stored(self, i, whole, at);
    return inflated(self, i, (const uint8_t *)bytes->buf + at);
}

static PyObject *zip_unpack(PyObject *op, PyObject *args)
{
    const Zip *self = (Zip *)op;
    PyObject *number, *raw = NULL;
    if (!PyArg_ParseTuple(args, "O|O:unpack", &number, &raw)) return NULL;
    const Py_ssize_t i = index_of(self, number);
    if (i < 0) return NULL;
    if (raw || !self->memory) {
        PyObject *whole = PyMemoryView_FromObject(raw ? raw : Py_None);
        PyObject *made = whole ? unpacked(self, (size_t)i, whole, 0) : NULL;
        Py_XDECREF(whole);
        return made;
    }
    stk_diag diag = {0};
    uint64_t at;
    const stk_err err = stk_zip_locate(self->core, (size_t)i, &at, &diag);
    return err ? ext_raise(err, &diag) : unpacked(self, (size_t)i, self->memory, at);
}

PyObject *ext_memory(PyObject *module, PyObject *arg)
{
    const stk_spec spec = {STK_UINT8, 1, {PyLong_AsLongLong(arg)}};
    if (spec.shape[0] == -1 && PyErr_Occurred()) return NULL;
    size_t size;
    stk_buffer *mem = NULL;
    stk_err err = stk_spec_bytes(&spec, &size);
    if (!err) err = stk_buffer_new(size, &mem);
    if (err) return ext_raise(err, NULL);
    const stk_tensor view = stk_tensor_over(stk_buffer_writable(mem), &spec);
    return ext_field_give(PyModule_GetState(module), &view, &mem, false);
}

static int zip_traverse(PyObject *op, visitproc visit, void *arg)
{
    Py_VISIT(((Zip *)op)->memory);
    Py_VISIT(((Zip *)op)->callable);
    Py_VISIT(Py_TYPE(op));
    return 0;
}

static void zip_dealloc(PyObject *op)
{
    Zip *self = (Zip *)op;
    PyTypeObject *type = Py_TYPE(op);
    PyObject_GC_UnTrack(op);
    stk_zip_free(&self->core);
    Py_XDECREF(self->memory);
    Py_XDECREF(self->callable);
    type->tp_free(op);
    Py_DECREF(type);
}

static PyMethodDef zip_methods[] = {
    {"entries", zip_entries, METH_NOARGS,
     PyDoc_STR(
         "entries($self, /)\n--\n\n(name, kind, stored, bytes of its data, bytes of what that "
         "stands for) of each.")},
    {"locate", zip_locate, METH_O,
     PyDoc_STR("locate($self, number, /)\n--\n\nWhere the entry's data begins; raises if it cannot "
               "be read.")},
    {"unpack", zip_unpack, METH_VARARGS,
     PyDoc_STR(
         "unpack($self, number, data=None, /)\n--\n\nA view of the entry's stored bytes, or a "
         "Field with what deflated ones stand for.")},
    {NULL, NULL, 0, NULL}, /* end */
};

/* clang-format off */
static PyType_Slot zip_slots[] = {
    {Py_tp_doc, (void *)"A zip archive; use stoker.io."},
    {Py_tp_traverse, zip_traverse},
    {Py_tp_dealloc, zip_dealloc},
    {Py_tp_methods, zip_methods},
    {0, NULL},
};
/* clang-format on */

PyType_Spec ext_zip_spec = {
    .name = "stoker._stoker.Zip",
    .basicsize = sizeof(Zip),
    .flags = EXT_TYPE_FLAGS,
    .slots = zip_slots,
};
