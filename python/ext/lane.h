/*
 * The Python lane: stages that are Python callables, run by threads that Python made.
 *
 * Items carry Python objects as stk_foreign handles of the interpreter's domain: the engine moves
 * them without the GIL, and only threads that hold it release them (stk_foreign_drain).
 *
 * Threads: all functions here with the GIL held (or attached, without one).
 */
#ifndef STK_EXT_LANE_H
#define STK_EXT_LANE_H

#include <stoker/stats.h>

#include "sample.h"

/* What the module gives to Python. */

PyObject *ext_field_of(PyObject *module, PyObject *args);
PyObject *ext_lane(PyObject *module, PyObject *args, PyObject *kwargs);
PyObject *ext_op_python(PyObject *module, PyObject *args, PyObject *kwargs);
PyObject *ext_op_collate(PyObject *module, PyObject *args, PyObject *kwargs);
PyObject *ext_iterable_source(PyObject *module, PyObject *args, PyObject *kwargs);
PyObject *ext_source_finish(PyObject *module, PyObject *op);

/* port.c */

extern PyType_Spec ext_port_spec, ext_slip_spec;
PyObject *ext_port(PyObject *module, PyObject *args);
PyObject *ext_notify(PyObject *module, PyObject *args);
PyObject *ext_hear(PyObject *module, PyObject *arg);

/* Calls `callable` with the number of each group that one more lane would help.  False with an
 * exception: Ctrl-C meanwhile. */
bool ext_run_grow(stk_run *run, PyObject *callable);

/* lane_value.c */

/* What a stage of Python sees of `item`, a new reference: the object it carries, its Batch, or a
 * Sample made of it.  NULL with an exception. */
PyObject *ext_item_value(ext_state *state, stk_item *item);

/* Makes `value` what the item carries; takes the reference either way.  False with an exception. */
bool ext_item_set_value(ext_state *state, stk_item *item, PyObject *value);

/* The object that the item carries, which it no longer does; NULL: none. */
PyObject *ext_item_take_value(stk_item *item);

/* The current exception, complete, which it no longer is: a new reference. */
PyObject *ext_take_exception(void);

/* The current exception becomes what the item carries, told to `report` (NULL: nobody), and its
 * text goes to *diag.  `value` is what the op was given, or NULL.  Gives STK_EFOREIGN. */
stk_err ext_item_fail(ext_state *state, stk_item *item, PyObject *report, PyObject *value,
                      stk_diag *diag);

/* CLOCK_MONOTONIC. */
int64_t ext_now_ns(void);

/* What `exc` says, as STK_EFOREIGN; whether it is fatal to a stage. */
void ext_describe(PyObject *exc, stk_diag *diag);

/* The domain of this process's objects. */
stk_err ext_domain_new(stk_foreign_domain **out);

/* A handle that holds `object`; NULL with an exception. */
stk_foreign *ext_foreign_new(ext_state *state, PyObject *object);

/* lane_array.c: what Python has, without a copy */

typedef enum ext_found { EXT_RAISED = -1, EXT_NOT_FOUND, EXT_FOUND } ext_found;

/* An array: *mem, a new reference, keeps it alive and gives it back on a thread with the GIL. */
ext_found ext_array_of(ext_state *state, PyObject *value, stk_tensor *view, stk_buffer **mem);

/* Memory that lives as long as `keeper`; NULL with an exception. */
stk_buffer *ext_hold(ext_state *state, PyObject *keeper, void *data, size_t size);

/* Contiguous bytes, likewise. */
ext_found ext_bytes_of(ext_state *state, PyObject *value, stk_buffer **mem);

/* lane_native.c */

/* What a stage of the engine takes, and its name for messages. */
typedef struct ext_taker {
    stk_kind kind; /* STK_KIND_ANY: there is none, Python takes what there is */
    char name[STK_NAME_SIZE];
} ext_taker;

/* Makes what an op of Python has given what `taker` takes: the item holds no object any more.
 * `value` is what the op was given, whose sample it stays, or NULL.  False with an exception. */
bool ext_item_set_native(ext_state *state, stk_item *item, const ext_taker *taker, PyObject *value,
                         PyObject *result);

/* batch_pickle.c */

PyObject *ext_batch_of(PyObject *module, PyObject *args);
PyObject *ext_batch_reduce(PyObject *batch, PyObject *unused);

/* lane_concat.c */

PyObject *ext_op_concat(PyObject *module, PyObject *arg);

#endif /* STK_EXT_LANE_H */
