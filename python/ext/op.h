/* The functions of the module that make ops: op.c, op_augment.c, op_clip.c. */
#ifndef STK_EXT_OP_H
#define STK_EXT_OP_H

#include "ext.h"

#include <stoker/ops.h>

/* Parses keywords into *opts; false with an exception. */
bool ext_image_opts(PyObject *kwargs, stk_image_opts *opts);

PyObject *ext_op_read(PyObject *module, PyObject *args, PyObject *kwargs);
PyObject *ext_op_decode_image(PyObject *module, PyObject *args, PyObject *kwargs);
PyObject *ext_op_load_npy(PyObject *module, PyObject *args, PyObject *kwargs);
PyObject *ext_op_normalize(PyObject *module, PyObject *args, PyObject *kwargs);
PyObject *ext_decode_image(PyObject *module, PyObject *args, PyObject *kwargs);

PyObject *ext_op_color_jitter(PyObject *module, PyObject *args, PyObject *kwargs);
PyObject *ext_op_grayscale(PyObject *module, PyObject *args, PyObject *kwargs);
PyObject *ext_op_erase(PyObject *module, PyObject *args, PyObject *kwargs);
PyObject *ext_op_pad(PyObject *module, PyObject *args, PyObject *kwargs);
PyObject *ext_op_blur(PyObject *module, PyObject *args, PyObject *kwargs);
PyObject *ext_op_rotate(PyObject *module, PyObject *args, PyObject *kwargs);
PyObject *ext_op_mixup(PyObject *module, PyObject *args, PyObject *kwargs);
PyObject *ext_op_cutmix(PyObject *module, PyObject *args, PyObject *kwargs);

PyObject *ext_op_decode_wav(PyObject *module, PyObject *args, PyObject *kwargs);
PyObject *ext_op_decode_audio(PyObject *module, PyObject *args, PyObject *kwargs);
PyObject *ext_op_decode_video(PyObject *module, PyObject *args, PyObject *kwargs);

PyObject *ext_op_isolate(PyObject *module, PyObject *args, PyObject *kwargs);

#endif /* STK_EXT_OP_H */
