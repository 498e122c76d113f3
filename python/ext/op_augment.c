/* The ops of stoker/augment.h. */
#include "op.h"

#include <stoker/augment.h>

/* A tuple of 1 to STK_FILL_CHANNELS numbers from 0 to 255; false with an exception. */
static bool fill_of(const char *arg, PyObject *tuple, stk_fill *out)
{
    const Py_ssize_t n = PyTuple_GET_SIZE(tuple);
    if (n < 1 || n > STK_FILL_CHANNELS) {
        PyErr_Format(PyExc_ValueError, "%s must have 1 to %d values, not %zd", arg,
                     STK_FILL_CHANNELS, n);
        return false;
    }
    out->channels = (int32_t)n;
    for (Py_ssize_t i = 0; i < n; i++) {
        const long v = PyLong_AsLong(PyTuple_GET_ITEM(tuple, i));
        if (v == -1 && PyErr_Occurred()) return false;
        if (v < 0 || v > 255) {
            PyErr_Format(PyExc_ValueError, "%s must be from 0 to 255, not %ld", arg, v);
            return false;
        }
        out->value[i] = (uint8_t)v;
    }
    return true;
}

PyObject *ext_op_color_jitter(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"brightness", "contrast", "saturation", "hue", "keep", NULL};
    stk_color_jitter_opts o = {0};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "(dd)(dd)(dd)(dd)d:op_color_jitter", names,
                                     &o.brightness[0], &o.brightness[1], &o.contrast[0],
                                     &o.contrast[1], &o.saturation[0], &o.saturation[1], &o.hue[0],
                                     &o.hue[1], &o.keep))
        return NULL;
    stk_diag diag = {0};
    stk_op *core = stk_op_color_jitter(&o, &diag);
    return ext_op_give(module, &core, &diag);
}

PyObject *ext_op_grayscale(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"keep", NULL};
    stk_grayscale_opts o = {0};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "d:op_grayscale", names, &o.keep)) return NULL;
    stk_diag diag = {0};
    stk_op *core = stk_op_grayscale(&o, &diag);
    return ext_op_give(module, &core, &diag);
}

PyObject *ext_op_erase(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"keep", "scale", "ratio", "value", "random", NULL};
    stk_erase_opts o = {0};
    PyObject *value;
    int random;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "d(dd)(dd)O!p:op_erase", names, &o.keep,
                                     &o.scale[0], &o.scale[1], &o.ratio[0], &o.ratio[1],
                                     &PyTuple_Type, &value, &random) ||
        !fill_of("value", value, &o.fill))
        return NULL;
    o.random = random;
    stk_diag diag = {0};
    stk_op *core = stk_op_erase(&o, &diag);
    return ext_op_give(module, &core, &diag);
}

static const char *const pad_modes[] = {"constant", "edge", "reflect", "symmetric", NULL};

PyObject *ext_op_pad(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"padding", "mode", "fill", "mask_parts", "mask_fill", NULL};
    stk_pad_opts o = {0};
    PyObject *mode, *fill, *mask_fill;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "(iiii)UO!IO!:op_pad", names, &o.left, &o.top,
                                     &o.right, &o.bottom, &mode, &PyTuple_Type, &fill,
                                     &o.mask_parts, &PyTuple_Type, &mask_fill) ||
        !fill_of("fill", fill, &o.fill) || !fill_of("mask_fill", mask_fill, &o.mask_fill))
        return NULL;
    const int chosen = ext_choice("padding_mode", mode, pad_modes);
    if (chosen < 0) return NULL;
    o.mode = (stk_pad_mode)chosen;
    stk_diag diag = {0};
    stk_op *core = stk_op_pad(&o, &diag);
    return ext_op_give(module, &core, &diag);
}

PyObject *ext_op_blur(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"kernel_size", "sigma", "keep", NULL};
    stk_blur_opts o = {0};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "(ii)(dd)d:op_blur", names, &o.width, &o.height,
                                     &o.sigma[0], &o.sigma[1], &o.keep))
        return NULL;
    stk_diag diag = {0};
    stk_op *core = stk_op_blur(&o, &diag);
    return ext_op_give(module, &core, &diag);
}

static const char *const rotate_filters[] = {"bilinear", "nearest", NULL};

PyObject *ext_op_rotate(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"degrees", "filter",     "expand",    "off_center", "center",
                            "fill",    "mask_parts", "mask_fill", "keep",       NULL};
    stk_rotate_opts o = {0};
    PyObject *filter, *fill, *mask_fill;
    int expand, off_center;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "(dd)Upp(dd)O!IO!d:op_rotate", names,
                                     &o.degrees[0], &o.degrees[1], &filter, &expand, &off_center,
                                     &o.center[0], &o.center[1], &PyTuple_Type, &fill,
                                     &o.mask_parts, &PyTuple_Type, &mask_fill, &o.keep) ||
        !fill_of("fill", fill, &o.fill) || !fill_of("mask_fill", mask_fill, &o.mask_fill))
        return NULL;
    const int chosen = ext_choice("filter", filter, rotate_filters);
    if (chosen < 0) return NULL;
    o.filter = chosen ? STK_FILTER_NEAREST : STK_FILTER_BILINEAR;
    o.expand = expand;
    o.off_center = off_center;
    stk_diag diag = {0};
    stk_op *core = stk_op_rotate(&o, &diag);
    return ext_op_give(module, &core, &diag);
}

static const char *const mix_layouts[] = {"NHWC", "NCHW", NULL};

/* Parses into *o, whose names are borrowed from the arguments. */
static bool mix_opts(PyObject *args, PyObject *kwargs, stk_mix_opts *o)
{
    static char *names[] = {"alpha", "keep", "num_classes", "layout", "field", "label", NULL};
    PyObject *layout;
    long long classes;
    *o = (stk_mix_opts){0};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "ddLUyy:mix options", names, &o->alpha, &o->keep,
                                     &classes, &layout, &o->field, &o->label))
        return false;
    const int chosen = ext_choice("layout", layout, mix_layouts);
    o->num_classes = classes;
    o->layout = chosen == 1 ? STK_LAYOUT_NCHW : STK_LAYOUT_NHWC;
    return chosen >= 0;
}

PyObject *ext_op_mixup(PyObject *module, PyObject *args, PyObject *kwargs)
{
    stk_mix_opts o;
    if (!mix_opts(args, kwargs, &o)) return NULL;
    stk_diag diag = {0};
    stk_op *core = stk_op_mixup(&o, &diag);
    return ext_op_give(module, &core, &diag);
}

PyObject *ext_op_cutmix(PyObject *module, PyObject *args, PyObject *kwargs)
{
    stk_mix_opts o;
    if (!mix_opts(args, kwargs, &o)) return NULL;
    stk_diag diag = {0};
    stk_op *core = stk_op_cutmix(&o, &diag);
    return ext_op_give(module, &core, &diag);
}
