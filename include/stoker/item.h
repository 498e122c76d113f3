/*
 * stk_item: one sample on its way through a run.
 *
 * An item has an identity (source, id, epoch) that never changes, and data that
 * each stage replaces.  Data comes in parts, one for each file of the sample
 * (image and mask, say), and behind them those that ops add; most samples have one part.  A part
 * holds nothing (its path is the data), bytes, or an array.  After a batch stage the item holds a
 * batch.
 *
 * Threads: one thread at a time: the engine hands an item to one op at a time.
 * Memory:  what getters return is borrowed, valid until the part is set again.
 */
#ifndef STK_ITEM_H
#define STK_ITEM_H

#include <stoker/batch.h>
#include <stoker/buffer.h>
#include <stoker/foreign.h>
#include <stoker/tensor.h>

STK_BEGIN

#define STK_MAX_PARTS 8

/* What an item holds between two stages. */
typedef enum stk_kind {
    STK_KIND_ANY = 0, /* in: takes everything; out: the same as it took */
    STK_KIND_KEY,     /* only a path or key: what sources give */
    STK_KIND_BYTES,
    STK_KIND_ARRAY,
    STK_KIND_BATCH,
    STK_KIND_FOREIGN,
} stk_kind;

STK_API const char *stk_kind_str(stk_kind kind);

typedef struct stk_item stk_item;
typedef struct stk_source stk_source;

/* Identity.  `id` is the sample's index in its source's listing, the same in every
 * epoch and on every rank; `index` counts what an expand op made of it, from 0. */
STK_API int64_t stk_item_id(const stk_item *item);
STK_API int64_t stk_item_epoch(const stk_item *item);
STK_API int64_t stk_item_index(const stk_item *item);
STK_API size_t stk_item_num_parts(const stk_item *item);

/* Identity, for sources to set in `next`; the number of parts also for ops that add some. */
STK_API void stk_item_set_id(stk_item *item, int64_t id, int64_t epoch);
STK_API STK_NODISCARD stk_err stk_item_set_num_parts(stk_item *item, size_t n);

/* Writes the path or key of one part, NUL-terminated, bytes as the file system has them.
 * STK_ELIMIT: `size` is too small (4096 is enough for paths); STK_ENOTFOUND: there is none. */
STK_API STK_NODISCARD stk_err stk_item_key(const stk_item *item, size_t part, char *dst,
                                           size_t size);

typedef enum stk_piece_form {
    STK_PIECE_PLAIN = 0,
    STK_PIECE_CHECKED,  /* with a CRC-32 */
    STK_PIECE_DEFLATED, /* the same, of what it stands for */
} stk_piece_form;

/* Where the bytes of one part lie inside a larger file. */
typedef struct stk_piece {
    const char *path;      /* of the file, borrowed from the source */
    uint64_t offset, size; /* of the bytes in it */
    stk_piece_form form;
    uint64_t unpacked; /* deflated: bytes that they stand for */
    uint32_t crc;
} stk_piece;

/* A `path` of NULL: the part is no piece, its key is the path of a file of its own.  An error: the
 * source knows of the sample, and that it cannot be read. */
STK_API STK_NODISCARD stk_err stk_item_piece(const stk_item *item, size_t part, stk_piece *out,
                                             stk_diag *diag);

/* What the source knows of the sample under that name: its type and shape to *spec, and the value,
 * of *bytes bytes, to dst; for strings (STK_DTYPE_NONE) a pointer that is borrowed from the source.
 * STK_ENOTFOUND: no such column; STK_ELIMIT: `size` is too small. */
STK_API STK_NODISCARD stk_err stk_item_column(const stk_item *item, const char *name,
                                              stk_spec *spec, void *dst, size_t size,
                                              size_t *bytes);

/* What is known of the sample from elsewhere, in place of what its source knows: the path or key of
 * a part (copied), and its label (copied; for strings, STK_DTYPE_NONE, `value` is the text).  Both
 * go with the sample into its batch, and when the item becomes another sample. */
