/* Readers of videos by the numbers of their frames, and plans. */
#include "av.h"

#include <string.h>

/* Raises what a file's functions raised meanwhile, or what the library says. */
static PyObject *failed(stk_err err, const stk_diag *diag)
{
    return PyErr_Occurred() ? NULL : ext_raise(err, diag);
}

static PyObject *av_reader(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"demuxer", "decoder",    "options", "filter",
                            "strict",  "max_pixels", NULL};
    PyObject *op, *options;
    stk_decode_opts opts = {0};
    int strict;
    long long max_pixels;
    stk_video_reader *reader;
    stk_diag diag;
    ext_av_scope scope;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OzOzpL:av_reader", names, &op, &opts.decoder,
                                     &options, &opts.filter, &strict, &max_pixels))
        return NULL;
    stk_demuxer *demuxer = ext_av_borrow(module, op, EXT_AV_DEMUXER);
    const char **texts = demuxer ? ext_av_texts(options) : NULL;
    if (!texts) return NULL;
    opts.options = texts;
    opts.strict = strict;
    opts.max_pixels = max_pixels;
    ext_av_detach(&scope);
    const stk_err err = stk_video_reader_new(demuxer, &opts, &reader, &diag);
    ext_av_attach(&scope);
    PyMem_Free(texts);
    if (err) return failed(err, &diag);
    if (!PyErr_Occurred()) return ext_av_give_on(module, EXT_AV_READER, reader, op);
    stk_video_reader_free(&reader); /* FFmpeg got over what a read raised; nobody else shall */
    return NULL;
}

static PyObject *flags_list(const bool *flags, size_t n)
{
    PyObject *list = PyList_New((Py_ssize_t)n);
    for (size_t i = 0; list && i < n; i++)
        PyList_SET_ITEM(list, (Py_ssize_t)i, PyBool_FromLong(flags[i]));
    return list;
}

static PyObject *av_reader_times(PyObject *module, PyObject *op)
{
    stk_ratio base;
    const stk_video_reader *reader = ext_av_borrow(module, op, EXT_AV_READER);
    if (!reader) return NULL;
    const size_t n = stk_video_reader_length(reader);
    int64_t *times = PyMem_Calloc(n ? n : 1, sizeof(*times));
    bool *keys = PyMem_Calloc(n ? n : 1, sizeof(*keys));
    PyObject *list = NULL, *flags = NULL;
    if (times && keys) {
        stk_video_reader_times(reader, &base, times, keys, n);
        list = ext_av_times(times, n);
        flags = flags_list(keys, n);
    }
    PyMem_Free(times);
    PyMem_Free(keys);
    if (list && flags)
        return Py_BuildValue("(LLNN)", (long long)base.num, (long long)base.den, list, flags);
    Py_XDECREF(list);
    Py_XDECREF(flags);
    return PyErr_Occurred() ? NULL : PyErr_NoMemory();
}

static PyObject *av_reader_stats(PyObject *module, PyObject *op)
{
    stk_video_reader_stats s;
    const stk_video_reader *reader = ext_av_borrow(module, op, EXT_AV_READER);
    if (!reader) return NULL;
    stk_video_reader_get_stats(reader, &s);
    return Py_BuildValue("{sn sn sn sn sn}", "num_decoded", (Py_ssize_t)s.num_decoded,
                         "num_converted", (Py_ssize_t)s.num_converted, "num_seeks",
                         (Py_ssize_t)s.num_seeks, "num_failed", (Py_ssize_t)s.num_failed,
                         "kept_bytes", (Py_ssize_t)s.kept_bytes);
}

/* The numbers of a tuple add up to `total`: the library counts by them. */
static bool add_up(const size_t *lengths, Py_ssize_t n, Py_ssize_t total)
{
    size_t left = (size_t)total;
    for (Py_ssize_t i = 0; i < n; i++) {
        if (lengths[i] > left) break;
        left -= lengths[i];
        if (i + 1 == n && !left) return true;
    }
    if (!n && !total) return true;
    PyErr_SetString(PyExc_ValueError, "the lengths of clips are not those of their frames");
    return false;
}

static PyObject *av_plan(PyObject *module, PyObject *args)
{
    PyObject *op, *frames, *lengths;
    Py_ssize_t max_bytes;
    stk_video_plan *plan = NULL;
    stk_diag diag;
    stk_err err = STK_OK;
    if (!PyArg_ParseTuple(args, "OO!O!n:av_plan", &op, &PyTuple_Type, &frames, &PyTuple_Type,
                          &lengths, &max_bytes))
        return NULL;
    stk_video_reader *reader = ext_av_borrow(module, op, EXT_AV_READER);
    if (!reader) return NULL;
    const Py_ssize_t n = PyTuple_GET_SIZE(lengths);
    size_t *of = ext_av_numbers(frames), *each = of ? ext_av_numbers(lengths) : NULL;
    if (each && add_up(each, n, PyTuple_GET_SIZE(frames))) {
        Py_BEGIN_ALLOW_THREADS
        err = stk_video_plan_new(reader, of, each, (size_t)n, (size_t)max_bytes, &plan, &diag);
        Py_END_ALLOW_THREADS
    }
    PyMem_Free(of);
    PyMem_Free(each);
    if (err) return ext_raise(err, &diag);
    return plan ? ext_av_give_on(module, EXT_AV_PLAN, plan, op) : NULL;
}

static PyObject *av_plan_next(PyObject *module, PyObject *op)
{
    stk_spec spec;
    stk_buffer *mem;
    stk_diag diag;
    ext_av_scope scope;
    stk_video_plan *plan = ext_av_borrow(module, op, EXT_AV_PLAN);
    if (!plan) return NULL;
    ext_av_detach(&scope);
    const stk_err err = stk_video_plan_next(plan, &spec, &mem, &diag);
    ext_av_attach(&scope);
    if (err == STK_EEND) Py_RETURN_NONE;
    if (err) return failed(err, &diag);
    if (PyErr_Occurred()) {
        stk_buffer_unref(&mem);
        return NULL;
    }
    const stk_tensor view = stk_tensor_over((void *)stk_buffer_data(mem), &spec);
    return ext_cpu_buffer_give(PyModule_GetState(module), &view, &mem);
}

PyMethodDef ext_av_reader_functions[] = {
    EXT_AV_KEYWORDS(av_reader, "A reader; use stoker.io.VideoReader."),
    {"av_reader_times", av_reader_times, METH_O,
     PyDoc_STR("av_reader_times(reader): (num, den, times, keys)")},
    {"av_reader_stats", av_reader_stats, METH_O, PyDoc_STR("What it did.")},
    {"av_plan", av_plan, METH_VARARGS,
     PyDoc_STR("av_plan(reader, frames, lengths, max_bytes): a plan")},
    {"av_plan_next", av_plan_next, METH_O, PyDoc_STR("The next clip, or None at the end.")},
    {NULL, NULL, 0, NULL}, /* end */
};
