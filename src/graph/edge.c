#include "graph/edge.h"

#include <assert.h>

static bool get_bit(const uint64_t *bits, uint64_t seq)
{
    const uint64_t i = seq % EDGE_RING;
    return bits[i / 64] >> (i % 64) & 1;
}

static void set_bit(uint64_t *bits, uint64_t seq)
{
    const uint64_t i = seq % EDGE_RING;
    bits[i / 64] |= UINT64_C(1) << (i % 64);
}

static void clear_bit(uint64_t *bits, uint64_t seq)
{
    const uint64_t i = seq % EDGE_RING;
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
    assert(seq >= e->low && seq < e->low + EDGE_RING && !get_bit(e->ready, seq));
    item->seq = seq;
    e->ring[seq % EDGE_RING] = item;
    set_bit(e->ready, seq);
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
    return get_bit(e->ready, e->low) ? e->ring[e->low % EDGE_RING] : NULL;
}

/* Moves `low` over what was taken. */
static void advance(edge *e)
{
    while (get_bit(e->taken, e->low)) clear_bit(e->taken, e->low++);
}

static stk_item *take_at(edge *e, uint64_t seq)
{
    clear_bit(e->ready, seq);
    set_bit(e->taken, seq);
    e->len--;
    if (seq == e->low) advance(e);
    return e->ring[seq % EDGE_RING];
}

stk_item *edge_take(edge *e)
{
    return get_bit(e->ready, e->low) ? take_at(e, e->low) : NULL;
}

/* The oldest place below `limit` that has a result; `limit` or more: none has. */
static uint64_t find_ready(const edge *e, uint64_t limit)
{
    if (e->len == 0) return limit;
    if (limit > e->next) limit = e->next;
    uint64_t seq = e->low;
    while (seq < limit) {
        const uint64_t i = seq % EDGE_RING;
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
