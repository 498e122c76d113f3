/*
 * av_stop: when a call into FFmpeg that waits for others has to end: its time is over, it was
 * cancelled, or somebody who is asked says so.
 *
 * Threads: one at a time; av_stop_cancel: any.
 */
#ifndef STK_AV_STOP_H
#define STK_AV_STOP_H

#include <stdatomic.h>

#include <stoker/av_demux.h>

#include "av/call.h"

#define AV_STOP_PAUSE (INT64_C(100) * 1000 * 1000) /* what av_stop_init sets */

typedef struct av_stop {
    stk_av_interrupt interrupt;
    int64_t timeout; /* of a call, in ns */
    int64_t pause;   /* between two questions whether to go on, in ns */

    atomic_bool cancelled;
    int64_t deadline, asked; /* of stk_clock_ns */
    bool late;               /* it was over when somebody looked */
    bool unwanted;           /* somebody who was asked said so */
} av_stop;

/* `s` is all zero.  `timeout`: 0 for the default of 60 s.  STK_EINVAL: it is negative. */
STK_NODISCARD stk_err av_stop_init(av_stop *s, int64_t timeout, stk_av_interrupt interrupt,
                                   stk_diag *diag);

/* The time of what is done next begins. */
void av_stop_begin(av_stop *s);

/* From now on everything ends. */
void av_stop_cancel(av_stop *s);

/* FFmpeg asks this one: 1 to stop. */
int av_stop_wanted(void *stop);

bool av_stop_is_cancelled(const av_stop *s);

/* Says why a call was stopped; STK_OK: it was not. */
STK_NODISCARD stk_err av_stop_say(const av_stop *s, stk_av_call *call, const char *what,
                                  const char *name);

#endif /* STK_AV_STOP_H */
