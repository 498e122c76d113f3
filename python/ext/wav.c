#include "input.h"

#include <math.h>

#include <stoker/wav.h>

enum { DATA, OFFSET, DURATION, MAX_BYTES, ARGUMENTS };

/* What load_wav is given, by place or by name; false with an exception. */
static bool arguments(PyObject *const *args, Py_ssize_t n, PyObject *names, PyObject **out)
{
    static const char *const known[] = {"data", "time_offset_seconds", "duration_seconds",
                                        "max_bytes"};
    if (n > MAX_BYTES) {
        PyErr_Format(PyExc_TypeError, "load_wav() takes at most 3 positional arguments, not %zd",
                     n);
        return false;
    }
    for (Py_ssize_t i = 0; i < n; i++) out[i] = args[i];
    for (Py_ssize_t k = 0; names && k < PyTuple_GET_SIZE(names); k++) {
        PyObject *name = PyTuple_GET_ITEM(names, k);
        int i = 0;
        while (i < ARGUMENTS && PyUnicode_CompareWithASCIIString(name, known[i]) != 0) i++;
        if (i == ARGUMENTS || i < n) {
            PyErr_Format(PyExc_TypeError,
                         i < n ? "load_wav() got multiple values for argument %R"
                               : "load_wav() got an unexpected keyword argument %R",
                         name);
            return false;
        }
        out[i] = args[n + k];
    }
    if (out[DATA]) return true;
    PyErr_SetString(PyExc_TypeError, "load_wav() missing 1 required argument: 'data'");
    return false;
}

/* Seconds, or None for `none`; false with an exception. */
static bool seconds(const char *what, PyObject *value, double none, double *out)
{
    *out = none;
    if (!value || value == Py_None) return true;
    *out = PyFloat_AsDouble(value);
    if (*out == -1.0 && PyErr_Occurred()) return false;
    if (isfinite(*out) && *out >= 0) return true;
    PyErr_Format(PyExc_ValueError, "%s must be finite and at least 0, not %R", what, value);
    return false;
}

static bool is_path(PyObject *data)
{
    return PyUnicode_Check(data) ||
           (!PyObject_CheckBuffer(data) &&
            PyObject_HasAttrString((PyObject *)Py_TYPE(data), "__fspath__"));
}

/* What keeps the bytes, a new reference, and where they are.  bytes never change, and need no
 * memoryview that says so. */
static PyObject *bytes_of(PyObject *data, const uint8_t **at, size_t *size, bool *readonly)
{
    if (PyBytes_CheckExact(data)) {
        *at = (const uint8_t *)PyBytes_AS_STRING(data);
        *size = (size_t)PyBytes_GET_SIZE(data);
        *readonly = true;
        return Py_NewRef(data);
    }
    PyObject *view = PyMemoryView_FromObject(data);
    if (!view) return NULL;
    const Py_buffer *b = PyMemoryView_GET_BUFFER(view);
    *at = b->buf;
    *size = (size_t)b->len;
    *readonly = b->readonly;
    if (b->ndim == 1 && b->itemsize == 1 && PyBuffer_IsContiguous(b, 'C')) return view;
    PyErr_SetString(PyExc_ValueError, "Expected a one-dimensional, C-contiguous byte buffer.");
    Py_DECREF(view);
    return NULL;
}

/* Samples of 24 bits in memory of their own. */
static stk_err widened(const stk_spec *spec, const uint8_t *from, stk_buffer **mem)
{
    size_t bytes;
    stk_err err = stk_spec_bytes(spec, &bytes);
    if (!err) err = stk_buffer_new(bytes, mem);
    if (err) return err;
    int32_t *to = (int32_t *)(void *)stk_buffer_writable(*mem);
    Py_BEGIN_ALLOW_THREADS
    stk_wav_widen(from, bytes / sizeof(*to), to);
    Py_END_ALLOW_THREADS
    return STK_OK;
}

