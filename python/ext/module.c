#include "av.h"
#include "column.h"
#include "input.h"
#include "io.h"
#include "lane.h"
#include "op.h"
#include "trace.h"

#define FUNCTION(name, doc)                                                               \
    {                                                                                     \
#name, (PyCFunction)(void (*)(void))ext_##name, METH_VARARGS | METH_KEYWORDS, doc \
    }

static PyMethodDef functions[] = {
    FUNCTION(dir_source, PyDoc_STR("A Source; use stoker.source.Directory.")),
    FUNCTION(list_source, PyDoc_STR("A Source; use stoker.source.List.")),
    FUNCTION(shards_source, PyDoc_STR("A Source; use stoker.source.Tar or Zip.")),
    FUNCTION(op_read, PyDoc_STR("An Op; use stoker.ops.read.")),
    FUNCTION(op_decode_image, PyDoc_STR("An Op; use stoker.ops.decode_image.")),
    FUNCTION(op_load_npy, PyDoc_STR("An Op; use stoker.ops.load_npy.")),
    FUNCTION(op_normalize, PyDoc_STR("An Op; use stoker.ops.normalize.")),
    FUNCTION(op_decode_wav, PyDoc_STR("An Op; use stoker.ops.decode_wav.")),
    FUNCTION(op_decode_audio, PyDoc_STR("An Op; use stoker.ops.decode_audio.")),
    FUNCTION(op_decode_video, PyDoc_STR("An Op; use stoker.ops.decode_video.")),
    FUNCTION(op_isolate, PyDoc_STR("The Op in processes of its own; use isolate=True.")),
    FUNCTION(op_color_jitter, PyDoc_STR("An Op; use stoker.ops.color_jitter.")),
    FUNCTION(op_grayscale, PyDoc_STR("An Op; use stoker.ops.grayscale.")),
    FUNCTION(op_erase, PyDoc_STR("An Op; use stoker.ops.erase.")),
    FUNCTION(op_pad, PyDoc_STR("An Op; use stoker.ops.pad.")),
    FUNCTION(op_blur, PyDoc_STR("An Op; use stoker.ops.blur.")),
    FUNCTION(op_rotate, PyDoc_STR("An Op; use stoker.ops.rotate.")),
    FUNCTION(op_mixup, PyDoc_STR("An Op; use stoker.ops.mixup.")),
    FUNCTION(op_cutmix, PyDoc_STR("An Op; use stoker.ops.cutmix.")),
    FUNCTION(decode_image, PyDoc_STR("decode_image(data, seed, **options): one image as a Field, "
                                     "outside of any run.")),
    FUNCTION(lane,
             PyDoc_STR("lane(run, group, grow, thread=None): runs the stages of a group on this "
                       "thread, to the run's end.  grow(group) asks for another thread; the name "
                       "of thread says which stage runs.")),
    FUNCTION(op_python, PyDoc_STR("op_python(kind, callable, report, text): an Op that calls it.  "
                                  "kind: map, expand, route, fold or convert; "
                                  "report(exception, item, id) hears of failures.")),
    FUNCTION(op_collate, PyDoc_STR("op_collate(n, drop_last): an Op that makes lists.")),
    {"op_concat", ext_op_concat, METH_O,
     PyDoc_STR(
         "op_concat($module, paths, /)\n--\n\nAn Op that joins the lists of a batched router's "
         "paths.")},
    FUNCTION(iterable_source, PyDoc_STR("iterable_source(iterable, continuous, text): a Source.")),
    {"source_finish", ext_source_finish, METH_O,
     PyDoc_STR("source_finish($module, source, /)\n--\n\nCloses the iterator of a source that has "
               "not come to its end.")},
    {"port", ext_port, METH_VARARGS, PyDoc_STR("port($module, run, stage, /)\n--\n\nA Port.")},
    {"notify", ext_notify, METH_VARARGS,
     PyDoc_STR("notify($module, run, group, fd, /)\n--\n\nWrites to an eventfd when ports of the "
               "group have news; -1: no more.")},
    {"hear", ext_hear, METH_O,
     PyDoc_STR("hear($module, fd, /)\n--\n\nEmpties that eventfd; whether there was anything.")},
    {"field_of", ext_field_of, METH_VARARGS,
     PyDoc_STR("field_of($module, data, dtype, shape, readonly, /)\n--\n\nA Field over contiguous "
               "bytes.")},
    {"batch_of", ext_batch_of, METH_VARARGS,
     PyDoc_STR("batch_of($module, epoch, index, keys, fields, /)\n--\n\nA Batch.")},
    {"sample_of", ext_sample_made, METH_VARARGS,
     PyDoc_STR("sample_of($module, parts, id, epoch, key, label, followed, /)\n--\n\nA Sample.")},
    {"npy_header", ext_npy_header, METH_O,
     PyDoc_STR(
         "npy_header($module, data, /)\n--\n\n(dtype, shape, order, where the elements begin, what "
         "holds them) of a NumPy file.")},
    {"zip_open", ext_zip_open, METH_VARARGS,
     PyDoc_STR("zip_open($module, source, size, max_ratio, max_directory, /)\n--\n\nA Zip over "
               "bytes, or over what "
               "read(offset, size) gives.")},
    {"memory", ext_memory, METH_O,
     PyDoc_STR("memory($module, size, /)\n--\n\nA Field of so many bytes, to write to.")},
    FUNCTION(tar, PyDoc_STR("A TarIterator; use stoker.io.iter_tarfile.")),
    FUNCTION(stream, PyDoc_STR("A Stream; use stoker.io.iter_lines.")),
    {"load_wav", (PyCFunction)(void (*)(void))ext_load_wav, METH_FASTCALL | METH_KEYWORDS,
     PyDoc_STR(
         "load_wav($module, /, data, time_offset_seconds=None, duration_seconds=None, *, "
         "max_bytes=None)\n--\n\n"
         "The samples of a WAV file, or of a window of it, as a Field of (frames, channels).\n\n"
         "See docs/media.md.")},
    {"wav_header", ext_wav_header, METH_O,
     PyDoc_STR("wav_header($module, data, /)\n--\n\nUse stoker.io.parse_wav.")},
    {"plan", ext_plan, METH_NOARGS, PyDoc_STR("plan($module, /)\n--\n\nAn empty Plan.")},
    {NULL, NULL, 0, NULL}, /* end */
};

