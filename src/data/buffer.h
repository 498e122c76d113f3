/*
 * The inside of stk_buffer, for those who use a buffer's memory again.
 *
 * Threads, Memory: as in <stoker/buffer.h>.
 */
#ifndef STK_DATA_BUFFER_H
#define STK_DATA_BUFFER_H

#include <stdalign.h>
#include <stdatomic.h>

#include <stoker/buffer.h>

/* Takes a buffer whose last reference is gone, header and bytes, to free it or to
 * hand it out again.  Runs on whichever thread dropped the reference. */
typedef void stk_buffer_recycle_fn(stk_buffer *buf);

struct stk_buffer {
    atomic_size_t refs;
    uint8_t *data;
    size_t size;

    /* How to let go: at most one of these three is set. */
    stk_buffer *parent; /* a slice: a reference to what it views */
    stk_release_fn *release;
    stk_buffer_recycle_fn *recycle;
    void *ctx;       /* of release or recycle */
    size_t capacity; /* bytes in `own` */

    /* The bytes, unless they are somebody else's: one allocation, not two. */
    alignas(STK_BUFFER_ALIGN) uint8_t own[];
};

/* One reference to `capacity` bytes of its own; NULL: no memory. */
stk_buffer *stk_buffer_alloc(size_t capacity);

#endif /* STK_DATA_BUFFER_H */
