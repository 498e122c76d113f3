/* The ops of stoker/clip.h. */
#include "op.h"

#include <stoker/clip.h>

/* In the order of stk_where. */
static const char *const places[] = {"start", "middle", "random", "all", NULL};

/* Parses into *o, whose name is borrowed from the arguments. */
static bool audio_opts(PyObject *args, PyObject *kwargs, stk_audio_opts *o)
{
    static char *names[] = {"seconds",   "sample_rate", "channels", "where", "mask",
                            "max_bytes", "parts",       "lenient",  NULL};
    PyObject *where;
    int lenient;
    Py_ssize_t max_bytes;
    *o = (stk_audio_opts){0};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "diiUynIp:audio options", names, &o->seconds,
                                     &o->sample_rate, &o->channels, &where, &o->mask, &max_bytes,
                                     &o->parts, &lenient))
        return false;
    const int chosen = ext_choice("where", where, places);
    if (chosen < 0) return false;
    o->where = (stk_where)chosen;
    o->max_bytes = (size_t)max_bytes;
    o->lenient = lenient;
    return true;
}

PyObject *ext_op_decode_wav(PyObject *module, PyObject *args, PyObject *kwargs)
{
    stk_audio_opts o;
    if (!audio_opts(args, kwargs, &o)) return NULL;
    stk_diag diag = {0};
    stk_op *core = stk_op_decode_wav(&o, &diag);
    return ext_op_give(module, &core, &diag);
}

PyObject *ext_op_decode_audio(PyObject *module, PyObject *args, PyObject *kwargs)
{
    stk_audio_opts o;
    if (!audio_opts(args, kwargs, &o)) return NULL;
    stk_diag diag = {0};
    stk_op *core = stk_op_decode_audio(&o, &diag);
    return ext_op_give(module, &core, &diag);
}

PyObject *ext_op_decode_video(PyObject *module, PyObject *args, PyObject *kwargs)
{
    stk_video_opts o = {0};
    PyObject *where;
    int repeat;
    Py_ssize_t max_bytes;
    if (!PyArg_ParseTuple(args, "iiUpn:op_decode_video", &o.frames, &o.stride, &where, &repeat,
                          &max_bytes) ||
        !ext_image_opts(kwargs, &o.picture))
        return NULL;
    const int chosen = ext_choice("where", where, places);
    if (chosen < 0) return NULL;
    o.where = (stk_where)chosen;
    o.repeat = repeat;
    o.max_bytes = (size_t)max_bytes;
    stk_diag diag = {0};
    stk_op *core = stk_op_decode_video(&o, &diag);
    return ext_op_give(module, &core, &diag);
}
