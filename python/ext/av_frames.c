/* Decoders, frames and arrays of them. */
#include "av.h"

#include <string.h>

static PyObject *av_decoder(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"codec",      "decoder",    "options",   "filter", "strict",
                            "max_frames", "max_pixels", "max_bytes", "join",   NULL};
    PyObject *op, *options;
    stk_decode_opts opts = {0};
    int strict, join;
    long long max_frames, max_pixels, max_bytes;
    stk_decoder *decoder;
    stk_diag diag;
    stk_err err;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OzOzpLLLp:av_decoder", names, &op,
                                     &opts.decoder, &options, &opts.filter, &strict, &max_frames,
                                     &max_pixels, &max_bytes, &join))
        return NULL;
    const stk_av_codec *codec = ext_av_borrow(module, op, EXT_AV_CODEC);
    const char **texts = codec ? ext_av_texts(options) : NULL;
    if (!texts) return NULL;
    opts.options = texts;
    opts.strict = strict;
    opts.max_frames = max_frames;
    opts.max_pixels = max_pixels;
    opts.max_bytes = (size_t)max_bytes;
    opts.join = join;
    Py_BEGIN_ALLOW_THREADS
    err = stk_decoder_new(codec, &opts, &decoder, &diag);
    Py_END_ALLOW_THREADS
    PyMem_Free(texts);
    return err ? ext_raise(err, &diag) : ext_av_give(module, EXT_AV_DECODER, decoder, NULL);
}

static PyObject *av_decode(PyObject *module, PyObject *args)
{
    PyObject *op, *from;
    int flush;
    stk_packets *packets = NULL;
    stk_frames *frames;
    stk_diag diag;
    stk_err err;
    if (!PyArg_ParseTuple(args, "OOp:av_decode", &op, &from, &flush)) return NULL;
    stk_decoder *decoder = ext_av_borrow(module, op, EXT_AV_DECODER);
    if (!decoder) return NULL;
    if (from != Py_None && !(packets = ext_av_borrow(module, from, EXT_AV_PACKETS))) return NULL;
    Py_BEGIN_ALLOW_THREADS
    err = stk_decoder_decode(decoder, packets, flush, &frames, &diag);
    Py_END_ALLOW_THREADS
    return err ? ext_raise(err, &diag) : ext_av_give(module, EXT_AV_FRAMES, frames, NULL);
}

static PyObject *av_decoder_put(PyObject *module, PyObject *args)
{
    PyObject *op, *from;
    stk_packets *packets = NULL;
    stk_diag diag;
    if (!PyArg_ParseTuple(args, "OO:av_decoder_put", &op, &from)) return NULL;
    stk_decoder *decoder = ext_av_borrow(module, op, EXT_AV_DECODER);
    if (!decoder) return NULL;
    if (from != Py_None && !(packets = ext_av_borrow(module, from, EXT_AV_PACKETS))) return NULL;
    const stk_err err = stk_decoder_put(decoder, packets, &diag);
    if (err) return ext_raise(err, &diag);
    Py_RETURN_NONE;
}

static PyObject *av_decoder_next(PyObject *module, PyObject *args)
{
    PyObject *op;
    Py_ssize_t max_frames, max_bytes;
    stk_frames *frames;
    stk_diag diag;
    stk_err err;
    if (!PyArg_ParseTuple(args, "Onn:av_decoder_next", &op, &max_frames, &max_bytes)) return NULL;
    stk_decoder *decoder = ext_av_borrow(module, op, EXT_AV_DECODER);
    if (!decoder) return NULL;
    Py_BEGIN_ALLOW_THREADS
    err = stk_decoder_next(decoder, (size_t)max_frames, (size_t)max_bytes, &frames, &diag);
    Py_END_ALLOW_THREADS
    return err ? ext_raise(err, &diag) : ext_av_give(module, EXT_AV_FRAMES, frames, NULL);
}

size_t *ext_av_numbers(PyObject *tuple)
{
    const Py_ssize_t n = PyTuple_GET_SIZE(tuple);
    size_t *indices = PyMem_Calloc(n ? (size_t)n : 1, sizeof(*indices));
    if (!indices) PyErr_NoMemory();
    for (Py_ssize_t i = 0; indices && i < n; i++) {
        indices[i] = PyLong_AsSize_t(PyTuple_GET_ITEM(tuple, i));
        if (indices[i] == (size_t)-1 && PyErr_Occurred()) {
            PyMem_Free(indices);
            return NULL;
        }
    }
    return indices;
}

