/*
 * stk_source: where samples come from, in which order, and what is known of each.
 *
 * A source is a description that many runs may use at once; a run opens a cursor on it.
 * The order is decided here, before any work starts: the engine's threads only fill slots.
 *
 * Threads: a cursor is used by one thread at a time; authors need no locks there.  `column`,
 *          `key` and `length` may be called from any thread at any time.
 */
#ifndef STK_SOURCE_H
#define STK_SOURCE_H

#include <stoker/item.h>

STK_BEGIN

/* What is known of every sample besides its files: "label", or a column of the user's. */
typedef struct stk_column {
    const char *name;
    stk_spec spec; /* of one sample: ndim 0 for a number.  STK_DTYPE_NONE: strings */
} stk_column;

/* What the run offers to a cursor. */
typedef struct stk_source_env {
    void (*wake)(void *ctx); /* any thread, no locks held: `next` has news after STK_EAGAIN */
    void *ctx;
} stk_source_env;

typedef struct stk_source_class {
    const char *name;
    uint64_t (*seed)(const void *params); /* NULL: 0 */
    /* For ops of batches, which are numbered within a rank; NULL: the same. */
    uint64_t (*batch_seed)(const void *params);

    /* One pass over all epochs; copies *env. */
    stk_err (*open)(void *params, const stk_source_env *env, void **cursor, stk_diag *diag);
    void (*close)(void *cursor); /* no `wake` after it returned */

    /* Makes `item` the next sample (stk_item_set_id).  STK_EEPOCH: an epoch has ended (also
     * the last).  STK_EEND: all have.  STK_EAGAIN: not known yet, `wake` follows; must not
     * block.  STK_ENOTFOUND: a planned position without a sample, a gap that keeps ranks
     * level.  Anything else ends the run with an error. */
    stk_err (*next)(void *cursor, stk_item *item, stk_diag *diag);

    /* Makes `item` another sample of the same shard and epoch, the same for each (id, epoch,
     * attempt); an id of -1 is a planned position without a sample.  Any thread, also while
     * `next` runs.  NULL: cannot; STK_EEND: there is none. */
    stk_err (*substitute)(void *cursor, stk_item *item, int64_t id, int64_t epoch, int attempt);

    /* Items of one epoch of this rank, or -1 while unknown. */
    int64_t (*length)(void *params);
    int64_t (*epochs)(void *params); /* -1: endless */

    /* Names and types: fixed before open.  NULL: none. */
    const stk_column *(*columns)(void *params, size_t *n);
    /* Sample `id`'s value: bytes of the spec to dst, or, for strings, a pointer (borrowed from
     * the source) to *(const char **)dst. */
    stk_err (*column)(void *params, size_t column, int64_t id, void *dst);
    /* As stk_item_key.  NULL: samples have no keys. */
    stk_err (*key)(void *params, int64_t id, size_t part, char *dst, size_t size);

    /* As stk_item_piece; any thread.  NULL: keys are paths of files. */
    stk_err (*piece)(void *params, int64_t id, size_t part, stk_piece *out, stk_diag *diag);

    /* Parts of a sample and their field names ("image"); NULL: one part called "image". */
    const char *const *(*parts)(void *params, size_t *n);

    /* What its items hold.  STK_KIND_ANY: STK_KIND_KEY. */
    stk_kind out;

    void (*fini)(void *params); /* may be NULL */
    /* "Directory(train, 2000 samples)" for people; NULL: the name. */
    void (*print)(void *params, char *dst, size_t size);
    bool reproducible; /* same parameters and data, same order */
} stk_source_class;

/* Takes `params`.  NULL: no memory (params are gone). */
STK_API stk_source *stk_source_new(const stk_source_class *cls, void *params);
STK_API stk_source *stk_source_ref(stk_source *s);
STK_API void stk_source_unref(stk_source **s);
STK_API const stk_source_class *stk_source_get_class(const stk_source *s);
STK_API void *stk_source_params(const stk_source *s);

/* The order of what a listing holds; zero values are the defaults.  Ranks are disjoint, cover
 * all and make equal steps: ceil(samples / world_size) an epoch; where one has no sample for its
 * last step, that is a gap.  A substitute waits until the listing is complete. */
typedef struct stk_order_opts {
    bool shuffle;       /* a keyed permutation of each epoch: no memory, no start-up time */
    uint64_t seed;      /* of the shuffle, and of every random op behind the source; of batches
                           together with the rank, so that ranks draw differently */
    int64_t rank;       /* < world_size: this run takes positions rank, rank + world_size, ... */
    int64_t world_size; /* 0: 1 */
    int64_t epochs;     /* 0: 1; -1: endless */
} stk_order_opts;

typedef enum stk_labels {
    STK_LABELS_NONE = 0, /* no "label" field */
    STK_LABELS_DIR,      /* int64: the number of the first-level folder, byte-wise sorted */
} stk_labels;

typedef struct stk_dir_opts {
    stk_labels labels;
    const char *pattern; /* * ? [a-z] \ on bytes of names, several with '|'; NULL: image endings,
                            any case */
    bool flat;           /* true: only the folder itself, not what is below it */
    bool no_follow;      /* true: symbolic links are left out */
    stk_order_opts order;
} stk_dir_opts;

/* Every file under `path` (copied) whose name matches.  Listing order: names sorted byte by byte in
 * each folder (as LC_ALL=C sort), depth first, files before folders.  Listing begins when a run
 * opens it, in the background, and is shared by all later runs, a failure as well.  Links are
 * followed, but not to a folder above; what matches and is no folder is a sample, also what cannot
 * be read: dead links, FIFOs.  A folder that cannot be listed ends the run behind what comes
 * before it, as does a listing without samples, or with labels a file in `path` itself.
 * NULL: no memory, bad options; *diag says which (may be NULL). */
STK_API stk_source *stk_dir_source(const char *path, const stk_dir_opts *opts, stk_diag *diag);

/* Class names of STK_LABELS_DIR, once listed: first-level folders in order; waits for the first
 * level only.  STK_EINVAL: not a directory source, or without labels.  Name `i` is borrowed from
 * the source. */
STK_API STK_NODISCARD stk_err stk_dir_source_classes(stk_source *s, size_t *n, stk_diag *diag);
STK_API const char *stk_dir_source_class(stk_source *s, size_t i);

/* Waits until the listing is complete; *n is the number of samples on all ranks. */
STK_API STK_NODISCARD stk_err stk_source_count(stk_source *s, int64_t *n, stk_diag *diag);

/* Bytes that the listing holds, names included: about 26 a sample for names as ImageNet's. */
STK_API size_t stk_source_memory(const stk_source *s);

/* One column of a list source: `data` is n contiguous values of `spec`, or for strings
 * (STK_DTYPE_NONE) n pointers (const char *const *). Copied. */
typedef struct stk_list_column {
    const char *name;
    stk_spec spec;
    const void *data;
} stk_list_column;

typedef struct stk_list_opts {
    size_t num_samples;
    size_t num_parts;                /* 0: 1 */
    const char *const *part_names;   /* [num_parts], NULL: "image" (only with one part) */
    const char *const *const *paths; /* [num_parts][num_samples], copied */
    size_t num_columns;              /* 62 at most, less the parts: more do not fit into a batch */
    const stk_list_column *columns;  /* a column called "label" becomes batch.label */
    stk_order_opts order;
} stk_list_opts;

STK_API stk_source *stk_list_source(const stk_list_opts *opts, stk_diag *diag);

STK_END

#endif /* STK_SOURCE_H */
