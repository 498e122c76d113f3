/*
 * stk_progress: how many samples a source has found so far, for those who wait for more.
 *
 * A source finds its samples in the background, and holds the lock while it changes anything here.
 * Where samples are complete, nothing changes any more, and readers need no lock.
 *
 * Threads: functions that end with _locked need the lock, all others must not have it.
 */
#ifndef STK_SOURCE_PROGRESS_H
#define STK_SOURCE_PROGRESS_H

#include <stdatomic.h>

#include "base/thread.h"
#include "source/indexed.h"

typedef struct stk_progress stk_progress;

struct stk_progress {
    const char *name;                     /* of what the samples are in, for messages; borrowed */
    void (*help_locked)(stk_progress *p); /* more is wanted than before */
    atomic_bool started;                  /* set under the lock; `generation` is fixed by then */
    unsigned generation;                  /* of forks */
    atomic_bool stop;     /* set under the lock: those who look for samples should end */
    atomic_bool complete; /* the same; all is there and nothing changes any more */

    stk_mutex lock;        /* guards everything below */
    stk_cond work;         /* something to look for, or `stop` */
    stk_cond news;         /* more samples, or all, or a failure; a watcher was woken */
    int64_t available;     /* samples [0, available) can be read */
    int64_t demand;        /* readers want, or wanted, as many */
    stk_watcher *watchers; /* the armed ones */
    stk_err err;
    stk_diag diag;
};

STK_NODISCARD stk_err stk_progress_init(stk_progress *p, const char *name,
                                        void (*help_locked)(stk_progress *p));
void stk_progress_fini(stk_progress *p);

/* In a child of fork, whose parent looked for samples: the threads did not come along. */
bool stk_progress_is_forked(const stk_progress *p);
bool stk_progress_is_complete(const stk_progress *p);
bool stk_progress_stopped(const stk_progress *p);
void stk_progress_stop(stk_progress *p);
stk_err stk_progress_refuse_child(const stk_progress *p, stk_diag *diag);

/* The first failure stays.  `diag` may be NULL: no memory for the words. */
void stk_progress_fail_locked(stk_progress *p, stk_err err, const stk_diag *diag)
    STK_REQUIRES(p->lock);
void stk_progress_complete_locked(stk_progress *p) STK_REQUIRES(p->lock);

/* Tells those who waited for what is there now.  Lets the lock go for each call. */
void stk_progress_wake_locked(stk_progress *p) STK_REQUIRES(p->lock);

/* As in stk_indexed_ops. */
STK_NODISCARD stk_err stk_progress_look(stk_progress *p, int64_t wanted, stk_watcher *w,
                                        stk_look *out, stk_diag *diag);
void stk_progress_forget(stk_progress *p, stk_watcher *w);

/* Waits for all, or until *is_there, which may be NULL; *count samples are there then. */
STK_NODISCARD stk_err stk_progress_wait(stk_progress *p, const bool *is_there, int64_t *count,
                                        stk_diag *diag);

#endif /* STK_SOURCE_PROGRESS_H */
