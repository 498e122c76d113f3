#include "graph/edge.h"

#include "base/alloc.h"
#include "graph/item.h"
#include "tests/check.h"

static edge e;

/* The i-th of some items, made when first asked for. */
static stk_item *at(uint64_t i)
{
    static stk_item *items[EDGE_RING];
    if (!items[i]) items[i] = stk_alloc_zero(1, item_size(1));
    CHECK(items[i]);
    return items[i];
}

static void fresh(uint32_t window)
{
    edge_fini(&e);
    memset(&e, 0, sizeof(e));
    CHECK_EQ(edge_init(&e, EDGE_RING), STK_OK);
    e.window = window;
}

static void in_turn(void)
{
    fresh(3);
    CHECK(edge_room(&e) && edge_peek(&e) == NULL && edge_take(&e) == NULL);
    edge_put(&e, at(1), 1);
    CHECK(edge_peek(&e) == NULL); /* place 0 is on its way */
    CHECK_EQ(e.len, 1);
    edge_put(&e, at(0), 0);
    CHECK(edge_take(&e) == at(0) && edge_take(&e) == at(1) && edge_take(&e) == NULL);
    CHECK_EQ(e.low, 2);
}

static void credit_ends_with_the_window(void)
{
    fresh(2);
    edge_append(&e, at(0));
    edge_append(&e, at(1));
    CHECK(!edge_room(&e) && !edge_room_at(&e, 2));
    CHECK(edge_take_any(&e, UINT64_MAX) == at(0));
    CHECK(edge_room(&e) && edge_room_at(&e, 2) && !edge_room_at(&e, 3));
    e.reserved = 1;
    CHECK(!edge_room(&e));
}

static void credit_ends_at_the_limit(void)
{
    fresh(8);
    e.limit = 2;
    edge_append(&e, at(0));
    CHECK(edge_room(&e) && edge_room_at(&e, 1) && !edge_room_at(&e, 2));
    edge_append(&e, at(1));
    CHECK(edge_take(&e) == at(0) && edge_take(&e) == at(1));
    CHECK(!edge_room(&e));
    e.limit = 0;
    CHECK(edge_room(&e));
}

static void out_of_turn(void)
{
    fresh(EDGE_RING);
    for (uint64_t i = 0; i < 300; i += 3) edge_put(&e, at(i), i);
    CHECK(edge_any_below(&e, 1) && edge_take_any(&e, 1) == at(0));
    CHECK(!edge_any_below(&e, 3) && edge_take_any(&e, 3) == NULL);
    CHECK(edge_take_any(&e, 300) == at(3));
    CHECK_EQ(e.low, 1); /* 1 and 2 did not come */
    edge_put(&e, at(1), 1);
    edge_put(&e, at(2), 2);
    CHECK(edge_take_any(&e, 300) == at(1) && edge_take_any(&e, 300) == at(2));
    CHECK_EQ(e.low, 4);
    size_t n = 0;
    while (edge_take_any(&e, UINT64_MAX)) n++;
    CHECK_EQ(n, 98);
    CHECK_EQ(e.len, 0);
}

/* Round and round the ring, at random within the window. */
static void wraps(void)
{
    fresh(200);
    uint64_t put = 0, taken = 0, random = 1;
    while (taken < 20000) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        if (random >> 62 && edge_room(&e)) {
            edge_append(&e, at(put++ % EDGE_RING));
        }
        else if (edge_peek(&e)) {
            const stk_item *item = random >> 61 & 1 ? edge_take(&e) : edge_take_any(&e, UINT64_MAX);
            CHECK(item == at(taken % EDGE_RING));
            CHECK_EQ(item->seq, taken);
            taken++;
        }
    }
    CHECK_EQ(e.low, taken);
}

static void ends(void)
{
    fresh(4);
    edge_append(&e, at(0));
    edge_close(&e, 2);
    CHECK(!edge_done(&e) && edge_take(&e) && !edge_done(&e));
    edge_append(&e, at(1));
    CHECK(edge_take(&e) && edge_done(&e));
}

static void time_is_counted(void)
{
    fresh(2);
    edge_tick(&e, 10);
    edge_append(&e, at(0));
    edge_tick(&e, 10);
    edge_append(&e, at(1));
    edge_tick(&e, 10);
    CHECK(e.empty_ns == 10 && e.full_ns == 10 && e.filled_ns == 15);
}

/* An edge starves where it was full when something was taken, and then ran empty. */
static void starving_is_seen(void)
{
    fresh(2);
    for (uint64_t i = 0; i < 10; i++) { /* never full */
        edge_append(&e, at(i));
        CHECK(edge_take(&e) == at(i) && !e.was_full && !e.starved);
    }
    edge_append(&e, at(0));
    edge_append(&e, at(1));
    for (uint64_t i = 2; i < 9; i++) { /* never empty */
        CHECK(edge_take(&e) && e.was_full && !e.starved);
        edge_append(&e, at(i));
    }
    CHECK(edge_take(&e) && !e.starved && edge_take(&e) && e.starved);
    fresh(1);
    e.reserved = 1; /* what is in the making fills it, too */
    edge_append(&e, at(0));
    CHECK(edge_take(&e) && e.was_full && e.starved);
}

TESTS(TEST(in_turn), TEST(credit_ends_with_the_window), TEST(credit_ends_at_the_limit),
      TEST(out_of_turn), TEST(wraps), TEST(ends), TEST(time_is_counted), TEST(starving_is_seen))
