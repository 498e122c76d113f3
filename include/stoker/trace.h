/*
 * stk_trace: what each thread does when, as a file that ui.perfetto.dev shows.
 *
 *     begin, end ──► bytes that wait, at most buffer_size ──► a thread that writes ──► fd
 *
 * There is one trace at a time in a process.  While there is none, the functions cost a load of a
 * number.  What finds no room, because the file takes bytes too slowly, is dropped and counted:
 * nobody waits for the file.  Stages of pipelines and calls into FFmpeg trace themselves.
 *
 * A child of fork traces nothing until it starts a trace of its own.
 *
 * Threads: all functions, any thread.
 */
#ifndef STK_TRACE_H
#define STK_TRACE_H

#include <stoker/error.h>

STK_BEGIN

typedef struct stk_trace_opts {
    size_t buffer_size;       /* bytes; 0: 4 MiB; at least 64 KiB */
    const char *process_name; /* NULL: the program's own */
} stk_trace_opts;

/* `fd` is the caller's, and must stay open until stk_trace_stop has returned.  opts: NULL for the
 * defaults.  STK_EAGAIN: a trace is being written, or the system has no thread to give. */
STK_API STK_NODISCARD stk_err stk_trace_start(int fd, const stk_trace_opts *opts, stk_diag *diag);

/* Writes what is left; *dropped, which may be NULL: events that found no room.  Does nothing if
 * there is no trace.  STK_EIO: the file could not be written. */
STK_API STK_NODISCARD stk_err stk_trace_stop(uint64_t *dropped, stk_diag *diag);

STK_API bool stk_trace_on(void);

/* A slice of the calling thread's time, from begin to end; slices of a thread nest.  `name` is cut
 * at 200 bytes.  0: there is no trace; stk_trace_end of that, or of a trace that has ended, does
 * nothing. */
STK_API STK_NODISCARD uint64_t stk_trace_begin(const char *name);
STK_API void stk_trace_end(uint64_t slice);

#define STK_TRACE_COUNTERS 64

/* The value of "Counter `number`" from here on.  STK_EINVAL: the number is not below
 * STK_TRACE_COUNTERS. */
STK_API stk_err stk_trace_counter(uint32_t number, double value);

/* What the calling thread is called in traces that it has not appeared in yet, instead of its name
 * in the system; cut at 63 bytes.  Of several calls the first one counts. */
STK_API void stk_trace_thread(const char *name);

STK_END

#endif /* STK_TRACE_H */
