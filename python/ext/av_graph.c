/* Filter graphs. */
#include "av.h"

static PyObject *av_graph(PyObject *module, PyObject *arg)
{
    stk_filter_graph *graph;
    stk_diag diag;
    stk_err err;
    const char *text;
    if (!PyArg_Parse(arg, "s:av_graph", &text)) return NULL;
    Py_BEGIN_ALLOW_THREADS
    err = stk_filter_graph_new(text, &graph, &diag);
    Py_END_ALLOW_THREADS
    return err ? ext_raise(err, &diag) : ext_av_give(module, EXT_AV_GRAPH, graph, NULL);
}

static PyObject *av_graph_names(PyObject *module, PyObject *args)
{
    PyObject *op;
    int output;
    const char *name;
    if (!PyArg_ParseTuple(args, "Op:av_graph_names", &op, &output)) return NULL;
    const stk_filter_graph *graph = ext_av_borrow(module, op, EXT_AV_GRAPH);
    if (!graph) return NULL;
    PyObject *out = PyList_New(0);
    for (size_t i = 0; out && (name = stk_filter_graph_name(graph, output, i)); i++) {
        PyObject *text = ext_text(name);
        if (!text || PyList_Append(out, text) < 0) Py_CLEAR(out);
        Py_XDECREF(text);
    }
    return out;
}

static PyObject *av_graph_add(PyObject *module, PyObject *args)
{
    PyObject *op, *from;
    const char *name;
    stk_diag diag;
    stk_err err;
    if (!PyArg_ParseTuple(args, "OzO:av_graph_add", &op, &name, &from)) return NULL;
    stk_filter_graph *graph = ext_av_borrow(module, op, EXT_AV_GRAPH);
    const stk_frames *frames = graph ? ext_av_borrow(module, from, EXT_AV_FRAMES) : NULL;
    if (!frames) return NULL;
    Py_BEGIN_ALLOW_THREADS
    err = stk_filter_graph_add(graph, name, frames, &diag);
    Py_END_ALLOW_THREADS
    if (err) return ext_raise(err, &diag);
    Py_RETURN_NONE;
}

static PyObject *av_graph_get(PyObject *module, PyObject *args)
{
    PyObject *op;
    const char *name;
    Py_ssize_t max_frames, max_bytes;
    stk_frames *frames;
    stk_diag diag;
    stk_err err;
    if (!PyArg_ParseTuple(args, "Oznn:av_graph_get", &op, &name, &max_frames, &max_bytes))
        return NULL;
    stk_filter_graph *graph = ext_av_borrow(module, op, EXT_AV_GRAPH);
    if (!graph) return NULL;
    Py_BEGIN_ALLOW_THREADS
    err = stk_filter_graph_get(graph, name, (size_t)max_frames, (size_t)max_bytes, &frames, &diag);
    Py_END_ALLOW_THREADS
    return err ? ext_raise(err, &diag) : ext_av_give(module, EXT_AV_FRAMES, frames, NULL);
}

static PyObject *av_graph_flush(PyObject *module, PyObject *op)
{
    stk_diag diag;
    stk_err err;
    stk_filter_graph *graph = ext_av_borrow(module, op, EXT_AV_GRAPH);
    if (!graph) return NULL;
    Py_BEGIN_ALLOW_THREADS
    err = stk_filter_graph_flush(graph, &diag);
    Py_END_ALLOW_THREADS
    if (err) return ext_raise(err, &diag);
    Py_RETURN_NONE;
}

static PyObject *av_graph_dump(PyObject *module, PyObject *op)
{
    stk_diag diag;
    stk_buffer *text;
    stk_filter_graph *graph = ext_av_borrow(module, op, EXT_AV_GRAPH);
    if (!graph) return NULL;
    const stk_err err = stk_filter_graph_dump(graph, &text, &diag);
    if (err) return ext_raise(err, &diag);
    PyObject *out = PyUnicode_DecodeUTF8((const char *)stk_buffer_data(text),
                                         (Py_ssize_t)stk_buffer_size(text), "backslashreplace");
    stk_buffer_unref(&text);
    return out;
}

PyMethodDef ext_av_graph_functions[] = {
    {"av_graph", av_graph, METH_O, PyDoc_STR("A filter graph; use stoker.io.FilterGraph.")},
    {"av_graph_names", av_graph_names, METH_VARARGS,
     PyDoc_STR("av_graph_names(graph, output): of its inputs or outputs")},
    {"av_graph_add", av_graph_add, METH_VARARGS, PyDoc_STR("av_graph_add(graph, name, frames)")},
    {"av_graph_get", av_graph_get, METH_VARARGS,
     PyDoc_STR("av_graph_get(graph, name, max_frames, max_bytes): frames")},
    {"av_graph_flush", av_graph_flush, METH_O, PyDoc_STR("No more frames come in.")},
    {"av_graph_dump", av_graph_dump, METH_O, PyDoc_STR("A drawing as text.")},
    {NULL, NULL, 0, NULL}, /* end */
};