STK_API STK_NODISCARD stk_err stk_item_set_key(stk_item *item, size_t part, const char *key);
STK_API STK_NODISCARD stk_err stk_item_set_label(stk_item *item, const stk_spec *spec,
                                                 const void *value);

/* Whose sample it is, borrowed; NULL behind a batch.  Becoming sample `id` of another source of the
 * same run, or another one of the same, is for ops that made the item's data from that of others.
 * STK_ENOTFOUND: it is no source of the run. */
STK_API stk_source *stk_item_source(const stk_item *item);
STK_API STK_NODISCARD stk_err stk_item_become(stk_item *item, stk_source *source, int64_t id);

/* Four random words for (seed of the source, epoch, id, index, stage, n): the same in every
 * run.  Of a batch the id is its number within its rank, and the seed is the source's for batches.
 * `n` selects one of 2^32 blocks of four. */
STK_API void stk_item_random(const stk_item *item, uint32_t n, uint32_t out[4]);

/* True when nobody wants the result any more: a long op may return STK_ECANCELLED. */
STK_API bool stk_item_cancelled(const stk_item *item);

/* The same for an op that waits for other descriptors: one that is readable from then on.  It is
 * the run's, and open until the op returns.  STK_EIO: the system has none to give; *out is -1. */
STK_API STK_NODISCARD stk_err stk_item_cancel_fd(stk_item *item, int *out, stk_diag *diag);

/* The bytes of a part, or NULL; set takes *bytes and drops whatever the part held. */
STK_API stk_buffer *stk_item_bytes(const stk_item *item, size_t part);
STK_API void stk_item_set_bytes(stk_item *item, size_t part, stk_buffer **bytes);

/* The array of a part; data is NULL when there is none. */
STK_API stk_tensor stk_item_array(const stk_item *item, size_t part);

/* Makes memory for the part's next array and describes it in *out: the sample's slot of its
 * batch where the plan could arrange that, memory of its own otherwise.  Uninitialised.
 * The part's bytes and its former array stay readable until stk_item_commit_array. */
STK_API STK_NODISCARD stk_err stk_item_new_array(stk_item *item, size_t part, const stk_spec *spec,
                                                 stk_tensor *out);
STK_API void stk_item_commit_array(stk_item *item, size_t part);

/* Uses memory of the caller's: takes one reference of *mem, which holds `t`. */
STK_API void stk_item_set_array(stk_item *item, size_t part, const stk_tensor *t, stk_buffer **mem);

/* What holds the memory of a part's array, borrowed; NULL: none, or the batch that is being made.
 */
STK_API stk_buffer *stk_item_array_buffer(const stk_item *item, size_t part);

/* The path that a route without a router sends the item down; behind a route in input order, that
 * which it came by. */
STK_API void stk_item_set_path(stk_item *item, size_t path);
STK_API size_t stk_item_path(const stk_item *item);

/* Behind a route in input order: whether more may follow of what the same input became on its path.
 * What a fold held back says so, too. */
STK_API bool stk_item_more(const stk_item *item);

/* The batch of an item behind a batch stage, or NULL. */
STK_API stk_batch *stk_item_batch(const stk_item *item);

/* Makes it such an item.  Takes *batch on success; one that others refer to is copied, its arrays
 * are not. */
STK_API STK_NODISCARD stk_err stk_item_set_batch(stk_item *item, stk_batch **batch);

/* Drops bytes, arrays, the batch and the foreign handle; who the sample is stays. */
STK_API void stk_item_clear(stk_item *item);

/* The foreign handle, or NULL; set takes *f and drops the one before; take gives the reference of
 * the item, which has none any more. */
STK_API stk_foreign *stk_item_foreign(const stk_item *item);
STK_API stk_foreign *stk_item_take_foreign(stk_item *item);
STK_API void stk_item_set_foreign(stk_item *item, stk_foreign **f);

/* Gives an item that a run handed out back.  Sets *item to NULL; &(stk_item *){NULL} is fine. */
STK_API void stk_item_free(stk_item **item);
/* The same for n items of one run. */
STK_API void stk_items_free(stk_item **items, size_t n);

STK_END

#endif /* STK_ITEM_H */
