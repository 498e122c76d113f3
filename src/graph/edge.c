#include "graph/edge.h"

#include <assert.h>

#include "base/alloc.h"
#include "graph/times.h"

stk_err edge_init(edge *e, size_t most)
{
    e->size = EDGE_RING; /* a power of two, so that places are found by masking */
    while (e->size < most) e->size *= 2;
    e->ring = stk_alloc_zero(e->size, sizeof(*e->ring));
    e->ready = stk_alloc_zero(e->size / 64, sizeof(*e->ready));
    e->taken = stk_alloc_zero(e->size / 64, sizeof(*e->taken));
    return e->ring && e->ready && e->taken ? STK_OK : STK_ENOMEM;
}

void edge_fini(edge *e)
{
    stk_free(e->ring);
    stk_free(e->ready);
    stk_free(e->taken);
}

static uint64_t slot_of(const edge *e, uint64_t seq)
{
    return seq & (e->size - 1);
}

static bool get_bit(const edge *e, const uint64_t *bits, uint64_t seq)
{
    const uint64_t i = slot_of(e, seq);
    return bits[i / 64] >> (i % 64) & 1;
}

static void set_bit(const edge *e, uint64_t *bits, uint64_t seq)
{
    const uint64_t i = slot_of(e, seq);
    bits[i / 64] |= UINT64_C(1) << (i % 64);
}

static void clear_bit(const edge *e, uint64_t *bits, uint64_t seq)
{
    const uint64_t i = slot_of(e, seq);
    bits[i / 64] &= ~(UINT64_C(1) << (i % 64));
}

bool edge_room_at(const edge *e, uint64_t seq)
{
    return seq < e->low + e->window && (!e->limit || seq < e->limit);
}

bool edge_room(const edge *e)
{
    return edge_room_at(e, e->next + e->reserved);
}

void edge_put(edge *e, stk_item *item, uint64_t seq)
{
    assert(seq >= e->low && seq < e->low + e->size && !get_bit(e, e->ready, seq));
    item->seq = seq;
    e->ring[slot_of(e, seq)] = item;
    set_bit(e, e->ready, seq);
    if (e->next <= seq) e->next = seq + 1;
    e->len++;
    e->puts++;
}

void edge_append(edge *e, stk_item *item)
{
    edge_put(e, item, e->next);
}

stk_item *edge_peek(const edge *e)
{
    return get_bit(e, e->ready, e->low) ? e->ring[slot_of(e, e->low)] : NULL;
}

/* Moves `low` over what was taken. */
static void advance(edge *e)
{
    while (get_bit(e, e->taken, e->low)) clear_bit(e, e->taken, e->low++);
}

static stk_item *take_at(edge *e, uint64_t seq)
{
    if (!edge_room(e)) e->was_full = true;
    clear_bit(e, e->ready, seq);
    set_bit(e, e->taken, seq);
    e->len--;
    if (e->len == 0 && e->was_full) e->starved = true;
    if (seq == e->low) advance(e);
    stk_item *item = e->ring[slot_of(e, seq)];
    if (item->state == ITEM_VALUE) e->gets++;
    return item;
}

stk_item *edge_take(edge *e)
{
    return get_bit(e, e->ready, e->low) ? take_at(e, e->low) : NULL;
}

/* The oldest place below `limit` that has a result; `limit` or more: none has. */
static uint64_t find_ready(const edge *e, uint64_t limit)
{
    if (e->len == 0) return limit;
    if (limit > e->next) limit = e->next;
    uint64_t seq = e->low;
    while (seq < limit) {
        const uint64_t i = slot_of(e, seq);
        const uint64_t word = e->ready[i / 64] >> (i % 64);
        if (word) return seq + (uint64_t)__builtin_ctzll(word);
        seq += 64 - i % 64; /* nothing in the rest of this word */
    }
    return seq;
}

stk_item *edge_take_any(edge *e, uint64_t limit)
{
    const uint64_t seq = find_ready(e, limit);
    return seq < limit && seq < e->next ? take_at(e, seq) : NULL;
}

bool edge_any_below(const edge *e, uint64_t limit)
{
    const uint64_t seq = find_ready(e, limit);
    return seq < limit && seq < e->next;
}

void edge_close(edge *e, uint64_t end)
{
    e->closed = true;
    e->end = end;
}

bool edge_done(const edge *e)
{
    return e->closed && e->low == e->end;
}

void edge_tick(edge *e, double dt)
{
    e->filled_ns += dt * (e->len < e->window ? (double)e->len / e->window : 1.0);
    if (e->next >= e->low + e->window) e->full_ns += dt;
    if (e->len == 0) e->empty_ns += dt;
}

void waits_tick(struct waits *w, bool waiting, int64_t dt)
{
    if (waiting) {
        w->all_ns += dt;
        w->now_ns += dt;
    }
    else if (w->now_ns > 0) {
        times_add(&w->times, w->now_ns, 1);
        w->now_ns = 0;
    }
}