static PyObject *av_decoder_pick(PyObject *module, PyObject *args)
{
    PyObject *op, *from, *list;
    stk_frames *out;
    stk_diag diag;
    stk_err err;
    if (!PyArg_ParseTuple(args, "OOO!:av_decoder_pick", &op, &from, &PyTuple_Type, &list))
        return NULL;
    stk_decoder *decoder = ext_av_borrow(module, op, EXT_AV_DECODER);
    const stk_packets *packets = decoder ? ext_av_borrow(module, from, EXT_AV_PACKETS) : NULL;
    size_t *indices = packets ? ext_av_numbers(list) : NULL;
    if (!indices) return NULL;
    Py_BEGIN_ALLOW_THREADS
    err = stk_decoder_pick(decoder, packets, indices, (size_t)PyTuple_GET_SIZE(list), &out, &diag);
    Py_END_ALLOW_THREADS
    PyMem_Free(indices);
    return err ? ext_raise(err, &diag) : ext_av_give(module, EXT_AV_FRAMES, out, NULL);
}

static PyObject *av_decoder_failed(PyObject *module, PyObject *op)
{
    const stk_decoder *decoder = ext_av_borrow(module, op, EXT_AV_DECODER);
    return decoder ? PyLong_FromSize_t(stk_decoder_failed(decoder)) : NULL;
}

/* --- frames --- */

static PyObject *av_frames_info(PyObject *module, PyObject *op)
{
    stk_frames_info i;
    const stk_frames *frames = ext_av_borrow(module, op, EXT_AV_FRAMES);
    if (!frames) return NULL;
    stk_frames_get_info(frames, &i);
    PyObject *base = ext_av_ratio(i.time_base), *rate = ext_av_ratio(i.frame_rate);
    if (!base || !rate) {
        Py_XDECREF(base);
        Py_XDECREF(rate);
        return NULL;
    }
    return Py_BuildValue("{si sn sN sN sL si si ss si si si ss sn}", "media", (int)i.media,
                         "num_frames", (Py_ssize_t)i.num_frames, "time_base", base, "frame_rate",
                         rate, "num_samples", (long long)i.num_samples, "sample_rate",
                         i.sample_rate, "num_channels", i.num_channels, "sample_fmt", i.sample_fmt,
                         "width", i.width, "height", i.height, "num_planes", i.num_planes,
                         "pix_fmt", i.pix_fmt, "num_failed", (Py_ssize_t)i.num_failed);
}

static PyObject *av_frames_times(PyObject *module, PyObject *op)
{
    stk_frames_info info;
    const stk_frames *frames = ext_av_borrow(module, op, EXT_AV_FRAMES);
    if (!frames) return NULL;
    stk_frames_get_info(frames, &info);
    const size_t n = info.num_frames;
    int64_t *times = PyMem_Calloc(n ? n : 1, sizeof(*times));
    if (!times) return PyErr_NoMemory();
    stk_frames_times(frames, times, n);
    PyObject *list = ext_av_times(times, n);
    PyMem_Free(times);
    return list;
}

static PyObject *av_frames_metadata(PyObject *module, PyObject *op)
{
    const char *key, *value;
    const stk_frames *frames = ext_av_borrow(module, op, EXT_AV_FRAMES);
    if (!frames) return NULL;
    PyObject *out = PyDict_New();
    for (size_t at = 0; out && stk_frames_metadata(frames, &at, &key, &value);) {
        PyObject *k = ext_text(key), *v = ext_text(value);
        if (!k || !v || PyDict_SetItem(out, k, v) < 0) Py_CLEAR(out);
        Py_XDECREF(k);
        Py_XDECREF(v);
    }
    return out;
}

