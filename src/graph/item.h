/* The inside of stk_item, for the engine alone. */
#ifndef STK_GRAPH_ITEM_H
#define STK_GRAPH_ITEM_H

#include <stoker/item.h>
#include <stoker/source.h>
#include <stoker/stats.h>

typedef enum item_state {
    ITEM_VALUE,
    ITEM_GAP,   /* a planned place whose sample was skipped, or never was */
    ITEM_ERROR, /* ends the run when it reaches the reader */
    ITEM_MARK,  /* the end of an epoch */
} item_state;

/* One thing that went wrong with a sample, until it is counted in order. */
typedef struct failure {
    struct failure *next;
    struct stage *stage;
    stk_failure what; /* `cause` is a reference */
} failure;

/* A value that was given in place of a source's. */
typedef struct label {
    stk_spec spec;
    void *value; /* heap, its bytes; of a string its text.  NULL: none was given */
} label;

typedef struct part {
    char *key; /* given in place of the source's; NULL: none was */
    stk_buffer *bytes;
    stk_tensor array; /* data NULL: none */
    stk_buffer *mem;  /* of the array; NULL with data: it is in its slot of the batch */
    stk_tensor next;  /* made by stk_item_new_array, not committed */
    stk_buffer *next_mem;
} part;

struct stk_item {
    struct stk_run *run; /* whose pool it came from */
    stk_item *link;      /* of the list it is in */
    item_state state;
    stk_source *source; /* borrowed from the plan; NULL behind a batch */
    int64_t id, epoch, index;
    uint64_t seq;        /* place on its edge; of what a port holds: what was taken before it */
    struct node *taker;  /* the port that took it and waits for it */
    uint64_t passed;     /* bit i: stage i ran it */
    struct stage *stage; /* that runs it, for random numbers and slots */
    failure *failures;
    struct assembly *assembly; /* where its slot is; NULL: not planned.  One reference. */
    size_t slot;
    bool padding; /* a gap that no sample ever had */
    bool substituted;
    bool is_batch;   /* id is the number of the batch */
    bool closing;    /* a gap that ends the results of one input, and is no place itself */
    uint64_t more;   /* bit d: not the last result of what went into the route at depth d */
    size_t path;     /* of a route */
    bool unfinished; /* behind a join in input order: its bit of `more` */
    label label;
    stk_batch *batch;
    stk_foreign *foreign;
    size_t num_parts;
    part parts[]; /* room for the most that a source of the run has */
};

size_t item_size(size_t max_parts);

/* Drops what the item carries; identity, place and slot stay. */
void item_clear_data(stk_item *item);

/* identity.c: drops what was given in place of what its source knows; copies it. */
void item_forget(stk_item *item);
STK_NODISCARD stk_err item_inherit(stk_item *item, const stk_item *from);

void failure_free(failure **list);

#endif /* STK_GRAPH_ITEM_H */
