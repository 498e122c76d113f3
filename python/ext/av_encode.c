/* Frames over arrays, encoders and muxers. */
#include "av.h"

static PyObject *av_frames_over(PyObject *module, PyObject *args)
{
    PyObject *value;
    int media;
    long long num, den, pts;
    stk_av_array array = {0};
    stk_frames *frames;
    stk_diag diag;
    if (!PyArg_ParseTuple(args, "OisLLL:av_frames_over", &value, &media, &array.format, &num, &den,
                          &pts))
        return NULL;
    const ext_found found = ext_array_of(PyModule_GetState(module), value, &array.view, &array.mem);
    if (found == EXT_NOT_FOUND)
        PyErr_Format(PyExc_TypeError, "expected an array, not %.80s", Py_TYPE(value)->tp_name);
    if (found != EXT_FOUND) return NULL;
    array.media = (stk_media)media;
    array.rate = (stk_ratio){num, den};
    array.pts = pts;
    const stk_err err = stk_frames_over(&array, &frames, &diag);
    stk_buffer_unref(&array.mem);
    return err ? ext_raise(err, &diag) : ext_av_give(module, EXT_AV_FRAMES, frames, NULL);
}

/* --- muxers --- */

static PyObject *av_muxer(PyObject *module, PyObject *args)
{
    const char *url;
    PyObject *timeout;
    stk_mux_opts opts = {.interrupt = {.wanted = ext_av_signal_raised}};
    stk_muxer *muxer;
    stk_diag diag;
    ext_av_scope scope;
    if (!PyArg_ParseTuple(args, "yzzO:av_muxer", &url, &opts.format, &opts.protocols, &timeout))
        return NULL;
    if (!ext_timeout(timeout, &opts.timeout)) return NULL;
    if (!opts.timeout) opts.timeout = 1; /* at once; the library's 0 is its default */
    ext_av_detach(&scope);               /* it asks the file system what the path is */
    const stk_err err = stk_muxer_new(url, &opts, &muxer, &diag);
    ext_av_attach(&scope);
    return err ? ext_raise(err, &diag) : ext_av_give(module, EXT_AV_MUXER, muxer, NULL);
}

static PyObject *av_muxer_format(PyObject *module, PyObject *op)
{
    const stk_muxer *muxer = ext_av_borrow(module, op, EXT_AV_MUXER);
    return muxer ? ext_text(stk_muxer_format(muxer)) : NULL;
}

static PyObject *add_encoder(PyObject *module, PyObject *op, const stk_encode_opts *opts)
{
    stk_encoder *encoder;
    stk_diag diag;
    stk_err err;
    stk_muxer *muxer = ext_av_borrow(module, op, EXT_AV_MUXER);
    if (!muxer) return NULL;
    Py_BEGIN_ALLOW_THREADS
    err = stk_muxer_add_encoder(muxer, opts, &encoder, &diag);
    Py_END_ALLOW_THREADS
    return err ? ext_raise(err, &diag) : ext_av_give(module, EXT_AV_ENCODER, encoder, NULL);
}

static PyObject *av_muxer_encoder(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"muxer",
                            "media",
                            "encoder",
                            "options",
                            "format",
                            "width",
                            "height",
                            "frame_rate",
                            "gop_size",
                            "max_b_frames",
                            "colorspace",
                            "color_primaries",
                            "color_trc",
                            "sample_rate",
                            "num_channels",
                            "bit_rate",
                            "compression_level",
                            "qscale",
                            NULL};
    PyObject *op, *options;
    stk_encode_opts o = {0};
    int media;
    long long num, den, bit_rate;
    if (!PyArg_ParseTupleAndKeywords(
            args, kwargs, "OizOsii(LL)iizzziiLii:av_muxer_encoder", names, &op, &media, &o.encoder,
            &options, &o.format, &o.width, &o.height, &num, &den, &o.gop_size, &o.max_b_frames,
            &o.colorspace, &o.color_primaries, &o.color_trc, &o.sample_rate, &o.num_channels,
            &bit_rate, &o.compression_level, &o.qscale))
        return NULL;
    const char **texts = ext_av_texts(options);
    if (!texts) return NULL;
    o.media = (stk_media)media;
    o.options = texts;
    o.frame_rate = (stk_ratio){num, den};
    o.bit_rate = bit_rate;
    PyObject *handle = add_encoder(module, op, &o);
    PyMem_Free(texts);
    return handle;
}

static PyObject *av_muxer_codec(PyObject *module, PyObject *args)
{
    PyObject *op, *from;
    stk_diag diag;
    if (!PyArg_ParseTuple(args, "OO:av_muxer_codec", &op, &from)) return NULL;
    stk_muxer *muxer = ext_av_borrow(module, op, EXT_AV_MUXER);
    const stk_av_codec *codec = muxer ? ext_av_borrow(module, from, EXT_AV_CODEC) : NULL;
    if (!codec) return NULL;
    const stk_err err = stk_muxer_add_codec(muxer, codec, &diag);
    if (err) return ext_raise(err, &diag);
    Py_RETURN_NONE;
}

/* What a handler of a signal raised is raised, whatever came of the call. */
static PyObject *wrote(stk_err err, const stk_diag *diag)
{
    if (err) return ext_av_failed(err, diag);
    return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
}

