/*
 * stk_batch: what a training step takes: n samples, field by field.
 *
 *     "image" (n, h, w, 3) uint8    "label" (n,) int64    "id" (n,) int64
 *     "substituted" (n,) bool       columns of the source    keys
 *
 * Each array field owns its memory on its own: it can be kept after the batch and
 * the run are gone, and goes back to the run's pool when the last owner drops it.
 *
 * Threads: any thread may read; ref and unref from any thread.
 */
#ifndef STK_BATCH_H
#define STK_BATCH_H

#include <stoker/buffer.h>
#include <stoker/tensor.h>

STK_BEGIN

typedef struct stk_batch stk_batch;

STK_API stk_batch *stk_batch_ref(stk_batch *b);
STK_API void stk_batch_unref(stk_batch **b);

/* Samples in it; may be fewer than planned (skipped samples), 0 only with keep_empty. */
STK_API size_t stk_batch_size(const stk_batch *b);

/* The epoch, and the number of the batch within it, both from 0. */
STK_API int64_t stk_batch_epoch(const stk_batch *b);
STK_API int64_t stk_batch_index(const stk_batch *b);

/* Fields by number; names are borrowed from the batch.  A field of strings has no array. */
STK_API size_t stk_batch_num_fields(const stk_batch *b);
STK_API const char *stk_batch_field_name(const stk_batch *b, size_t field);
STK_API bool stk_batch_field_is_strings(const stk_batch *b, size_t field);

/* The number of the field of that name, or -1. */
STK_API int stk_batch_find(const stk_batch *b, const char *name);

/* A view of a field, kept alive by *mem (one reference given; NULL to borrow from the batch).
 * STK_EINVAL: no such field, or one of strings. */
STK_API STK_NODISCARD stk_err stk_batch_array(const stk_batch *b, size_t field, stk_tensor *out,
                                              stk_buffer **mem);

/* One string of a field of strings, borrowed from the batch; NULL if out of range. */
STK_API const char *stk_batch_string(const stk_batch *b, size_t field, size_t i);

/* The path or key of sample i (its first part), as in stk_item_key. */
STK_API STK_NODISCARD stk_err stk_batch_key(const stk_batch *b, size_t i, char *dst, size_t size);

/* --- batches of one's own: whoever makes one adds what is in it before others have it --- */

typedef struct stk_batch_sample {
    int64_t id;
    bool substituted;
    const char *key; /* copied; NULL: none */
} stk_batch_sample;

/* A batch of n samples without fields. */
STK_API STK_NODISCARD stk_err stk_batch_make(const stk_batch_sample *samples, size_t n,
                                             int64_t epoch, int64_t index, stk_batch **out);

/* Adds a contiguous array of all samples, which begins at the first byte of *mem: takes that on
 * success.  STK_EINVAL: another extent than the batch's size, too few bytes, or a name that is
 * there.  STK_ELIMIT: too many fields. */
STK_API STK_NODISCARD stk_err stk_batch_put_array(stk_batch *b, const char *name,
                                                  const stk_spec *spec, stk_buffer **mem);

/* The same with a string of each sample, which are copied. */
STK_API STK_NODISCARD stk_err stk_batch_put_strings(stk_batch *b, const char *name,
                                                    const char *const *strings);

STK_END

#endif /* STK_BATCH_H */
