/* Demuxers, packets and bitstream filters. */
#include "av.h"

#include <stdio.h>
#include <string.h>

/* --- opening --- */

typedef struct opening {
    const char *path, *name;
    PyObject *data, *object, *options;
    stk_demux_opts opts;
    char label[64];
    stk_buffer *bytes;
    ext_av_file *file;
    const char **texts;
} opening;

static bool prepare(PyObject *module, opening *o)
{
    ext_state *state = PyModule_GetState(module);
    if (!(o->texts = ext_av_texts(o->options))) return false;
    o->opts.options = o->texts;
    if (o->data != Py_None) {
        const ext_found found = ext_bytes_of(state, o->data, &o->bytes);
        if (found == EXT_NOT_FOUND) PyErr_SetString(PyExc_TypeError, "data must be bytes-like");
        if (found != EXT_FOUND) return false;
        snprintf(o->label, sizeof(o->label), "<Bytes: 0x%llx>",
                 (unsigned long long)(uintptr_t)stk_buffer_data(o->bytes));
        if (!o->name) o->name = o->label;
    }
    if (o->object != Py_None && !(o->file = ext_av_file_new(o->object))) return false;
    return true;
}

static PyObject *open_demuxer(PyObject *module, opening *o)
{
    stk_demuxer *demuxer;
    stk_diag diag;
    ext_av_scope scope;
    const stk_av_input input = {.url = o->path,
                                .bytes = o->bytes,
                                .reader = o->file ? ext_av_file_reader(o->file) : NULL,
                                .name = o->name};
    ext_av_detach(&scope);
    const stk_err err = stk_demuxer_open(&input, &o->opts, &demuxer, &diag);
    ext_av_attach(&scope);
    if (err) return ext_av_failed(err, &diag);
    if (PyErr_Occurred()) { /* FFmpeg got over what a read raised; nobody else shall */
        stk_demuxer_free(&demuxer);
        return NULL;
    }
    PyObject *handle = ext_av_give(module, EXT_AV_DEMUXER, demuxer, o->file);
    o->file = NULL;
    return handle;
}

static PyObject *av_open(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"path",        "data",      "file",    "name",      "format", "options",
                            "buffer_size", "protocols", "timeout", "max_bytes", NULL};
    PyObject *path = Py_None, *timeout;
    Py_ssize_t buffer_size, max_bytes;
    opening o = {0};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOOzzOnzOn:av_open", names, &path, &o.data,
                                     &o.object, &o.name, &o.opts.format, &o.options, &buffer_size,
                                     &o.opts.protocols, &timeout, &max_bytes))
        return NULL;
    if (path != Py_None && !(o.path = PyBytes_AsString(path))) return NULL;
    if (!ext_timeout(timeout, &o.opts.timeout)) return NULL;
    if (!o.opts.timeout) o.opts.timeout = 1; /* at once; the library's 0 is its default */
    o.opts.interrupt.wanted = ext_av_signal_raised;
    o.opts.buffer_size = (size_t)buffer_size;
    o.opts.max_bytes = (size_t)max_bytes;
    PyObject *handle = prepare(module, &o) ? open_demuxer(module, &o) : NULL;
    stk_buffer_unref(&o.bytes);
    ext_av_file_free(o.file);
    PyMem_Free(o.texts);
    return handle;
}

/* --- reading --- */

static PyObject *av_streams(PyObject *module, PyObject *op)
{
    const stk_demuxer *d = ext_av_borrow(module, op, EXT_AV_DEMUXER);
    if (!d) return NULL;
    return Py_BuildValue("(iii)", stk_demuxer_num_streams(d), stk_demuxer_best(d, STK_MEDIA_AUDIO),
                         stk_demuxer_best(d, STK_MEDIA_VIDEO));
}

static PyObject *av_codec(PyObject *module, PyObject *args)
{
    PyObject *op;
    int stream, media;
    stk_av_codec *codec;
    stk_diag diag;
    if (!PyArg_ParseTuple(args, "Oii:av_codec", &op, &stream, &media)) return NULL;
    stk_demuxer *d = ext_av_borrow(module, op, EXT_AV_DEMUXER);
    if (!d) return NULL;
    const stk_err err = stk_demuxer_codec(d, stream, (stk_media)media, &codec, &diag);
    return err ? ext_raise(err, &diag) : ext_av_give(module, EXT_AV_CODEC, codec, NULL);
}

