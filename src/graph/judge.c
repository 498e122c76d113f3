/*
 * Failures, counted where results arrive in order: so the same sample ends the run, and the same
 * ten are listed, with any number of threads.
 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "graph/steps.h"

#define RATE_FROM 100  /* invocations before a failure rate means something */
#define EMPTY_EPOCHS 2 /* in a row that end an endless run */
#define KEY_SIZE 4096
#define LINE_EXTRA 40 /* bytes of a listed failure besides its text */

static failure *copy_failure(stage *s, const stk_failure *what)
{
    failure *f = stk_alloc_zero(1, sizeof(*f));
    if (!f) return NULL;
    const size_t size = strlen(what->key) + 1;
    char *key = stk_alloc(size);
    if (!key) {
        stk_free(f);
        return NULL;
    }
    f->stage = s;
    f->what = *what;
    f->what.key = memcpy(key, what->key, size);
    if (what->cause) f->what.cause = stk_foreign_ref(what->cause);
    return f;
}

const char *stage_name(const stage *s)
{
    return s->plan ? s->plan->name : s->kind;
}

failure *failure_new(stage *s, const stk_item *item, const stk_diag *diag)
{
    char key[KEY_SIZE] = "";
    /* A source that fails has no sample for it, nor has the end of an epoch. */
    const bool known = s->plan && item->state != ITEM_MARK;
    if (!known || stk_item_key(item, (size_t)diag->part, key, sizeof(key))) key[0] = 0;
    stk_failure what = {
        .id = known ? item->id : -1,
        .is_batch = item->is_batch,
        .epoch = known ? item->epoch : -1,
        .key = key,
        .diag = *diag,
        /* What was raised stands where the result would. */
        .cause = diag->err == STK_EFOREIGN ? item->foreign : NULL,
    };
    what.index = s->index;
    snprintf(what.stage, sizeof(what.stage), "%s", stage_name(s));
    return copy_failure(s, &what);
}

static bool stage_may_skip(const stage *s)
{
    return s->plan && s->plan->opts.on_error == STK_SKIP;
}

void run_fail(stk_item *item, stage *s, const stk_diag *diag)
{
    failure_free(&item->failures);
    item->failures = failure_new(s, item, diag); /* NULL: reported as out of memory */
    item_clear_data(item);
    item->state = ITEM_ERROR;
}

void run_fail_or_skip(stk_item *item, stage *s, const stk_diag *diag)
{
    if (diag->fatal || !stage_may_skip(s)) {
        run_fail(item, s, diag);
        return;
    }
    failure *f = failure_new(s, item, diag);
    if (f) f->next = item->failures, item->failures = f;
    item_clear_data(item);
    item->state = ITEM_GAP;
}

void run_fail_too(stk_run *run, stk_item **first, stk_item *item)
{
    if (!*first) {
        *first = item;
        return;
    }
    failure **at = &(*first)->failures;
    if (*at && item->failures) {
        while (*at) at = &(*at)->next;
        *at = item->failures;
        (*at)->what.also = true;
        item->failures = NULL;
    }
    run_item_put(run, &item);
}

/* Samples in a file that is missing fail alike. */
static bool is_kept(const stk_run *run, const failure *f)
{
    const failure *k = *f->what.key ? run->kept : NULL;
    while (k && (k->stage != f->stage || k->what.epoch != f->what.epoch ||
                 strcmp(k->what.key, f->what.key) || strcmp(k->what.diag.text, f->what.diag.text)))
        k = k->next;
    return k;
}

static void keep(stk_run *run, failure *f)
{
    f->next = NULL;
    failure_free(&f->stage->latest);
    if (run->num_kept == MAX_KEPT_FAILURES || is_kept(run, f)) {
        f->stage->latest = f;
        return;
    }
    if (run->kept_tail)
        run->kept_tail->next = f;
    else
        run->kept = f;
    run->kept_tail = f;
    run->num_kept++;
}

/* One line; of a text that is too long the end, where paths and causes differ. */
static size_t list_failure(const failure *f, size_t room, char *dst, size_t size)
{
    char text[KEY_SIZE + sizeof(f->what.diag.text)];
    const bool named = !*f->what.key || strstr(f->what.diag.text, f->what.key);
    snprintf(text, sizeof(text), "%s%s%s", named ? "" : f->what.key, named ? "" : ": ",
             f->what.diag.text);
    const size_t len = strlen(text);
    const size_t skip = len > room ? len - room : 0;
    const int n = snprintf(dst, size, "\n  %s %lld: %s%s", f->what.is_batch ? "batch" : "sample",
                           (long long)f->what.id, skip ? "..." : "", text + skip);
    return n > 0 ? (size_t)n : 0;
}

static void list_failures(const stk_run *run, const stage *s, char *dst, size_t size)
{
    size_t used = 0, listed = 0;
    for (const failure *f = run->kept; f; f = f->next) listed += f->stage == s;
    for (const failure *f = run->kept; f && used < size; f = f->next)
        if (f->stage == s)
            used += list_failure(f, size / listed - LINE_EXTRA, dst + used, size - used);
}

/* Copies of those that were listed, then the latest if it is none of them: others may be judged
 * before a reader asks.  What there is no memory for is left out. */
static failure *take_causes(const stk_run *run, stage *s)
{
    failure *first = NULL, **at = &first;
    for (const failure *f = run->kept; f; f = f->next)
        if (f->stage == s && (*at = copy_failure(s, &f->what))) at = &(*at)->next;
    *at = s->latest;
    s->latest = NULL;
    return first;
}