static void release(void *handle, void *ctx)
{
    (void)ctx;
    Py_DECREF((PyObject *)handle); /* on a thread that drains: see lane.h */
}

stk_err ext_domain_new(stk_foreign_domain **out)
{
    return stk_foreign_domain_new(release, NULL, NULL, out);
}

static PyTypeObject *add_type(PyObject *module, PyType_Spec *spec)
{
    PyTypeObject *type = (PyTypeObject *)PyType_FromModuleAndSpec(module, spec, NULL);
    if (type && PyModule_AddType(module, type) < 0) Py_CLEAR(type);
    return type;
}

/* Objects that are nothing but themselves: results may be of any type. */
static bool add_codes(PyObject *module)
{
    static const char *const names[EXT_CODES] = {"END", "EPOCH_END", "TIMED_OUT", "CANCELLED"};
    ext_state *state = PyModule_GetState(module);
    for (int i = 0; i < EXT_CODES; i++) {
        state->codes[i] = PyObject_CallNoArgs((PyObject *)&PyBaseObject_Type);
        if (!state->codes[i] || PyModule_AddObjectRef(module, names[i], state->codes[i]) < 0)
            return false;
    }
    return true;
}

static int add_constants(PyObject *module)
{
    if (PyModule_AddStringConstant(module, "VERSION", stk_version()) < 0 || !add_codes(module))
        return -1;
    PyObject *codes = ext_error_codes();
    const int failed = codes ? PyModule_AddObjectRef(module, "ERROR_CODES", codes) : -1;
    Py_XDECREF(codes);
    return failed;
}

