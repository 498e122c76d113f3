#include "input.h"
#include "io.h"

#include <stoker/tar.h>

typedef struct {
    PyObject_HEAD
    ext_turn turn; /* guards all below */
    ext_input in;
    PyObject *views; /* what views of members are made of */
    stk_tar *tar;    /* NULL: it has come to its end */
} Tar;

static void close_all(Tar *self)
{
    stk_tar_free(&self->tar);
    Py_CLEAR(self->views);
    ext_input_close(&self->in);
}

/* Views of one memoryview are counted by it, and without the GIL that is no safe count. */
static bool open_views(ext_state *state, Tar *self, PyObject *source)
{
    if (!self->in.memory) return true;
#ifdef Py_GIL_DISABLED
    self->views = ext_held(state, source);
#else
    (void)state, (void)source;
    self->views = Py_NewRef(self->in.memory);
#endif
    return self->views;
}

static stk_err open_tar(Tar *self, const stk_stream_opts *limits, stk_tar_opts *opts)
{
    stk_stream *stream = NULL;
    stk_err err;
    if (!self->in.memory)
        err = stk_stream_from(ext_input_read, &self->in, limits, &stream);
    else {
        const Py_buffer *b = PyMemoryView_GET_BUFFER(self->in.memory);
        if (stk_packing_of(b->buf, (size_t)b->len) == STK_PACKING_NONE)
            return stk_tar_over(b->buf, (size_t)b->len, opts, &self->tar);
        err = stk_stream_over(b->buf, (size_t)b->len, limits, &stream);
    }
    opts->drain = self->in.pipe;
    if (!err) err = stk_tar_from(&stream, opts, &self->tar);
    stk_stream_free(&stream);
    return err;
}

PyObject *ext_tar(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"src",
                            "max_uncompressed_bytes",
                            "max_ratio",
                            "max_member_bytes",
                            "max_header_bytes",
                            "strict",
                            "timeout",
                            NULL};
    PyObject *source, *max_bytes = Py_None, *max_ratio = Py_None, *max_member = Py_None,
                      *max_header = Py_None, *timeout = Py_None;
    int strict = 1;
    stk_stream_opts limits;
    stk_tar_opts opts = {0};
    uint64_t header = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$OOOOpO:iter_tarfile", names, &source,
                                     &max_bytes, &max_ratio, &max_member, &max_header, &strict,
                                     &timeout) ||
        !ext_stream_opts(max_bytes, max_ratio, &limits) ||
        !ext_limit("max_member_bytes", max_member, PY_SSIZE_T_MAX, &opts.max_member) ||
        !ext_limit("max_header_bytes", max_header, PY_SSIZE_T_MAX / 4, &header))
        return NULL;
    opts.open_end = !strict;
    opts.max_header = (size_t)header;

    ext_state *state = PyModule_GetState(module);
    PyTypeObject *type = state->tar_type;
    Tar *self = (Tar *)type->tp_alloc(type, 0);
    if (!self) return NULL;
    ext_input_init(&self->in);
    if (ext_turn_init(&self->turn) && ext_input_open(&self->in, source, timeout) &&
        open_views(state, self, source)) {
        const stk_err err = open_tar(self, &limits, &opts);
        if (!err) return (PyObject *)self;
        ext_raise(err, NULL);
    }
    Py_DECREF(self);
    return NULL;
}

/* A view of part of `memory`: a slice, without the objects that slicing would make. */
static PyObject *slice(PyObject *memory, const void *data, size_t size)
{
    PyObject *view = PyMemoryView_FromObject(memory);
    if (!view) return NULL;
    Py_buffer *b = PyMemoryView_GET_BUFFER(view); /* its own, of one dimension of bytes */
    b->buf = (void *)data;
    b->len = b->shape[0] = (Py_ssize_t)size;
    return view;
}

static PyObject *fail(Tar *self, stk_err err, stk_diag *diag)
{
    ext_input_raise(&self->in, err, diag);
    close_all(self);
    return NULL;
}

