/*
 * stoker.io: what reads from whatever Python has.
 *
 * An input is memory, a path, or an object with readinto() or read().  What waits, and what
 * unpacks, runs without the GIL; objects are called with it.  A pipe is waited for by its
 * descriptor, also where Python's own FileIO or BufferedReader reads it, so that the wait can be
 * cancelled and has a limit; read() of another object has neither.
 *
 * Threads: one at a time for each input; its owner has a lock.  ext_input_cancel: any.
 */
#ifndef STK_EXT_INPUT_H
#define STK_EXT_INPUT_H

#include <stdatomic.h>

#include <stoker/stream.h>

#include "lane.h"

typedef struct ext_input {
    PyObject *memory; /* a memoryview of bytes; NULL: there is a reader */
    PyObject *reader; /* the bound readinto() or read(); NULL: there is a descriptor */
    PyObject *read1;  /* of a BufferedReader whose descriptor is waited for, or NULL */
    PyObject *ahead;  /* bytes that it had read before; NULL: none are left */
    size_t ahead_at;  /* where those that are left begin */
    PyObject *name;   /* of the file, for messages: a str; NULL: it has none */
    bool into;        /* it is readinto() */
    int fd;           /* -1: none */
    bool pipe;        /* and it is that of no regular file */
    int wait_fd;      /* a read waits until this can be read; -1: it does not */
    int64_t timeout;  /* ns that it waits; STK_FOREVER */
    int wake_fd;      /* an eventfd; -1: none; until ext_input_fini */
    atomic_bool cancelled;
    PyThreadState *thread; /* while its GIL is given up */
} ext_input;

/* It holds nothing. */
void ext_input_init(ext_input *in);

/* Finds out what `source` is.  timeout: seconds, or None.  False with an exception. */
bool ext_input_open(ext_input *in, PyObject *source, PyObject *timeout);
void ext_input_close(ext_input *in);
void ext_input_fini(ext_input *in); /* closes it, too; nobody uses it */

/* What waits for a descriptor, and later reads, say STK_ECANCELLED. */
void ext_input_cancel(ext_input *in);

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

/* To close: whoever has the turn, if that is another thread, does not go on waiting. */
bool ext_turn_take_last(ext_turn *turn, ext_input *in);

/* tar.c, stream.c, wav.c */

extern PyType_Spec ext_tar_spec, ext_stream_spec;
PyObject *ext_tar(PyObject *module, PyObject *args, PyObject *kwargs);
PyObject *ext_stream(PyObject *module, PyObject *args, PyObject *kwargs);
PyObject *ext_load_wav(PyObject *module, PyObject *const *args, Py_ssize_t n, PyObject *names);
PyObject *ext_wav_header(PyObject *module, PyObject *data);

#endif /* STK_EXT_INPUT_H */
