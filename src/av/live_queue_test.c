/* Frames between a thread that makes them and others that take them. */
#include "av/live_queue.h"

#include "av/frame_list.h"
#include "av/module.h"
#include "base/alloc.h"
#include "tests/check.h"

/* Frames that are told apart by how many packets failed before them. */
static stk_frames *frames_of(size_t number)
{
    stk_frames *f;
    CHECK_EQ(stk_frames_make(STK_MEDIA_VIDEO, &f), STK_OK);
    f->num_failed = number;
    return f;
}

static stk_err put(av_live_queue *q, size_t number)
{
    stk_frames *f = frames_of(number);
    const stk_err err = av_live_queue_put(q, &f, stk_clock_ns());
    CHECK(!f);
    return err;
}

/* The number of the next frame, or an error. */
static int64_t take(av_live_queue *q, int64_t timeout)
{
    stk_frames *f;
    const stk_err err = av_live_queue_take(q, timeout, &f, NULL);
    CHECK(!err == !!f);
    if (err) return err;
    const int64_t number = (int64_t)f->num_failed;
    mod_frames_unref(&f);
    return number;
}

static stk_live_stats stats_of(av_live_queue *q)
{
    stk_live_stats s;
    av_live_queue_stats(q, &s);
    CHECK_EQ(s.received, s.delivered + s.dropped + s.waiting);
    return s;
}

static void the_oldest_is_dropped(void)
{
    av_live_queue q = {0};
    CHECK_EQ(av_live_queue_init(&q, 3, false), STK_OK);
    CHECK_EQ(stats_of(&q).p50, -1);
    CHECK_EQ(take(&q, STK_NOWAIT), STK_EAGAIN);
    for (size_t i = 0; i < 10; i++) CHECK_EQ(put(&q, i), STK_OK);
    const stk_live_stats full = stats_of(&q);
    CHECK_EQ(full.received, 10);
    CHECK_EQ(full.dropped, 7);
    CHECK_EQ(full.waiting, 3);
    for (int64_t i = 7; i < 10; i++) CHECK_EQ(take(&q, STK_FOREVER), i);
    CHECK_EQ(take(&q, 1000), STK_EAGAIN);
    const stk_live_stats empty = stats_of(&q);
    CHECK_EQ(empty.delivered, 3);
    CHECK(0 <= empty.p50 && empty.p50 <= empty.p90 && empty.p90 <= empty.p99);
    CHECK(empty.p99 <= empty.max && empty.silence >= 0);
    av_live_queue_fini(&q);
}

static void an_end_comes_behind_the_frames(void)
{
    av_live_queue q = {0};
    stk_diag why = {0}, diag;
    stk_frames *f;
    CHECK_EQ(av_live_queue_init(&q, 2, false), STK_OK);
    CHECK_EQ(put(&q, 1), STK_OK);
    CHECK(!av_live_queue_wait_end(&q, STK_NOWAIT));
    av_live_queue_end(&q, stk_diag_set(&why, STK_EIO, "the cable"), &why);
    CHECK(av_live_queue_wait_end(&q, STK_FOREVER));
    CHECK_EQ(take(&q, STK_FOREVER), 1);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(av_live_queue_take(&q, STK_FOREVER, &f, &diag), STK_EIO);
        CHECK(!strcmp(diag.text, "the cable"));
    }
    av_live_queue_fini(&q);
}

static void closing_drops_what_waits(void)
{
    av_live_queue q = {0};
    CHECK_EQ(av_live_queue_init(&q, 4, true), STK_OK);
    for (size_t i = 0; i < 3; i++) CHECK_EQ(put(&q, i), STK_OK);
    av_live_queue_close(&q);
    av_live_queue_close(&q);
    CHECK_EQ(take(&q, STK_FOREVER), STK_ECANCELLED);
    CHECK_EQ(put(&q, 3), STK_ECANCELLED);
    CHECK_EQ(stats_of(&q).dropped, 3);
    CHECK_EQ(stats_of(&q).received, 3);
    av_live_queue_fini(&q);
}

