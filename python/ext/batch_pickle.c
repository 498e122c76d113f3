/* Batches on their way to other processes, as their keys and fields. */
#include "lane.h"

PyObject *ext_batch_reduce(PyObject *op, PyObject *unused)
{
    (void)unused;
    PyObject *module = PyType_GetModule(Py_TYPE(op));
    PyObject *make = module ? PyObject_GetAttrString(module, "batch_of") : NULL;
    PyObject *names = make ? PyObject_CallMethod(op, "fields", NULL) : NULL;
    PyObject *fields = names ? PyDict_New() : NULL;
    bool good = fields;
    for (Py_ssize_t i = 0; good && i < PyTuple_GET_SIZE(names); i++) {
        PyObject *name = PyTuple_GET_ITEM(names, i);
        PyObject *value = PyObject_GetItem(op, name);
        good = value && PyDict_SetItem(fields, name, value) == 0;
        Py_XDECREF(value);
    }
    PyObject *keys = good ? PyObject_GetAttrString(op, "key") : NULL;
    PyObject *result = NULL;
    if (keys) {
        const stk_batch *core = ext_batch_borrow(PyModule_GetState(module), op);
        result = Py_BuildValue("O(LLOO)", make, (long long)stk_batch_epoch(core),
                               (long long)stk_batch_index(core), keys, fields);
    }
    Py_XDECREF(make);
    Py_XDECREF(names);
    Py_XDECREF(fields);
    Py_XDECREF(keys);
    return result;
}

/* The texts of a list of str and None, as a tuple of bytes and None; NULL with an exception. */
static PyObject *encoded(PyObject *list)
{
    const Py_ssize_t n = PyList_GET_SIZE(list);
    PyObject *texts = PyTuple_New(n);
    for (Py_ssize_t i = 0; texts && i < n; i++) {
        PyObject *text = PyList_GetItem(list, i);
        PyObject *bytes = !text             ? NULL
                          : text == Py_None ? Py_NewRef(Py_None)
                                            : PyUnicode_EncodeFSDefault(text);
        if (bytes)
            PyTuple_SET_ITEM(texts, i, bytes);
        else
            Py_CLEAR(texts);
    }
    return texts;
}

static const char *text_at(PyObject *texts, size_t i)
{
    PyObject *bytes = PyTuple_GET_ITEM(texts, (Py_ssize_t)i);
    return bytes == Py_None ? NULL : PyBytes_AS_STRING(bytes);
}

/* The elements of a field with one of `size` bytes for each sample; NULL: there is none. */
static const void *column(ext_state *state, PyObject *fields, const char *name, size_t n,
                          stk_dtype dtype)
{
    PyObject *value = PyDict_GetItemString(fields, name);
    stk_tensor view;
    stk_buffer *mem;
    if (!value || !ext_field_borrow(state, value, &view, &mem)) return NULL;
    const bool fits = view.ndim == 1 && (size_t)view.shape[0] == n && view.dtype == dtype &&
                      stk_tensor_contiguous(&view);
    return fits ? view.data : NULL;
}

static stk_err make(ext_state *state, PyObject *texts, PyObject *fields, int64_t epoch,
                    int64_t index, stk_batch **out)
{
    const size_t n = (size_t)PyTuple_GET_SIZE(texts);
    const int64_t *ids = column(state, fields, "id", n, STK_INT64);
    const bool *substituted = column(state, fields, "substituted", n, STK_BOOL);
    stk_batch_sample *samples = PyMem_Calloc(n ? n : 1, sizeof(*samples));
    *out = NULL;
    if (!samples) return STK_ENOMEM;
    for (size_t i = 0; i < n; i++)
        samples[i] = (stk_batch_sample){.id = ids ? ids[i] : -1,
                                        .substituted = substituted && substituted[i],
                                        .key = text_at(texts, i)};
    stk_err err = stk_batch_make(samples, n, epoch, index, out);
    PyMem_Free(samples);
    return err;
}

static stk_err put_strings(stk_batch *core, const char *name, PyObject *list)
{
    const size_t n = stk_batch_size(core);
    if ((size_t)PyList_GET_SIZE(list) != n) return STK_EINVAL;
    PyObject *texts = encoded(list);
    const char **strings = PyMem_Calloc(n ? n : 1, sizeof(*strings));
    stk_err err = texts && strings ? STK_OK : STK_ENOMEM;
    for (size_t i = 0; !err && i < n; i++)
        if (!(strings[i] = text_at(texts, i))) err = STK_EINVAL;
    if (!err) err = stk_batch_put_strings(core, name, strings);
    PyMem_Free(strings);
    Py_XDECREF(texts);
    return err;
}

/* `value`: a Field, or a list of str.  False with an exception. */
static bool put(ext_state *state, stk_batch *core, PyObject *name, PyObject *value)
{
    PyObject *text = PyUnicode_EncodeFSDefault(name);
    if (!text) return false;
    stk_tensor view;
    stk_buffer *mem;
    stk_err err = STK_EINVAL;
    if (ext_field_borrow(state, value, &view, &mem)) {
        const stk_spec spec = stk_tensor_spec(&view);
        const bool whole = stk_tensor_contiguous(&view) && view.data == stk_buffer_data(mem);
        mem = stk_buffer_ref(mem);
        if (whole) err = stk_batch_put_array(core, PyBytes_AS_STRING(text), &spec, &mem);
        stk_buffer_unref(&mem);
    }
    else if (PyList_Check(value))
        err = put_strings(core, PyBytes_AS_STRING(text), value);
    Py_DECREF(text);
    if (err && !PyErr_Occurred()) ext_raise(err, NULL);
    return !err;
}

PyObject *ext_batch_of(PyObject *module, PyObject *args)
{
    long long epoch, index;
    PyObject *keys, *fields, *name, *value;
    if (!PyArg_ParseTuple(args, "LLO!O!:batch_of", &epoch, &index, &PyList_Type, &keys,
                          &PyDict_Type, &fields))
        return NULL;
    ext_state *state = PyModule_GetState(module);
    PyObject *texts = encoded(keys);
    if (!texts) return NULL;
    stk_batch *core;
    stk_err err = make(state, texts, fields, epoch, index, &core);
    Py_DECREF(texts);
    if (err) return ext_raise(err, NULL);
    Py_ssize_t at = 0;
    while (PyDict_Next(fields, &at, &name, &value))
        if (!put(state, core, name, value)) {
            stk_batch_unref(&core);
            return NULL;
        }
    return ext_batch_give(state, &core);
}
