/* Statistics of a run in the terms of tasks and queues, since the run began or another snapshot. */
#include "ext.h"

#define CAPSULE "stoker.stk_stats"

static double seconds(double ns)
{
    return ns / 1e9;
}

static void free_snapshot(PyObject *capsule)
{
    stk_stats *stats = PyCapsule_GetPointer(capsule, CAPSULE);
    stk_stats_free(&stats);
}

/* Of tasks that went well, as all of the times are. */
static double mean_of(const stk_stage_stats *s)
{
    if (s->failed > 0 || s->items == 0) return stk_times_mean(&s->times);
    return (double)s->busy_ns / (double)s->items;
}

/* (index of the stage, tasks, failures, mean, p90, p99) */
static PyObject *task_tuple(size_t index, const stk_stage_stats *s)
{
    return Py_BuildValue("nKKddd", (Py_ssize_t)index, (unsigned long long)(s->items + s->failed),
                         (unsigned long long)s->failed, seconds(mean_of(s)),
                         seconds(stk_times_quantile(&s->times, 0, 0.9)),
                         seconds(stk_times_quantile(&s->times, 0, 0.99)));
}

static uint64_t counted(const stk_times *t)
{
    uint64_t n = 0;
    for (size_t i = 0; i < STK_TIMES_SIZE; i++) n += t->num[i];
    return n;
}

static double wait_quantile(const stk_times *waits, uint64_t moves, double q)
{
    const uint64_t waited = counted(waits);
    return seconds(stk_times_quantile(waits, moves > waited ? moves - waited : 0, q));
}

static double mean_wait(int64_t ns, uint64_t moves)
{
    return moves > 0 ? seconds((double)ns / (double)moves) : 0.0;
}

/* (index of the stage, elapsed, items, mean put and get, p90 and p99 of put, of get, occupancy) */
static PyObject *queue_tuple(const stk_queue_stats *q, int64_t elapsed)
{
    return Py_BuildValue(
        "ndKddddddd", (Py_ssize_t)q->stage, seconds((double)elapsed), (unsigned long long)q->gets,
        mean_wait(q->put_wait_ns, q->puts), mean_wait(q->get_wait_ns, q->gets),
        wait_quantile(&q->put_waits, q->puts, 0.9), wait_quantile(&q->put_waits, q->puts, 0.99),
        wait_quantile(&q->get_waits, q->gets, 0.9), wait_quantile(&q->get_waits, q->gets, 0.99),
        1 - q->empty);
}

/* Steals `value`. */
static bool append(PyObject *list, PyObject *value)
{
    const bool ok = list && value && PyList_Append(list, value) == 0;
    Py_XDECREF(value);
    return ok;
}

static bool times_items(const char *kind)
{
    return strcmp(kind, "source") != 0 && strcmp(kind, "sink") != 0;
}

static PyObject *figures(const stk_stats *s)
{
    PyObject *tasks = PyList_New(0);
    PyObject *queues = PyList_New(0);
    bool ok = tasks && queues;
    for (size_t i = 0; ok && i < s->num_stages; i++)
        if (times_items(s->stages[i].kind)) ok = append(tasks, task_tuple(i, &s->stages[i]));
    for (size_t i = 0; ok && i < s->num_queues; i++)
        ok = append(queues, queue_tuple(&s->queues[i], s->elapsed_ns));
    if (ok) return Py_BuildValue("NN", tasks, queues);
    Py_XDECREF(tasks);
    Py_XDECREF(queues);
    return NULL;
}

static PyObject *figures_since(const stk_stats *now, const stk_stats *before)
{
    if (!before) return figures(now);
    stk_stats *between = NULL;
    const stk_err err = stk_stats_since(now, before, &between);
    if (err) return ext_raise(err, NULL);
    PyObject *made = figures(between);
    stk_stats_free(&between);
    return made;
}

PyObject *ext_run_figures(stk_run *run, PyObject *before)
{
    const stk_stats *then = before == Py_None ? NULL : PyCapsule_GetPointer(before, CAPSULE);
    if (!then && before != Py_None) return NULL;
    stk_stats *now = NULL;
    const stk_err err = stk_run_stats(run, &now);
    if (err) return ext_raise(err, NULL);
    PyObject *made = figures_since(now, then);
    PyObject *capsule = made ? PyCapsule_New(now, CAPSULE, free_snapshot) : NULL;
    if (!capsule) {
        stk_stats_free(&now);
        Py_XDECREF(made);
        return NULL;
    }
    return Py_BuildValue("NN", made, capsule);
}
