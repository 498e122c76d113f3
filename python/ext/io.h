/*
 * What stoker.io has of the extension: files and archives, in memory or read by Python.
 *
 * Threads: all functions here with the GIL held (or attached, without one); work that takes a while
 * gives it away.
 */
#ifndef STK_EXT_IO_H
#define STK_EXT_IO_H

#include "ext.h"

/* npy.c */

extern PyType_Spec ext_held_spec;

/* Contiguous bytes of `data`, which stay where they are; memoryviews of it count nothing that they
 * share.  NULL with an exception. */
PyObject *ext_held(ext_state *state, PyObject *data);

/* (dtype, shape, order, where the elements begin, what holds `data`). */
PyObject *ext_npy_header(PyObject *module, PyObject *data);

/* zip.c */

extern PyType_Spec ext_zip_spec;
PyObject *ext_zip_open(PyObject *module, PyObject *args);

/* A Field of so many bytes, to write to. */
PyObject *ext_memory(PyObject *module, PyObject *size);

#endif /* STK_EXT_IO_H */
