/*
 * stk_shard: the samples of one archive: where their parts lie, and what their small members say.
 *
 * Threads: one thread fills a shard; what is filled never changes.
 * Memory:  24 bytes a sample, 40 for each part, 8 for each column, and its name.
 */
#ifndef STK_SOURCE_SHARD_H
#define STK_SOURCE_SHARD_H

#include <stoker/shards.h>

#define STK_SHARD_NONE UINT64_MAX
#define STK_SHARD_MAX_COLUMNS 64
#define STK_SHARD_MAX_VALUE ((size_t)64 << 10) /* bytes of a member that is a column */

/* What is looked for; borrowed. */
typedef struct stk_shard_spec {
    size_t num_parts, num_columns;
    const stk_shard_part *parts; /* complete: no defaults */
    const stk_shard_column *columns;
} stk_shard_spec;

typedef struct stk_shard_extent {
    uint64_t offset, size; /* size STK_SHARD_NONE: there is none */
    uint64_t unpacked;     /* as in stk_piece, as the next two */
    uint32_t crc;
    stk_piece_form form;
} stk_shard_extent;

/* Why something cannot be read; all zero: it can. */
typedef struct stk_shard_flaw {
    size_t text; /* in the pool */
    stk_err err; /* the same for programs */
    int os_error;
} stk_shard_flaw;

typedef struct stk_shard_sample {
    size_t name; /* in the pool: what its members have in common */
    stk_shard_flaw flaw;
} stk_shard_sample;

typedef struct stk_shard {
    const char *path; /* borrowed */
    size_t num, room;
    stk_shard_sample *samples;
    stk_shard_extent *extents; /* [room][num_parts] */
    size_t *endings;           /* [room][num_parts]: of the members' names, in the pool */
    int64_t *values;           /* [room][num_columns]: a number, or the text's place in the pool */
    char *pool;                /* strings, each with its NUL; begins with an empty one */
    size_t pool_size, pool_room;
    struct stk_shard_field *fields; /* of the last sample; gone behind the end */
    bool broken;                    /* the last sample stands for what could not be listed */

    /* The source's own. */
    bool listed;
    size_t lost;   /* broken: samples that its last one counts as, at least 1; else 0 */
    int64_t first; /* the index of its first sample */
} stk_shard;

/* A member of an archive. */
typedef struct stk_shard_member {
    const char *name; /* not terminated */
    size_t name_size;
    stk_shard_extent at;
    size_t index;         /* the archive's own number of it */
    const stk_diag *flaw; /* why it cannot be read; NULL: it can */
} stk_shard_member;

/* Reads what a member holds, or stands for. */
typedef stk_err stk_shard_read_fn(void *ctx, const stk_shard_member *m, void *dst, stk_diag *diag);

/* How much of a member's name is that of its sample; 0: it belongs to none. */
size_t stk_shard_stem(const char *name, size_t size);

/* Adds a regular member, in the archive's order; `read` is for those of columns.  STK_ENOMEM and
 * STK_ECANCELLED, also from `read`; what else `read` says is the sample's flaw. */
STK_NODISCARD stk_err stk_shard_add(stk_shard *s, const stk_shard_spec *spec,
                                    const stk_shard_member *m, stk_shard_read_fn *read, void *ctx);

/* Behind the last member: *why is what ended it early, or NULL; then that is a sample, too. */
STK_NODISCARD stk_err stk_shard_end(stk_shard *s, const stk_shard_spec *spec, const stk_diag *why);

/* Puts the shard's path before what *diag says, unless it is in there. */
void stk_shard_name(const stk_shard *s, stk_diag *diag);

void stk_shard_fini(stk_shard *s);
size_t stk_shard_memory(const stk_shard *s, const stk_shard_spec *spec);

#endif /* STK_SOURCE_SHARD_H */
