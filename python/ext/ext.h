/*
 * What the files of the extension share.
 *
 * The extension only translates: Python values to C values, stk_err to exceptions, and one
 * object to one core object.  It decides nothing and has no globals: everything that is not
 * const hangs off the module's state.
 *
 * Threads: an object's pointer to its core object is set before Python sees the object and
 * never changes; the core object does its own locking.  Only a plan that is being built does
 * not, so its methods run in critical sections.
 */
#ifndef STK_EXT_H
#define STK_EXT_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stoker/batch.h>
#include <stoker/op.h>
#include <stoker/run.h>
#include <stoker/source.h>

#ifndef Py_BEGIN_CRITICAL_SECTION /* before 3.13 the GIL does it */
#define Py_BEGIN_CRITICAL_SECTION(op) {
#define Py_END_CRITICAL_SECTION() }
#endif

#define EXT_KEY_SIZE 8192 /* of a path or key with its NUL: more than the system's own limit */

/* The type flags of every type here: final, unchangeable, made by functions only. */
#define EXT_TYPE_FLAGS                                                    \
    (Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE | \
     Py_TPFLAGS_DISALLOW_INSTANTIATION)

enum { EXT_END, EXT_EPOCH_END, EXT_TIMED_OUT, EXT_CANCELLED, EXT_CODES };

typedef struct ext_state {
    PyTypeObject *field_type;
    PyTypeObject *batch_type;
    PyTypeObject *sample_type;
    PyTypeObject *source_type;
    PyTypeObject *op_type;
    PyTypeObject *plan_type;
    PyTypeObject *run_type;
    PyTypeObject *results_type;
    PyTypeObject *port_type, *slip_type;
    PyTypeObject *tar_type, *stream_type;
    PyTypeObject *zip_type, *held_type;
    PyTypeObject *cpu_buffer_type, *av_type; /* see av.h */
    PyObject *codes[EXT_CODES]; /* what Run.next gives in place of a result, see run.c */
    stk_foreign_domain *domain; /* of the Python objects that items carry */
} ext_state;

/* errors.c */

/* Sets the exception of stoker.errors that stands for `err`, and returns NULL.  `diag` may be
 * NULL, or say something about another error: then the code's own text is used. */
PyObject *ext_raise(stk_err err, const stk_diag *diag);

/* The same, but what says that data is broken or not supported is a ValueError, too. */
PyObject *ext_raise_value(stk_err err, const stk_diag *diag);

PyObject *ext_error_codes(void); /* {number: (name, text)} */

/* Text for people: broken UTF-8 is shown as escapes. */
PyObject *ext_text(const char *text);

/* The index of `value` (a str) in the list `names`, which ends with NULL; -1 with a ValueError
 * that names `arg`. */
int ext_choice(const char *arg, PyObject *value, const char *const *names);

/* Seconds, or None for ever, in nanoseconds: false with an exception. */
bool ext_timeout(PyObject *value, int64_t *out);

/* field.c */

extern PyType_Spec ext_field_spec;

/* A new Field, or NULL with an exception.  Takes *mem, which keeps `view` alive, either way. */
PyObject *ext_field_give(ext_state *state, const stk_tensor *view, stk_buffer **mem, bool readonly);

/* The array of `op`, if it is a Field or a CPUBuffer, and its memory, both borrowed. */
bool ext_field_borrow(ext_state *state, PyObject *op, stk_tensor *view, stk_buffer **mem);

/* batch.c */

extern PyType_Spec ext_batch_spec;

/* A new Batch, or NULL with an exception.  Takes *batch either way. */
PyObject *ext_batch_give(ext_state *state, stk_batch **batch);

/* The batch of `op`, borrowed; NULL: it is no Batch. */
stk_batch *ext_batch_borrow(ext_state *state, PyObject *op);

/* source.c */

extern PyType_Spec ext_source_spec;
PyObject *ext_dir_source(PyObject *module, PyObject *args, PyObject *kwargs);
PyObject *ext_list_source(PyObject *module, PyObject *args, PyObject *kwargs);

/* Takes *core either way; NULL in it means that *diag says why there is none. */
PyObject *ext_source_give(PyObject *module, stk_source **core, const stk_diag *diag);

/* Borrowed from `op`, which must be a Source: else NULL with a TypeError. */
stk_source *ext_source_borrow(ext_state *state, PyObject *op);

/* op.c; what makes ops is in op.h */

extern PyType_Spec ext_op_spec;
stk_op *ext_op_borrow(ext_state *state, PyObject *op);

/* As ext_source_give. */
PyObject *ext_op_give(PyObject *module, stk_op **core, const stk_diag *diag);

/* plan.c, run.c, stats.c, perf.c */

extern PyType_Spec ext_plan_spec, ext_run_spec;
PyObject *ext_plan(PyObject *module, PyObject *unused);

/* A new Run, or NULL with an exception.  Takes *run either way. */
PyObject *ext_run_give(ext_state *state, stk_run **run);

/* ((tasks, queues), snapshot): what happened since the snapshot `before`, or None: ever. */
PyObject *ext_run_figures(stk_run *run, PyObject *before);
PyObject *ext_stats_dict(const stk_stats *stats);
PyObject *ext_failures_list(const stk_failure *failures, size_t n);

/* Borrowed from `op`, which must be a Run: else NULL with a TypeError. */
stk_run *ext_run_borrow(ext_state *state, PyObject *op);

/* A result that `op`, a Run, has taken ahead; NULL without an exception: there is none. */
PyObject *ext_run_pop(PyObject *op);

/* results.c */

extern PyType_Spec ext_results_spec;

/* Of the module that made `type` or one of its bases; NULL with an exception. */
ext_state *ext_state_of(PyTypeObject *type);

/* Drops the Python objects that what just died held. */
void ext_drain(PyTypeObject *type);

#endif /* STK_EXT_H */
