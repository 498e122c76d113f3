/* The ops of stoker/augment.h. */
#include "op.h"

#include <stoker/augment.h>

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