static PyObject *av_cancel(PyObject *module, PyObject *op)
{
    stk_demuxer *d = ext_av_borrow(module, op, EXT_AV_DEMUXER);
    if (!d) return NULL;
    stk_demuxer_cancel(d);
    Py_RETURN_NONE;
}

static bool window_of(PyObject *value, stk_window *out)
{
    long long n[4];
    if (!PyArg_Parse(value, "(LLLL);a window is four numbers", &n[0], &n[1], &n[2], &n[3]))
        return false;
    *out = (stk_window){{n[0], n[1]}, {n[2], n[3]}};
    return true;
}

static PyObject *av_read(PyObject *module, PyObject *args)
{
    PyObject *op, *span;
    int media;
    const char *bsf;
    stk_window window;
    stk_packets *packets;
    stk_diag diag;
    ext_av_scope scope;
    if (!PyArg_ParseTuple(args, "OiOz:av_read", &op, &media, &span, &bsf)) return NULL;
    stk_demuxer *d = ext_av_borrow(module, op, EXT_AV_DEMUXER);
    if (!d || (span != Py_None && !window_of(span, &window))) return NULL;
    ext_av_detach(&scope);
    const stk_err err = stk_demuxer_read(d, (stk_media)media, span == Py_None ? NULL : &window, bsf,
                                         &packets, &diag);
    ext_av_attach(&scope);
    if (err) return ext_av_failed(err, &diag);
    if (!PyErr_Occurred()) return ext_av_give(module, EXT_AV_PACKETS, packets, NULL);
    stk_packets_unref(&packets);
    return NULL;
}

enum { MAX_STREAMS = 256 };

/* A list of handles, or None where there is nothing of a stream; takes the packets either way. */
static PyObject *list_of(PyObject *module, stk_packets **packets, Py_ssize_t n)
{
    PyObject *list = PyList_New(n);
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *entry = packets[i] ? NULL : Py_NewRef(Py_None);
        if (packets[i] && list)
            entry = ext_av_give(module, EXT_AV_PACKETS, packets[i], NULL);
        else
            stk_packets_unref(&packets[i]);
        if (list && entry)
            PyList_SET_ITEM(list, i, entry);
        else {
            Py_XDECREF(entry);
            Py_CLEAR(list);
        }
    }
    return list;
}

static PyObject *av_next(PyObject *module, PyObject *args)
{
    PyObject *op, *indices;
    long long num, den;
    Py_ssize_t count;
    int streams[MAX_STREAMS];
    stk_packets *packets[MAX_STREAMS];
    stk_diag diag;
    ext_av_scope scope;
    if (!PyArg_ParseTuple(args, "OO!LLn:av_next", &op, &PyTuple_Type, &indices, &num, &den, &count))
        return NULL;
    stk_demuxer *d = ext_av_borrow(module, op, EXT_AV_DEMUXER);
    const Py_ssize_t n = PyTuple_GET_SIZE(indices);
    if (!d) return NULL;
    if (n > MAX_STREAMS) {
        PyErr_Format(PyExc_ValueError, "at most %d streams at once, not %zd", MAX_STREAMS, n);
        return NULL;
    }
    for (Py_ssize_t i = 0; i < n; i++)
        if (!PyArg_Parse(PyTuple_GET_ITEM(indices, i), "i", &streams[i])) return NULL;
    ext_av_detach(&scope);
    const stk_err err = stk_demuxer_next(d, streams, (size_t)n, (stk_ratio){num, den},
                                         (size_t)count, packets, &diag);
    ext_av_attach(&scope);
    if (err == STK_EEND && !PyErr_Occurred()) Py_RETURN_NONE;
    if (err) return ext_av_failed(err, &diag);
    PyObject *list = list_of(module, packets, n);
    if (list && PyErr_Occurred()) Py_CLEAR(list);
    return list;
}

/* --- codecs --- */

static bool put(PyObject *dict, const char *name, PyObject *value)
{
    const bool good = value && PyDict_SetItemString(dict, name, value) == 0;
    Py_XDECREF(value);
    return good;
}

