/*
 * The inside of stk_executor: how runs get its threads.
 *
 *     run ──wake──► demand ──► an idle worker ──► client->work(...) until there is no more
 *
 * A client says that it could use one more worker (wake); a worker that comes calls `work`, which
 * takes what is ready and returns when nothing is.  Clients take turns.
 *
 * Threads: any, unless said otherwise.
 */
#ifndef STK_EXEC_POOL_H
#define STK_EXEC_POOL_H

#include <stoker/executor.h>

typedef struct stk_client {
    /* Called by worker number `worker` without locks.  Returns true if it stopped only because
     * others wait (stk_executor_contended). */
    bool (*work)(struct stk_client *client, int32_t worker);

    /* Called once, without locks, when the client was detached and no worker is inside. */
    void (*gone)(struct stk_client *client);

    /* The executor's own. */
    struct stk_client *next;
    int32_t demand; /* workers asked for that have not come */
    int32_t inside; /* workers in `work` */
    bool queued, detached;
} stk_client;

/* Asks for one more worker; does nothing for a detached client.  Makes a thread where none is idle
 * and there are fewer than num_threads: the caller keeps the executor alive. */
void stk_executor_wake(stk_executor *ex, stk_client *client);

/* Threads that the executor does without, because the system had none to give when one was needed;
 * 0: it has had all it needed so far.  It does not ask again. */
int32_t stk_executor_refused(const stk_executor *ex);

/* Other clients wait for a worker. */
bool stk_executor_contended(stk_executor *ex);

/* No worker enters `client` any more; `gone` follows, perhaps before this returns.  Once.  The
 * caller keeps the executor alive until then. */
void stk_executor_detach(stk_executor *ex, stk_client *client);

/* Processors that this thread may run on: 1 to STK_MAX_THREADS. */
int32_t stk_usable_processors(void);

#endif /* STK_EXEC_POOL_H */
