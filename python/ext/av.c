#include "av.h"

#include <string.h>
#include <unistd.h>

typedef struct {
    PyObject_HEAD
    ext_av_kind kind; /* never changes, as all fields */
    void *core;
    ext_av_file *file;
    PyObject *base;
} Handle;

static const char *const kinds[] = {
    "a codec",    "packets", "a demuxer",      "bitstream filters", "a decoder", "frames",
    "an encoder", "a muxer", "a filter graph", "live input",        "a reader",  "a plan"};

static void end(ext_av_kind kind, void *core)
{
    switch (kind) {
    case EXT_AV_CODEC: stk_av_codec_unref(&(stk_av_codec *){core}); break;
    case EXT_AV_PACKETS: stk_packets_unref(&(stk_packets *){core}); break;
    case EXT_AV_DEMUXER: stk_demuxer_free(&(stk_demuxer *){core}); break;
    case EXT_AV_BSF: stk_bsf_free(&(stk_bsf *){core}); break;
    case EXT_AV_DECODER: stk_decoder_free(&(stk_decoder *){core}); break;
    case EXT_AV_FRAMES: stk_frames_unref(&(stk_frames *){core}); break;
    case EXT_AV_ENCODER: stk_encoder_free(&(stk_encoder *){core}); break;
    case EXT_AV_MUXER: stk_muxer_free(&(stk_muxer *){core}); break;
    case EXT_AV_LIVE: stk_live_free(&(stk_live *){core}); break;
    case EXT_AV_GRAPH: stk_filter_graph_free(&(stk_filter_graph *){core}); break;
    case EXT_AV_READER: stk_video_reader_free(&(stk_video_reader *){core}); break;
    case EXT_AV_PLAN: stk_video_plan_free(&(stk_video_plan *){core}); break;
    }
}

PyObject *ext_av_give(PyObject *module, ext_av_kind kind, void *core, void *file)
{
    const ext_state *state = PyModule_GetState(module);
    Handle *self = (Handle *)state->av_type->tp_alloc(state->av_type, 0);
    if (!self) {
        end(kind, core);
        ext_av_file_free(file);
        return NULL;
    }
    self->kind = kind;
    self->core = core;
    self->file = file;
    return (PyObject *)self;
}

PyObject *ext_av_give_on(PyObject *module, ext_av_kind kind, void *core, PyObject *base)
{
    PyObject *self = ext_av_give(module, kind, core, NULL);
    if (self) ((Handle *)self)->base = Py_NewRef(base);
    return self;
}

void *ext_av_borrow(PyObject *module, PyObject *op, ext_av_kind kind)
{
    const ext_state *state = PyModule_GetState(module);
    if (Py_IS_TYPE(op, state->av_type) && ((Handle *)op)->kind == kind) return ((Handle *)op)->core;
    PyErr_Format(PyExc_TypeError, "expected %s, not %.80s", kinds[kind], Py_TYPE(op)->tp_name);
    return NULL;
}

static int handle_traverse(PyObject *op, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(op));
    Py_VISIT(((Handle *)op)->base);
    const ext_av_file *file = ((Handle *)op)->file;
    return file ? ext_av_file_traverse(file, visit, arg) : 0;
}

static void handle_dealloc(PyObject *op)
{
    Handle *self = (Handle *)op;
    PyTypeObject *type = Py_TYPE(op);
    PyObject_GC_UnTrack(op);
    ext_av_scope scope;
    ext_av_detach(&scope); /* hundreds of frames take their time */
    end(self->kind, self->core);
    ext_av_attach(&scope);
    ext_av_file_free(self->file);
    Py_XDECREF(self->base);
    ext_drain(type);
    type->tp_free(op);
    Py_DECREF(type);
}

/* --- leaving the interpreter --- */

/* What this thread left; a file's functions are called on the thread that called the library. */
static _Thread_local PyThreadState *left;

void ext_av_detach(ext_av_scope *scope)
{
    scope->outer = left;
    left = PyEval_SaveThread();
}

void ext_av_attach(ext_av_scope *scope)
{
    PyEval_RestoreThread(left);
    left = scope->outer;
}

void ext_av_enter(void)
{
    PyEval_RestoreThread(left);
}

void ext_av_exit(void)
{
    left = PyEval_SaveThread();
}

/* An exception that is there already is of a file's functions. */
bool ext_av_signal_raised(void *ctx)
{
    (void)ctx;
    if (gettid() != getpid()) return false;
    ext_av_enter();
    const bool raised = PyErr_Occurred() || PyErr_CheckSignals() < 0;
    ext_av_exit();
    return raised;
}

PyObject *ext_av_failed(stk_err err, const stk_diag *diag)
{
    return PyErr_Occurred() ? NULL : ext_raise(err, diag);
}

/* --- what FFmpeg this is --- */

