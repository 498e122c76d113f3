/*
 * stk_listing: the names of all files under a folder, found in the background.
 *
 *     root ─┬─ a ─┬─ a/x      threads (at most 8, as many as have work) scan folders in any
 *           │     └─ a/y      order and take the next of the final order first;
 *           └─ b              what they found is released in that order:  root a a/x a/y b
 *
 * A file's index is its place in the released order: names sorted byte by byte in each folder,
 * a folder's files before its folders.  A failure is released in its place, too: it ends the
 * listing, after the files of all folders before it.
 *
 * Where readers need no total (in_order), threads find names ahead of what was asked for, at least
 * 1,024 and at most 65,536 of them and what is in the folders being scanned, and then wait until
 * more is asked for.  Who asks for all (INT64_MAX, or stk_listing_wait) gets all at once.
 *
 * The failpoint "dir.list" is hit when it is a folder's turn to be released, the root first.
 *
 * Threads: any; stk_listing_free must be the last call.
 * Memory:  26 bytes a sample for names as ImageNet's ("n01440764_10026.JPEG", 1,300 in a
 *          folder): the name, its NUL, 4 bytes for its place, and the folder's share.
 */
#ifndef STK_SOURCE_LISTING_H
#define STK_SOURCE_LISTING_H

#include "source/folder.h"
#include "source/indexed.h"

typedef struct stk_listing stk_listing;

#define STK_MAX_LIST_THREADS 8

typedef struct stk_listing_opts {
    const char *path;
    const char *pattern; /* as stk_glob_new */
    bool labels;         /* a file outside of any first-level folder is an error */
    bool flat, no_follow;
    bool in_order; /* readers need no total to begin: stay only somewhat ahead of them */
} stk_listing_opts;

/* Copies the strings; starts nothing. */
STK_NODISCARD stk_err stk_listing_new(const stk_listing_opts *opts, stk_listing **out,
                                      stk_diag *diag);

/* Ends it promptly, also in the middle.  In a child of fork, a listing that the parent began is
 * left alone. */
void stk_listing_free(stk_listing **l);

/* Does nothing the second time.  STK_ENOTFOUND: there is no folder of that path. */
STK_NODISCARD stk_err stk_listing_start(stk_listing *l, stk_diag *diag);

/* As in stk_indexed_ops. */
STK_NODISCARD stk_err stk_listing_look(stk_listing *l, int64_t wanted, stk_watcher *w,
                                       stk_look *out, stk_diag *diag);
void stk_listing_forget(stk_listing *l, stk_watcher *w);
STK_NODISCARD stk_err stk_listing_wait(stk_listing *l, int64_t *count, stk_diag *diag);

/* Waits for the first level only; its folders are the kids of *root, borrowed. */
STK_NODISCARD stk_err stk_listing_wait_root(stk_listing *l, const stk_folder **root,
                                            stk_diag *diag);

/* The folder of sample `id`, and the number of the file in it; NULL: not released yet. */
const stk_folder *stk_listing_find(const stk_listing *l, int64_t id, size_t *file);

size_t stk_listing_memory(const stk_listing *l);
const char *stk_listing_path(const stk_listing *l);

#endif /* STK_SOURCE_LISTING_H */