static PyObject *av_frames_pick(PyObject *module, PyObject *args)
{
    PyObject *op, *list;
    int media;
    stk_frames *out;
    stk_diag diag;
    if (!PyArg_ParseTuple(args, "OO!i:av_frames_pick", &op, &PyTuple_Type, &list, &media))
        return NULL;
    const stk_frames *frames = ext_av_borrow(module, op, EXT_AV_FRAMES);
    if (!frames) return NULL;
    const Py_ssize_t n = PyTuple_GET_SIZE(list);
    size_t *indices = ext_av_numbers(list);
    if (!indices) return NULL;
    const stk_err err = stk_frames_pick(frames, indices, (size_t)n, (stk_media)media, &out, &diag);
    PyMem_Free(indices);
    return err ? ext_raise(err, &diag) : ext_av_give(module, EXT_AV_FRAMES, out, NULL);
}

/* --- arrays --- */

/* Memory of one's own, or the first bytes of `storage`, a CPUBuffer or a writable memoryview. */
static bool fits(const stk_buffer *mem, const stk_spec *spec, size_t bytes)
{
    stk_diag diag;
    if (stk_buffer_size(mem) < bytes) {
        PyErr_Format(PyExc_ValueError, "the storage has %zu bytes, and the array has %zu",
                     stk_buffer_size(mem), bytes);
        return false;
    }
    if ((uintptr_t)stk_buffer_data(mem) % stk_dtype_size(spec->dtype) == 0) return true;
    (void)ext_raise(stk_diag_set(&diag, STK_EINVAL, "the storage is not aligned to %s",
                                 stk_dtype_str(spec->dtype)),
                    &diag);
    return false;
}

static stk_buffer *memory_for(PyObject *module, PyObject *storage, const stk_spec *spec,
                              size_t bytes)
{
    stk_buffer *mem = NULL;
    stk_tensor view;
    if (storage == Py_None) {
        const stk_err err = stk_buffer_new(bytes, &mem);
        if (err) ext_raise(err, NULL);
        return mem;
    }
    ext_state *state = PyModule_GetState(module);
    if (ext_field_borrow(state, storage, &view, &mem))
        mem = stk_buffer_ref(mem);
    else if (ext_bytes_of(state, storage, &mem) != EXT_FOUND) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "storage has no buffer");
        return NULL;
    }
    if (!fits(mem, spec, bytes)) stk_buffer_unref(&mem);
    return mem;
}

static PyObject *convert(PyObject *module, const stk_frames *const *frames, size_t n, bool batched,
                         PyObject *storage)
{
    stk_spec spec;
    stk_diag diag;
    size_t bytes = 0;
    stk_err err = stk_frames_spec(frames, n, batched, &spec, &diag);
    if (!err) err = stk_spec_bytes(&spec, &bytes);
    if (err) return ext_raise(err, &diag);
    stk_buffer *mem = NULL;
    if (n == 1 && !batched && storage == Py_None) err = stk_frames_memory(frames[0], &mem, &diag);
    if (err) return ext_raise(err, &diag);
    const bool copies = !mem;
    if (copies && !(mem = memory_for(module, storage, &spec, bytes))) return NULL;
    void *dst = (void *)stk_buffer_data(mem); /* whoever gave a storage lets it be written to */
    if (copies) {
        Py_BEGIN_ALLOW_THREADS
        err = stk_frames_copy(frames, n, dst, bytes, &diag);
        Py_END_ALLOW_THREADS
    }
    if (err) {
        stk_buffer_unref(&mem);
        return ext_raise(err, &diag);
    }
    const stk_tensor view = stk_tensor_over(dst, &spec);
    return ext_cpu_buffer_give(PyModule_GetState(module), &view, &mem);
}

static PyObject *av_convert(PyObject *module, PyObject *args)
{
    PyObject *list, *storage;
    int batched;
    if (!PyArg_ParseTuple(args, "O!pO:av_convert", &PyTuple_Type, &list, &batched, &storage))
        return NULL;
    const Py_ssize_t n = PyTuple_GET_SIZE(list);
    const stk_frames **frames = PyMem_Calloc(n ? (size_t)n : 1, sizeof(*frames));
    if (!frames) return PyErr_NoMemory();
    bool good = true;
    for (Py_ssize_t i = 0; i < n && good; i++) {
        frames[i] = ext_av_borrow(module, PyTuple_GET_ITEM(list, i), EXT_AV_FRAMES);
        good = frames[i] != NULL;
    }
    PyObject *out = good ? convert(module, frames, (size_t)n, batched, storage) : NULL;
    PyMem_Free(frames);
    return out;
}