static PyObject *av_codec_info(PyObject *module, PyObject *op)
{
    stk_av_codec_info i;
    const stk_av_codec *codec = ext_av_borrow(module, op, EXT_AV_CODEC);
    if (!codec) return NULL;
    stk_av_codec_get_info(codec, &i);
    PyObject *d = Py_BuildValue("{si ss sL si si si ss ss si si si ss}", "media", (int)i.media,
                                "name", i.name, "bit_rate", (long long)i.bit_rate,
                                "bits_per_sample", i.bits_per_sample, "sample_rate", i.sample_rate,
                                "num_channels", i.num_channels, "sample_fmt", i.sample_fmt,
                                "channel_layout", i.channel_layout, "width", i.width, "height",
                                i.height, "orientation", i.orientation, "pix_fmt", i.pix_fmt);
    if (d && put(d, "time_base", ext_av_ratio(i.time_base)) &&
        put(d, "frame_rate", ext_av_ratio(i.frame_rate)) &&
        put(d, "sample_aspect_ratio", ext_av_ratio(i.sample_aspect_ratio)) &&
        put(d, "color_range", PyUnicode_FromString(i.color_range)) &&
        put(d, "colorspace", PyUnicode_FromString(i.colorspace)) &&
        put(d, "color_primaries", PyUnicode_FromString(i.color_primaries)) &&
        put(d, "color_trc", PyUnicode_FromString(i.color_trc)))
        return d;
    Py_XDECREF(d);
    return NULL;
}

/* --- packets --- */

static PyObject *av_packets_info(PyObject *module, PyObject *op)
{
    stk_packets_info i;
    const stk_packets *packets = ext_av_borrow(module, op, EXT_AV_PACKETS);
    if (!packets) return NULL;
    stk_packets_get_info(packets, &i);
    PyObject *window = Py_NewRef(Py_None);
    if (i.windowed)
        Py_SETREF(window, Py_BuildValue("(LLLL)", (long long)i.window.start.num,
                                        (long long)i.window.start.den, (long long)i.window.end.num,
                                        (long long)i.window.end.den));
    if (!window) return NULL;
    return Py_BuildValue("(iNnnnN)", (int)i.media, window, (Py_ssize_t)i.total,
                         (Py_ssize_t)i.length, (Py_ssize_t)i.bytes, ext_text(i.source));
}

static PyObject *av_packets_codec(PyObject *module, PyObject *op)
{
    const stk_packets *packets = ext_av_borrow(module, op, EXT_AV_PACKETS);
    if (!packets) return NULL;
    stk_av_codec *codec = stk_packets_codec(packets);
    if (!codec) Py_RETURN_NONE;
    return ext_av_give(module, EXT_AV_CODEC, codec, NULL);
}

PyObject *ext_av_times(const int64_t *times, size_t n)
{
    PyObject *list = PyList_New((Py_ssize_t)n);
    for (size_t i = 0; list && i < n; i++) {
        PyObject *t = times[i] == INT64_MIN ? Py_NewRef(Py_None) : PyLong_FromLongLong(times[i]);
        if (t)
            PyList_SET_ITEM(list, (Py_ssize_t)i, t);
        else
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *av_packets_times(PyObject *module, PyObject *args)
{
    PyObject *op;
    int all;
    stk_packets_info info;
    stk_ratio base;
    if (!PyArg_ParseTuple(args, "Op:av_packets_times", &op, &all)) return NULL;
    const stk_packets *packets = ext_av_borrow(module, op, EXT_AV_PACKETS);
    if (!packets) return NULL;
    stk_packets_get_info(packets, &info);
    const size_t room = all ? info.total : info.length;
    int64_t *times = PyMem_Calloc(room ? room : 1, sizeof(*times));
    if (!times) return PyErr_NoMemory();
    const size_t n = stk_packets_times(packets, all, &base, times, room);
    PyObject *list = ext_av_times(times, n);
    PyMem_Free(times);
    return list ? Py_BuildValue("(LLN)", (long long)base.num, (long long)base.den, list) : NULL;
}

static PyObject *av_packets_write(PyObject *module, PyObject *op)
{
    stk_buffer *mem;
    stk_diag diag;
    stk_err err;
    const stk_packets *packets = ext_av_borrow(module, op, EXT_AV_PACKETS);
    if (!packets) return NULL;
    Py_BEGIN_ALLOW_THREADS
    err = stk_packets_write(packets, &mem, &diag);
    Py_END_ALLOW_THREADS
    if (err) return ext_raise(err, &diag);
    const size_t n = stk_buffer_size(mem);
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)n);
    if (bytes) {
        char *dst = PyBytes_AS_STRING(bytes);
        Py_BEGIN_ALLOW_THREADS
        memcpy(dst, stk_buffer_data(mem), n);
        Py_END_ALLOW_THREADS
    }
    stk_buffer_unref(&mem);
    return bytes;
}