/* The member's bytes, which are in the buffer or will be read. */
static PyObject *read_member(Tar *self, const stk_tar_member *m)
{
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)m->size);
    if (!bytes) return NULL;
    char *to = PyBytes_AS_STRING(bytes);
    stk_diag diag = {0};
    stk_err err;
    if (m->size <= stk_tar_buffered(self->tar))
        err = stk_tar_read(self->tar, to, (size_t)m->size, &diag);
    else {
        EXT_INPUT_BEGIN_WAIT(&self->in)
        err = stk_tar_read(self->tar, to, (size_t)m->size, &diag);
        EXT_INPUT_END_WAIT(&self->in)
    }
    if (!err) return bytes;
    Py_DECREF(bytes);
    return fail(self, err, &diag);
}

static PyObject *next_member(Tar *self)
{
    stk_tar_member m;
    stk_diag diag = {0};
    stk_err err = STK_EAGAIN;
    while (self->tar && (err = stk_tar_next(self->tar, &m, &diag)) == STK_EAGAIN) {
        EXT_INPUT_BEGIN_WAIT(&self->in)
        err = stk_tar_fill(self->tar, &diag);
        EXT_INPUT_END_WAIT(&self->in)
        if (err) break;
    }
    if (!self->tar || err == STK_EEND) {
        close_all(self);
        return NULL;
    }
    if (err) return fail(self, err, &diag);

    /* Before the data are read: their names need not outlive that. */
    PyObject *name = PyUnicode_DecodeUTF8(m.name, (Py_ssize_t)m.name_size, "surrogateescape");
    PyObject *data = NULL;
    if (name) data = m.data ? slice(self->views, m.data, (size_t)m.size) : read_member(self, &m);
    PyObject *pair = data ? PyTuple_New(2) : NULL;
    if (!pair) {
        Py_XDECREF(name);
        Py_XDECREF(data);
        return NULL;
    }
    PyTuple_SET_ITEM(pair, 0, name);
    PyTuple_SET_ITEM(pair, 1, data);
    return pair;
}

static PyObject *tar_next(PyObject *op)
{
    Tar *self = (Tar *)op;
    if (!ext_turn_take(&self->turn)) return NULL;
    PyObject *pair = next_member(self);
    ext_turn_give(&self->turn);
    return pair;
}

static PyObject *tar_close(PyObject *op, PyObject *unused)
{
    Tar *self = (Tar *)op;
    (void)unused;
    if (!ext_turn_take_last(&self->turn, &self->in)) return NULL;
    close_all(self);
    ext_turn_give(&self->turn);
    Py_RETURN_NONE;
}

static int tar_traverse(PyObject *op, visitproc visit, void *arg)
{
    Tar *self = (Tar *)op;
    Py_VISIT(self->in.memory);
    Py_VISIT(self->views);
    Py_VISIT(self->in.reader);
    Py_VISIT(self->in.read1);
    Py_VISIT(Py_TYPE(op));
    return 0;
}

static int tar_clear(PyObject *op)
{
    close_all((Tar *)op);
    return 0;
}

static void tar_dealloc(PyObject *op)
{
    PyTypeObject *type = Py_TYPE(op);
    PyObject_GC_UnTrack(op);
    close_all((Tar *)op);
    ext_input_fini(&((Tar *)op)->in);
    ext_turn_fini(&((Tar *)op)->turn);
    type->tp_free(op);
    Py_DECREF(type);
}

static PyMethodDef tar_methods[] = {
    {"close", tar_close, METH_NOARGS,
     PyDoc_STR(
         "close($self, /)\n--\n\nEnds the iteration, and the wait of another thread for a pipe, "
         "with CancelledError; closes the file that it opened.")},
    {NULL, NULL, 0, NULL}, /* end */
};

/* clang-format off */
static PyType_Slot tar_slots[] = {
    {Py_tp_doc, (void *)"Members of an archive; use stoker.io.iter_tarfile."},
    {Py_tp_traverse, tar_traverse},
    {Py_tp_clear, tar_clear},
    {Py_tp_dealloc, tar_dealloc},
    {Py_tp_iter, PyObject_SelfIter},
    {Py_tp_iternext, tar_next},
    {Py_tp_methods, tar_methods},
    {0, NULL},
};
/* clang-format on */

PyType_Spec ext_tar_spec = {
    .name = "stoker._stoker.TarIterator",
    .basicsize = sizeof(Tar),
    .flags = EXT_TYPE_FLAGS,
    .slots = tar_slots,
};
