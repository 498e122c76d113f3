/*
 * stoker.io: what reads from whatever Python has.
 *
 * An input is memory, a path, or an object with readinto() or read().  What waits, and what
 * unpacks, runs without the GIL; objects are called with it.
 *
 * Threads: one at a time for each input; its owner has a lock.
 */
#ifndef STK_EXT_INPUT_H
#define STK_EXT_INPUT_H

#include <stdatomic.h>

#include <stoker/stream.h>

#include "lane.h"

typedef struct ext_input {
    PyObject *memory;      /* a memoryview of bytes; NULL: there is a reader */
    PyObject *reader;      /* the bound readinto() or read(); NULL: there is a descriptor */
    PyObject *name;        /* of the file, for messages: a str; NULL: it has none */
    bool into;             /* it is readinto() */
    int fd;                /* -1: none */
    bool pipe;             /* and it is that of no regular file */
    PyThreadState *thread; /* while its GIL is given up */
} ext_input;

/* Finds out what `source` is.  False with an exception. */
bool ext_input_open(ext_input *in, PyObject *source);
void ext_input_close(ext_input *in);

/* stk_stream_read_fn; ctx is the input.  Between the two below. */
stk_err ext_input_read(void *ctx, void *dst, size_t size, size_t *got, stk_diag *diag);

#define EXT_INPUT_BEGIN_WAIT(in) (in)->thread = PyEval_SaveThread();
#define EXT_INPUT_END_WAIT(in) PyEval_RestoreThread((in)->thread);

/* As ext_raise, unless an object has raised meanwhile; names the file. */
PyObject *ext_input_raise(ext_input *in, stk_err err, stk_diag *diag);

/* Limits from keywords that may be None; false with an exception. */
bool ext_stream_opts(PyObject *max_bytes, PyObject *max_ratio, stk_stream_opts *out);
bool ext_limit(const char *arg, PyObject *value, uint64_t most, uint64_t *out);

/* One thread at a time, also without a GIL; who comes again from within is told so. */
typedef struct ext_turn {
    PyThread_type_lock lock;
    atomic_ulong owner; /* 0: nobody */
} ext_turn;

bool ext_turn_init(ext_turn *turn);
void ext_turn_fini(ext_turn *turn);
bool ext_turn_take(ext_turn *turn); /* false with an exception */
void ext_turn_give(ext_turn *turn);

/* tar.c, stream.c, wav.c */

extern PyType_Spec ext_tar_spec, ext_stream_spec;
PyObject *ext_tar(PyObject *module, PyObject *args, PyObject *kwargs);
PyObject *ext_stream(PyObject *module, PyObject *args, PyObject *kwargs);
PyObject *ext_load_wav(PyObject *module, PyObject *const *args, Py_ssize_t n, PyObject *names);
PyObject *ext_wav_header(PyObject *module, PyObject *data);

#endif /* STK_EXT_INPUT_H */
