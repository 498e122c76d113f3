/* Traces; use stoker.io.utils. */
#include "trace.h"

#include <stoker/trace.h>

static PyObject *trace_start(PyObject *module, PyObject *args)
{
    int fd;
    Py_ssize_t size;
    stk_trace_opts opts = {0};
    stk_diag diag;
    (void)module;
    if (!PyArg_ParseTuple(args, "inz:trace_start", &fd, &size, &opts.process_name)) return NULL;
    opts.buffer_size = (size_t)size;
    const stk_err err = stk_trace_start(fd, &opts, &diag);
    if (err) return ext_raise(err, &diag);
    Py_RETURN_NONE;
}

static PyObject *trace_stop(PyObject *module, PyObject *unused)
{
    uint64_t dropped;
    stk_diag diag;
    stk_err err;
    (void)module;
    (void)unused;
    Py_BEGIN_ALLOW_THREADS
    err = stk_trace_stop(&dropped, &diag);
    Py_END_ALLOW_THREADS
    return err ? ext_raise(err, &diag) : PyLong_FromUnsignedLongLong(dropped);
}

static PyObject *trace_on(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return PyBool_FromLong(stk_trace_on());
}

static PyObject *trace_begin(PyObject *module, PyObject *name)
{
    (void)module;
    const char *text = PyUnicode_AsUTF8(name); /* the lock inside is held for a few lines */
    return text ? PyLong_FromUnsignedLongLong(stk_trace_begin(text)) : NULL;
}

static PyObject *trace_end(PyObject *module, PyObject *slice)
{
    (void)module;
    const unsigned long long number = PyLong_AsUnsignedLongLong(slice);
    if (PyErr_Occurred()) return NULL;
    stk_trace_end(number);
    Py_RETURN_NONE;
}

static PyObject *trace_counter(PyObject *module, PyObject *args)
{
    unsigned number;
    double value;
    (void)module;
    if (!PyArg_ParseTuple(args, "Id:trace_counter", &number, &value)) return NULL;
    const stk_err err = stk_trace_counter(number, value);
    if (err) return ext_raise(err, NULL);
    Py_RETURN_NONE;
}

static PyObject *trace_thread(PyObject *module, PyObject *name)
{
    (void)module;
    const char *text = PyUnicode_AsUTF8(name);
    if (!text) return NULL;
    stk_trace_thread(text);
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"trace_start", trace_start, METH_VARARGS,
     PyDoc_STR("trace_start($module, fd, buffer_size, process_name, /)\n--\n\nBegins to write.")},
    {"trace_stop", trace_stop, METH_NOARGS,
     PyDoc_STR("trace_stop($module, /)\n--\n\nEnds it; how many events were dropped.")},
    {"trace_on", trace_on, METH_NOARGS, PyDoc_STR("Whether a trace is being written.")},
    {"trace_begin", trace_begin, METH_O,
     PyDoc_STR("trace_begin($module, name, /)\n--\n\nA slice of this thread; 0: no trace.")},
    {"trace_end", trace_end, METH_O, PyDoc_STR("trace_end($module, slice, /)\n--\n\nIts end.")},
    {"trace_counter", trace_counter, METH_VARARGS,
     PyDoc_STR("trace_counter($module, number, value, /)\n--\n\nA value.")},
    {"trace_thread", trace_thread, METH_O,
     PyDoc_STR("trace_thread($module, name, /)\n--\n\nNames this thread, once.")},
    {NULL, NULL, 0, NULL}, /* end */
};

bool ext_trace_add_functions(PyObject *module)
{
    return PyModule_AddFunctions(module, functions) == 0;
}