static PyObject *av_muxer_open(PyObject *module, PyObject *args)
{
    PyObject *op, *options;
    stk_diag diag;
    stk_err err;
    ext_av_scope scope;
    if (!PyArg_ParseTuple(args, "OO:av_muxer_open", &op, &options)) return NULL;
    stk_muxer *muxer = ext_av_borrow(module, op, EXT_AV_MUXER);
    const char **texts = muxer ? ext_av_texts(options) : NULL;
    if (!texts) return NULL;
    ext_av_detach(&scope);
    err = stk_muxer_open(muxer, texts, &diag);
    ext_av_attach(&scope);
    PyMem_Free(texts);
    return wrote(err, &diag);
}

static PyObject *av_muxer_write(PyObject *module, PyObject *args)
{
    PyObject *op, *from;
    Py_ssize_t stream;
    stk_diag diag;
    stk_err err;
    ext_av_scope scope;
    if (!PyArg_ParseTuple(args, "OnO:av_muxer_write", &op, &stream, &from)) return NULL;
    stk_muxer *muxer = ext_av_borrow(module, op, EXT_AV_MUXER);
    const stk_packets *packets = muxer ? ext_av_borrow(module, from, EXT_AV_PACKETS) : NULL;
    if (!packets) return NULL;
    ext_av_detach(&scope);
    err = stk_muxer_write(muxer, (size_t)stream, packets, &diag);
    ext_av_attach(&scope);
    return wrote(err, &diag);
}

static PyObject *finish(PyObject *module, PyObject *op, stk_err (*call)(stk_muxer *, stk_diag *))
{
    stk_diag diag;
    stk_err err;
    ext_av_scope scope;
    stk_muxer *muxer = ext_av_borrow(module, op, EXT_AV_MUXER);
    if (!muxer) return NULL;
    ext_av_detach(&scope);
    err = call(muxer, &diag);
    ext_av_attach(&scope);
    return wrote(err, &diag);
}

static PyObject *av_muxer_flush(PyObject *module, PyObject *op)
{
    return finish(module, op, stk_muxer_flush);
}

static PyObject *av_muxer_close(PyObject *module, PyObject *op)
{
    return finish(module, op, stk_muxer_close);
}

static PyObject *av_muxer_cancel(PyObject *module, PyObject *op)
{
    stk_muxer *muxer = ext_av_borrow(module, op, EXT_AV_MUXER);
    if (!muxer) return NULL;
    stk_muxer_cancel(muxer);
    Py_RETURN_NONE;
}

/* --- encoders --- */

static PyObject *av_encoder_info(PyObject *module, PyObject *op)
{
    const stk_encoder *encoder = ext_av_borrow(module, op, EXT_AV_ENCODER);
    if (!encoder) return NULL;
    PyObject *codec = ext_av_give(module, EXT_AV_CODEC, stk_encoder_codec(encoder), NULL);
    return codec ? Py_BuildValue("(iN)", stk_encoder_frame_size(encoder), codec) : NULL;
}

static PyObject *av_encode(PyObject *module, PyObject *args)
{
    PyObject *op, *from;
    int flush;
    const stk_frames *frames = NULL;
    stk_packets *packets;
    stk_packets_info info;
    stk_diag diag;
    stk_err err;
    if (!PyArg_ParseTuple(args, "OOp:av_encode", &op, &from, &flush)) return NULL;
    stk_encoder *encoder = ext_av_borrow(module, op, EXT_AV_ENCODER);
    if (!encoder) return NULL;
    if (from != Py_None && !(frames = ext_av_borrow(module, from, EXT_AV_FRAMES))) return NULL;
    Py_BEGIN_ALLOW_THREADS
    err = stk_encoder_encode(encoder, frames, flush, &packets, &diag);
    Py_END_ALLOW_THREADS
    if (err) return ext_raise(err, &diag);
    stk_packets_get_info(packets, &info);
    if (info.total) return ext_av_give(module, EXT_AV_PACKETS, packets, NULL);
    stk_packets_unref(&packets);
    Py_RETURN_NONE;
}

PyMethodDef ext_av_encode_functions[] = {
    {"av_frames_over", av_frames_over, METH_VARARGS,
     PyDoc_STR("av_frames_over(array, media, format, num, den, pts): frames")},
    {"av_muxer", av_muxer, METH_VARARGS, PyDoc_STR("av_muxer(url, format, protocols, timeout)")},
    {"av_muxer_format", av_muxer_format, METH_O, PyDoc_STR("FFmpeg's name of it.")},
    EXT_AV_KEYWORDS(av_muxer_encoder, "An encoder and its stream; use stoker.io.Muxer."),
    {"av_muxer_codec", av_muxer_codec, METH_VARARGS, PyDoc_STR("av_muxer_codec(muxer, codec)")},
    {"av_muxer_open", av_muxer_open, METH_VARARGS, PyDoc_STR("av_muxer_open(muxer, options)")},
    {"av_muxer_write", av_muxer_write, METH_VARARGS,
     PyDoc_STR("av_muxer_write(muxer, stream, packets)")},
    {"av_muxer_flush", av_muxer_flush, METH_O, PyDoc_STR("Writes what waits.")},
    {"av_muxer_close", av_muxer_close, METH_O, PyDoc_STR("Completes and closes the file.")},
    {"av_muxer_cancel", av_muxer_cancel, METH_O,
     PyDoc_STR("What waits for an address ends, and all later calls.")},
    {"av_encoder_info", av_encoder_info, METH_O, PyDoc_STR("(frame size, codec)")},
    {"av_encode", av_encode, METH_VARARGS,
     PyDoc_STR("av_encode(encoder, frames, flush): packets, or None")},
    {NULL, NULL, 0, NULL}, /* end */
};
