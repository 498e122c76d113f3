/*
 * Ports for tests: a thread that serves one port of a run, and waits for its news.
 */
#ifndef STK_TESTS_ENGINE_PORTS_H
#define STK_TESTS_ENGINE_PORTS_H

#include <stoker/port.h>

#include "tests/engine/lanes.h"

typedef struct kit_port {
    stk_run *run;
    size_t index;          /* of the stage */
    void (*serve)(void *); /* in a thread; then the port is closed */
    void *ctx;
    int64_t epochs; /* marks that were put */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int64_t news, seen;
} kit_port;

/* Starts the plan, which it gives up, with two threads, and the one that serves. */
void kit_port_start(kit_port *p, stk_plan *plan, bool epoch_ends);
/* Cancels the run, waits for the thread and frees the run. */
void kit_port_end(kit_port *p);

/* stk_run_set_notify with this and the port, and the wait for it. */
void kit_port_hear(void *ctx);
void kit_port_await(kit_port *p);

/* Waits as long as there is nothing to take. */
stk_err kit_port_take(kit_port *p, size_t input, size_t max, stk_item **items, size_t *n);
/* Puts all of them; false: the stage is over, and what is left was given back. */
bool kit_port_put(kit_port *p, stk_item **items, size_t n);
bool kit_port_mark(kit_port *p);

/* Reads at most `max` results: ids, or KIT_EPOCH_END for a mark. */
size_t kit_port_read(kit_port *p, int64_t *ids, size_t max, stk_err *end, stk_diag *diag);

#endif /* STK_TESTS_ENGINE_PORTS_H */