PyObject *ext_av_ratio(stk_ratio ratio)
{
    if (ratio.den == 0) Py_RETURN_NONE;
    return Py_BuildValue("(LL)", (long long)ratio.num, (long long)ratio.den);
}

const char **ext_av_texts(PyObject *tuple)
{
    if (!PyTuple_Check(tuple)) {
        PyErr_SetString(PyExc_TypeError, "expected a tuple of str");
        return NULL;
    }
    const Py_ssize_t n = PyTuple_GET_SIZE(tuple);
    const char **texts = PyMem_Calloc((size_t)n + 1, sizeof(*texts));
    if (!texts) PyErr_NoMemory();
    for (Py_ssize_t i = 0; texts && i < n; i++) {
        texts[i] = PyUnicode_AsUTF8(PyTuple_GET_ITEM(tuple, i));
        if (!texts[i]) {
            PyMem_Free(texts);
            texts = NULL;
        }
    }
    return texts;
}

static PyObject *av_versions(PyObject *module, PyObject *unused)
{
    stk_av_version list[STK_AV_VERSIONS];
    stk_diag diag;
    stk_err err;
    (void)module;
    (void)unused;
    Py_BEGIN_ALLOW_THREADS
    err = stk_av_versions(list, &diag);
    Py_END_ALLOW_THREADS
    if (err) return ext_raise(err, &diag);
    PyObject *out = PyDict_New();
    for (const stk_av_version *v = list; out && v->name; v++) {
        PyObject *numbers = Py_BuildValue("(iii)", v->major, v->minor, v->micro);
        if (!numbers || PyDict_SetItemString(out, v->name, numbers) < 0) Py_CLEAR(out);
        Py_XDECREF(numbers);
    }
    return out;
}

static PyObject *av_filters(PyObject *module, PyObject *unused)
{
    stk_diag diag;
    stk_av_filter filter;
    (void)module;
    (void)unused;
    PyObject *out = PyList_New(0);
    stk_err err = STK_OK;
    for (size_t at = 0; out && !(err = stk_av_filter_next(&at, &filter, &diag));) {
        PyObject *entry =
            Py_BuildValue("(ssii)", filter.name, filter.description, filter.inputs, filter.outputs);
        if (!entry || PyList_Append(out, entry) < 0) Py_CLEAR(out);
        Py_XDECREF(entry);
    }
    if (!out || err == STK_EEND) return out;
    Py_DECREF(out);
    return ext_raise(err, &diag);
}

static PyObject *av_log_level(PyObject *module, PyObject *args)
{
    PyObject *wanted = Py_None;
    stk_diag diag;
    int level = 0;
    stk_err err = STK_OK;
    (void)module;
    if (!PyArg_ParseTuple(args, "|O:av_log_level", &wanted)) return NULL;
    if (wanted != Py_None) {
        if (!PyArg_Parse(wanted, "i", &level)) return NULL;
        err = stk_av_set_log_level(level, &diag);
    }
    if (!err) err = stk_av_log_level(&level, &diag);
    return err ? ext_raise(err, &diag) : PyLong_FromLong(level);
}

static PyMethodDef functions[] = {
    {"av_versions", av_versions, METH_NOARGS,
     PyDoc_STR("av_versions($module, /)\n--\n\n{library: (major, minor, micro)}")},
    {"av_filters", av_filters, METH_NOARGS,
     PyDoc_STR("av_filters($module, /)\n--\n\n[(name, description, inputs, outputs)]; -1: any.")},
    {"av_log_level", av_log_level, METH_VARARGS,
     PyDoc_STR("av_log_level(level=None): FFmpeg's log level, after it was set.")},
    {NULL, NULL, 0, NULL}, /* end */
};

bool ext_av_add_functions(PyObject *module)
{
    return PyModule_AddFunctions(module, functions) == 0 &&
           PyModule_AddFunctions(module, ext_av_demux_functions) == 0 &&
           PyModule_AddFunctions(module, ext_av_frames_functions) == 0 &&
           PyModule_AddFunctions(module, ext_av_encode_functions) == 0 &&
           PyModule_AddFunctions(module, ext_av_graph_functions) == 0 &&
           PyModule_AddFunctions(module, ext_av_live_functions) == 0 &&
           PyModule_AddFunctions(module, ext_av_reader_functions) == 0;
}

/* clang-format off */
static PyType_Slot handle_slots[] = {
    {Py_tp_doc, (void *)PyDoc_STR("Something of FFmpeg's; use stoker.io.")},
    {Py_tp_traverse, handle_traverse},
    {Py_tp_dealloc, handle_dealloc},
    {0, NULL},
};
/* clang-format on */

PyType_Spec ext_av_spec = {
    .name = "stoker._stoker.AvHandle",
    .basicsize = sizeof(Handle),
    .flags = EXT_TYPE_FLAGS,
    .slots = handle_slots,
};
