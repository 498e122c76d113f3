/*
 * stk_shards: a source over archives, which kind of them a function knows.
 *
 *     shards ─┬─ a.tar      threads list them in any order, the first ones first; what they found
 *             ├─ b.tar      is released in the order of the shards
 *             └─ c.tar
 *
 * Where readers need no total, threads stay a few shards ahead of them.
 *
 *     a broken shard:  found, found, lost, lost, lost, ...
 *
 * What is lost has places of its own, all with one flaw: so orders, ranks, substitutes and limits
 * on failures treat it as what it is.  Where its number is to be that of other shards, nothing is
 * released from there on until all of them are listed.
 *
 * Threads: as stk_source_class.
 */
#ifndef STK_SOURCE_SHARDS_H
#define STK_SOURCE_SHARDS_H

#include <stdatomic.h>

#include "source/shard.h"

/* Adds all members of the archive s->path.  `stop`: STK_ECANCELLED soon.  STK_ENOMEM; any other
 * failure stands for the rest of the shard. */
typedef stk_err stk_shards_list_fn(stk_shard *s, const stk_shard_spec *spec,
                                   const atomic_bool *stop, stk_diag *diag);

/* `name`: of the class, "Tar"; it must live on. */
stk_source *stk_shards_source(const char *name, stk_shards_list_fn *list,
                              const stk_shards_opts *opts, stk_diag *diag);

#endif /* STK_SOURCE_SHARDS_H */
