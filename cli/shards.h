/* Archives that the command line names: one, or all of a folder that holds nothing else to load. */
#ifndef STK_CLI_SHARDS_H
#define STK_CLI_SHARDS_H

#include <stoker/shards.h>

#include "kind.h"

typedef struct shard_list {
    char **paths; /* sorted byte by byte */
    size_t num, room;
    bool zip;
} shard_list;

/* num stays 0: `path` is no archive, nor a folder with archives and neither images nor folders. */
stk_err shard_list_find(shard_list *l, const char *path, stk_diag *diag);

/* Counts the first members of the first archive that has any of a kind.  Archives that cannot be
 * read count nothing: whoever opens them says why. */
void shard_list_count(const shard_list *l, kind_counts *out);

/* Each sample is a member of that kind. */
stk_source *shard_list_open(const shard_list *l, sample_kind kind, const stk_order_opts *order,
                            stk_diag *diag);
void shard_list_fini(shard_list *l);

#endif /* STK_CLI_SHARDS_H */