/* A copy of `view`, whose memory is `mem`, contiguous and in order. */
static PyObject *copy(PyObject *module, const stk_tensor *view, PyObject *storage)
{
    const stk_spec spec = stk_tensor_spec(view);
    size_t bytes = 0;
    const stk_err err = stk_spec_bytes(&spec, &bytes);
    if (err) return ext_raise(err, NULL);
    if (spec.dtype == STK_BFLOAT16) {
        PyErr_SetString(PyExc_TypeError, "arrays of bfloat16 are not supported");
        return NULL;
    }
    stk_buffer *mem = memory_for(module, storage, &spec, bytes);
    if (!mem) return NULL;
    void *dst = (void *)stk_buffer_data(mem);
    Py_BEGIN_ALLOW_THREADS
    stk_tensor_pack(view, dst);
    Py_END_ALLOW_THREADS
    const stk_tensor made = stk_tensor_over(dst, &spec);
    return ext_cpu_buffer_give(PyModule_GetState(module), &made, &mem);
}

static PyObject *av_array(PyObject *module, PyObject *args)
{
    PyObject *value, *storage;
    stk_tensor view;
    stk_buffer *mem;
    if (!PyArg_ParseTuple(args, "OO:av_array", &value, &storage)) return NULL;
    switch (ext_array_of(PyModule_GetState(module), value, &view, &mem)) {
    case EXT_RAISED: return NULL;
    case EXT_NOT_FOUND: break;
    case EXT_FOUND: {
        PyObject *made = copy(module, &view, storage);
        stk_buffer_unref(&mem);
        return made;
    }
    }
    PyErr_Format(PyExc_TypeError, "expected an array, not %.80s", Py_TYPE(value)->tp_name);
    return NULL;
}

static PyObject *av_storage(PyObject *module, PyObject *arg)
{
    stk_buffer *mem;
    const size_t bytes = PyLong_AsSize_t(arg);
    if (bytes == (size_t)-1 && PyErr_Occurred()) return NULL;
    const stk_spec spec = {.dtype = STK_UINT8, .ndim = 1, .shape = {(int64_t)bytes}};
    size_t checked;
    stk_err err = stk_spec_bytes(&spec, &checked);
    if (!err) err = stk_buffer_new(bytes, &mem);
    if (err) return ext_raise(err, NULL);
    const stk_tensor view = stk_tensor_over((void *)stk_buffer_data(mem), &spec);
    return ext_cpu_buffer_give(PyModule_GetState(module), &view, &mem);
}

PyMethodDef ext_av_frames_functions[] = {
    EXT_AV_KEYWORDS(av_decoder, "A decoder; use stoker.io.Decoder."),
    {"av_decode", av_decode, METH_VARARGS, PyDoc_STR("av_decode(decoder, packets, flush): frames")},
    {"av_decoder_put", av_decoder_put, METH_VARARGS,
     PyDoc_STR("av_decoder_put(decoder, packets): they wait; None: an end.")},
    {"av_decoder_next", av_decoder_next, METH_VARARGS,
     PyDoc_STR("av_decoder_next(decoder, max_frames, max_bytes): frames, of what waits")},
    {"av_decoder_pick", av_decoder_pick, METH_VARARGS,
     PyDoc_STR("av_decoder_pick(decoder, packets, indices): frames")},
    {"av_decoder_failed", av_decoder_failed, METH_O,
     PyDoc_STR("Packets that could not be decoded, since it was made.")},
    {"av_frames_info", av_frames_info, METH_O, PyDoc_STR("What is known of frames.")},
    {"av_frames_times", av_frames_times, METH_O, PyDoc_STR("In units of their time base.")},
    {"av_frames_metadata", av_frames_metadata, METH_O, PyDoc_STR("Of the first frame.")},
    {"av_frames_pick", av_frames_pick, METH_VARARGS,
     PyDoc_STR("av_frames_pick(frames, indices, media): frames")},
    {"av_convert", av_convert, METH_VARARGS,
     PyDoc_STR("av_convert(frames, batched, storage): a CPUBuffer")},
    {"av_array", av_array, METH_VARARGS,
     PyDoc_STR("av_array(array, storage): a copy of it as a CPUBuffer")},
    {"av_storage", av_storage, METH_O, PyDoc_STR("A CPUBuffer of so many bytes.")},
    {NULL, NULL, 0, NULL}, /* end */
};
