/*
 * stk_runs: which folder a sample's number belongs to.
 *
 * Folders that have files, in order of their first sample's number, in chunks that never move:
 *
 *     chunks  [0] 64 folders   [1] 128   [2] 256 ...
 *
 * Threads: one thread adds; any may search at the same time, and finds what was added before
 *          the number it looks for was handed out.
 */
#ifndef STK_SOURCE_RUNS_H
#define STK_SOURCE_RUNS_H

#include "source/folder.h"

#define STK_RUN_CHUNKS 40

typedef struct stk_runs {
    atomic_size_t num; /* released after what it counts */
    const stk_folder **chunks[STK_RUN_CHUNKS];
} stk_runs;

void stk_runs_fini(stk_runs *runs);

/* Adds f, which has files: f->first is the end of the run before. */
STK_NODISCARD stk_err stk_runs_add(stk_runs *runs, const stk_folder *f);

/* The folder of sample `id`; NULL: none of those that were added. */
const stk_folder *stk_runs_find(const stk_runs *runs, int64_t id);

/* Bytes held. */
size_t stk_runs_memory(const stk_runs *runs);

#endif /* STK_SOURCE_RUNS_H */
