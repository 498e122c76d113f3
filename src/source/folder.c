#include "source/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"

stk_err stk_folder_path(const stk_folder *f, const char *name, char *dst, size_t size)
{
    /* From the end to the beginning, then moved to the front. */
    size_t at = size;
    char end = 0;
    for (const char *part = name ? name : f->name; part;) {
        const size_t len = strlen(part);
        if (len + 1 > at) return STK_ELIMIT;
        dst[--at] = end;
        at -= len;
        memcpy(dst + at, part, len);
        end = '/';
        if (part != name) f = f->parent;
        part = f ? f->name : NULL;
    }
    /* A root of "/" has brought its own slash. */
    memmove(dst, dst + at, size - at);
    if (dst[0] == '/' && dst[1] == '/') memmove(dst, dst + 1, size - at - 1);
    return STK_OK;
}

static stk_err fail(const stk_folder *f, const char *name, int errnum, const char *what,
                    stk_diag *diag)
{
    char path[STK_MAX_PATH];
    if (stk_folder_path(f, name, path, sizeof(path)))
        return stk_diag_set(diag, STK_ELIMIT, "...%s: the path is longer than %d bytes",
                            name ? name : f->name, STK_MAX_PATH - 1);
    stk_err err = stk_diag_errno(diag, errnum, "%s: %s", path, what);
    return err == STK_ENOTFOUND ? STK_EIO : err; /* it was there a moment ago */
}

/* Would listing `st` from f list one of f's parents once more? */
static bool is_loop(const stk_folder *f, const struct stat *st)
{
    for (; f; f = f->parent)
        if (f->dev == st->st_dev && f->ino == st->st_ino) return true;
    return false;
}

enum kind { NOTHING, IS_FILE, IS_FOLDER };

/* What a link leads to.  One that leads nowhere counts as a file, so that one whose name matches
 * becomes a sample that fails in words, and is not lost. */
static stk_err follow(const stk_folder *f, int fd, const char *name, bool matches, enum kind *kind,
                      stk_diag *diag)
{
    struct stat st;
    *kind = IS_FILE;
    if (fstatat(fd, name, &st, 0) == 0) {
        if (S_ISDIR(st.st_mode)) *kind = is_loop(f, &st) ? NOTHING : IS_FOLDER;
        return STK_OK;
    }
    if (matches || errno == ENOENT || errno == ENOTDIR || errno == ELOOP) return STK_OK;
    return fail(f, name, errno, "cannot follow the link", diag);
}

static stk_err classify(const stk_folder *f, int fd, const stk_scan *scan,
                        const struct dirent64 *entry, bool matches, enum kind *kind, stk_diag *diag)
{
    unsigned char type = entry->d_type;
    if (type == DT_UNKNOWN) {
        struct stat st;
        if (fstatat(fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW))
            return fail(f, entry->d_name, errno, "cannot tell what it is", diag);
        type = (unsigned char)IFTODT(st.st_mode);
    }
    *kind = type == DT_DIR ? IS_FOLDER : IS_FILE;
    if (type == DT_LNK && scan->no_follow)
        *kind = NOTHING;
    else if (type == DT_LNK)
        return follow(f, fd, entry->d_name, matches, kind, diag);
    return STK_OK;
}

static stk_err add(stk_folder *f, int fd, const stk_scan *scan, const struct dirent64 *entry,
                   stk_diag *diag)
{
    const char *name = entry->d_name;
    if (name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2]))) return STK_OK;
    const size_t len = strlen(name);
    const bool matches = stk_glob_match(scan->glob, name, len);
    if (!matches && entry->d_type == DT_REG) return STK_OK;

    enum kind kind = NOTHING;
    stk_err err = classify(f, fd, scan, entry, matches, &kind, diag);
    if (err) return err;
    if (kind == IS_FOLDER && !scan->flat)
        err = stk_names_add(&f->kid_names, name, len);
    else if (kind == IS_FILE && matches)
        err = stk_names_add(&f->files, name, len);
    if (err == STK_ELIMIT)
        return stk_diag_set(diag, err, "%s: more than 4 GiB of names in one folder", f->name);
    return err;
}

