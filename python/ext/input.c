#include "input.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

static const char NOT_BYTES[] = "Expected a one-dimensional, C-contiguous byte buffer.";

static bool open_memory(ext_input *in, PyObject *source)
{
    in->memory = PyMemoryView_FromObject(source);
    if (!in->memory) return false;
    const Py_buffer *b = PyMemoryView_GET_BUFFER(in->memory);
    if (b->ndim == 1 && b->itemsize == 1 && PyBuffer_IsContiguous(b, 'C')) return true;
    PyErr_SetString(PyExc_ValueError, NOT_BYTES);
    return false;
}

static bool is_regular(int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
}

/* Also of a pipe: reads wait for whoever writes, and opening does not. */
static bool open_path(ext_input *in, PyObject *source)
{
    PyObject *path = NULL;
    if (!PyUnicode_FSConverter(source, &path)) return false;
    const char *text = PyBytes_AS_STRING(path);
    int failed = 0;
    in->name = PyUnicode_DecodeFSDefault(text);
    while (in->name && in->fd < 0) {
        Py_BEGIN_ALLOW_THREADS
        in->fd = open(text, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
        failed = errno;
        Py_END_ALLOW_THREADS
        if (in->fd >= 0 || failed != EINTR || PyErr_CheckSignals() < 0) break;
    }
    if (in->fd < 0 && !PyErr_Occurred()) {
        stk_diag diag;
        const stk_err err = stk_diag_errno(&diag, failed, "open %s", text);
        ext_raise(err, &diag);
    }
    Py_DECREF(path);
    in->pipe = in->fd >= 0 && !is_regular(in->fd);
    if (in->pipe) in->wait_fd = in->fd;
    return in->fd >= 0;
}

/* The descriptor of what Python reads a pipe by, or -1.  Only of the types themselves: what others
 * hold back is not known. */
static int descriptor_of(PyObject *source, bool *buffered)
{
    int fd = -1;
    PyObject *io = PyImport_ImportModule("io");
    PyObject *plain = io ? PyObject_GetAttrString(io, "FileIO") : NULL;
    PyObject *reader = io ? PyObject_GetAttrString(io, "BufferedReader") : NULL;
    *buffered = reader && (PyObject *)Py_TYPE(source) == reader;
    PyObject *raw = *buffered ? PyObject_GetAttrString(source, "raw") : Py_NewRef(source);
    if (raw && plain && (PyObject *)Py_TYPE(raw) == plain) fd = PyObject_AsFileDescriptor(raw);
    PyErr_Clear(); /* one that is closed says so when it is read */
    Py_XDECREF(raw);
    Py_XDECREF(reader);
    Py_XDECREF(plain);
    Py_XDECREF(io);
    return fd >= 0 && !is_regular(fd) ? fd : -1;
}

static bool open_object(ext_input *in, PyObject *source)
{
    static const char *const names[] = {"readinto1", "readinto", "read"};
    bool buffered;
    in->wait_fd = descriptor_of(source, &buffered);
    buffered = buffered && in->wait_fd >= 0;
    in->read1 = buffered ? PyObject_GetAttrString(source, "read1") : NULL;
    if (buffered && !in->read1) return false;
    const int first = buffered ? 0 : 1; /* readinto1 waits but once */
    for (int i = first; i < 3 && !in->reader; i++) {
        in->reader = PyObject_GetAttrString(source, names[i]);
        in->into = i < 2;
        if (in->reader) continue;
        if (!PyErr_ExceptionMatches(PyExc_AttributeError)) return false;
        PyErr_Clear();
    }
    if (!in->reader) {
        PyErr_Format(PyExc_TypeError,
                     "expected bytes, a path or a file that is open for reading, not %.80s",
                     Py_TYPE(source)->tp_name);
        return false;
    }
    in->name = PyObject_GetAttrString(source, "name");
    if (in->name && !PyUnicode_Check(in->name)) Py_CLEAR(in->name); /* a descriptor's number */
    PyErr_Clear();
    return true;
}

void ext_input_init(ext_input *in)
{
    *in = (ext_input){.fd = -1, .wait_fd = -1, .wake_fd = -1};
    atomic_init(&in->cancelled, false);
}

static bool open_any(ext_input *in, PyObject *source)
{
    if (PyObject_CheckBuffer(source)) return open_memory(in, source);
    const bool path = PyUnicode_Check(source) ||
                      PyObject_HasAttrString((PyObject *)Py_TYPE(source), "__fspath__");
    return path ? open_path(in, source) : open_object(in, source);
}

bool ext_input_open(ext_input *in, PyObject *source, PyObject *timeout)
{
    if (!ext_timeout(timeout, &in->timeout) || !open_any(in, source)) return false;
    if (in->wait_fd < 0) return true;
    in->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (in->wake_fd < 0) PyErr_SetFromErrno(PyExc_OSError);
    return in->wake_fd >= 0;
}

void ext_input_cancel(ext_input *in)
{
    atomic_store(&in->cancelled, true);
    if (in->wake_fd >= 0) (void)eventfd_write(in->wake_fd, 1);
}

void ext_input_fini(ext_input *in)
{
    ext_input_close(in);
    if (in->wake_fd >= 0) close(in->wake_fd);
    in->wake_fd = -1;
}

void ext_input_close(ext_input *in)
{
    if (in->fd >= 0) close(in->fd);
    in->fd = in->wait_fd = -1;
    Py_CLEAR(in->memory);
    Py_CLEAR(in->reader);
    Py_CLEAR(in->read1);
    Py_CLEAR(in->ahead);
    Py_CLEAR(in->name);
}

/* How many bytes readinto() says that it has put to dst; -1 with an exception. */
static Py_ssize_t call_readinto(PyObject *readinto, void *dst, size_t size)
{
    PyObject *view = PyMemoryView_FromMemory(dst, (Py_ssize_t)size, PyBUF_WRITE);
    PyObject *told = view ? PyObject_CallOneArg(readinto, view) : NULL;
    /* Whoever keeps it must not see what the memory is used for later. */
    PyObject *released = told ? PyObject_CallMethod(view, "release", NULL) : NULL;
    Py_ssize_t n = -1;
    if (told == Py_None)
        PyErr_SetString(PyExc_BlockingIOError, "readinto() has nothing now: the file must block");
    else if (released)
        n = PyLong_AsSsize_t(told);
    if (n > (Py_ssize_t)size || (n < 0 && !PyErr_Occurred())) {
        PyErr_Format(PyExc_ValueError, "readinto() of %zu bytes says that it has read %zd", size,
                     n);
        n = -1;
    }
    Py_XDECREF(released);
    Py_XDECREF(told);
    Py_XDECREF(view);
    return n;
}

static Py_ssize_t call_read(PyObject *read, void *dst, size_t size)
{
    PyObject *got = PyObject_CallFunction(read, "n", (Py_ssize_t)size);
    Py_ssize_t n = -1;
    if (got && !PyBytes_Check(got))
        PyErr_Format(PyExc_TypeError, "read() must give bytes, not %.80s", Py_TYPE(got)->tp_name);
    else if (got && PyBytes_GET_SIZE(got) > (Py_ssize_t)size)
        PyErr_Format(PyExc_ValueError, "read(%zu) has given %zd bytes", size,
                     PyBytes_GET_SIZE(got));
    else if (got) {
        n = PyBytes_GET_SIZE(got);
        memcpy(dst, PyBytes_AS_STRING(got), (size_t)n);
    }
    Py_XDECREF(got);
    return n;
}

static stk_err read_object(ext_input *in, void *dst, size_t size, size_t *got)
{
    PyEval_RestoreThread(in->thread);
    const Py_ssize_t n =
        in->into ? call_readinto(in->reader, dst, size) : call_read(in->reader, dst, size);
    *got = n < 0 ? 0 : (size_t)n;
    in->thread = PyEval_SaveThread();
    return n < 0 ? STK_EFOREIGN : STK_OK;
}

/* With the GIL: what a BufferedReader has read ahead becomes in->ahead.  It gives that whatever
 * size is asked for, and where it has nothing, it refuses this size before it would wait. */
static bool take_ahead(ext_input *in)
{
    PyObject *got = PyObject_CallFunction(in->read1, "n", PY_SSIZE_T_MAX);
    if (got && PyBytes_CheckExact(got) && PyBytes_GET_SIZE(got)) {
        in->ahead = got;
        in->ahead_at = 0;
        return true;
    }
    Py_XDECREF(got);
    if (!got &&
        (PyErr_ExceptionMatches(PyExc_OverflowError) || PyErr_ExceptionMatches(PyExc_MemoryError)))
        PyErr_Clear();
    return !PyErr_Occurred();
}

/* What came before the descriptor is waited for; *got 0: nothing did. */
static stk_err read_ahead(ext_input *in, void *dst, size_t size, size_t *got)
{
    if (!in->read1) return STK_OK;
    PyEval_RestoreThread(in->thread);
    const bool good = in->ahead || take_ahead(in);
    if (in->ahead) {
        const size_t left = (size_t)PyBytes_GET_SIZE(in->ahead) - in->ahead_at;
        *got = size < left ? size : left;
        memcpy(dst, PyBytes_AS_STRING(in->ahead) + in->ahead_at, *got);
        in->ahead_at += *got;
        if (*got == left) Py_CLEAR(in->ahead);
    }
    in->thread = PyEval_SaveThread();
    return good ? STK_OK : STK_EFOREIGN;
}

/* Whether a signal's handler in Python has raised. */
static bool interrupted(ext_input *in)
{
    PyEval_RestoreThread(in->thread);
    const bool raised = PyErr_CheckSignals() < 0;
    in->thread = PyEval_SaveThread();
    return raised;
}

/* -1: for ever. */
static int milliseconds(int64_t deadline)
{
    if (deadline < 0) return -1;
    const int64_t left = deadline - ext_now_ns();
    if (left <= 0) return 0;
    return left / 1000000 < INT_MAX ? (int)(left / 1000000) + 1 : INT_MAX;
}

static stk_err wait_readable(ext_input *in, stk_diag *diag)
{
    const int64_t deadline = in->timeout < 0 ? -1 : ext_now_ns() + in->timeout;
    for (;;) {
        struct pollfd fds[2] = {{.fd = in->wait_fd, .events = POLLIN},
                                {.fd = in->wake_fd, .events = POLLIN}};
        const int ms = milliseconds(deadline);
        const int n = poll(fds, 2, ms);
        if (atomic_load(&in->cancelled))
            return stk_diag_set(diag, STK_ECANCELLED, "cancelled: another thread has closed it");
        if (n > 0) return STK_OK;
        if (n < 0 && errno != EINTR) return stk_diag_errno(diag, errno, "poll");
        if (n < 0 && interrupted(in)) return STK_EFOREIGN;
        if (n == 0 && ms == 0)
            return stk_diag_set(diag, STK_ETIMEOUT, "no bytes came for %g s, the timeout",
                                (double)in->timeout / 1e9);
    }
}

stk_err ext_input_read(void *ctx, void *dst, size_t size, size_t *got, stk_diag *diag)
{
    ext_input *in = ctx;
    *got = 0;
    const stk_err failed = read_ahead(in, dst, size, got);
    if (failed || *got) return failed;
    for (;;) {
        const stk_err err = in->wait_fd >= 0 ? wait_readable(in, diag) : STK_OK;
        if (err) return err;
        if (in->reader) return read_object(in, dst, size, got);
        const ssize_t n = read(in->fd, dst, size);
        if (n >= 0) {
            *got = (size_t)n;
            return STK_OK;
        }
        if (errno == EAGAIN && in->pipe) continue; /* another one has read it */
        if (errno != EINTR) return stk_diag_errno(diag, errno, "read");
        if (interrupted(in)) return STK_EFOREIGN;
    }
}

PyObject *ext_input_raise(ext_input *in, stk_err err, stk_diag *diag)
{
    if (err == STK_EFOREIGN && PyErr_Occurred()) return NULL;
    const char *name = in->name ? PyUnicode_AsUTF8(in->name) : NULL;
    PyErr_Clear(); /* a name that is no UTF-8 */
    if (name && diag->err == err) stk_diag_prefix(diag, "%s", name);
    return ext_raise(err, diag);
}

bool ext_limit(const char *arg, PyObject *value, uint64_t most, uint64_t *out)
{
    *out = 0;
    if (value == Py_None) return true;
    PyObject *number = PyNumber_Index(value);
    if (!number) return false;
    int over;
    const long long n = PyLong_AsLongLongAndOverflow(number, &over);
    Py_DECREF(number);
    if (over > 0) {
        *out = most;
        return true;
    }
    if (n < 1) {
        PyErr_Format(PyExc_ValueError, "%s must be at least 1, or None", arg);
        return false;
    }
    *out = (uint64_t)n < most ? (uint64_t)n : most;
    return true;
}

bool ext_stream_opts(PyObject *max_bytes, PyObject *max_ratio, stk_stream_opts *out)
{
    uint64_t ratio = 0;
    *out = (stk_stream_opts){0};
    if (!ext_limit("max_uncompressed_bytes", max_bytes, UINT64_MAX, &out->max_bytes) ||
        !ext_limit("max_ratio", max_ratio, UINT32_MAX, &ratio))
        return false;
    out->max_ratio = (uint32_t)ratio;
    return true;
}

bool ext_turn_init(ext_turn *turn)
{
    atomic_init(&turn->owner, 0);
    turn->lock = PyThread_allocate_lock();
    if (!turn->lock) PyErr_NoMemory();
    return turn->lock;
}

void ext_turn_fini(ext_turn *turn)
{
    if (turn->lock) PyThread_free_lock(turn->lock);
    turn->lock = NULL;
}

bool ext_turn_take(ext_turn *turn)
{
    const unsigned long me = PyThread_get_thread_ident();
    PyLockStatus status = PyThread_acquire_lock_timed(turn->lock, 0, 0);
    if (status != PY_LOCK_ACQUIRED && atomic_load(&turn->owner) == me) {
        PyErr_SetString(PyExc_ValueError, "the iterator is used by its own file");
        return false;
    }
    while (status != PY_LOCK_ACQUIRED) {
        Py_BEGIN_ALLOW_THREADS
        status = PyThread_acquire_lock_timed(turn->lock, -1, 1);
        Py_END_ALLOW_THREADS
        if (status == PY_LOCK_INTR && PyErr_CheckSignals() < 0) return false;
    }
    atomic_store(&turn->owner, me);
    return true;
}

void ext_turn_give(ext_turn *turn)
{
    atomic_store(&turn->owner, 0);
    PyThread_release_lock(turn->lock);
}

bool ext_turn_take_last(ext_turn *turn, ext_input *in)
{
    if (atomic_load(&turn->owner) != PyThread_get_thread_ident()) ext_input_cancel(in);
    return ext_turn_take(turn);
}
