#include "report.h"

#include <inttypes.h>
#include <string.h>

#include "say.h"
#include "table.h"

double report_seconds(int64_t ns)
{
    return (double)ns * 1e-9;
}

double report_per_image(double value, const report *r)
{
    return r->images > 0 ? value / (double)r->images : 0;
}

double report_rate(const report *r)
{
    return r->seconds > 0 ? (double)r->images / r->seconds : 0;
}

uint64_t report_sum(const stk_stats *s, bool substituted)
{
    uint64_t n = 0;
    for (size_t i = 0; i < s->num_stages; i++)
        n += substituted ? s->stages[i].substituted : s->stages[i].failed;
    return n;
}

static void print_stages(const stk_stats *s, FILE *to)
{
    table t;
    if (!table_init(&t, 8)) return;
    const char *heads[] = {"stage",  "at once",   "items",      "failed",
                           "busy s", "wait in s", "wait out s", "MB"};
    for (size_t i = 0; i < 8; i++) table_cell(&t, "%s", heads[i]);
    for (size_t i = 0; i < s->num_stages; i++) {
        const stk_stage_stats *g = &s->stages[i];
        table_cell(&t, "%s", g->name);
        table_cell(&t, "%" PRId32, g->concurrency);
        table_cell(&t, "%" PRIu64, g->items);
        table_cell(&t, "%" PRIu64, g->failed);
        table_cell(&t, "%.3f", report_seconds(g->busy_ns));
        table_cell(&t, "%.3f", report_seconds(g->wait_in_ns));
        table_cell(&t, "%.3f", report_seconds(g->wait_out_ns));
        table_cell(&t, "%.1f", (double)g->bytes * 1e-6);
    }
    if (!table_print(&t, to)) say_error("no memory for the table of stages");
}

static void print_queues(const stk_stats *s, FILE *to)
{
    table t;
    if (s->num_queues == 0 || !table_init(&t, 5)) return;
    const char *heads[] = {"queue", "room", "in use %", "full %", "empty %"};
    fputc('\n', to);
    for (size_t i = 0; i < 5; i++) table_cell(&t, "%s", heads[i]);
    for (size_t i = 0; i < s->num_queues; i++) {
        const stk_queue_stats *q = &s->queues[i];
        table_cell(&t, "%s", q->name);
        table_cell(&t, "%zu", q->capacity);
        table_cell(&t, "%.0f", q->occupancy * 100);
        table_cell(&t, "%.0f", q->full * 100);
        table_cell(&t, "%.0f", q->empty * 100);
    }
    if (!table_print(&t, to)) say_error("no memory for the table of queues");
}

const char *report_key(const stk_failure *f)
{
    return strstr(f->diag.text, f->key) ? "" : f->key;
}

static void print_failures(const report *r, FILE *to)
{
    const uint64_t failed = report_sum(r->stats, false);
    if (failed == 0) return;
    fprintf(to, "\nfailed: %" PRIu64 "%s\n", failed,
            r->num_failures && failed > r->num_failures ? ", the first:" : "");
    for (size_t i = 0; i < r->num_failures; i++) {
        const stk_failure *f = &r->failures[i];
        const char *key = report_key(f);
        say(to, "  %s: sample %" PRId64 "%s%s: %s\n", f->stage, f->id, *key ? ": " : "", key,
            f->diag.text);
    }
}

void report_print(const report *r, FILE *to)
{
    if (r->diag.err && r->images == 0) return; /* the error says it all */
    const char *noun = kind_noun(r->job->kind);
    say(to, "%s: %" PRId64 " %ss in %.2f s", r->dir, r->images, noun, r->seconds);
    if (r->classes >= 0)
        fprintf(to, ", %" PRId64 " class%s", r->classes, r->classes == 1 ? "" : "es");
    fprintf(to, ", %" PRId32 " threads%s\n\n", r->stats->num_threads,
            r->interrupted ? "; interrupted" : "");
    fprintf(to, "%ss/s%*s%10.1f\n", noun, 12 - (int)strlen(noun), "", report_rate(r));
    fprintf(to, "CPU ms/%s%*s%10.3f\n", noun, 8 - (int)strlen(noun), "",
            report_per_image(r->cpu_seconds * 1e3, r));
    if (r->first_batch_ms >= 0) fprintf(to, "first batch ms %10.1f\n", r->first_batch_ms);
    if (r->peak_bytes >= 0)
        fprintf(to, "peak memory MiB%10.1f\n", (double)r->peak_bytes / (1024 * 1024));
    fputc('\n', to);
    print_stages(r->stats, to);
    print_queues(r->stats, to);
    print_failures(r, to);
    say(to, "\nverdict: %s\n", r->stats->verdict);
}
