/*
 * Sources over archives: shards whose members are samples.
 *
 * Members of one folder whose names are equal up to their first dot are one sample, as in
 * WebDataset:  0001.jpg, 0001.cls and 0001.json  are sample 0001.  In a tar archive they follow
 * each other; a zip archive has a directory, so there they may be anywhere.  A sample is numbered
 * by its place: shards in the order they are given, samples in that of their first members.
 *
 * Only headers are read when a run begins, in the background; then samples are pieces of files that
 * stk_op_read reads from their places.  So they have all that samples of a folder have: any order,
 * exact shuffles, ranks, substitutes.  A shard must not change meanwhile.
 */
#ifndef STK_SHARDS_H
#define STK_SHARDS_H

#include <stoker/source.h>

STK_BEGIN

/* What one part of a sample is: the member with one of these endings, without regard to case.  The
 * ending is what comes behind the name's first dot; where no member of the sample has it there,
 * what comes behind the last: "seg.png" finds 0001.seg.png, and so does "png" without a 0001.png.
 */
typedef struct stk_shard_part {
    const char *name; /* of the batch's field; NULL: "image" */
    /* separated by '|'; NULL: "jpg|jpeg|jpe|png|webp|avif|bmp|gif|tif|tiff" */
    const char *endings;
} stk_shard_part;

/* What a small member says of a sample; read when the shard is listed, at most 64 KiB. */
typedef struct stk_shard_column {
    const char *name; /* "label" becomes batch.label */
    const char *endings;
    bool is_text; /* a string, UTF-8 by custom; otherwise a whole number, as text, int64 */
} stk_shard_column;

typedef struct stk_shards_opts {
    size_t num_shards;
    const char *const *paths; /* of the archives */
    size_t num_parts;         /* 0: one, all defaults */
    const stk_shard_part *parts;
    size_t num_columns;
    const stk_shard_column *columns;
    int64_t samples_per_shard; /* that a whole one has, up to INT32_MAX; 0: not known */
    stk_order_opts order;
} stk_shards_opts;

/* Tar archives that are not compressed.  All is copied.  A sample that lacks a part or a column, or
 * has one twice, fails when it is read.
 *
 * So does what is lost of a shard, in its place, with the shard's path as the key of each.  Of one
 * that cannot be opened, or in which no sample is found, that is samples_per_shard samples; 0: as
 * many as shards that are whole have on average, at least 1, and no sample behind it can be read
 * before all shards are listed.  Of one that breaks off, samples_per_shard less those that were
 * found, at least 1; 0: 1.
 *
 * NULL: no memory, bad options; *diag says which (may be NULL). */
STK_API stk_source *stk_tar_source(const stk_shards_opts *opts, stk_diag *diag);

/* The same for zip archives, samples in the order of their first entries in the directory: stored
 * or deflated, with their CRC-32 checked.  An entry of another kind, encrypted say, fails alone. */
STK_API stk_source *stk_zip_source(const stk_shards_opts *opts, stk_diag *diag);

STK_END

#endif /* STK_SHARDS_H */
