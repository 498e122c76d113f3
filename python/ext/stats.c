#include "ext.h"

static double seconds(int64_t ns)
{
    return (double)ns / 1e9;
}

static PyObject *stage_dict(const stk_stage_stats *s)
{
    return Py_BuildValue(
        "{s:N,s:s,s:i,s:i,s:K,s:K,s:K,s:K,s:d,s:d,s:d}", "name", ext_text(s->name), "kind", s->kind,
        "concurrency", s->concurrency, "running", s->running, "items", (unsigned long long)s->items,
        "failed", (unsigned long long)s->failed, "substituted", (unsigned long long)s->substituted,
        "bytes", (unsigned long long)s->bytes, "busy_s", seconds(s->busy_ns), "wait_in_s",
        seconds(s->wait_in_ns), "wait_out_s", seconds(s->wait_out_ns));
}

static PyObject *queue_dict(const stk_queue_stats *q)
{
    return Py_BuildValue("{s:N,s:K,s:K,s:K,s:d,s:d,s:d}", "name", ext_text(q->name), "capacity",
                         (unsigned long long)q->capacity, "len", (unsigned long long)q->len, "puts",
                         (unsigned long long)q->puts, "occupancy", q->occupancy, "full", q->full,
                         "empty", q->empty);
}

static bool append(PyObject *list, PyObject *value)
{
    const bool ok = list && value && PyList_Append(list, value) == 0;
    Py_XDECREF(value);
    return ok;
}

PyObject *ext_stats_dict(const stk_stats *s)
{
    PyObject *stages = PyList_New(0);
    PyObject *queues = PyList_New(0);
    unsigned long long failed = 0;
    bool ok = stages && queues;
    for (size_t i = 0; i < s->num_stages; i++) failed += s->stages[i].failed;
    for (size_t i = 0; ok && i < s->num_stages; i++) ok = append(stages, stage_dict(&s->stages[i]));
    for (size_t i = 0; ok && i < s->num_queues; i++) ok = append(queues, queue_dict(&s->queues[i]));
    if (!ok) {
        Py_XDECREF(stages);
        Py_XDECREF(queues);
        return NULL;
    }
    PyObject *bottleneck = s->bottleneck < 0 || (size_t)s->bottleneck >= s->num_stages
                               ? Py_NewRef(Py_None)
                               : ext_text(s->stages[s->bottleneck].name);
    PyObject *first = s->first_result_ns < 0 ? Py_NewRef(Py_None)
                                             : PyFloat_FromDouble(seconds(s->first_result_ns));
    return Py_BuildValue("{s:N,s:N,s:N,s:N,s:d,s:N,s:K,s:K,s:i,s:i}", "stages", stages, "queues",
                         queues, "verdict", ext_text(s->verdict), "bottleneck", bottleneck,
                         "elapsed_s", seconds(s->elapsed_ns), "first_result_s", first, "results",
                         (unsigned long long)s->results, "failed", failed, "num_threads",
                         s->num_threads, "num_io_threads", s->num_io_threads);
}

static PyObject *number_or_none(int64_t n)
{
    return n < 0 ? Py_NewRef(Py_None) : PyLong_FromLongLong(n);
}

PyObject *ext_failures_list(const stk_failure *failures, size_t n)
{
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < n; i++) {
        const stk_failure *f = &failures[i];
        PyObject *key =
            f->key && f->key[0] ? PyUnicode_DecodeFSDefault(f->key) : Py_NewRef(Py_None);
        PyObject *failure =
            Py_BuildValue("{s:N,s:N,s:N,s:N,s:i,s:N,s:i,s:O,s:n,s:O}", "stage", ext_text(f->stage),
                          "id", number_or_none(f->is_batch ? -1 : f->id), "epoch",
                          number_or_none(f->epoch), "key", key, "code", (int)f->diag.err, "text",
                          ext_text(f->diag.text[0] ? f->diag.text : stk_err_str(f->diag.err)),
                          "errno", f->diag.os_error, "cause",
                          f->cause ? (PyObject *)stk_foreign_handle(f->cause) : Py_None, "index",
                          (Py_ssize_t)f->index, "also", f->also ? Py_True : Py_False);
        if (!append(list, failure)) Py_CLEAR(list);
    }
    return list;
}