static int module_exec(PyObject *module)
{
    ext_state *state = PyModule_GetState(module); /* zeroed; module_clear cleans up after failure */

    stk_err err = ext_domain_new(&state->domain);
    if (err) {
        ext_raise(err, NULL);
        return -1;
    }

    if (!(state->field_type = add_type(module, &ext_field_spec))) return -1;
    if (!(state->cpu_buffer_type = add_type(module, &ext_cpu_buffer_spec))) return -1;
    if (!(state->batch_type = add_type(module, &ext_batch_spec))) return -1;
    if (!(state->sample_type = add_type(module, &ext_sample_spec))) return -1;
    if (!(state->source_type = add_type(module, &ext_source_spec))) return -1;
    if (!(state->op_type = add_type(module, &ext_op_spec))) return -1;
    if (!(state->plan_type = add_type(module, &ext_plan_spec))) return -1;
    if (!(state->run_type = add_type(module, &ext_run_spec))) return -1;
    if (!(state->results_type = add_type(module, &ext_results_spec))) return -1;
    if (!(state->port_type = add_type(module, &ext_port_spec))) return -1;
    if (!(state->slip_type = add_type(module, &ext_slip_spec))) return -1;
    if (!(state->tar_type = add_type(module, &ext_tar_spec))) return -1;
    if (!(state->stream_type = add_type(module, &ext_stream_spec))) return -1;
    if (!(state->zip_type = add_type(module, &ext_zip_spec))) return -1;
    if (!(state->held_type = add_type(module, &ext_held_spec))) return -1;
    if (!(state->av_type = add_type(module, &ext_av_spec))) return -1;
    if (!ext_av_add_functions(module) || !ext_trace_add_functions(module)) return -1;
    return add_constants(module);
}

static int module_traverse(PyObject *module, visitproc visit, void *arg)
{
    ext_state *state = PyModule_GetState(module);
    Py_VISIT(state->field_type);
    Py_VISIT(state->cpu_buffer_type);
    Py_VISIT(state->batch_type);
    Py_VISIT(state->sample_type);
    Py_VISIT(state->source_type);
    Py_VISIT(state->op_type);
    Py_VISIT(state->plan_type);
    Py_VISIT(state->run_type);
    Py_VISIT(state->results_type);
    Py_VISIT(state->slip_type);
    Py_VISIT(state->zip_type);
    Py_VISIT(state->held_type);
    Py_VISIT(state->av_type);
    Py_VISIT(state->port_type);
    Py_VISIT(state->tar_type);
    Py_VISIT(state->stream_type);
    return 0;
}

static int module_clear(PyObject *module)
{
    ext_state *state = PyModule_GetState(module);
    Py_CLEAR(state->field_type);
    Py_CLEAR(state->cpu_buffer_type);
    Py_CLEAR(state->batch_type);
    Py_CLEAR(state->sample_type);
    Py_CLEAR(state->source_type);
    Py_CLEAR(state->op_type);
    Py_CLEAR(state->plan_type);
    Py_CLEAR(state->run_type);
    Py_CLEAR(state->results_type);
    Py_CLEAR(state->slip_type);
    Py_CLEAR(state->zip_type);
    Py_CLEAR(state->held_type);
    Py_CLEAR(state->av_type);
    Py_CLEAR(state->port_type);
    Py_CLEAR(state->tar_type);
    Py_CLEAR(state->stream_type);
    for (int i = 0; i < EXT_CODES; i++) Py_CLEAR(state->codes[i]);
    return 0;
}

static void module_free(void *module)
{
    ext_state *state = PyModule_GetState(module);
    (void)module_clear(module);
    stk_foreign_domain_close(&state->domain);
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, module_exec},
#ifdef Py_mod_multiple_interpreters /* 3.12 */
    {Py_mod_multiple_interpreters, Py_MOD_PER_INTERPRETER_GIL_SUPPORTED},
#endif
#ifdef Py_mod_gil /* 3.13: we never lean on the GIL */
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, NULL}, /* end */
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_stoker",
    .m_doc = "The C core of stoker; use the stoker package.",
    .m_size = sizeof(ext_state),
    .m_methods = functions,
    .m_slots = slots,
    .m_traverse = module_traverse,
    .m_clear = module_clear,
    .m_free = module_free,
};

ext_state *ext_state_of(PyTypeObject *type)
{
    PyObject *module = PyType_GetModuleByDef(type, &definition);
    return module ? PyModule_GetState(module) : NULL;
}

void ext_drain(PyTypeObject *type)
{
    /* Final types: it is theirs; at the interpreter's end a type may lose it before its objects. */
    PyObject *module = ((PyHeapTypeObject *)type)->ht_module;
    const ext_state *state = module ? PyModule_GetState(module) : NULL;
    if (state && state->domain) stk_foreign_drain(state->domain);
}

PyMODINIT_FUNC PyInit__stoker(void)
{
    return PyModuleDef_Init(&definition);
}
