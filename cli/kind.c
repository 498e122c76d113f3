#include "kind.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fts.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "command.h"
#include "say.h"

static const char *const endings[KIND_NONE][12] = {
    [KIND_IMAGE] = {"jpg", "jpeg", "jpe", "png", "webp", "avif", "bmp", "gif", "tif", "tiff"},
    [KIND_VIDEO] = {"mp4", "mkv", "webm", "avi", "mov", "m4v", "mpg", "mpeg", "ts"},
    [KIND_AUDIO] = {"wav", "flac", "mp3", "ogg", "opus", "m4a", "aac"},
};

sample_kind kind_of(const char *name)
{
    const char *dot = strrchr(name, '.');
    for (int kind = 0; dot && kind < KIND_NONE; kind++)
        for (const char *const *e = endings[kind]; *e; e++)
            if (!strcasecmp(dot + 1, *e)) return (sample_kind)kind;
    return KIND_NONE;
}

const char *kind_noun(sample_kind kind)
{
    return kind == KIND_IMAGE ? "image" : "clip";
}

const char *kind_pattern(sample_kind kind, char *dst)
{
    size_t n = 0;
    if (kind == KIND_IMAGE) return NULL;
    for (const char *const *e = endings[kind]; *e; e++) {
        n += (size_t)snprintf(dst + n, KIND_PATTERN_SIZE - n, "%s*.", n ? "|" : "");
        for (const char *c = *e; *c; c++)
            n += (size_t)snprintf(dst + n, KIND_PATTERN_SIZE - n, "[%c%c]", *c,
                                  toupper((unsigned char)*c));
    }
    return dst;
}

/* What the first file below `dir` is that is of any kind. */
static sample_kind find_below(const char *dir)
{
    sample_kind kind = KIND_NONE;
    char *const paths[] = {(char *)dir, NULL};
    FTS *walk = fts_open(paths, FTS_LOGICAL | FTS_NOCHDIR, NULL);
    for (FTSENT *e; walk && kind == KIND_NONE && (e = fts_read(walk));)
        if (e->fts_info == FTS_F) kind = kind_of(e->fts_name);
    if (walk) fts_close(walk);
    return kind;
}

int kind_find(const char *dir, sample_kind *kind, bool *classes)
{
    DIR *d = opendir(dir);
    if (!d) {
        say_error("%s: %s", dir, strerror(errno));
        return EXIT_WORLD;
    }
    bool folders = false;
    sample_kind found = KIND_NONE;
    for (const struct dirent *e; found != KIND_IMAGE && (e = readdir(d));) {
        struct stat st;
        const sample_kind one = kind_of(e->d_name);
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..")) continue;
        if (e->d_type == DT_REG && one == KIND_NONE) continue;
        if (!fstatat(dirfd(d), e->d_name, &st, 0) && S_ISDIR(st.st_mode))
            folders = true;
        else if (one < found)
            found = one;
    }
    closedir(d);
    *classes = folders && found == KIND_NONE;
    if (found == KIND_NONE && folders) found = find_below(dir);
    *kind = found == KIND_NONE ? KIND_IMAGE : found;
    return EXIT_FINE;
}
