/* How an event loop hears that its ports may go on: a counter that it watches. */
#include "lane.h"

#include <stoker/port.h>
#include <unistd.h>

static void tell(void *ctx)
{
    const uint64_t one = 1;
    const ssize_t n = write((int)(intptr_t)ctx, &one, sizeof(one));
    (void)n; /* the counter is full: then it is readable */
}

PyObject *ext_notify(PyObject *module, PyObject *args)
{
    PyObject *run;
    unsigned group;
    int fd;
    if (!PyArg_ParseTuple(args, "OIi:notify", &run, &group, &fd)) return NULL;
    stk_run *core = ext_run_borrow(PyModule_GetState(module), run);
    if (!core) return NULL;
    Py_BEGIN_ALLOW_THREADS /* it may wait for one that is being told */
    stk_run_set_notify(core, group, fd < 0 ? NULL : tell, (void *)(intptr_t)fd);
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

/* As os.eventfd_read, but keeps the lock: it never waits, and threads that want the lock would get
 * it at each wake-up. */
PyObject *ext_hear(PyObject *module, PyObject *arg)
{
    (void)module;
    const int fd = (int)PyLong_AsLong(arg);
    if (fd == -1 && PyErr_Occurred()) return NULL;
    uint64_t count = 0;
    const ssize_t n = read(fd, &count, sizeof(count));
    return PyBool_FromLong(n == sizeof(count));
}
