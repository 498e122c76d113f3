#include "ops/av.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <stoker/trace.h>

#include "base/thread.h"
#include "ops/beside.h"

enum {
    NEWEST = 72, /* major versions of libavformat: 59 is that of FFmpeg 5, 63 that of FFmpeg 9 */
    OLDEST = 59,
};

static _Atomic(const stk_av_table *) loaded;
static pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER; /* one thread loads */

static const char HOW[] =
    "FFmpeg is not available: install its libraries (Debian: apt install libavfilter8 or ffmpeg; "
    "for a build from source also libavformat-dev libavfilter-dev before it is built)";
#define UNSET "leave STOKER_AV_MODULE unset for the newest module that loads"

/* The file's table, or NULL with the reason.  A module is never unloaded: FFmpeg's libraries keep
 * pointers into themselves. */
static const stk_av_table *open_module(const char *path, char *why, size_t size)
{
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        snprintf(why, size, "%s", dlerror());
        return NULL;
    }
    const stk_av_table *table = dlsym(handle, STK_AV_SYMBOL);
    if (table && !strcmp(table->built_for, STK_AV_BUILD) && table->size == sizeof(*table)) {
        table->start();
        return table;
    }
    snprintf(why, size, "%s: %s", path,
             table ? "it belongs to another version of this library" : "it is no module of Stoker");
    dlclose(handle);
    return NULL;
}

typedef struct search {
    const char *only; /* that major version; NULL: any */
    const stk_av_table *table;
    char *why; /* the newest one did not load, "" where none was there; `size` bytes of room */
    size_t size;
} search;

/* The newest module in the folder that loads. */
static bool look_for_module(void *ctx, const char *folder)
{
    search *s = ctx;
    for (int major = NEWEST; *folder && major >= OLDEST && !s->table; major--) {
        char path[PATH_MAX], reason[1024], number[16];
        snprintf(number, sizeof(number), "%d", major);
        if (s->only && strcmp(s->only, number)) continue;
        const int n = snprintf(path, sizeof(path), "%s/stoker-av-%d.so", folder, major);
        if (n < 0 || (size_t)n >= sizeof(path) || access(path, F_OK)) continue;
        s->table = open_module(path, reason, sizeof(reason));
        if (!s->table && !*s->why) snprintf(s->why, s->size, "%s", reason);
    }
    return s->table;
}

static const stk_av_table *search_all(const char *only, char *why, size_t size)
{
    search s = {.only = only, .why = why, .size = size};
    (void)stk_beside(look_for_module, &s);
    return s.table;
}

/* `named`: what was asked for, a `number` or a file; NULL: any. */
static void explain(const char *named, bool number, const char *why, stk_diag *diag)
{
    if (number && !*why)
        stk_diag_set(diag, STK_EUNSUPPORTED,
                     "STOKER_AV_MODULE: there is no stoker-av-%s.so: " UNSET
                     ", or build for that version of FFmpeg, too (-Dffmpeg_prefixes=FOLDER)",
                     named);
    else if (named)
        stk_diag_set(
            diag, STK_EUNSUPPORTED,
            "STOKER_AV_MODULE: %s: install the libraries of FFmpeg that it is for, or " UNSET, why);
    else
        stk_diag_set(diag, STK_EUNSUPPORTED, "%s%s%s", HOW, *why ? "; a module did not load: " : "",
                     why);
}

/* The one that STOKER_AV_MODULE names by its file or its number, or the newest. */
static const stk_av_table *choose(stk_diag *diag)
{
    char why[1024] = "";
    const char *named = getenv("STOKER_AV_MODULE");
    if (named && !*named) named = NULL;
    const bool number = named && strspn(named, "0123456789") == strlen(named);
    const stk_av_table *table = named && !number ? open_module(named, why, sizeof(why))
                                                 : search_all(named, why, sizeof(why));
    if (!table) explain(named, number, why, diag);
    return table;
}

static void hold(void)
{
    pthread_mutex_lock(&loading);
}

static void let_go(void)
{
    pthread_mutex_unlock(&loading);
}

/* A fork waits until nobody loads: the child would have half a library, and nobody to give the lock
 * back. */
static void watch_forks(void)
{
    (void)pthread_atfork(hold, let_go, let_go); /* no memory: as it was without */
}

const stk_av_table *stk_av_get(stk_diag *diag)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const stk_av_table *table = atomic_load_explicit(&loaded, memory_order_acquire);
    if (table) return table;
    (void)pthread_once(&once, watch_forks);
    pthread_mutex_lock(&loading);
    table = atomic_load_explicit(&loaded, memory_order_acquire);
    if (!table) table = choose(diag);
    atomic_store_explicit(&loaded, table, memory_order_release);
    pthread_mutex_unlock(&loading);
    return table;
}

/* --- the public functions, each of which passes its arguments on --- */

#define F(name, params, args)                          \
    stk_err stk_##name params                          \
    {                                                  \
        const stk_av_table *table = stk_av_get(diag);  \
        if (!table) {                                  \
            *out = (__typeof__(*out)){0};              \
            return STK_EUNSUPPORTED;                   \
        }                                              \
        const uint64_t slice = stk_trace_begin(#name); \
        const stk_err err = table->name args;          \
        stk_trace_end(slice);                          \
        return err;                                    \
    }
STK_AV_CALLS(F)
#undef F

#define V(name, params, args)                          \
    stk_err stk_##name params                          \
    {                                                  \
        const stk_av_table *table = stk_av_get(diag);  \
        if (!table) return STK_EUNSUPPORTED;           \
        const uint64_t slice = stk_trace_begin(#name); \
        const stk_err err = table->name args;          \
        stk_trace_end(slice);                          \
        return err;                                    \
    }
STK_AV_CHECKS(V)
#undef V

/* Who has an object has loaded the module. */
static const stk_av_table *present(void)
{
    return atomic_load_explicit(&loaded, memory_order_acquire);
}

#define Q(result, name, params, args) \
    result stk_##name params          \
    {                                 \
        return present()->name args;  \
    }
STK_AV_QUERIES(Q)
#undef Q

#define D(name, params, args) \
    void stk_##name params    \
    {                         \
        present()->name args; \
    }
STK_AV_DEEDS(D)
#undef D

#define U(name, type)                         \
    void stk_##name(type **object)            \
    {                                         \
        if (*object) present()->name(object); \
    }
STK_AV_ENDS(U)
#undef U