static void percentiles_are_of_the_last_ones(void)
{
    static av_live_queue q;
    CHECK_EQ(av_live_queue_init(&q, 1, false), STK_OK);
    for (size_t i = 0; i < 3 * AV_LIVE_LATENCIES; i++) {
        CHECK_EQ(put(&q, i), STK_OK);
        CHECK_EQ(take(&q, STK_FOREVER), (int64_t)i);
    }
    for (size_t i = 0; i < AV_LIVE_LATENCIES; i++) q.latencies[i] = (int64_t)(i * 7 % 1024) + 1;
    const stk_live_stats s = stats_of(&q);
    CHECK_EQ(s.p50, 512);
    CHECK_EQ(s.p90, 922);
    CHECK_EQ(s.p99, 1014);
    CHECK_EQ(s.max, 1024);
    av_live_queue_fini(&q);
}

enum { MANY = 5000 };

static void *put_many(void *arg)
{
    av_live_queue *q = arg;
    stk_err err = STK_OK;
    for (size_t i = 0; i < MANY && !err; i++) err = put(q, i);
    av_live_queue_end(q, err ? err : STK_EEND, &(stk_diag){0});
    return NULL;
}

static void *take_many(void *arg)
{
    int64_t last = -1, number;
    while ((number = take(arg, STK_FOREVER)) >= 0) {
        CHECK(number > last);
        last = number;
    }
    CHECK(number == STK_EEND || number == STK_ECANCELLED);
    return NULL;
}

static void between_threads(bool keep)
{
    av_live_queue q = {0};
    stk_thread maker = {0}, takers[3] = {0};
    CHECK_EQ(av_live_queue_init(&q, 2, keep), STK_OK);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(stk_thread_start(&takers[i], "taker", take_many, &q), STK_OK);
    CHECK_EQ(stk_thread_start(&maker, "maker", put_many, &q), STK_OK);
    while (!av_live_queue_wait_end(&q, 1000)) (void)stats_of(&q);
    stk_thread_join(&maker);
    for (int i = 0; i < 3; i++) stk_thread_join(&takers[i]);
    const stk_live_stats s = stats_of(&q);
    CHECK_EQ(s.received, MANY);
    CHECK_EQ(s.waiting, 0);
    if (keep) CHECK_EQ(s.dropped, 0);
    av_live_queue_fini(&q);
}

static void one_that_drops(void)
{
    between_threads(false);
}

static void one_that_keeps(void)
{
    between_threads(true);
}

static void closing_wakes_everybody(void)
{
    for (int full = 0; full < 2; full++) {
        av_live_queue q = {0};
        stk_thread maker = {0}, taker = {0};
        CHECK_EQ(av_live_queue_init(&q, 1, true), STK_OK);
        if (full)
            CHECK_EQ(stk_thread_start(&maker, "maker", put_many, &q), STK_OK);
        else
            CHECK_EQ(stk_thread_start(&taker, "taker", take_many, &q), STK_OK);
        while (full && !stats_of(&q).waiting) continue;
        av_live_queue_close(&q);
        stk_thread_join(&maker);
        stk_thread_join(&taker);
        av_live_queue_fini(&q);
    }
}

static void without_memory(void)
{
    stk_err err;
    TORTURE (err) {
        av_live_queue q = {0};
        err = av_live_queue_init(&q, 4, false);
        if (err) CHECK_EQ(err, STK_ENOMEM);
        av_live_queue_fini(&q);
    }
}

TESTS(TEST(the_oldest_is_dropped), TEST(an_end_comes_behind_the_frames),
      TEST(closing_drops_what_waits), TEST(percentiles_are_of_the_last_ones), TEST(one_that_drops),
      TEST(one_that_keeps), TEST(closing_wakes_everybody), TEST(without_memory))
