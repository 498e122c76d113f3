#include <string.h>

#include "av/stop.h"
#include "base/thread.h"
#include "tests/check.h"

static stk_av_call call;
static stk_diag diag;

static void begin(av_stop *s, int64_t timeout, stk_av_interrupt interrupt)
{
    static bool begun;
    if (!begun) stk_av_call_start();
    begun = true;
    memset(s, 0, sizeof(*s));
    stk_av_enter(&call, &diag);
    CHECK_EQ(av_stop_init(s, timeout, interrupt, &diag), STK_OK);
    av_stop_begin(s);
}

static void nothing_stops_it(void)
{
    av_stop s;
    begin(&s, STK_FOREVER, (stk_av_interrupt){0});
    CHECK(!av_stop_wanted(&s));
    CHECK_EQ(av_stop_say(&s, &call, "x", "y"), STK_OK);
    stk_av_leave(&call);
    begin(&s, 0, (stk_av_interrupt){0});
    CHECK(s.timeout > 0 && !av_stop_wanted(&s));
    stk_av_leave(&call);
    CHECK_EQ(av_stop_init(&s, -5, s.interrupt, &diag), STK_EINVAL);
}

static void its_time_is_over(void)
{
    av_stop s;
    begin(&s, 1, (stk_av_interrupt){0});
    while (!av_stop_wanted(&s)) continue;
    CHECK_EQ(av_stop_say(&s, &call, "cannot x", "y"), STK_ETIMEOUT);
    CHECK(strstr(diag.text, "cannot x: y: took longer than 1e-09 s"));
    s.timeout = STK_FOREVER;
    av_stop_begin(&s);
    CHECK(!av_stop_wanted(&s));
    CHECK_EQ(av_stop_say(&s, &call, "x", "y"), STK_OK);
    stk_av_leave(&call);
}

static void it_is_cancelled(void)
{
    av_stop s;
    begin(&s, STK_FOREVER, (stk_av_interrupt){0});
    av_stop_cancel(&s);
    av_stop_begin(&s);
    CHECK(av_stop_wanted(&s) && av_stop_is_cancelled(&s));
    CHECK_EQ(av_stop_say(&s, &call, "cannot x", "y"), STK_ECANCELLED);
    CHECK(strstr(diag.text, "cannot x: y: cancelled"));
    stk_av_leave(&call);
}

static bool yes(void *ctx)
{
    ++*(int *)ctx;
    return true;
}

static void somebody_says_so(void)
{
    av_stop s;
    int asked = 0;
    begin(&s, STK_FOREVER, (stk_av_interrupt){yes, &asked});
    CHECK(av_stop_wanted(&s) && av_stop_wanted(&s));
    CHECK_EQ(asked, 1); /* who said so is not asked again */
    CHECK_EQ(av_stop_say(&s, &call, "x", "y"), STK_ECANCELLED);
    stk_av_leave(&call);
}

static bool no(void *ctx)
{
    ++*(int *)ctx;
    return false;
}

static void how_often_it_asks(void)
{
    av_stop s;
    int asked = 0;
    begin(&s, STK_FOREVER, (stk_av_interrupt){no, &asked});
    s.pause = INT64_C(3600) * 1000 * 1000 * 1000;
    s.asked = stk_clock_ns();
    CHECK(!av_stop_wanted(&s) && !av_stop_wanted(&s));
    CHECK_EQ(asked, 0);
    s.pause = 0;
    CHECK(!av_stop_wanted(&s) && !av_stop_wanted(&s));
    CHECK_EQ(asked, 2);
    stk_av_leave(&call);
}

TESTS(TEST(nothing_stops_it), TEST(its_time_is_over), TEST(it_is_cancelled), TEST(somebody_says_so),
      TEST(how_often_it_asks))