static PyObject *load_memory(ext_state *state, PyObject *data, double offset, double duration)
{
    const uint8_t *at;
    size_t size;
    bool readonly;
    PyObject *keeper = bytes_of(data, &at, &size, &readonly);
    if (!keeper) return NULL;
    stk_diag diag;
    stk_wav_info info;
    uint64_t first, frames;
    stk_buffer *mem = NULL;
    diag.err = STK_OK; /* and not all of its text */
    stk_err err = stk_wav_parse(at, size, &info, &diag);
    if (!err) err = stk_wav_window(&info, offset, duration, &first, &frames, &diag);
    if (!err) {
        at += info.data_offset + first * info.block_align;
        const stk_spec spec = {info.dtype, 2, {(int64_t)frames, info.channels}};
        if (info.widened) {
            err = widened(&spec, at, &mem);
            readonly = false;
        }
        else
            mem = ext_hold(state, keeper, (void *)at, (size_t)(frames * info.block_align));
        Py_DECREF(keeper);
        if (err) return ext_raise(err, NULL);
        if (!mem) return NULL;
        const stk_tensor view =
            stk_tensor_over(info.widened ? stk_buffer_writable(mem) : (void *)at, &spec);
        return ext_field_give(state, &view, &mem, readonly);
    }
    Py_DECREF(keeper);
    return ext_raise_value(err, &diag);
}

static PyObject *load_file(ext_state *state, PyObject *source, double offset, double duration,
                           size_t max_bytes)
{
    PyObject *path = NULL;
    if (!PyUnicode_FSConverter(source, &path)) return NULL;
    stk_diag diag = {0};
    stk_wav_info info;
    stk_tensor view;
    stk_buffer *mem = NULL;
    stk_err err;
    Py_BEGIN_ALLOW_THREADS
    err = stk_wav_read(PyBytes_AS_STRING(path), offset, duration, max_bytes, &info, &view, &mem,
                       &diag);
    Py_END_ALLOW_THREADS
    Py_DECREF(path);
    return err ? ext_raise_value(err, &diag) : ext_field_give(state, &view, &mem, false);
}

PyObject *ext_load_wav(PyObject *module, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    PyObject *given[ARGUMENTS] = {NULL};
    double offset, duration;
    uint64_t max_bytes;
    if (!arguments(args, n, names, given) ||
        !seconds("time_offset_seconds", given[OFFSET], 0, &offset) ||
        !seconds("duration_seconds", given[DURATION], INFINITY, &duration) ||
        !ext_limit("max_bytes", given[MAX_BYTES] ? given[MAX_BYTES] : Py_None, PY_SSIZE_T_MAX,
                   &max_bytes))
        return NULL;
    ext_state *state = PyModule_GetState(module);
    if (is_path(given[DATA]))
        return load_file(state, given[DATA], offset, duration, (size_t)max_bytes);
    return load_memory(state, given[DATA], offset, duration);
}

static PyObject *describe(const stk_wav_info *i)
{
    return Py_BuildValue(
        "{sI sI sI sI sI sI sK sI sI ss sO sO sz sK sK sd}", "audio_format", i->format,
        "num_channels", i->channels, "sample_rate", i->sample_rate, "byte_rate", i->byte_rate,
        "block_align", i->block_align, "bits_per_sample", i->bits, "data_size",
        (unsigned long long)i->data_size, "valid_bits", i->valid_bits, "channel_mask",
        i->channel_mask, "container", stk_wav_kind_str(i->kind), "extensible",
        i->extensible ? Py_True : Py_False, "unsized", i->unsized ? Py_True : Py_False, "dtype",
        i->dtype ? stk_dtype_str(i->dtype) : NULL, "data_offset",
        (unsigned long long)i->data_offset, "num_frames", (unsigned long long)i->frames,
        "duration_seconds", i->sample_rate ? (double)i->frames / i->sample_rate : 0.0);
}

PyObject *ext_wav_header(PyObject *module, PyObject *data)
{
    stk_diag diag = {0};
    stk_wav_info info;
    stk_err err;
    (void)module;
    if (is_path(data)) {
        PyObject *path = NULL;
        if (!PyUnicode_FSConverter(data, &path)) return NULL;
        Py_BEGIN_ALLOW_THREADS
        err = stk_wav_probe(PyBytes_AS_STRING(path), &info, &diag);
        Py_END_ALLOW_THREADS
        Py_DECREF(path);
    }
    else {
        const uint8_t *at;
        size_t size;
        bool readonly;
        PyObject *keeper = bytes_of(data, &at, &size, &readonly);
        if (!keeper) return NULL;
        err = stk_wav_parse(at, size, &info, &diag);
        Py_DECREF(keeper);
    }
    return err ? ext_raise_value(err, &diag) : describe(&info);
}
