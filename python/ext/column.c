#include "column.h"

#include <string.h>

const char **ext_strings(const char *what, PyObject *list)
{
    if (!PyList_Check(list)) {
        PyErr_Format(PyExc_TypeError, "%s must be a list of bytes, not %.80s", what,
                     Py_TYPE(list)->tp_name);
        return NULL;
    }
    const Py_ssize_t n = PyList_GET_SIZE(list);
    const char **strings = PyMem_Calloc((size_t)n + 1, sizeof(*strings));
    if (!strings) {
        PyErr_NoMemory();
        return NULL;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        char *text;
        Py_ssize_t size;
        if (PyBytes_AsStringAndSize(PyList_GET_ITEM(list, i), &text, &size) < 0) break;
        if (strlen(text) != (size_t)size) {
            PyErr_Format(PyExc_ValueError, "%s[%zd] has a NUL byte inside", what, i);
            break;
        }
        strings[i] = text;
    }
    if (!PyErr_Occurred()) return strings;
    PyMem_Free(strings);
    return NULL;
}

/* The type of one element, from the code of the buffer protocol and its size. */
stk_dtype ext_buffer_dtype(const Py_buffer *view)
{
    const char *format = view->format ? view->format : "B";
    if (*format == '@' || *format == '=' || *format == '<') format++; /* we are little-endian */
    if (!format[0] || format[1]) return STK_DTYPE_NONE;
    static const stk_dtype ints[] = {
        [1] = STK_INT8, [2] = STK_INT16, [4] = STK_INT32, [8] = STK_INT64};
    static const stk_dtype uints[] = {
        [1] = STK_UINT8, [2] = STK_UINT16, [4] = STK_UINT32, [8] = STK_UINT64};
    const size_t size = view->itemsize > 8 ? 0 : (size_t)view->itemsize;
    if (strchr("bhilqn", *format)) return ints[size];
    if (strchr("BHILQN", *format)) return uints[size];
    switch (*format) {
    case '?': return STK_BOOL;
    case 'e': return STK_FLOAT16;
    case 'f': return STK_FLOAT32;
    case 'd': return STK_FLOAT64;
    default: return STK_DTYPE_NONE;
    }
}

static bool describe(const char *name, const Py_buffer *view, size_t rows, stk_spec *out)
{
    *out = (stk_spec){.dtype = ext_buffer_dtype(view), .ndim = view->ndim - 1};
    if (out->dtype == STK_DTYPE_NONE) {
        PyErr_Format(PyExc_TypeError, "%s: elements of format '%s' are not supported", name,
                     view->format ? view->format : "B");
        return false;
    }
    if (view->ndim < 1 || view->ndim > STK_MAX_NDIM) {
        PyErr_Format(PyExc_ValueError, "%s must have 1 to %d dimensions, not %d", name,
                     STK_MAX_NDIM, view->ndim);
        return false;
    }
    if ((size_t)view->shape[0] != rows) {
        PyErr_Format(PyExc_ValueError, "%s has %zd values for %zu samples", name, view->shape[0],
                     rows);
        return false;
    }
    for (int i = 1; i < view->ndim; i++) out->shape[i - 1] = view->shape[i];
    return true;
}

static bool add_column(ext_columns *c, PyObject *name, PyObject *values, size_t rows)
{
    const size_t i = c->n++;
    stk_list_column *column = &c->columns[i];
    column->name = PyBytes_AS_STRING(name);
    if (PyList_Check(values)) {
        if ((size_t)PyList_GET_SIZE(values) != rows) {
            PyErr_Format(PyExc_ValueError, "%s has %zd values for %zu samples", column->name,
                         PyList_GET_SIZE(values), rows);
            return false;
        }
        column->data = c->strings[i] = ext_strings(column->name, values);
        return column->data != NULL;
    }
    Py_buffer *view = &c->views[i];
    if (PyObject_GetBuffer(values, view, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) < 0) return false;
    column->data = view->buf;
    return describe(column->name, view, rows, &column->spec);
}

bool ext_columns_init(ext_columns *c, PyObject *columns, size_t rows)
{
    if (!PyList_Check(columns)) {
        PyErr_SetString(PyExc_TypeError, "columns must be a list");
        return false;
    }
    const size_t n = (size_t)PyList_GET_SIZE(columns);
    c->columns = PyMem_Calloc(n + 1, sizeof(*c->columns));
    c->views = PyMem_Calloc(n + 1, sizeof(*c->views));
    c->strings = PyMem_Calloc(n + 1, sizeof(*c->strings));
    if (!c->columns || !c->views || !c->strings) {
        PyErr_NoMemory();
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        PyObject *name, *values;
        if (!PyArg_ParseTuple(PyList_GET_ITEM(columns, (Py_ssize_t)i), "SO", &name, &values))
            return false;
        if (!add_column(c, name, values, rows)) return false;
    }
    return true;
}

void ext_columns_fini(ext_columns *c)
{
    for (size_t i = 0; i < c->n; i++) {
        PyMem_Free(c->strings[i]);
        if (c->views[i].obj) PyBuffer_Release(&c->views[i]);
    }
    PyMem_Free(c->columns);
    PyMem_Free(c->views);
    PyMem_Free(c->strings);
    *c = (ext_columns){0};
}
