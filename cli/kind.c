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

/* What is counted below a folder: enough to tell, and no wait for millions. */
#define MOST_BELOW 10000

static const char *const endings[KIND_NONE][16] = {
    [KIND_IMAGE] = {"jpg", "jpeg", "jpe", "png", "webp", "avif", "bmp", "gif", "tif", "tiff"},
    [KIND_VIDEO] = {"mp4", "mkv", "webm", "avi", "mov", "m4v", "mpg", "mpeg", "ts", "wmv", "flv",
                    "3gp"},
    [KIND_AUDIO] = {"wav", "flac", "mp3", "ogg", "opus", "m4a", "aac", "wma"},
};

/* Behind the last dot. */
static bool ends_with(const char *name, size_t size, const char *ending)
{
    const size_t n = strlen(ending);
    return size > n && name[size - n - 1] == '.' && !strncasecmp(name + size - n, ending, n);
}

sample_kind kind_of(const char *name, size_t size)
{
    for (int kind = 0; kind < KIND_NONE; kind++)
        for (const char *const *e = endings[kind]; *e; e++)
            if (ends_with(name, size, *e)) return (sample_kind)kind;
    return KIND_NONE;
}

const char *kind_noun(sample_kind kind)
{
    return kind == KIND_IMAGE ? "image" : "clip";
}

const char *kind_endings(sample_kind kind, char *dst)
{
    size_t n = 0;
    if (kind == KIND_IMAGE) return NULL;
    for (const char *const *e = endings[kind]; *e; e++)
        n += (size_t)snprintf(dst + n, KIND_TEXT_SIZE - n, "%s%s", n ? "|" : "", *e);
    return dst;
}

const char *kind_pattern(sample_kind kind, char *dst)
{
    size_t n = 0;
    if (kind == KIND_IMAGE) return NULL;
    for (const char *const *e = endings[kind]; *e; e++) {
        n += (size_t)snprintf(dst + n, KIND_TEXT_SIZE - n, "%s*.", n ? "|" : "");
        for (const char *c = *e; *c; c++)
            n += (size_t)snprintf(dst + n, KIND_TEXT_SIZE - n, "[%c%c]", *c,
                                  toupper((unsigned char)*c));
    }
    return dst;
}

void kind_count(kind_counts *c, const char *name, size_t size)
{
    const sample_kind kind = kind_of(name, size);
    if (kind == KIND_NONE) return;
    c->of[kind]++;
    c->wav += ends_with(name, size, "wav");
}

size_t kind_total(const kind_counts *c)
{
    size_t n = 0;
    for (int kind = 0; kind < KIND_NONE; kind++) n += c->of[kind];
    return n;
}

kind_counts kind_sum(const kind_counts *a, const kind_counts *b)
{
    kind_counts sum = {.wav = a->wav + b->wav};
    for (int kind = 0; kind < KIND_NONE; kind++) sum.of[kind] = a->of[kind] + b->of[kind];
    return sum;
}

sample_kind kind_most(const kind_counts *c)
{
    int most = KIND_IMAGE;
    for (int kind = 0; kind < KIND_NONE; kind++)
        if (c->of[kind] > c->of[most]) most = kind;
    return c->of[most] ? (sample_kind)most : KIND_NONE;
}

/* What is in the folders of `dir`, but not in itself. */
static void look_below(const char *dir, kind_counts *below)
{
    char *const paths[] = {(char *)dir, NULL};
    FTS *walk = fts_open(paths, FTS_LOGICAL | FTS_NOCHDIR, NULL);
    size_t n = 0;
    for (FTSENT *e; walk && n < MOST_BELOW && (e = fts_read(walk));) {
        if (e->fts_info != FTS_F || e->fts_level < 2) continue;
        kind_count(below, e->fts_name, e->fts_namelen);
        n = kind_total(below);
    }
    if (walk) fts_close(walk);
}

static bool is_folder(DIR *d, const struct dirent *e)
{
    struct stat st;
    if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") || e->d_type == DT_REG) return false;
    return !fstatat(dirfd(d), e->d_name, &st, 0) && S_ISDIR(st.st_mode);
}

int kind_look(const char *dir, kind_folder *out)
{
    *out = (kind_folder){0};
    DIR *d = opendir(dir);
    if (!d) {
        say_error("%s: %s", dir, strerror(errno));
        return EXIT_WORLD;
    }
    for (const struct dirent *e; (e = readdir(d));)
        if (is_folder(d, e))
            out->folders = true;
        else
            kind_count(&out->in, e->d_name, strlen(e->d_name));
    closedir(d);
    if (out->folders) look_below(dir, &out->below);
    return EXIT_FINE;
}
