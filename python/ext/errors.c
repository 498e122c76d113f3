#include "ext.h"

#include <math.h>
#include <string.h>

PyObject *ext_text(const char *text)
{
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "backslashreplace");
}

static PyObject *raise_as(stk_err err, const stk_diag *diag, bool value)
{
    const bool told = diag && diag->err == err && diag->text[0];
    PyObject *text = ext_text(told ? diag->text : stk_err_str(err));
    PyObject *errors = text ? PyImport_ImportModule("stoker.errors") : NULL;
    PyObject *exc = NULL;
    if (errors)
        exc = PyObject_CallMethod(errors, "from_code", "iOiO", (int)err, text,
                                  told ? diag->os_error : 0, value ? Py_True : Py_False);
    if (exc) PyErr_SetObject((PyObject *)Py_TYPE(exc), exc);
    Py_XDECREF(exc);
    Py_XDECREF(errors);
    Py_XDECREF(text);
    return NULL;
}

PyObject *ext_raise(stk_err err, const stk_diag *diag)
{
    return raise_as(err, diag, false);
}

PyObject *ext_raise_value(stk_err err, const stk_diag *diag)
{
    return raise_as(err, diag, true);
}

PyObject *ext_error_codes(void)
{
    PyObject *codes = PyDict_New();
#define X(name, value, text)                                                          \
    if (codes && value != STK_ESKIP) { /* no failure: nothing raises it */            \
        PyObject *key = PyLong_FromLong(value);                                       \
        PyObject *entry = Py_BuildValue("ss", #name, text);                           \
        if (!key || !entry || PyDict_SetItem(codes, key, entry) < 0) Py_CLEAR(codes); \
        Py_XDECREF(key);                                                              \
        Py_XDECREF(entry);                                                            \
    }
    STK_ERR_MAP(X)
#undef X
    return codes;
}

int ext_choice(const char *arg, PyObject *value, const char *const *names)
{
    if (!PyUnicode_Check(value)) {
        PyErr_Format(PyExc_TypeError, "%s must be a str, not %.80s", arg, Py_TYPE(value)->tp_name);
        return -1;
    }
    for (int i = 0; names[i]; i++)
        if (PyUnicode_CompareWithASCIIString(value, names[i]) == 0) return i;
    PyErr_Format(PyExc_ValueError, "%s: %R is not one of its values", arg, value);
    return -1;
}

bool ext_timeout(PyObject *value, int64_t *out)
{
    *out = STK_FOREVER;
    if (value == Py_None) return true;
    const double seconds = PyFloat_AsDouble(value);
    if (seconds == -1.0 && PyErr_Occurred()) return false;
    if (isnan(seconds) || seconds < 0) {
        PyErr_SetString(PyExc_ValueError,
                        "timeout must be None or a number of seconds, at least 0");
        return false;
    }
    if (seconds < 9e9) *out = (int64_t)ceil(seconds * 1e9); /* longer than that is for ever */
    return true;
}
