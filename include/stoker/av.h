/*
 * stk_av: FFmpeg's libraries, if there are any.
 *
 * Everything that needs them is in a module, stoker-av-<major version of libavformat>.so, which
 * lies beside this library (or in the folder stoker there, or, of a program in bin, in
 * ../lib/stoker or in the package of a Python there) and is loaded when first needed, the newest
 * that loads first.  The environment variable STOKER_AV_MODULE names another file.  Without
 * one every function of av*.h that takes a stk_diag says STK_EUNSUPPORTED and how to get it.
 *
 * Nothing about the process changes: no signal handlers, no log level.  What FFmpeg logs while a
 * call here fails becomes part of the call's error; see src/av/call.h for how.
 *
 * Threads: all functions, any thread.
 */
#ifndef STK_AV_H
#define STK_AV_H

#include <stoker/error.h>

STK_BEGIN

typedef struct stk_av_version {
    const char *name; /* "libavformat"; static storage; NULL behind the last */
    int major, minor, micro;
} stk_av_version;

#define STK_AV_VERSIONS 7

/* The libraries that are loaded, not those whose headers the module was built with. */
STK_API STK_NODISCARD stk_err stk_av_versions(stk_av_version out[STK_AV_VERSIONS], stk_diag *diag);

typedef struct stk_av_filter {
    const char *name, *description; /* static storage */
    int inputs, outputs;            /* -1: it depends on the options */
} stk_av_filter;

/* The filters of this FFmpeg one after the other, from *at 0 on.  STK_EEND: no more. */
STK_API STK_NODISCARD stk_err stk_av_filter_next(size_t *at, stk_av_filter *out, stk_diag *diag);

/* FFmpeg's own log level, of the whole process.  Once it was set here, FFmpeg also logs what
 * happens in calls of this library, where it is otherwise silent. */
STK_API STK_NODISCARD stk_err stk_av_log_level(int *out, stk_diag *diag);
STK_API STK_NODISCARD stk_err stk_av_set_log_level(int level, stk_diag *diag);

STK_END

#endif /* STK_AV_H */