static stk_err read_entries(stk_folder *f, int fd, const stk_scan *scan, stk_diag *diag)
{
    for (;;) {
        if (atomic_load_explicit(scan->stop, memory_order_relaxed)) return STK_ECANCELLED;
        const ssize_t got = getdents64(fd, scan->buffer, STK_SCAN_BUFFER);
        if (got < 0) return fail(f, NULL, errno, "cannot list the folder", diag);
        if (got == 0) return STK_OK;
        for (ssize_t at = 0; at < got;) {
            const struct dirent64 *entry = (const void *)((const char *)scan->buffer + at);
            stk_err err = add(f, fd, scan, entry, diag);
            if (err) return err;
            at += entry->d_reclen;
        }
    }
}

static stk_err make_kids(stk_folder *f)
{
    const uint32_t num = f->kid_names.num;
    if (!num) return STK_OK;
    f->kids = stk_alloc_zero(num, sizeof(*f->kids));
    if (!f->kids) return STK_ENOMEM;
    f->num_kids = num;
    for (uint32_t i = 0; i < num; i++)
        f->kids[i] = (stk_folder){
            .parent = f,
            .name = stk_names_get(&f->kid_names, i),
            .label = f->parent ? f->label : (int64_t)i,
        };
    return STK_OK;
}

/* O_NONBLOCK: something that stopped being a folder, a FIFO say, must not hold this thread up. */
static stk_err open_folder(stk_folder *f, int *fd, stk_diag *diag)
{
    char path[STK_MAX_PATH];
    if (stk_folder_path(f, NULL, path, sizeof(path)))
        return fail(f, NULL, 0, "", diag); /* the path is too long, and it says so */
    *fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK);
    struct stat st;
    if (*fd < 0 || fstat(*fd, &st)) return fail(f, NULL, errno, "cannot open the folder", diag);
    f->dev = st.st_dev;
    f->ino = st.st_ino;
    return STK_OK;
}

stk_err stk_folder_scan(stk_folder *f, const stk_scan *scan, stk_diag *diag)
{
    int fd = -1;
    stk_err err = open_folder(f, &fd, diag);
    if (!err) err = read_entries(f, fd, scan, diag);
    if (!err) err = stk_names_pack(&f->files);
    if (!err) err = stk_names_pack(&f->kid_names);
    if (!err) err = make_kids(f);
    if (err == STK_ENOMEM) stk_diag_set(diag, err, "%s: no memory to list the folder", f->name);
    if (fd >= 0) close(fd);
    return err;
}

stk_folder *stk_folder_next(stk_folder *f)
{
    if (f->num_kids) return f->kids;
    for (; f->parent; f = f->parent) {
        const stk_folder *end = f->parent->kids + f->parent->num_kids;
        if (f + 1 < end) return f + 1;
    }
    return NULL;
}

static void drop(stk_folder *f)
{
    stk_names_fini(&f->files);
    stk_names_fini(&f->kid_names);
    stk_free(f->kids);
    stk_free(f->why);
    f->kids = NULL;
    f->why = NULL;
    f->num_kids = 0;
}

/* A loop and not a recursion: a tree may be as deep as a path is long. */
void stk_folder_fini(stk_folder *root)
{
    stk_folder *f = root;
    while (f) {
        if (f->num_kids) {
            f = &f->kids[--f->num_kids];
            continue;
        }
        stk_folder *parent = f == root ? NULL : f->parent;
        drop(f);
        f = parent;
    }
}

size_t stk_folder_memory(const stk_folder *f)
{
    return sizeof(*f) + stk_names_memory(&f->files) + stk_names_memory(&f->kid_names);
}
