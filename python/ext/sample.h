/*
 * Sample: what a stage of Python, or the reader, sees of an item that is no batch.
 *
 * A plain value: the item may be gone, and another item may be made of it.
 */
#ifndef STK_EXT_SAMPLE_H
#define STK_EXT_SAMPLE_H

#include <stdatomic.h>

#include "ext.h"

typedef struct ext_sample {
    PyObject_HEAD
    PyObject *id, *epoch, *key, *label, *data;
    PyObject *rest;       /* a tuple of the parts behind the first, or NULL: there are none */
    stk_source *source;   /* whose sample `id` it is, a reference; NULL: nobody's */
    atomic_bool followed; /* what an op makes of it is the same sample */
} ext_sample;

extern PyType_Spec ext_sample_spec;

/* A new Sample with what `item` holds, or NULL with an exception. */
PyObject *ext_sample_of(ext_state *state, const stk_item *item);

/* See Sample.__reduce__. */
PyObject *ext_sample_made(PyObject *module, PyObject *args);

/* The same sample with other data, a new reference; NULL with an exception. */
PyObject *ext_sample_with(ext_state *state, PyObject *sample, PyObject *data);

/* What an op that was given `value` has made of it, in place of its result (taken): data other than
 * a Sample becomes that of a Sample where `value` is one that came through the engine. */
PyObject *ext_sample_follow(ext_state *state, PyObject *value, PyObject *result);

#endif /* STK_EXT_SAMPLE_H */
