/*
 * edge: the bounded queue between two nodes of a run: a window over a sequence.
 *
 *            low                     low + window
 *     taken ──┤ R . T R R . .  ────────┤ no credit      R ready, T taken, . on its way
 *
 * Every result has a place in the sequence of its edge.  A producer may begin the result of place
 * s only while s < low + window: that is the credit, and since the oldest place always has it, a
 * pipeline cannot stop on its own order.  A consumer takes either the oldest place only (in turn)
 * or the oldest result that is there.
 *
 * Threads: the run's lock guards everything.
 */
#ifndef STK_GRAPH_EDGE_H
#define STK_GRAPH_EDGE_H

#include <stoker/plan.h>
#include <stoker/stats.h>

#include "graph/item.h"

#define EDGE_RING 1024 /* the largest window that the engine chooses */

typedef struct edge {
    char name[2 * STK_NAME_SIZE];
    struct node *from, *to;
    bool fixed;        /* the user chose the window */
    bool adaptive;     /* grows when it was full and then ran empty, see edge_take */
    struct node *bind; /* a batch node that the places lead to one by one, or NULL */

    uint32_t size; /* of the ring: a multiple of 64; never changes */
    uint32_t window;
    uint32_t later;    /* the window from the first result on, where that is wider */
    uint64_t limit;    /* no credit from this place on; 0: none */
    uint64_t low;      /* the oldest place that was not taken */
    uint64_t next;     /* the place after the last one that has a result */
    uint64_t reserved; /* begun results whose place is not decided yet */
    uint64_t end;      /* closed: the number of places */
    bool closed;
    uint32_t len;  /* results that are there */
    bool was_full; /* since it last grew */
    bool starved; /* was full, then ran empty: both ends are quick, so the window is what holds them
                   */
    stk_item **ring; /* [size] */
    uint64_t *ready, *taken;

    uint64_t puts, gets;
    uint64_t asked_gets; /* when a wider window was asked for last */
    int64_t asked_ns;
    double filled_ns, full_ns, empty_ns; /* integrals over time */
    struct waits {
        int64_t all_ns, now_ns; /* waited so far; of that, the wait that goes on */
        stk_times times;        /* of waits that are over */
    } put, get;
} edge;

/* Memory for windows up to `most`; STK_ENOMEM. */
STK_NODISCARD stk_err edge_init(edge *e, size_t most);
void edge_fini(edge *e);

/* Credit for place `seq`; for a place that is decided at the end of the work. */
bool edge_room_at(const edge *e, uint64_t seq);
bool edge_room(const edge *e);

/* Takes the item.  The place must have credit and no result. */
void edge_put(edge *e, stk_item *item, uint64_t seq);
/* Puts at the next place. */
void edge_append(edge *e, stk_item *item);

/* The oldest result, if it is at the oldest place; NULL otherwise.  peek leaves it there. */
stk_item *edge_peek(const edge *e);
stk_item *edge_take(edge *e);
/* The oldest result at a place below `limit`, whatever is missing before it; NULL: none. */
stk_item *edge_take_any(edge *e, uint64_t limit);
bool edge_any_below(const edge *e, uint64_t limit);

/* No place at or after `end` gets a result. */
void edge_close(edge *e, uint64_t end);
/* Closed, and everything was taken. */
bool edge_done(const edge *e);

/* Counts `dt` ns of the present filling. */
void edge_tick(edge *e, double dt);
/* Counts `dt` ns in which one end has waited, or has not. */
void waits_tick(struct waits *w, bool waiting, int64_t dt);

#endif /* STK_GRAPH_EDGE_H */
