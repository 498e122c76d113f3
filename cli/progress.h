/*
 * progress: one line on a terminal that tells how far a run is; nothing where stderr is no
 * terminal.
 */
#ifndef STK_CLI_PROGRESS_H
#define STK_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct progress {
    bool terminal;
    int64_t started; /* ns, monotonic */
    int64_t shown;
} progress;

/* Nanoseconds of the monotonic clock. */
int64_t progress_clock(void);

void progress_init(progress *p);

/* Shows it, at most ten times a second.  `total` < 0: not known.  `noun`: of one of them. */
void progress_show(progress *p, const char *noun, int64_t done, int64_t total);

/* Wipes the line. */
void progress_fini(progress *p);

#endif /* STK_CLI_PROGRESS_H */
