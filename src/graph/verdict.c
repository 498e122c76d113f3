/*
 * The verdict: which stage holds the others up.
 *
 * Seen from the reader: if it rarely waits, it is the slow one.  Otherwise the stages are judged by
 * how busy they were: the one whose concurrency, or whose share of the threads, was used up.
 */
#include <stdio.h>
#include <string.h>

#include "graph/steps.h"

#define TOO_EARLY_NS 20000000 /* 20 ms of run say nothing yet */
#define MOSTLY 0.5

static double share(int64_t some, int64_t whole)
{
    return whole > 0 ? (double)some / (double)whole : 0;
}

static bool is_work(const stk_stage_stats *s)
{
    return strcmp(s->kind, "sink") != 0;
}

/* How much of what the stage may use it used: 1 is all. */
static double load(const stk_stats *st, const stk_stage_stats *s)
{
    return share(s->busy_ns, st->elapsed_ns) / (s->concurrency > 0 ? s->concurrency : 1);
}

/* The stage that was closest to its own limit. */
static int most_loaded(const stk_stats *st)
{
    int best = -1;
    for (size_t i = 0; i < st->num_stages; i++) {
        if (!is_work(&st->stages[i])) continue;
        if (best < 0 || load(st, &st->stages[i]) > load(st, &st->stages[best])) best = (int)i;
    }
    return best;
}

/* The stage that used most of the threads. */
static int most_busy(const stk_stats *st)
{
    int best = 0;
    for (size_t i = 0; i < st->num_stages; i++)
        if (is_work(&st->stages[i]) && st->stages[i].busy_ns > st->stages[best].busy_ns)
            best = (int)i;
    return best;
}

/* A source that is asked and has nothing yet is slow although it is not busy. */
static int waiting_source(const stk_stats *st)
{
    for (size_t i = 0; i < st->num_stages; i++) {
        const stk_stage_stats *s = &st->stages[i];
        if (!strcmp(s->kind, "source") && share(s->wait_in_ns, st->elapsed_ns) > MOSTLY)
            return (int)i;
    }
    return -1;
}

static void say(stk_stats *st, int i, const char *why, const char *advice)
{
    const stk_stage_stats *s = &st->stages[i];
    st->bottleneck = i;
    snprintf(st->verdict, sizeof(st->verdict), "%s '%s' is the bottleneck: %s; %s.",
             !strcmp(s->kind, "source") ? "The source" : "Stage", s->name, why, advice);
}

static void blame_stage(stk_stats *st)
{
    char why[96];
    const int slow_source = waiting_source(st);
    const int loaded = most_loaded(st), busy = most_busy(st);
    const stk_stage_stats *l = &st->stages[loaded], *b = &st->stages[busy];
    if (slow_source >= 0) {
        say(st, slow_source, "the others wait for its listing", "list fewer or faster folders");
    }
    else if (load(st, l) > MOSTLY && !strcmp(l->kind, "source")) {
        snprintf(why, sizeof(why), "it is at work %.0f%% of the time", 100 * load(st, l));
        say(st, loaded, why, "the others wait for it");
    }
    else if (load(st, l) > MOSTLY &&
             load(st, l) * l->concurrency + 0.01 >= share(b->busy_ns, st->elapsed_ns)) {
        snprintf(why, sizeof(why), "%.1f of its %d at once are busy", load(st, l) * l->concurrency,
                 (int)l->concurrency);
        say(st, loaded, why,
            l->concurrency == st->num_threads ? "more threads or less work for it help"
                                              : "a higher concurrency helps");
    }
    else {
        snprintf(why, sizeof(why), "it uses %.1f of %d threads", share(b->busy_ns, st->elapsed_ns),
                 (int)st->num_threads);
        say(st, busy, why, "more threads or less work for it help");
    }
}

void stats_verdict(stk_stats *st)
{
    const int reader = (int)st->num_stages - 1;
    const stk_stage_stats *r = &st->stages[reader];
    st->bottleneck = -1;
    if (st->results == 0 && st->elapsed_ns < TOO_EARLY_NS) {
        snprintf(st->verdict, sizeof(st->verdict), "Too early to say: no result was read yet.");
        return;
    }
    const int64_t read_ns = r->busy_ns + r->wait_in_ns;
    if (st->results > 0 && share(r->busy_ns, read_ns) > MOSTLY &&
        st->queues[st->num_queues - 1].full > MOSTLY) {
        st->bottleneck = reader;
        snprintf(st->verdict, sizeof(st->verdict),
                 "The consumer is the bottleneck: results wait for it "
                 "%.0f%% of the time; the pipeline could go faster.",
                 100 * st->queues[st->num_queues - 1].full);
        return;
    }
    blame_stage(st);
}
