/* The JSON of a report. */
#include "report.h"

#include "json.h"

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
        json_number(j, "busy_s", report_seconds(g->busy_ns));
        json_number(j, "wait_in_s", report_seconds(g->wait_in_ns));
        json_number(j, "wait_out_s", report_seconds(g->wait_out_ns));
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
    static const char *const kinds[] = {"image", "video", "audio"};
    json_string(&j, "folder", r->dir);
    json_string(&j, "kind", kinds[r->job->kind]);
    json_number(&j, "images_per_second", report_rate(r));
    json_number(&j, "cpu_ms_per_image", report_per_image(r->cpu_seconds * 1e3, r));
    if (r->first_batch_ms >= 0)
        json_number(&j, "first_batch_ms", r->first_batch_ms);
    else
        json_string(&j, "first_batch_ms", NULL);
    json_int(&j, "images", r->images);
    json_int(&j, "batches", r->batches);
    json_int(&j, "failed", (int64_t)report_sum(s, false));
    json_int(&j, "substituted", (int64_t)report_sum(s, true));
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
