#include "av/stop.h"

#include "base/thread.h"

#define DEFAULT_TIMEOUT (INT64_C(60) * 1000 * 1000 * 1000)

stk_err av_stop_init(av_stop *s, int64_t timeout, stk_av_interrupt interrupt, stk_diag *diag)
{
    if (timeout < 0 && timeout != STK_FOREVER)
        return stk_diag_set(diag, STK_EINVAL, "the timeout is negative");
    s->interrupt = interrupt;
    s->timeout = timeout ? timeout : DEFAULT_TIMEOUT;
    s->pause = AV_STOP_PAUSE;
    return STK_OK;
}

void av_stop_begin(av_stop *s)
{
    s->deadline = stk_deadline_ns(s->timeout);
    s->late = s->unwanted = false;
}

void av_stop_cancel(av_stop *s)
{
    atomic_store_explicit(&s->cancelled, true, memory_order_release);
}

bool av_stop_is_cancelled(const av_stop *s)
{
    return atomic_load_explicit(&s->cancelled, memory_order_acquire);
}

int av_stop_wanted(void *opaque)
{
    av_stop *s = opaque;
    if (av_stop_is_cancelled(s)) return 1;
    if (s->deadline == STK_NEVER && !s->interrupt.wanted) return s->late;
    const int64_t now = stk_clock_ns();
    if (now >= s->deadline) s->late = true;
    if (s->interrupt.wanted && !s->unwanted && now - s->asked >= s->pause) {
        s->asked = now;
        s->unwanted = s->interrupt.wanted(s->interrupt.ctx);
    }
    return s->late || s->unwanted;
}

stk_err av_stop_say(const av_stop *s, stk_av_call *call, const char *what, const char *name)
{
    if (s->unwanted || av_stop_is_cancelled(s))
        return stk_av_say(call, STK_ECANCELLED, "%s: %s: cancelled", what, name);
    if (s->late)
        return stk_av_say(call, STK_ETIMEOUT, "%s: %s: took longer than %g s, the timeout", what,
                          name, (double)s->timeout / 1e9);
    return STK_OK;
}
