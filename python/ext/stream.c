#include "input.h"

#define BLOCK_BYTES ((Py_ssize_t)256 << 10)

/* Blocks of bytes of an input, unpacked. */
typedef struct {
    PyObject_HEAD
    ext_turn turn; /* guards all below */
    ext_input in;
    stk_stream *core; /* NULL: it has come to its end, or was closed */
    bool ended;
} Stream;

static void close_all(Stream *self)
{
    stk_stream_free(&self->core);
    ext_input_close(&self->in);
}

PyObject *ext_stream(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"src", "max_uncompressed_bytes", "max_ratio", "timeout", NULL};
    PyObject *source, *max_bytes = Py_None, *max_ratio = Py_None, *timeout = Py_None;
    stk_stream_opts opts;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$OOO:stream", names, &source, &max_bytes,
                                     &max_ratio, &timeout) ||
        !ext_stream_opts(max_bytes, max_ratio, &opts))
        return NULL;
    PyTypeObject *type = ((ext_state *)PyModule_GetState(module))->stream_type;
    Stream *self = (Stream *)type->tp_alloc(type, 0);
    if (!self) return NULL;
    ext_input_init(&self->in);
    if (ext_turn_init(&self->turn) && ext_input_open(&self->in, source, timeout)) {
        const Py_buffer *b = self->in.memory ? PyMemoryView_GET_BUFFER(self->in.memory) : NULL;
        const stk_err err = b ? stk_stream_over(b->buf, (size_t)b->len, &opts, &self->core)
                              : stk_stream_from(ext_input_read, &self->in, &opts, &self->core);
        if (!err) return (PyObject *)self;
        ext_raise(err, NULL);
    }
    Py_DECREF(self);
    return NULL;
}

/* NULL without an exception: the end. */
static PyObject *next_block(Stream *self)
{
    if (!self->core) {
        stk_diag diag; /* whoever reads on another thread must not take it for the end */
        if (!self->ended)
            ext_raise(stk_diag_set(&diag, STK_ECANCELLED, "cancelled: it was closed"), &diag);
        return NULL;
    }
    PyObject *block = PyBytes_FromStringAndSize(NULL, BLOCK_BYTES);
    if (!block) return NULL;
    stk_diag diag = {0};
    stk_err err;
    size_t got;
    EXT_INPUT_BEGIN_WAIT(&self->in)
    err = stk_stream_read(self->core, PyBytes_AS_STRING(block), (size_t)BLOCK_BYTES, &got, &diag);
    EXT_INPUT_END_WAIT(&self->in)
    if (!err && got) {
        (void)_PyBytes_Resize(&block,
                              (Py_ssize_t)got); /* to NULL, with an exception, if it fails */
        return block;
    }
    Py_DECREF(block);
    if (err) ext_input_raise(&self->in, err, &diag);
    self->ended = true;
    close_all(self);
    return NULL;
}

static PyObject *stream_next(PyObject *op)
{
    Stream *self = (Stream *)op;
    if (!ext_turn_take(&self->turn)) return NULL;
    PyObject *block = next_block(self);
    ext_turn_give(&self->turn);
    return block;
}

static PyObject *stream_close(PyObject *op, PyObject *unused)
{
    Stream *self = (Stream *)op;
    (void)unused;
    if (!ext_turn_take_last(&self->turn, &self->in)) return NULL;
    close_all(self);
    ext_turn_give(&self->turn);
    Py_RETURN_NONE;
}

static PyObject *stream_get_name(PyObject *op, void *closure)
{
    Stream *self = (Stream *)op;
    (void)closure;
    if (!ext_turn_take(&self->turn)) return NULL;
    PyObject *name = Py_NewRef(self->in.name ? self->in.name : Py_None);
    ext_turn_give(&self->turn);
    return name;
}

static int stream_traverse(PyObject *op, visitproc visit, void *arg)
{
    Stream *self = (Stream *)op;
    Py_VISIT(self->in.memory);
    Py_VISIT(self->in.reader);
    Py_VISIT(self->in.read1);
    Py_VISIT(Py_TYPE(op));
    return 0;
}

static int stream_clear(PyObject *op)
{
    close_all((Stream *)op);
    return 0;
}

static void stream_dealloc(PyObject *op)
{
    PyTypeObject *type = Py_TYPE(op);
    PyObject_GC_UnTrack(op);
    close_all((Stream *)op);
    ext_input_fini(&((Stream *)op)->in);
    ext_turn_fini(&((Stream *)op)->turn);
    type->tp_free(op);
    Py_DECREF(type);
}

static PyMethodDef stream_methods[] = {
    {"close", stream_close, METH_NOARGS,
     PyDoc_STR(
         "close($self, /)\n--\n\nEnds the iteration, and the wait of another thread for a pipe, "
         "with CancelledError; closes the file that it opened.")},
    {NULL, NULL, 0, NULL}, /* end */
};

static PyGetSetDef stream_getset[] = {
    {"name", stream_get_name, NULL, PyDoc_STR("Of the file, or None; None at the end."), NULL},
    {NULL, NULL, NULL, NULL, NULL}, /* end */
};

/* clang-format off */
static PyType_Slot stream_slots[] = {
    {Py_tp_doc, (void *)"Blocks of bytes, unpacked; use stoker.io.iter_lines."},
    {Py_tp_traverse, stream_traverse},
    {Py_tp_clear, stream_clear},
    {Py_tp_dealloc, stream_dealloc},
    {Py_tp_iter, PyObject_SelfIter},
    {Py_tp_iternext, stream_next},
    {Py_tp_methods, stream_methods},
    {Py_tp_getset, stream_getset},
    {0, NULL},
};
/* clang-format on */

PyType_Spec ext_stream_spec = {
    .name = "stoker._stoker.Stream",
    .basicsize = sizeof(Stream),
    .flags = EXT_TYPE_FLAGS,
    .slots = stream_slots,
};
