#include "report.h"

#include <inttypes.h>

#include "json.h"
#include "say.h"
#include "table.h"

static double seconds_of(int64_t ns)
{
    return (double)ns * 1e-9;
}

static double per_image(double value, const report *r)
{
    return r->images > 0 ? value / (double)r->images : 0;
}

static double rate(const report *r)
{
    return r->seconds > 0 ? (double)r->images / r->seconds : 0;
}

static uint64_t sum(const stk_stats *s, bool substituted)
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
        table_cell(&t, "%.3f", seconds_of(g->busy_ns));
        table_cell(&t, "%.3f", seconds_of(g->wait_in_ns));
        table_cell(&t, "%.3f", seconds_of(g->wait_out_ns));
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

static void print_failures(const report *r, FILE *to)
{
    const uint64_t failed = sum(r->stats, false);
    if (failed == 0) return;
    fprintf(to, "\nfailed: %" PRIu64 "%s\n", failed,
            r->num_failures && failed > r->num_failures ? ", the first:" : "");
    for (size_t i = 0; i < r->num_failures; i++) {
        const stk_failure *f = &r->failures[i];
        say(to, "  %s: sample %" PRId64 "%s%s: %s\n", f->stage, f->id, *f->key ? ": " : "", f->key,
            f->diag.text);
    }
}

void report_print(const report *r, FILE *to)
{
    if (r->diag.err && r->images == 0) return; /* the error says it all */
    say(to, "%s: %" PRId64 " images in %.2f s", r->dir, r->images, r->seconds);
    if (r->classes >= 0) fprintf(to, ", %" PRId64 " classes", r->classes);
    fprintf(to, ", %" PRId32 " threads%s\n\n", r->stats->num_threads,
            r->interrupted ? "; interrupted" : "");
    fprintf(to, "images/s       %10.1f\n", rate(r));
    fprintf(to, "CPU ms/image   %10.3f\n", per_image(r->cpu_seconds * 1e3, r));
    if (r->first_batch_ms >= 0) fprintf(to, "first batch ms %10.1f\n", r->first_batch_ms);
    if (r->peak_bytes >= 0)
        fprintf(to, "peak memory MiB%10.1f\n", (double)r->peak_bytes / (1024 * 1024));
    fputc('\n', to);
    print_stages(r->stats, to);
    print_queues(r->stats, to);
    print_failures(r, to);
    say(to, "\nverdict: %s\n", r->stats->verdict);
}

static void json_stages(json *j, const stk_stats *s)
{
    json_open(j, "stages", '[');
    for (size_t i = 0; i < s->num_stages; i++) {
        const stk_stage_stats *g = &s->stages[i];
        json_open(j, NULL, '{');
        json_string(j, "name", g->name);
        json_string(j, "kind", g->kind);
        json_int(j, "concurrency", g->concurrency);
        json_int(j, "items", (int64_t)g->items);
        json_int(j, "failed", (int64_t)g->failed);
        json_int(j, "substituted", (int64_t)g->substituted);
        json_int(j, "bytes", (int64_t)g->bytes);
        json_number(j, "busy_s", seconds_of(g->busy_ns));
        json_number(j, "wait_in_s", seconds_of(g->wait_in_ns));
        json_number(j, "wait_out_s", seconds_of(g->wait_out_ns));
        json_close(j, '}');
    }
    json_close(j, ']');
    json_open(j, "queues", '[');
    for (size_t i = 0; i < s->num_queues; i++) {
        const stk_queue_stats *q = &s->queues[i];
        json_open(j, NULL, '{');
        json_string(j, "name", q->name);
        json_int(j, "capacity", (int64_t)q->capacity);
        json_int(j, "puts", (int64_t)q->puts);
        json_number(j, "occupancy", q->occupancy);
        json_number(j, "full", q->full);
        json_number(j, "empty", q->empty);
        json_close(j, '}');
    }
    json_close(j, ']');
}

static void json_failures(json *j, const report *r)
{
    json_open(j, "failures", '[');
    for (size_t i = 0; i < r->num_failures; i++) {
        const stk_failure *f = &r->failures[i];
        json_open(j, NULL, '{');
        json_string(j, "stage", f->stage);
        json_int(j, "id", f->id);
        json_int(j, "epoch", f->epoch);
        json_string(j, "key", f->key);
        json_string(j, "error", f->diag.text);
        json_close(j, '}');
    }
    json_close(j, ']');
}

void report_json(const report *r, FILE *to)
{
    const stk_stats *s = r->stats;
    json j = {.to = to};
    json_open(&j, NULL, '{');
    json_string(&j, "folder", r->dir);
    json_number(&j, "images_per_second", rate(r));
    json_number(&j, "cpu_ms_per_image", per_image(r->cpu_seconds * 1e3, r));
    if (r->first_batch_ms >= 0)
        json_number(&j, "first_batch_ms", r->first_batch_ms);
    else
        json_string(&j, "first_batch_ms", NULL);
    json_int(&j, "images", r->images);
    json_int(&j, "batches", r->batches);
    json_int(&j, "failed", (int64_t)sum(s, false));
    json_int(&j, "substituted", (int64_t)sum(s, true));
    json_number(&j, "seconds", r->seconds);
    json_number(&j, "cpu_seconds", r->cpu_seconds);
    json_int(&j, "peak_memory_bytes", r->peak_bytes);
    json_int(&j, "threads", s->num_threads);
    json_int(&j, "io_threads", s->num_io_threads);
    json_int(&j, "classes", r->classes);
    json_bool(&j, "interrupted", r->interrupted);
    json_string(&j, "error", r->diag.err ? r->diag.text : NULL);
    json_stages(&j, s);
    json_failures(&j, r);
    const bool known = s->bottleneck >= 0 && (size_t)s->bottleneck < s->num_stages;
    json_string(&j, "bottleneck", known ? s->stages[s->bottleneck].name : NULL);
    json_string(&j, "verdict", s->verdict);
    json_close(&j, '}');
}
