/*
 * tree: a temporary folder for a test, filled by short texts and removed again.
 *
 *     struct tree t = tree_new();
 *     tree_put(&t, "a/b/1.jpg a/2.jpg empty/ link->a pipe|");
 *     tree_free(&t);
 *
 * Names are separated by blanks; folders on the way are made.
 */
#ifndef STK_TESTS_TREE_H
#define STK_TESTS_TREE_H

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/check.h"

struct tree {
    char path[64];
};

static inline struct tree tree_new(void)
{
    struct tree t;
    const char *tmp = getenv("TMPDIR");
    if (!tmp || strlen(tmp) > 40) tmp = access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm";
    snprintf(t.path, sizeof(t.path), "%.40s/stk-XXXXXX", tmp);
    CHECK(mkdtemp(t.path));
    return t;
}

static inline void tree_clear(int dir)
{
    DIR *d = fdopendir(dir);
    CHECK(d);
    for (const struct dirent *e; (e = readdir(d));) {
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..")) continue;
        if (unlinkat(dir, e->d_name, 0) == 0) continue;
        tree_clear(openat(dir, e->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        CHECK_EQ(unlinkat(dir, e->d_name, AT_REMOVEDIR), 0);
    }
    closedir(d);
}

static inline void tree_free(struct tree *t)
{
    tree_clear(open(t->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    CHECK_EQ(rmdir(t->path), 0);
}

/* "a/b/c": makes a and a/b; "a/" also a. */
static inline void tree_parents(int dir, char *name)
{
    for (char *slash = strchr(name, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        (void)mkdirat(dir, name, 0777);
        *slash = '/';
    }
}

static inline void tree_put_one(int dir, char *name)
{
    tree_parents(dir, name);
    const size_t len = strlen(name);
    char *target = strstr(name, "->");
    if (len && name[len - 1] == '/') return;
    if (target) {
        *target = 0;
        CHECK_EQ(symlinkat(target + 2, dir, name), 0);
    }
    else if (len && name[len - 1] == '|') {
        name[len - 1] = 0;
        CHECK_EQ(mkfifoat(dir, name, 0666), 0);
    }
    else {
        const int fd = openat(dir, name, O_CREAT | O_WRONLY | O_CLOEXEC, 0666);
        CHECK(fd >= 0);
        close(fd);
    }
}

static inline void tree_put(const struct tree *t, const char *names)
{
    const int dir = open(t->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(dir >= 0);
    while (*names) {
        char name[512];
        const size_t len = strcspn(names, " ");
        CHECK(len < sizeof(name));
        memcpy(name, names, len);
        name[len] = 0;
        if (len) tree_put_one(dir, name);
        names += len + (names[len] == ' ');
    }
    close(dir);
}

#endif /* STK_TESTS_TREE_H */
