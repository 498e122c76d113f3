/*
 * The making of an stk_batch: the one thread that builds or changes a batch adds fields to it;
 * from the moment a reader has it, it never changes.
 *
 * Threads: one, until the batch is handed on.
 */
#ifndef STK_DATA_BATCH_H
#define STK_DATA_BATCH_H

#include <stoker/batch.h>
#include <stoker/source.h>

#include "data/slab.h"

#define STK_MAX_FIELDS 64 /* of one batch, with id and substituted */

typedef struct stk_batch_params {
    size_t capacity; /* samples that will fit */
    int64_t epoch, index;
    stk_slab_pool *pool; /* kept alive by the batch */
} stk_batch_params;

STK_NODISCARD stk_err stk_batch_new(const stk_batch_params *params, stk_batch **out);

/* Names of fields and attributes that every batch has. */
bool stk_batch_has_always(const char *name);

/* Adds one sample; the batch keeps `source` (may be NULL) alive for its keys. */
STK_NODISCARD stk_err stk_batch_add_sample(stk_batch *b, stk_source *source, int64_t id,
                                           bool substituted);

/* Identity of sample i. */
stk_source *stk_batch_source(const stk_batch *b, size_t i);
int64_t stk_batch_id(const stk_batch *b, size_t i);
bool stk_batch_substituted(const stk_batch *b, size_t i);

/* Adds a field of `spec` (all samples together: shape[0] is the number of samples).  Takes *mem,
 * whose bytes are the array.  STK_ELIMIT: STK_MAX_FIELDS.  *diag (may be NULL) names the field. */
STK_NODISCARD stk_err stk_batch_add_array(stk_batch *b, const char *name, const stk_spec *spec,
                                          stk_buffer **mem, stk_diag *diag);

/* Adds a field of strings, borrowed from the samples' sources; failures are the same. */
STK_NODISCARD stk_err stk_batch_add_strings(stk_batch *b, const char *name,
                                            const char *const *strings, stk_diag *diag);
/* The same with copies of them. */
STK_NODISCARD stk_err stk_batch_copy_strings(stk_batch *b, const char *name,
                                             const char *const *strings, stk_diag *diag);

/* Gives sample i another key (copied) than its source's; own_key is NULL where none was given. */
STK_NODISCARD stk_err stk_batch_set_key(stk_batch *b, size_t i, const char *key);
const char *stk_batch_own_key(const stk_batch *b, size_t i);

/* Makes *b one that nobody else refers to, and that may be changed: if others do, a copy, whose
 * arrays are shared.  STK_ENOMEM: *b is as it was. */
STK_NODISCARD stk_err stk_batch_own(stk_batch **b);

/* Puts another array in the place of a field's.  Takes *mem on success. */
STK_NODISCARD stk_err stk_batch_replace_array(stk_batch *b, size_t field, const stk_spec *spec,
                                              stk_buffer **mem);

/* Puts copies of other strings in the place of a field's.  On failure it is as it was. */
STK_NODISCARD stk_err stk_batch_replace_strings(stk_batch *b, size_t field,
                                                const char *const *strings);

/* A field's array, to write to; NULL where others refer to its memory, too, or it has none. */
uint8_t *stk_batch_writable(stk_batch *b, size_t field);

/* Where memory for new fields comes from.  Borrowed. */
stk_slab_pool *stk_batch_pool(const stk_batch *b);

#endif /* STK_DATA_BATCH_H */
