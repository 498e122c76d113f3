/* Bytes from an object of Python with read(), and seek() and tell() if it can. */
#include "av.h"

#include <string.h>

struct ext_av_file {
    stk_av_reader reader;
    PyObject *object;
    long long base; /* where it stood: position 0 of the input */
};

/* Once something raised, nothing of Python is called until the library has returned. */
static bool enter(void)
{
    ext_av_enter();
    if (!PyErr_Occurred() && PyErr_CheckSignals() == 0) return true;
    ext_av_exit();
    return false;
}

static int64_t leave(int64_t result)
{
    ext_av_exit();
    return result;
}

static int64_t copy_out(PyObject *bytes, uint8_t *dst, size_t n)
{
    Py_buffer view;
    if (PyObject_GetBuffer(bytes, &view, PyBUF_SIMPLE) < 0) return -1;
    int64_t got = (int64_t)view.len;
    if ((size_t)view.len > n) {
        PyErr_Format(PyExc_ValueError, "read(%zu) gave %zd bytes", n, view.len);
        got = -1;
    }
    else if (got) {
        memcpy(dst, view.buf, (size_t)got);
    }
    PyBuffer_Release(&view);
    return got;
}

static int64_t file_read(void *ctx, uint8_t *dst, size_t n)
{
    const ext_av_file *f = ctx;
    if (!enter()) return -1;
    PyObject *bytes = PyObject_CallMethod(f->object, "read", "n", (Py_ssize_t)n);
    const int64_t got = bytes ? copy_out(bytes, dst, n) : -1;
    Py_XDECREF(bytes);
    return leave(got);
}

/* The number that a method gives; -1 with an exception. */
static long long call(PyObject *object, const char *method, long long at, int whence)
{
    PyObject *result = whence < 0 ? PyObject_CallMethod(object, method, NULL)
                                  : PyObject_CallMethod(object, method, "Li", at, whence);
    const long long value = result ? PyLong_AsLongLong(result) : -1;
    Py_XDECREF(result);
    return value;
}

static int64_t file_seek(void *ctx, int64_t at)
{
    const ext_av_file *f = ctx;
    if (at > INT64_MAX - f->base || !enter()) return -1;
    const long long got = call(f->object, "seek", f->base + at, SEEK_SET);
    return leave(got < 0 || PyErr_Occurred() ? -1 : 0);
}

static int64_t file_size(void *ctx)
{
    const ext_av_file *f = ctx;
    if (!enter()) return -1;
    const long long end = call(f->object, "seek", 0, SEEK_END);
    if (end >= 0 && !PyErr_Occurred()) (void)call(f->object, "seek", f->base, SEEK_SET);
    return leave(PyErr_Occurred() || end < f->base ? -1 : (int64_t)(end - f->base));
}

/* 1 or 0; -1 with an exception. */
static int can_seek(PyObject *object)
{
    PyObject *answer = PyObject_CallMethod(object, "seekable", NULL);
    const int can = answer ? PyObject_IsTrue(answer) : -1;
    Py_XDECREF(answer);
    if (answer || !PyErr_ExceptionMatches(PyExc_AttributeError)) return can;
    PyErr_Clear();
    return PyObject_HasAttrString(object, "seek") && PyObject_HasAttrString(object, "tell");
}

ext_av_file *ext_av_file_new(PyObject *object)
{
    const int seeks = can_seek(object);
    const long long base = seeks > 0 ? call(object, "tell", 0, -1) : 0;
    if (seeks < 0 || PyErr_Occurred()) return NULL;
    ext_av_file *f = PyMem_Calloc(1, sizeof(*f));
    if (!f) return (ext_av_file *)PyErr_NoMemory();
    f->object = Py_NewRef(object);
    f->base = base;
    f->reader = (stk_av_reader){.read = file_read, .ctx = f};
    if (seeks) {
        f->reader.seek = file_seek;
        f->reader.size = file_size;
    }
    return f;
}

int ext_av_file_traverse(const ext_av_file *f, visitproc visit, void *arg)
{
    Py_VISIT(f->object);
    return 0;
}

void ext_av_file_free(ext_av_file *f)
{
    if (!f) return;
    Py_DECREF(f->object);
    PyMem_Free(f);
}

const stk_av_reader *ext_av_file_reader(ext_av_file *f)
{
    return &f->reader;
}
