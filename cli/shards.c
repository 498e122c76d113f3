#include "shards.h"

#include <dirent.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <stoker/tar.h>
#include <stoker/zip.h>

#include "file.h"

/* Members that are looked at: enough to tell. */
#define FIRST_MEMBERS 1000

enum archive { OTHER, TAR, ZIP };

/* Packed ones, too: the source says why it does not read them. */
static enum archive archive_of(const char *name)
{
    static const char *const tar[] = {"*.tar",    "*.tar.gz", "*.tgz",     "*.tar.zst", "*.tzst",
                                      "*.tar.xz", "*.txz",    "*.tar.bz2", "*.tbz2"};
    for (size_t i = 0; i < sizeof(tar) / sizeof(tar[0]); i++)
        if (!fnmatch(tar[i], name, FNM_CASEFOLD)) return TAR;
    return fnmatch("*.zip", name, FNM_CASEFOLD) ? OTHER : ZIP;
}

void shard_list_fini(shard_list *l)
{
    for (size_t i = 0; i < l->num; i++) free(l->paths[i]);
    free(l->paths);
    *l = (shard_list){0};
}

static stk_err add(shard_list *l, const char *dir, const char *name)
{
    if (l->num == l->room) {
        char **paths = realloc(l->paths, (l->room * 2 + 16) * sizeof(*paths));
        if (!paths) return STK_ENOMEM;
        l->paths = paths;
        l->room = l->room * 2 + 16;
    }
    char *path = NULL;
    if (asprintf(&path, "%s%s%s", dir, *name ? "/" : "", name) < 0) return STK_ENOMEM;
    l->paths[l->num++] = path;
    return STK_OK;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Archives of one kind and nothing else that could be loaded: else the list stays empty. */
static stk_err look(shard_list *l, const char *dir, DIR *d)
{
    enum archive all = OTHER;
    stk_err err = STK_OK;
    for (const struct dirent *e; !err && (e = readdir(d));) {
        struct stat st;
        if (e->d_name[0] == '.' || fstatat(dirfd(d), e->d_name, &st, 0)) continue;
        const enum archive kind = S_ISREG(st.st_mode) ? archive_of(e->d_name) : OTHER;
        if (kind == OTHER && S_ISREG(st.st_mode) &&
            kind_of(e->d_name, strlen(e->d_name)) == KIND_NONE)
            continue;
        if (kind == OTHER || (all != OTHER && kind != all)) {
            shard_list_fini(l);
            return STK_OK;
        }
        all = kind;
        l->zip = kind == ZIP;
        err = add(l, dir, e->d_name);
    }
    if (l->num) qsort(l->paths, l->num, sizeof(*l->paths), by_name);
    return err;
}

stk_err shard_list_find(shard_list *l, const char *path, stk_diag *diag)
{
    struct stat st;
    stk_err err = STK_OK;
    *l = (shard_list){0};
    if (stat(path, &st)) return STK_OK; /* whoever opens it says why */
    if (S_ISREG(st.st_mode) && archive_of(path) != OTHER) {
        l->zip = archive_of(path) == ZIP;
        err = add(l, path, "");
    }
    DIR *d = S_ISDIR(st.st_mode) ? opendir(path) : NULL;
    if (d) {
        err = look(l, path, d);
        closedir(d);
    }
    return err ? stk_diag_set(diag, err, "%s", stk_err_str(err)) : STK_OK;
}

/* A source takes no name whose first dot is its first byte. */
static void count_member(kind_counts *c, const char *name, size_t size)
{
    const char *slash = memrchr(name, '/', size);
    const char *base = slash ? slash + 1 : name;
    const size_t length = size - (size_t)(base - name);
    if (length && *base != '.') kind_count(c, base, length);
}

static void count_tar(file *f, kind_counts *c)
{
    stk_tar *t;
    stk_tar_member m;
    if (stk_tar_at(file_read_at, f, f->size, NULL, &t)) return;
    stk_err err = STK_OK;
    for (size_t n = 0; n < FIRST_MEMBERS && !err;) {
        err = stk_tar_next(t, &m, NULL);
        if (err == STK_EAGAIN) {
            err = stk_tar_fill(t, NULL);
        }
        else if (!err) {
            count_member(c, m.name, m.name_size);
            n++;
        }
    }
    stk_tar_free(&t);
}

static void count_zip(file *f, kind_counts *c)
{
    const stk_zip_input in = {.size = f->size, .read = file_read_at, .ctx = f};
    stk_zip *zip;
    if (stk_zip_new(&in, NULL, &zip, NULL)) return;
    for (size_t i = 0; i < FIRST_MEMBERS && i < stk_zip_count(zip); i++) {
        const stk_zip_entry *e = stk_zip_get(zip, i);
        if (e->kind == STK_ZIP_FILE) count_member(c, e->name, e->name_size);
    }
    stk_zip_free(&zip);
}

void shard_list_count(const shard_list *l, kind_counts *out)
{
    *out = (kind_counts){0};
    for (size_t i = 0; i < l->num && !kind_total(out); i++) {
        file f;
        if (!file_open(&f, l->paths[i])) continue;
        (l->zip ? count_zip : count_tar)(&f, out);
        file_close(&f);
    }
}

stk_source *shard_list_open(const shard_list *l, sample_kind kind, const stk_order_opts *order,
                            stk_diag *diag)
{
    char endings[KIND_TEXT_SIZE];
    const stk_shard_part part = {.endings = kind_endings(kind, endings)};
    const stk_shards_opts opts = {.num_shards = l->num,
                                  .paths = (const char *const *)l->paths,
                                  .num_parts = 1,
                                  .parts = &part,
                                  .order = *order};
    return l->zip ? stk_zip_source(&opts, diag) : stk_tar_source(&opts, diag);
}
