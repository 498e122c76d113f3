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

/* The CPU stage that used most of the threads; -1: there is none.  *all: what all of them used. */
static int most_busy(const stk_stats *st, double *all)
{
    int best = -1;
    *all = 0;
    for (size_t i = 0; i < st->num_stages; i++) {
        const stk_stage_stats *s = &st->stages[i];
        if (!is_work(s) || s->blocking) continue;
        *all += share(s->busy_ns, st->elapsed_ns);
        if (best < 0 || s->busy_ns > st->stages[best].busy_ns) best = (int)i;
    }
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

/* The stage is at its own limit. */
static void blame_limit(stk_stats *st, int i)
{
    char why[96];
    const stk_stage_stats *s = &st->stages[i];
    if (!strcmp(s->kind, "source")) {
        snprintf(why, sizeof(why), "it is at work %.0f%% of the time", 100 * load(st, s));
        say(st, i, why, "the others wait for it");
        return;
    }
    snprintf(why, sizeof(why), "%.1f of its %d at once are busy", load(st, s) * s->concurrency,
             (int)s->concurrency);
    const bool threads = !s->blocking && s->concurrency >= st->num_threads;
    say(st, i, why,
        threads ? "more threads or less work for it help" : "a higher concurrency helps");
}

static void blame_stage(stk_stats *st)
{
    char why[96];
    double used;
    const int slow_source = waiting_source(st);
    const int loaded = most_loaded(st), busy = most_busy(st, &used);
    if (slow_source >= 0) {
        say(st, slow_source, "the others wait for its listing", "list fewer or faster folders");
    }
    else if (busy >= 0 && used > MOSTLY * st->num_threads &&
             load(st, &st->stages[loaded]) < MOSTLY) {
        snprintf(why, sizeof(why), "it uses %.1f of %d threads",
                 share(st->stages[busy].busy_ns, st->elapsed_ns), (int)st->num_threads);
        say(st, busy, why, "more threads or less work for it help");
    }
    else {
        blame_limit(st, loaded);
    }
}

/* A run that is over and gave nothing: where it all went. */
static void say_where(stk_stats *st)
{
    const stk_stage_stats *last = &st->stages[0];
    for (size_t i = 1; i < st->num_stages; i++)
        if (is_work(&st->stages[i]) && st->stages[i].items + st->stages[i].failed > 0)
            last = &st->stages[i];
    if (last->items + last->failed == 0)
        snprintf(st->verdict, sizeof(st->verdict), "No result: the source gave nothing.");
    else if (last->items == 0)
        snprintf(st->verdict, sizeof(st->verdict),
                 "No result: stage '%s' failed for each of %llu items.", last->name,
                 (unsigned long long)last->failed);
    else
        snprintf(st->verdict, sizeof(st->verdict),
                 "No result: stage '%s' ran %llu items and gave nothing for any of them.",
                 last->name, (unsigned long long)last->items);
}

static void judge(stk_stats *st, bool over)
{
    const int reader = (int)st->num_stages - 1;
    const stk_stage_stats *r = &st->stages[reader];
    st->bottleneck = -1;
    if (st->results == 0 && over) {
        say_where(st);
        return;
    }
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

/* Slower for a reason that no stage shows: said before anything else. */
static void add_refusal(stk_stats *st)
{
    char text[sizeof(st->verdict)];
    if (!st->threads_refused) return;
    memcpy(text, st->verdict, sizeof(text));
    snprintf(st->verdict, sizeof(st->verdict),
             "The system refused %d of %d threads (ulimit -u). %.190s", (int)st->threads_refused,
             (int)st->num_threads, text);
}

void stats_verdict(stk_stats *st, bool over)
{
    judge(st, over);
    add_refusal(st);
}
