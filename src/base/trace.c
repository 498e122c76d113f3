/*
 * Perfetto's format: a Trace is a sequence of TracePackets, here of two kinds, descriptors of
 * tracks and events on them.
 * https://perfetto.dev/docs/reference/synthetic-track-event; field numbers are those of
 * protos/perfetto/trace/{trace,trace_packet}.proto and protos/perfetto/trace/track_event there.
 */
#include <stoker/trace.h>

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/packet.h"
#include "base/thread.h"

enum { /* fields */
       TRACE_PACKET = 1,

       PACKET_TIMESTAMP = 8,
       PACKET_SEQUENCE = 10, /* of whom wrote it: one here */
       PACKET_EVENT = 11,
       PACKET_FLAGS = 13,
       PACKET_TRACK = 60,

       TRACK_UUID = 1,
       TRACK_NAME = 2,
       TRACK_PROCESS = 3,
       TRACK_THREAD = 4,
       TRACK_PARENT = 5,
       TRACK_COUNTER = 8,

       PROCESS_PID = 1,
       PROCESS_NAME = 6,

       THREAD_PID = 1,
       THREAD_TID = 2,
       THREAD_NAME = 5,

       EVENT_TYPE = 9,
       EVENT_TRACK = 11,
       EVENT_NAME = 23,
       EVENT_DOUBLE = 44,
};

enum { SLICE_BEGIN = 1, SLICE_END = 2, COUNTER = 4 }; /* TrackEvent.Type */
enum { STATE_CLEARED = 1 };                           /* sequence_flags of the first packet */

enum { NAME_MOST = 200, THREAD_MOST = 63, DEFAULT_SIZE = 4 << 20, LEAST_SIZE = 64 << 10 };

/* Which trace is being written; 0: none.  Numbers do not come again. */
static _Atomic uint64_t current;

static stk_mutex lock = {.os = PTHREAD_MUTEX_INITIALIZER, .made = true}; /* guards `trace` */
static stk_cond news = {.os = PTHREAD_COND_INITIALIZER, .made = true};

static struct {
    uint64_t count; /* traces so far */
    bool busy;      /* it is being started, written or stopped */
    bool open;      /* takes packets */
    uint8_t *ring;
    size_t size, start, used; /* bytes that wait: `used` from `start` on, round the end */
    int fd;
    int error; /* of a write; nothing more is written then */
    uint64_t dropped, base, tracks, counters;
    stk_thread writer;
} trace;

/* What the calling thread is in which trace. */
static _Thread_local uint64_t known, track;
static _Thread_local char thread_name[THREAD_MOST + 1];

/* --- bytes --- */

static void append_locked(const uint8_t *data, size_t size) STK_REQUIRES(lock)
{
    const size_t at = (trace.start + trace.used) % trace.size;
    const size_t first = size < trace.size - at ? size : trace.size - at;
    memcpy(trace.ring + at, data, first);
    memcpy(trace.ring, data + first, size - first);
    const size_t before = trace.used;
    trace.used += size;
    if (before <= trace.size / 4 && trace.used > trace.size / 4) stk_cond_signal(&news);
}

/* One packet of trace `number`, if that is still written and there is room: ends of slices, which
 * must come if their begins have, find an eighth that is theirs. */
static bool append(uint64_t number, const packet *body, bool end)
{
    uint8_t head[8];
    size_t n = 0, size = body->size;
    head[n++] = TRACE_PACKET << 3 | 2;
    for (; size > 0x7f; size >>= 7) head[n++] = (uint8_t)(size | 0x80);
    head[n++] = (uint8_t)size;

    stk_mutex_lock(&lock);
    const bool taken = trace.open && trace.count == number;
    const size_t most = end ? trace.size : trace.size - trace.size / 8;
    const bool fits = taken && !body->full && trace.used + n + body->size <= most;
    if (fits) {
        append_locked(head, n);
        append_locked(body->bytes, body->size);
    }
    else if (taken)
        trace.dropped++;
    stk_mutex_unlock(&lock);
    return fits;
}

/* Writes what waits without the lock: nobody else moves `start`. */
static void write_locked(void) STK_REQUIRES(lock)
{
    while (trace.used > 0 && !trace.error) {
        const size_t at = trace.start, left = trace.size - at;
        const size_t size = trace.used < left ? trace.used : left;
        stk_mutex_unlock(&lock);
        const ssize_t n = write(trace.fd, trace.ring + at, size);
        const int error = n < 0 && errno != EINTR ? errno : n == 0 ? EIO : 0;
        stk_mutex_lock(&lock);
        trace.error = error;
        if (n > 0) trace.start = (at + (size_t)n) % trace.size;
        if (n > 0) trace.used -= (size_t)n;
    }
    if (trace.error) trace.used = 0; /* as if: stop says why */
}