static PyObject *av_packets_read(PyObject *module, PyObject *data)
{
    stk_buffer *mem;
    stk_packets *packets;
    stk_diag diag;
    stk_err err;
    const ext_found found = ext_bytes_of(PyModule_GetState(module), data, &mem);
    if (found == EXT_NOT_FOUND) PyErr_SetString(PyExc_TypeError, "packets are made of bytes");
    if (found != EXT_FOUND) return NULL;
    Py_BEGIN_ALLOW_THREADS
    err = stk_packets_read(mem, &packets, &diag);
    Py_END_ALLOW_THREADS
    stk_buffer_unref(&mem);
    return err ? ext_raise(err, &diag) : ext_av_give(module, EXT_AV_PACKETS, packets, NULL);
}

/* --- bitstream filters --- */

static PyObject *av_bsf(PyObject *module, PyObject *args)
{
    PyObject *op;
    const char *filters;
    stk_bsf *bsf;
    stk_diag diag;
    if (!PyArg_ParseTuple(args, "Os:av_bsf", &op, &filters)) return NULL;
    const stk_av_codec *codec = ext_av_borrow(module, op, EXT_AV_CODEC);
    if (!codec) return NULL;
    const stk_err err = stk_bsf_new(codec, filters, &bsf, &diag);
    return err ? ext_raise(err, &diag) : ext_av_give(module, EXT_AV_BSF, bsf, NULL);
}

static PyObject *av_bsf_filter(PyObject *module, PyObject *args)
{
    PyObject *op, *from;
    int flush;
    stk_packets *made;
    const stk_packets *packets = NULL;
    stk_diag diag;
    stk_err err;
    if (!PyArg_ParseTuple(args, "OOp:av_bsf_filter", &op, &from, &flush)) return NULL;
    stk_bsf *bsf = ext_av_borrow(module, op, EXT_AV_BSF);
    if (!bsf) return NULL;
    if (from != Py_None && !(packets = ext_av_borrow(module, from, EXT_AV_PACKETS))) return NULL;
    Py_BEGIN_ALLOW_THREADS
    err = stk_bsf_filter(bsf, packets, flush, &made, &diag);
    Py_END_ALLOW_THREADS
    return err ? ext_raise(err, &diag) : ext_av_give(module, EXT_AV_PACKETS, made, NULL);
}

PyMethodDef ext_av_demux_functions[] = {
    EXT_AV_KEYWORDS(av_open, "A demuxer; use stoker.io.Demuxer."),
    {"av_streams", av_streams, METH_O, PyDoc_STR("(streams, best audio, best video); -1: none.")},
    {"av_codec", av_codec, METH_VARARGS, PyDoc_STR("av_codec(demuxer, stream, media)")},
    {"av_cancel", av_cancel, METH_O,
     PyDoc_STR("What runs on a demuxer ends, and all later calls.")},
    {"av_read", av_read, METH_VARARGS, PyDoc_STR("av_read(demuxer, media, window, bsf)")},
    {"av_next", av_next, METH_VARARGS,
     PyDoc_STR("av_next(demuxer, streams, num, den, packets): a list, or None at the end.")},
    {"av_codec_info", av_codec_info, METH_O, PyDoc_STR("What is known of a codec.")},
    {"av_packets_info", av_packets_info, METH_O,
     PyDoc_STR("(media, window, total, length, bytes, source)")},
    {"av_packets_codec", av_packets_codec, METH_O, PyDoc_STR("The codec, or None.")},
    {"av_packets_times", av_packets_times, METH_VARARGS,
     PyDoc_STR("av_packets_times(packets, all): (num, den, times)")},
    {"av_packets_write", av_packets_write, METH_O, PyDoc_STR("Packets as bytes.")},
    {"av_packets_read", av_packets_read, METH_O, PyDoc_STR("Packets over bytes.")},
    {"av_bsf", av_bsf, METH_VARARGS, PyDoc_STR("av_bsf(codec, filters)")},
    {"av_bsf_filter", av_bsf_filter, METH_VARARGS, PyDoc_STR("av_bsf_filter(bsf, packets, flush)")},
    {NULL, NULL, 0, NULL}, /* end */
};
