/*
 * FFmpeg's objects for Python: opaque handles, which stoker.io wraps.
 *
 * Packets, codecs and frames never change, and whatever else a handle stands for tells a second
 * thread that it is in use: handles need no lock.  Every call that may take long is made detached.
 */
#ifndef STK_EXT_AV_H
#define STK_EXT_AV_H

#include <stoker/av.h>
#include <stoker/av_demux.h>
#include <stoker/av_frames.h>
#include <stoker/av_graph.h>
#include <stoker/av_live.h>
#include <stoker/av_mux.h>
#include <stoker/av_reader.h>

#include "lane.h"

typedef enum ext_av_kind {
    EXT_AV_CODEC,
    EXT_AV_PACKETS,
    EXT_AV_DEMUXER,
    EXT_AV_BSF,
    EXT_AV_DECODER,
    EXT_AV_FRAMES,
    EXT_AV_ENCODER,
    EXT_AV_MUXER,
    EXT_AV_GRAPH,
    EXT_AV_LIVE,
    EXT_AV_READER,
    EXT_AV_PLAN,
} ext_av_kind;

extern PyType_Spec ext_av_spec, ext_cpu_buffer_spec;

/* field.c: a new CPUBuffer, a Field that may be written to; else as ext_field_give. */
PyObject *ext_cpu_buffer_give(ext_state *state, const stk_tensor *view, stk_buffer **mem);

/* A new handle, or NULL with an exception.  Takes *core, and `file`, what a demuxer reads from or
 * NULL, either way. */
PyObject *ext_av_give(PyObject *module, ext_av_kind kind, void *core, void *file);

/* The same for a core that uses that of another handle, `base`, which lives as long. */
PyObject *ext_av_give_on(PyObject *module, ext_av_kind kind, void *core, PyObject *base);

/* Borrowed from `op`, which must be a handle of that kind: else NULL with a TypeError. */
void *ext_av_borrow(PyObject *module, PyObject *op, ext_av_kind kind);

/* The interpreter is left until ext_av_attach; functions that the C library calls meanwhile enter
 * it by ext_av_enter. */
typedef struct ext_av_scope {
    PyThreadState *outer;
} ext_av_scope;

void ext_av_detach(ext_av_scope *scope);
void ext_av_attach(ext_av_scope *scope);
void ext_av_enter(void);
void ext_av_exit(void);

/* For stk_av_interrupt, detached: on the main thread, whether a signal's handler raised. */
bool ext_av_signal_raised(void *ctx);

/* NULL with what Python functions and handlers of signals raised meanwhile, or the library's error.
 */
PyObject *ext_av_failed(stk_err err, const stk_diag *diag);

/* av_file.c: a reader over a Python object that has read(). */

typedef struct ext_av_file ext_av_file;

/* NULL with an exception. */
ext_av_file *ext_av_file_new(PyObject *object);
int ext_av_file_traverse(const ext_av_file *file, visitproc visit, void *arg);
void ext_av_file_free(ext_av_file *file);
const stk_av_reader *ext_av_file_reader(ext_av_file *file);

/* The functions of the module, of av.c, av_demux.c, av_frames.c and so on. */

bool ext_av_add_functions(PyObject *module);
extern PyMethodDef ext_av_demux_functions[], ext_av_frames_functions[], ext_av_encode_functions[],
    ext_av_graph_functions[], ext_av_live_functions[], ext_av_reader_functions[];

#define EXT_AV_KEYWORDS(name, text)                                                             \
    {                                                                                           \
#name, (PyCFunction)(void (*)(void))name, METH_VARARGS | METH_KEYWORDS, PyDoc_STR(text) \
    }

/* (num, den) or None; a ratio that is not known is None. */
PyObject *ext_av_ratio(stk_ratio ratio);

/* A tuple of int; PyMem_Free.  NULL with an exception. */
size_t *ext_av_numbers(PyObject *tuple);

/* A list of times, None where they are not known. */
PyObject *ext_av_times(const int64_t *times, size_t n);

/* A tuple of str as the C library takes it, ending with NULL; PyMem_Free.  NULL with an exception,
 * or *none. */
const char **ext_av_texts(PyObject *tuple);

#endif /* STK_EXT_AV_H */
