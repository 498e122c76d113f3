/*
 * Failures, counted where results arrive in order: so the same sample ends the run, and the same
 * ten are listed, with any number of threads.
 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "graph/steps.h"

#define RATE_FROM 100 /* invocations before a failure rate means something */
#define KEY_SIZE 4096
#define LINE_EXTRA 40 /* bytes of a listed failure besides its text */

failure *failure_new(stage *s, const stk_item *item, const stk_diag *diag)
{
    char key[KEY_SIZE] = "";
    failure *f = stk_alloc_zero(1, sizeof(*f));
    if (!f) return NULL;
    if (stk_item_key(item, 0, key, sizeof(key))) key[0] = 0;
    const size_t size = strlen(key) + 1;
    f->what.key = stk_alloc(size);
    if (!f->what.key) {
        stk_free(f);
        return NULL;
    }
    memcpy(f->what.key, key, size);
    f->stage = s;
    f->what.id = s->plan ? item->id : -1; /* a source that fails has no sample for it */
    f->is_batch = item->is_batch;
    f->what.epoch = item->epoch;
    f->what.diag = *diag;
    snprintf(f->what.stage, sizeof(f->what.stage), "%s", s->plan ? s->plan->name : s->kind);
    return f;
}

bool stage_may_skip(const stage *s)
{
    return s->plan && s->plan->opts.on_error == STK_SKIP;
}

void run_fail(stk_item *item, stage *s, stk_err err, const char *text)
{
    stk_diag diag;
    stk_diag_set(&diag, err, "%s", text);
    item_clear_data(item);
    item->state = ITEM_ERROR;
    failure_free(&item->failures);
    item->failures = failure_new(s, item, &diag); /* NULL: reported as out of memory */
}

static void keep(stk_run *run, failure *f)
{
    f->next = NULL;
    if (run->num_kept == MAX_KEPT_FAILURES) {
        failure_free(&f);
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
    const int n = snprintf(dst, size, "\n  %s %lld: %s%s", f->is_batch ? "batch" : "sample",
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

/* Turns the gap into the error that ends the run. */
static void give_up(stk_run *run, stk_item *item, stage *s, const char *count)
{
    char text[sizeof((stk_diag){0}.text)], list[1500] = "";
    list_failures(run, s, list, sizeof(list));
    snprintf(text, sizeof(text), "%s%s%s", count, *list ? "; the first of them:" : "", list);
    run_fail(item, s, STK_ETOOMANY, text);
}

static void check_limits(stk_run *run, stk_item *item, stage *s)
{
    const stk_stage_opts *o = &s->plan->opts;
    char text[256];
    const int64_t allowed = o->max_failures < 0 ? 0 : o->max_failures;
    if (o->max_failures != 0 && s->judged_failed > (uint64_t)allowed) {
        snprintf(text, sizeof(text), "failed %llu times, which exceeds the threshold (%lld)",
                 (unsigned long long)s->judged_failed, (long long)allowed);
        give_up(run, item, s, text);
        return;
    }
    const double rate = (double)s->judged_failed / (double)s->judged;
    if (o->max_failure_rate > 0 && s->judged >= RATE_FROM && rate > o->max_failure_rate) {
        snprintf(text, sizeof(text),
                 "failed %llu times out of %llu (%.1f%%), which exceeds the threshold (%.1f%%)",
                 (unsigned long long)s->judged_failed, (unsigned long long)s->judged, 100 * rate,
                 100 * o->max_failure_rate);
        give_up(run, item, s, text);
    }
}

void run_judge(stk_run *run, stk_item *item)
{
    stage *skipped = NULL, *due = NULL; /* due: its rate counts from this item on */
    for (size_t i = 0; i < run->num_stages && item->passed >> i; i++) {
        stage *s = &run->stages[i];
        if (!(item->passed >> i & 1) || ++s->judged != RATE_FROM) continue;
        if (stage_may_skip(s)) due = s;
    }
    item->passed = 0;
    while (item->failures && item->state != ITEM_ERROR) {
        failure *f = item->failures;
        item->failures = f->next;
        if (stage_may_skip(f->stage)) skipped = f->stage;
        f->stage->judged_failed++;
        keep(run, f);
    }
    if (skipped && item->state == ITEM_GAP) check_limits(run, item, skipped);
    if (due && (item->state == ITEM_VALUE || item->state == ITEM_GAP)) check_limits(run, item, due);
}