/* Turns the gap into the error that ends the run. */
static void give_up(stk_run *run, stk_item *item, stage *s, const char *count)
{
    char list[1500] = "";
    stk_diag diag;
    list_failures(run, s, list, sizeof(list));
    stk_diag_set(&diag, STK_ETOOMANY, "%s%s%s", count, *list ? "; the first of them:" : "", list);
    run_fail(item, s, &diag);
    if (item->failures) item->failures->next = take_causes(run, s);
}

/* How often a stage, or all that share the plan's limit, ran and failed, and may fail. */
typedef struct limits {
    uint64_t runs, failed;
    int64_t max_failures;
    double max_rate;
} limits;

static limits limits_of(const stk_run *run, const stage *s)
{
    const stk_stage_opts *o = &s->plan->opts;
    if (o->shared_limit)
        return (limits){run->judged, run->judged_failed, run->plan->max_failures,
                        run->plan->max_failure_rate};
    return (limits){s->judged, s->judged_failed, o->max_failures, o->max_failure_rate};
}

static void check_limits(stk_run *run, stk_item *item, stage *s)
{
    const limits l = limits_of(run, s);
    char text[256];
    const int64_t allowed = l.max_failures < 0 ? 0 : l.max_failures;
    if (l.max_failures != 0 && l.failed > (uint64_t)allowed) {
        snprintf(text, sizeof(text), "failed %llu times, which exceeds the threshold (%lld)",
                 (unsigned long long)l.failed, (long long)allowed);
        give_up(run, item, s, text);
        return;
    }
    const double rate = (double)l.failed / (double)l.runs;
    if (l.max_rate > 0 && l.runs >= RATE_FROM && rate > l.max_rate) {
        snprintf(text, sizeof(text),
                 "failed %llu times out of %llu invocations (%.1f%%), which exceeds the threshold "
                 "(%.1f%%)",
                 (unsigned long long)l.failed, (unsigned long long)l.runs, 100 * rate,
                 100 * l.max_rate);
        give_up(run, item, s, text);
    }
}

/* One more item that `s` ran.  True: from this one on its rate counts. */
static bool count_run(stk_run *run, stage *s)
{
    s->judged++;
    const bool shares = s->plan && s->plan->opts.shared_limit;
    const uint64_t runs = shares ? ++run->judged : s->judged;
    return runs == RATE_FROM && stage_may_skip(s);
}

void run_judge(stk_run *run, stk_item *item)
{
    stage *skipped = NULL, *due = NULL; /* due: its rate counts from this item on */
    for (size_t i = 0; i < run->num_stages && item->passed >> i; i++) {
        stage *s = &run->stages[i];
        if (item->passed >> i & 1 && count_run(run, s)) due = s;
    }
    item->passed = 0;
    while (item->failures && item->state != ITEM_ERROR) {
        failure *f = item->failures;
        item->failures = f->next;
        if (stage_may_skip(f->stage)) skipped = f->stage;
        f->stage->judged_failed++;
        run->judged_failed += f->stage->plan && f->stage->plan->opts.shared_limit;
        keep(run, f);
    }
    if (skipped && item->state == ITEM_GAP) check_limits(run, item, skipped);
    if (due && (item->state == ITEM_VALUE || item->state == ITEM_GAP)) check_limits(run, item, due);
}

/* NULL: there is none. */
static stage *find_stage(const stk_run *run, node_kind kind, bool drop_last)
{
    for (size_t i = 0; i < run->num_nodes; i++) {
        stage *s = run->nodes[i].stages;
        if (run->nodes[i].kind == kind && (!drop_last || s->plan->batch.drop_last)) return s;
    }
    return NULL;
}

static bool has_samples(const stk_run *run)
{
    for (size_t i = 0; i < run->num_nodes; i++)
        if (run->nodes[i].kind == NODE_SOURCE && run->nodes[i].stages[0].items) return true;
    return false;
}

static void fail_epoch(stk_item *mark, stage *s, const char *why)
{
    stk_diag diag;
    stk_diag_set(&diag, STK_EINVAL, "%d epochs in a row of an endless source gave no result: %s",
                 EMPTY_EPOCHS, why);
    run_fail(mark, s, &diag);
}

/* Not the first such epoch: a router or an op may leave all out once.  What stages of another
 * runtime leave out is their own affair: a source without samples is not. */
void run_judge_epoch(stk_run *run, stk_item *mark)
{
    const bool native = run->num_groups == 1, some = has_samples(run);
    if (++run->empty_epochs < EMPTY_EPOCHS || !run->endless || (some && !native)) return;
    stage *source = find_stage(run, NODE_SOURCE, false);
    stage *dropping = find_stage(run, NODE_BATCH, true);
    stage *failing = run->kept ? run->kept->stage : NULL;
    char text[256];
    if (!some) {
        fail_epoch(mark, source,
                   "it has no samples for this rank: give it at least as many as there are ranks "
                   "(world_size)");
    }
    else if (failing) {
        snprintf(text, sizeof(text),
                 "failed %llu times, and %d epochs in a row of an endless source gave no result: "
                 "see whether its files are there and of the right kind",
                 (unsigned long long)failing->judged_failed, EMPTY_EPOCHS);
        give_up(run, mark, failing, text);
    }
    else if (dropping) {
        fail_epoch(mark, dropping,
                   "drop_last left out every batch, since an epoch of this rank is smaller than "
                   "one: take a smaller batch, or keep the last");
    }
    else {
        fail_epoch(mark, source, "the stages left out every sample");
    }
}