static void *write_all(void *unused)
{
    (void)unused;
    stk_mutex_lock(&lock);
    while (trace.open) {
        while (trace.open && trace.used <= trace.size / 4)
            (void)stk_cond_wait(&news, &lock, STK_NEVER);
        write_locked();
    }
    write_locked();
    stk_mutex_unlock(&lock);
    return NULL;
}

/* --- packets --- */

/* Perfetto's own clock, so that a trace of the system lies beside this one. */
static uint64_t now(void)
{
    struct timespec ts;
    (void)clock_gettime(CLOCK_BOOTTIME, &ts);
    return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static bool add(uint64_t number, uint32_t field, const packet *inner, bool end)
{
    packet p;
    p.size = 0;
    p.full = false;
    packet_number(&p, PACKET_TIMESTAMP, now());
    packet_number(&p, PACKET_SEQUENCE, 1);
    packet_nest(&p, field, inner);
    return append(number, &p, end);
}

static bool describe_process(uint64_t number, uint64_t uuid, const char *name)
{
    packet process = {.size = 0}, descriptor = {.size = 0}, p = {.size = 0};
    packet_number(&process, PROCESS_PID, (uint64_t)getpid());
    packet_text(&process, PROCESS_NAME, name, NAME_MOST);
    packet_number(&descriptor, TRACK_UUID, uuid);
    packet_nest(&descriptor, TRACK_PROCESS, &process);
    packet_number(&p, PACKET_TIMESTAMP, now());
    packet_number(&p, PACKET_SEQUENCE, 1);
    packet_number(&p, PACKET_FLAGS, STATE_CLEARED);
    packet_nest(&p, PACKET_TRACK, &descriptor);
    return append(number, &p, false);
}

static bool describe_thread(uint64_t number, uint64_t uuid, uint64_t parent)
{
    packet thread = {.size = 0}, descriptor = {.size = 0};
    char system[16] = "";
    if (!*thread_name) (void)pthread_getname_np(pthread_self(), system, sizeof(system));
    packet_number(&thread, THREAD_PID, (uint64_t)getpid());
    packet_number(&thread, THREAD_TID, (uint64_t)gettid());
    packet_text(&thread, THREAD_NAME, *thread_name ? thread_name : system, THREAD_MOST);
    packet_number(&descriptor, TRACK_UUID, uuid);
    packet_number(&descriptor, TRACK_PARENT, parent);
    packet_nest(&descriptor, TRACK_THREAD, &thread);
    return add(number, PACKET_TRACK, &descriptor, false);
}

static bool describe_counter(uint64_t number, uint64_t uuid, uint64_t parent, uint32_t counter)
{
    packet descriptor = {.size = 0};
    char text[24];
    snprintf(text, sizeof(text), "Counter %u", (unsigned)counter);
    packet_number(&descriptor, TRACK_UUID, uuid);
    packet_number(&descriptor, TRACK_PARENT, parent);
    packet_text(&descriptor, TRACK_NAME, text, sizeof(text));
    packet_bytes(&descriptor, TRACK_COUNTER, "", 0);
    return add(number, PACKET_TRACK, &descriptor, false);
}

/* The track of the calling thread in that trace, described; 0: there is none. */
static uint64_t track_of(uint64_t number)
{
    if (known == number) return track;
    stk_mutex_lock(&lock);
    const bool taken = trace.open && trace.count == number;
    const uint64_t parent = trace.base;
    const uint64_t uuid = taken ? parent + 1 + STK_TRACE_COUNTERS + trace.tracks++ : 0;
    stk_mutex_unlock(&lock);
    if (!uuid || !describe_thread(number, uuid, parent)) return 0;
    known = number;
    return track = uuid;
}

static bool add_event(uint64_t number, uint64_t type, uint64_t uuid, const char *name)
{
    packet event;
    event.size = 0;
    event.full = false;
    packet_number(&event, EVENT_TYPE, type);
    packet_number(&event, EVENT_TRACK, uuid);
    if (name) packet_text(&event, EVENT_NAME, name, NAME_MOST);
    return add(number, PACKET_EVENT, &event, type == SLICE_END);
}

bool stk_trace_on(void)
{
    return atomic_load_explicit(&current, memory_order_relaxed) != 0;
}

uint64_t stk_trace_begin(const char *name)
{
    const uint64_t number = atomic_load_explicit(&current, memory_order_relaxed);
    if (!number) return 0;
    const uint64_t uuid = track_of(number);
    return uuid && add_event(number, SLICE_BEGIN, uuid, name) ? number : 0;
}

void stk_trace_end(uint64_t slice)
{
    if (slice && known == slice) (void)add_event(slice, SLICE_END, track, NULL);
}

stk_err stk_trace_counter(uint32_t counter, double value)
{
    const uint64_t number = atomic_load_explicit(&current, memory_order_relaxed);
    if (counter >= STK_TRACE_COUNTERS) return STK_EINVAL;
    if (!number) return STK_OK;
    const uint64_t bit = UINT64_C(1) << counter;
    stk_mutex_lock(&lock);
    const uint64_t parent = trace.base;
    const bool described = trace.counters & bit || trace.count != number;
    if (!described) trace.counters |= bit;
    stk_mutex_unlock(&lock);

    packet event = {.size = 0};
    packet_number(&event, EVENT_TYPE, COUNTER);
    packet_number(&event, EVENT_TRACK, parent + 1 + counter);
    packet_double(&event, EVENT_DOUBLE, value);
    if (!described) (void)describe_counter(number, parent + 1 + counter, parent, counter);
    (void)add(number, PACKET_EVENT, &event, false);
    return STK_OK;
}

void stk_trace_thread(const char *name)
{
    if (!*thread_name) snprintf(thread_name, sizeof(thread_name), "%s", name);
}

/* --- from start to stop --- */

/* In a child of fork there is no writer, and the lock may be held by a thread that is not there:
 * the ring stays, until a trace of the child's own takes its place. */
static void forget(void)
{
    atomic_store_explicit(&current, 0, memory_order_relaxed);
    lock = (stk_mutex){.os = PTHREAD_MUTEX_INITIALIZER, .made = true};
    news = (stk_cond){.os = PTHREAD_COND_INITIALIZER, .made = true};
    trace.busy = trace.open = false;
    trace.writer = (stk_thread){0};
}

static void watch_forks(void)
{
    (void)pthread_atfork(NULL, NULL, forget); /* no memory: as it was without */
}

static void give_back_locked(void) STK_REQUIRES(lock)
{
    stk_free(trace.ring);
    trace.ring = NULL;
    trace.busy = false;
}

static stk_err take_locked(int fd, size_t size) STK_REQUIRES(lock)
{
    if (trace.busy) return STK_EAGAIN;
    stk_free(trace.ring);
    trace.ring = stk_alloc(size);
    if (!trace.ring) return STK_ENOMEM;
    trace.busy = trace.open = true;
    trace.count++;
    trace.size = size;
    trace.start = trace.used = 0;
    trace.fd = fd;
    trace.error = 0;
    trace.dropped = trace.tracks = trace.counters = 0;
    trace.base = ((uint64_t)getpid() << 32) + (trace.count << 20);
    return STK_OK;
}

stk_err stk_trace_start(int fd, const stk_trace_opts *opts, stk_diag *diag)
{
    static pthread_once_t watching = PTHREAD_ONCE_INIT;
    (void)pthread_once(&watching, watch_forks);
    size_t size = opts && opts->buffer_size ? opts->buffer_size : DEFAULT_SIZE;
    if (size < LEAST_SIZE) size = LEAST_SIZE;
    const char *name =
        opts && opts->process_name ? opts->process_name : program_invocation_short_name;

    stk_mutex_lock(&lock);
    stk_err err = take_locked(fd, size);
    const uint64_t number = trace.count, base = trace.base;
    stk_mutex_unlock(&lock);
    if (err == STK_EAGAIN) return stk_diag_set(diag, err, "a trace is being written already");
    if (err) return stk_diag_set(diag, err, "%s", stk_err_str(err));

    (void)describe_process(number, base, name); /* there is room */
    err = stk_thread_start(&trace.writer, "stoker-trace", write_all, NULL);
    if (err) {
        stk_mutex_lock(&lock);
        trace.open = false;
        give_back_locked();
        stk_mutex_unlock(&lock);
        return stk_diag_set(diag, err, "the system has no thread to give");
    }
    atomic_store_explicit(&current, number, memory_order_relaxed);
    return STK_OK;
}

stk_err stk_trace_stop(uint64_t *dropped, stk_diag *diag)
{
    if (dropped) *dropped = 0;
    if (!atomic_exchange_explicit(&current, 0, memory_order_relaxed)) return STK_OK;
    stk_mutex_lock(&lock);
    trace.open = false;
    stk_cond_signal(&news);
    stk_mutex_unlock(&lock);
    stk_thread_join(&trace.writer);

    stk_mutex_lock(&lock);
    const int error = trace.error;
    if (dropped) *dropped = trace.dropped;
    give_back_locked();
    stk_mutex_unlock(&lock);
    return error ? stk_diag_errno(diag, error, "write the trace") : STK_OK;
}
