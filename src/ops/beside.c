#include "ops/beside.h"

#include <dlfcn.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#ifndef STK_MODULE_DIR
#define STK_MODULE_DIR ""
#endif

/* The folder of this library, or of the program that it is linked into; false: not known. */
static bool own_folder(char folder[PATH_MAX])
{
    static const char here;
    Dl_info info;
    if (!dladdr(&here, &info) || !info.dli_fname) return false;
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
static bool look_in_packages(const char *folder, stk_look_fn *look, void *ctx)
{
    char pattern[PATH_MAX + 64];
    glob_t found = {0};
    bool done = false;
    snprintf(pattern, sizeof(pattern), "%s/../lib/python3*/site-packages/stoker", folder);
    const bool any = glob(pattern, GLOB_NOSORT, NULL, &found) == 0;
    for (size_t i = 0; any && i < found.gl_pathc && !done; i++) done = look(ctx, found.gl_pathv[i]);
    globfree(&found);
    return done;
}

bool stk_beside(stk_look_fn *look, void *ctx)
{
    static const char *const places[] = {"", "/stoker", "/../lib/stoker"};
    char folder[PATH_MAX];
    bool done = false;
    if (own_folder(folder)) {
        for (size_t i = 0; i < sizeof(places) / sizeof(*places) && !done; i++) {
            char place[PATH_MAX + 16];
            snprintf(place, sizeof(place), "%s%s", folder, places[i]);
            done = look(ctx, place);
        }
        if (!done) done = look_in_packages(folder, look, ctx);
    }
    return done || (*STK_MODULE_DIR && look(ctx, STK_MODULE_DIR));
}
