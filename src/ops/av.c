#include "ops/av.h"

#include <dlfcn.h>
#include <glob.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <stoker/trace.h>

#include "base/thread.h"

#ifndef STK_MODULE_DIR
#define STK_MODULE_DIR ""
#endif

enum {
    NEWEST = 72, /* major versions of libavformat: 59 is that of FFmpeg 5, 63 that of FFmpeg 9 */
    OLDEST = 59,
};

static _Atomic(const stk_av_table *) loaded;
static pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER; /* one thread loads */

static const char HOW[] =
    "FFmpeg is not available: install its libraries (Debian: apt install libavfilter8 or ffmpeg; "
    "for a build from source also libavformat-dev libavfilter-dev before it is built)";

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

/* The newest module in a folder that loads, or the one of a major version; *why: why the newest one
 * there did not.  "": none. */
static const stk_av_table *search(const char *folder, const char *only, char *why, size_t size)
{
    const stk_av_table *table = NULL;
    for (int major = NEWEST; *folder && major >= OLDEST && !table; major--) {
        char path[PATH_MAX], reason[1024], number[16];
        snprintf(number, sizeof(number), "%d", major);
        if (only && strcmp(only, number)) continue;
        const int n = snprintf(path, sizeof(path), "%s/stoker-av-%d.so", folder, major);
        if (n < 0 || (size_t)n >= sizeof(path) || access(path, F_OK)) continue;
        table = open_module(path, reason, sizeof(reason));
        if (!table && !*why) snprintf(why, size, "%s", reason);
    }
    return table;
}

/* The folder of this library, or of the program that it is linked into; false: not known. */
static bool own_folder(char folder[PATH_MAX])
{
    Dl_info info;
    if (!dladdr(&loaded, &info) || !info.dli_fname) return false;
    int n = snprintf(folder, PATH_MAX, "%s", info.dli_fname);
    if (!strchr(info.dli_fname, '/')) /* a program that was found in PATH */
        n = (int)readlink("/proc/self/exe", folder, PATH_MAX - 1);
    if (n < 0 || n >= PATH_MAX) return false;
    folder[n] = '\0';
    char *slash = strrchr(folder, '/');
    if (slash) *slash = '\0';
    return slash;
}

/* Folders of Python's packages, below the one that `folder`, bin, is in. */
static const stk_av_table *search_packages(const char *folder, const char *only, char *why,
                                           size_t size)
{
    char pattern[PATH_MAX + 64];
    glob_t found = {0};
    const stk_av_table *table = NULL;
    snprintf(pattern, sizeof(pattern), "%s/../lib/python3*/site-packages/stoker", folder);
    const bool any = glob(pattern, GLOB_NOSORT, NULL, &found) == 0;
    for (size_t i = 0; any && i < found.gl_pathc && !table; i++)
        table = search(found.gl_pathv[i], only, why, size);
    globfree(&found);
    return table;
}

static const stk_av_table *search_beside(const char *folder, const char *only, char *why,
                                         size_t size)
{
    static const char *const places[] = {"", "/stoker", "/../lib/stoker"};
    const stk_av_table *table = NULL;
    for (size_t i = 0; i < sizeof(places) / sizeof(*places) && !table; i++) {
        char place[PATH_MAX + 16];
        snprintf(place, sizeof(place), "%s%s", folder, places[i]);
        table = search(place, only, why, size);
    }
    return table ? table : search_packages(folder, only, why, size);
}

static const stk_av_table *search_all(const char *only, char *why, size_t size)
{
    char folder[PATH_MAX];
    const stk_av_table *table = NULL;
    if (own_folder(folder)) table = search_beside(folder, only, why, size);
    return table ? table : search(STK_MODULE_DIR, only, why, size);
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
    if (table) return table;
    if (number && !*why)
        stk_diag_set(diag, STK_EUNSUPPORTED, "STOKER_AV_MODULE: there is no stoker-av-%s.so",
                     named);
    else if (named)
        stk_diag_set(diag, STK_EUNSUPPORTED, "STOKER_AV_MODULE: %s", why);
    else
        stk_diag_set(diag, STK_EUNSUPPORTED, "%s%s%s", HOW, *why ? "; a module did not load: " : "",
                     why);
    return NULL;
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
