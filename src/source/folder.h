/*
 * stk_folder: one folder of a listing: its files that match, and its folders.
 *
 * Folders form a tree; each knows its parent, so that paths are composed and not stored.
 *
 * Threads: one thread scans a folder and touches nothing but it; its parents are complete by
 *          then.  What is scanned never changes.
 */
#ifndef STK_SOURCE_FOLDER_H
#define STK_SOURCE_FOLDER_H

#include <stdatomic.h>
#include <sys/types.h>

#include "source/glob.h"
#include "source/names.h"

typedef struct stk_folder {
    struct stk_folder *parent; /* NULL: the root */
    const char *name;          /* borrowed from the parent's kid_names; the root: its path */
    int64_t label;             /* number of the first-level folder; the root: -1 */

    /* Set by the scan. */
    dev_t dev;
    ino_t ino;
    stk_names files;
    stk_names kid_names;
    struct stk_folder *kids; /* [num_kids], in order */
    uint32_t num_kids;

    /* The listing's own. */
    uint32_t num_taken;       /* kids that a thread has begun to scan */
    struct stk_folder *below; /* the next of the stack of folders with kids to take */
    int64_t first;            /* the index of the first file */
    bool scanned;
    stk_err err;   /* why the scan failed */
    stk_diag *why; /* the same in words; NULL: no memory for them */
} stk_folder;

/* How to scan; all borrowed. */
typedef struct stk_scan {
    const stk_glob *glob;
    bool flat;               /* folders are left out */
    bool no_follow;          /* links are left out */
    const atomic_bool *stop; /* true: STK_ECANCELLED */
    void *buffer;            /* of STK_SCAN_BUFFER bytes, aligned for any type */
} stk_scan;

#define STK_SCAN_BUFFER ((size_t)1 << 16)
#define STK_MAX_PATH 4096 /* with its NUL */

/* Fills in what a scan sets; on failure *diag names the folder or the entry that is to blame. */
STK_NODISCARD stk_err stk_folder_scan(stk_folder *f, const stk_scan *scan, stk_diag *diag);

/* Writes the path of `name` in f, of f itself for NULL.  STK_ELIMIT: `size` is too small. */
STK_NODISCARD stk_err stk_folder_path(const stk_folder *f, const char *name, char *dst,
                                      size_t size);

/* The folder after f, depth first, parents before their kids; NULL: f was the last. */
stk_folder *stk_folder_next(stk_folder *f);

/* Lets go of all below f and of what f holds; f itself is the caller's. */
void stk_folder_fini(stk_folder *f);

/* Bytes of f, without its kids' contents. */
size_t stk_folder_memory(const stk_folder *f);

#endif /* STK_SOURCE_FOLDER_H */
