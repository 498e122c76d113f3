#include "lane.h"

#include <stddef.h>
#include <time.h>

#include <stoker/lane.h>

/* A lane lets go of the GIL at least so often, although it would be asked to only by ops that run
 * Python code: ops in C do not look. */
#define BREATH_NS 2000000

int64_t ext_now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * INT64_C(1000000000) + ts.tv_nsec;
}

static void grow(uint32_t group, void *ctx)
{
    PyObject *made = PyObject_CallFunction(ctx, "I", group);
    if (!made) PyErr_WriteUnraisable(ctx);
    Py_XDECREF(made);
}

/* Ctrl-C, which may be raised in there, does not cost the lane: it is asked for again.  Gives the
 * interrupt, or NULL. */
static PyObject *grow_unless_interrupted(uint32_t group, PyObject *callable)
{
    PyObject *made = PyObject_CallFunction(callable, "I", group), *interrupt = NULL;
    if (!made && PyErr_ExceptionMatches(PyExc_Exception)) PyErr_WriteUnraisable(callable);
    if (PyErr_Occurred()) {
        interrupt = ext_take_exception();
        grow(group, callable);
    }
    Py_XDECREF(made);
    return interrupt;
}

bool ext_run_grow(stk_run *run, PyObject *callable)
{
    PyObject *raised = NULL;
    const uint64_t shortage = stk_run_short_groups(run);
    for (uint32_t g = 1; g < STK_MAX_GROUPS && shortage >> g; g++) {
        PyObject *interrupt = shortage >> g & 1 ? grow_unless_interrupted(g, callable) : NULL;
        if (interrupt) Py_XSETREF(raised, interrupt);
    }
    if (!raised) return true;
    PyErr_SetObject((PyObject *)Py_TYPE(raised), raised);
    Py_DECREF(raised);
    return false;
}

#define NAMES 8 /* of stages that a thread ran lately: it changes between few */

/* A thread has the name of the stage that it runs, for logs and profilers, behind its own. */
typedef struct naming {
    PyObject *thread; /* a threading.Thread, or None: names stay as they are */
    PyObject *own, *attribute;
    const char *stage; /* NULL: it runs none */
    struct {
        const char *stage;
        PyObject *name;
    } lately[NAMES];
} naming;

/* Not by the property `name`, which tells the system: a call for each burst. */
static void rename_thread(naming *n, PyObject *name)
{
    if (!name || PyObject_SetAttr(n->thread, n->attribute, name) < 0) PyErr_Clear();
}

static void on_stage(const char *stage, void *ctx)
{
    naming *n = ctx;
    if (n->stage == stage) return;
    n->stage = stage;
    const size_t i = (uintptr_t)stage / sizeof(max_align_t) % NAMES;
    if (n->lately[i].stage != stage || !n->lately[i].name) {
        n->lately[i].stage = stage;
        Py_XSETREF(n->lately[i].name, PyUnicode_FromFormat("%U: %s", n->own, stage));
    }
    rename_thread(n, n->lately[i].name);
}

static bool begin_naming(naming *n)
{
    if (n->thread == Py_None) return false;
    n->own = PyObject_GetAttrString(n->thread, "name");
    n->attribute = PyUnicode_InternFromString("_name");
    if (n->own && n->attribute) return true;
    PyErr_Clear(); /* then it keeps its name */
    return false;
}

static void end_naming(naming *n)
{
    for (int i = 0; i < NAMES; i++) Py_XDECREF(n->lately[i].name);
    Py_XDECREF(n->own);
    Py_XDECREF(n->attribute);
}

static void off_stage(naming *n)
{
    if (!n->stage) return;
    n->stage = NULL;
    rename_thread(n, n->own);
}

static void work(ext_state *state, stk_lane *lane, naming *n)
{
    int64_t breath = ext_now_ns();
    for (;;) {
        stk_err err = stk_lane_work(lane);
        stk_foreign_drain(state->domain);
        if (err == STK_EAGAIN) {
            off_stage(n);
            Py_BEGIN_ALLOW_THREADS
            err = stk_lane_wait(lane, STK_FOREVER);
            Py_END_ALLOW_THREADS
            breath = ext_now_ns();
        }
        if (err) break;
        const int64_t now = ext_now_ns();
        if (now - breath < BREATH_NS) continue;
        Py_BEGIN_ALLOW_THREADS
        Py_END_ALLOW_THREADS
        breath = now;
    }
    off_stage(n);
}

PyObject *ext_lane(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"run", "group", "grow", "thread", NULL};
    PyObject *run, *callable;
    unsigned group;
    naming n = {.thread = Py_None};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OIO|O:lane", names, &run, &group, &callable,
                                     &n.thread))
        return NULL;
    ext_state *state = PyModule_GetState(module);
    stk_run *core = ext_run_borrow(state, run);
    if (!core) return NULL;
    stk_lane *lane = NULL;
    stk_err err = stk_lane_new(core, group, grow, callable, &lane);
    if (err == STK_ECANCELLED) Py_RETURN_NONE;
    if (err) return ext_raise(err, NULL);
#ifndef Py_GIL_DISABLED
    stk_lane_exclusive(lane);
#endif
    if (begin_naming(&n)) stk_lane_on_stage(lane, on_stage, &n);
    work(state, lane, &n);
    end_naming(&n);
    Py_BEGIN_ALLOW_THREADS /* it may be the last of the run */
    stk_lane_free(&lane);
    Py_END_ALLOW_THREADS
    stk_foreign_drain(state->domain);
    Py_RETURN_NONE;
}
