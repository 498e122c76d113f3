/* Live input. */
#include <math.h>
#include <unistd.h>

#include "av.h"

#define SLICE_NS INT64_C(100000000) /* the main thread looks for signals so often */

/* Where it comes from, of `src`: a descriptor, or the bytes of a path or an address. */
static bool input_of(PyObject *src, int *fd, stk_av_input *out)
{
    if (PyBytes_Check(src)) {
        out->url = PyBytes_AS_STRING(src);
        return true;
    }
    *fd = PyObject_AsFileDescriptor(src);
    out->fd = fd;
    return *fd >= 0;
}

static PyObject *av_live(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"src",     "name",   "media",           "format",     "options",
                            "timeout", "filter", "decoder_options", "max_pixels", "protocols",
                            "decoder", "queue",  "keep_all",        NULL};
    PyObject *src, *options, *timeout, *decoder_options;
    stk_av_input input = {0};
    stk_demux_opts demux = {0};
    stk_decode_opts codec = {0};
    stk_live_opts opts = {.demux = &demux, .codec = &codec};
    int media, keep_all, fd;
    Py_ssize_t queue;
    long long max_pixels;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OzizOOzOLzznp:av_live", names, &src,
                                     &input.name, &media, &demux.format, &options, &timeout,
                                     &codec.filter, &decoder_options, &max_pixels, &demux.protocols,
                                     &codec.decoder, &queue, &keep_all))
        return NULL;
    if (!input_of(src, &fd, &input) || !ext_timeout(timeout, &demux.timeout)) return NULL;
    const char **texts = ext_av_texts(options);
    const char **others = texts ? ext_av_texts(decoder_options) : NULL;
    stk_live *live = NULL;
    stk_diag diag;
    stk_err err = STK_OK;
    if (others) {
        demux.options = texts;
        codec.options = others;
        codec.max_pixels = max_pixels;
        opts.media = (stk_media)media;
        opts.queue = (size_t)queue;
        opts.keep_all = keep_all;
        Py_BEGIN_ALLOW_THREADS
        err = stk_live_open(&input, &opts, &live, &diag);
        Py_END_ALLOW_THREADS
        if (err) ext_raise(err, &diag);
    }
    PyMem_Free(texts);
    PyMem_Free(others);
    return live ? ext_av_give(module, EXT_AV_LIVE, live, NULL) : NULL;
}

static PyObject *av_live_next(PyObject *module, PyObject *op)
{
    stk_frames *frames;
    stk_diag diag;
    stk_err err;
    stk_live *live = ext_av_borrow(module, op, EXT_AV_LIVE);
    if (!live) return NULL;
    const int64_t wait = gettid() == getpid() ? SLICE_NS : STK_FOREVER;
    do {
        Py_BEGIN_ALLOW_THREADS
        err = stk_live_next(live, wait, &frames, &diag);
        Py_END_ALLOW_THREADS
        if (err == STK_EAGAIN && PyErr_CheckSignals() < 0) return NULL;
    } while (err == STK_EAGAIN);
    if (err == STK_EEND || err == STK_ECANCELLED) Py_RETURN_NONE;
    return err ? ext_raise(err, &diag) : ext_av_give(module, EXT_AV_FRAMES, frames, NULL);
}

static PyObject *av_live_close(PyObject *module, PyObject *op)
{
    stk_live *live = ext_av_borrow(module, op, EXT_AV_LIVE);
    if (!live) return NULL;
    Py_BEGIN_ALLOW_THREADS
    stk_live_close(live);
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

static PyObject *av_live_cancel(PyObject *module, PyObject *op)
{
    stk_live *live = ext_av_borrow(module, op, EXT_AV_LIVE);
    if (!live) return NULL;
    Py_BEGIN_ALLOW_THREADS
    stk_live_cancel(live);
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

/* Milliseconds; NaN: none. */
static double ms(int64_t ns)
{
    return ns < 0 ? NAN : (double)ns / 1e6;
}

static PyObject *av_live_stats(PyObject *module, PyObject *op)
{
    stk_live_stats s;
    stk_live *live = ext_av_borrow(module, op, EXT_AV_LIVE);
    if (!live) return NULL;
    Py_BEGIN_ALLOW_THREADS
    stk_live_get_stats(live, &s);
    Py_END_ALLOW_THREADS
    return Py_BuildValue("(KKKKKddddd)", (unsigned long long)s.received,
                         (unsigned long long)s.delivered, (unsigned long long)s.dropped,
                         (unsigned long long)s.waiting, (unsigned long long)s.failed,
                         (double)s.silence / 1e9, ms(s.p50), ms(s.p90), ms(s.p99), ms(s.max));
}

PyMethodDef ext_av_live_functions[] = {
    EXT_AV_KEYWORDS(av_live, "Live input; use stoker.io.LiveReader."),
    {"av_live_next", av_live_next, METH_O, PyDoc_STR("Frames, or None at the end.")},
    {"av_live_close", av_live_close, METH_O, PyDoc_STR("Ends it, for all threads.")},
    {"av_live_cancel", av_live_cancel, METH_O, PyDoc_STR("The same, and does not wait.")},
    {"av_live_stats", av_live_stats, METH_O,
     PyDoc_STR("(received, delivered, dropped, waiting, failed, silence, p50, p90, p99, max)")},
    {NULL, NULL, 0, NULL}, /* end */
};
