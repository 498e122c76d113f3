#include <stoker/trace.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/packet.h"
#include "base/thread.h"
#include "tests/check.h"

/* What a file has, counted. */
typedef struct counts {
    int processes, threads, counters, begins, ends, values;
    int deepest; /* slices open at once, on all tracks */
    char name[256], thread[256], process[256];
    double value;
} counts;

typedef struct field {
    uint64_t number, value; /* of the field; its value, or the size of its bytes */
    const uint8_t *bytes;
} field;

static uint64_t varint(const uint8_t **p, const uint8_t *end)
{
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
        CHECK(*p < end && shift < 64);
        const uint8_t byte = *(*p)++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) return value;
    }
}

static bool next(const uint8_t **p, const uint8_t *end, field *out)
{
    if (*p == end) return false;
    const uint64_t tag = varint(p, end);
    *out = (field){.number = tag >> 3};
    if ((tag & 7) == 0) out->value = varint(p, end);
    if ((tag & 7) == 2) out->value = varint(p, end);
    if ((tag & 7) == 1) out->value = 8;
    CHECK((tag & 7) <= 2);
    if ((tag & 7) == 0) return true;
    out->bytes = *p;
    CHECK(out->value <= (uint64_t)(end - *p));
    *p += out->value;
    return true;
}

static void text(char out[256], const field *f)
{
    CHECK(f->bytes && f->value < 256);
    memcpy(out, f->bytes, f->value);
    out[f->value] = '\0';
}

static void read_event(counts *c, const field *event)
{
    const uint8_t *p = event->bytes, *end = p + event->value;
    for (field f; next(&p, end, &f);) {
        if (f.number == 9 && f.value == 1) c->begins++;
        if (f.number == 9 && f.value == 2) c->ends++;
        if (f.number == 9 && f.value == 4) c->values++;
        if (f.number == 23) text(c->name, &f);
        if (f.number == 44) memcpy(&c->value, f.bytes, sizeof(c->value));
    }
    if (c->begins - c->ends > c->deepest) c->deepest = c->begins - c->ends;
    CHECK(c->ends <= c->begins);
}

static void read_track(counts *c, const field *track)
{
    const uint8_t *p = track->bytes, *end = p + track->value;
    for (field f; next(&p, end, &f);) {
        const uint8_t *q = f.bytes;
        if (f.number == 3) c->processes++;
        if (f.number == 4) c->threads++;
        if (f.number == 8) c->counters++;
        if (f.number != 3 && f.number != 4) continue;
        for (field g; next(&q, f.bytes + f.value, &g);) {
            if (f.number == 3 && g.number == 6) text(c->process, &g);
            if (f.number == 4 && g.number == 5) text(c->thread, &g);
            if (g.number == 1) CHECK_EQ(g.value, getpid());
        }
    }
}

static counts read_trace(const uint8_t *data, size_t size)
{
    counts c = {0};
    const uint8_t *p = data, *end = data + size;
    for (field one; next(&p, end, &one);) {
        CHECK_EQ(one.number, 1);
        const uint8_t *q = one.bytes;
        for (field f; next(&q, one.bytes + one.value, &f);) {
            if (f.number == 11) read_event(&c, &f);
            if (f.number == 60) read_track(&c, &f);
        }
    }
    return c;
}

static int file(void)
{
    const int fd = memfd_create("trace", MFD_CLOEXEC);
    CHECK(fd >= 0);
    return fd;
}

static counts read_file(int fd)
{
    const off_t size = lseek(fd, 0, SEEK_END);
    CHECK(size > 0);
    uint8_t *data = malloc((size_t)size); /* of the test's own */
    CHECK(data && pread(fd, data, (size_t)size, 0) == size);
    const counts c = read_trace(data, (size_t)size);
    free(data);
    close(fd);
    return c;
}

static void nothing_without_a_trace(void)
{
    uint64_t dropped = 7;
    CHECK(!stk_trace_on());
    CHECK_EQ(stk_trace_begin("x"), 0);
    stk_trace_end(0);
    stk_trace_end(1);
    CHECK_EQ(stk_trace_counter(0, 1), STK_OK);
    CHECK_EQ(stk_trace_counter(STK_TRACE_COUNTERS, 1), STK_EINVAL);
    CHECK_EQ(stk_trace_stop(&dropped, NULL), STK_OK);
    CHECK_EQ(dropped, 0);
}

static void *work(void *name)
{
    stk_trace_thread(name);
    stk_trace_thread("not this");
    for (int i = 0; i < 1000; i++) stk_trace_end(stk_trace_begin("work"));
    return NULL;
}

static void slices_and_values(void)
{
    const int fd = file();
    const stk_trace_opts opts = {.process_name = "the process"};
    stk_diag diag;
    CHECK_EQ(stk_trace_start(fd, &opts, &diag), STK_OK);
    CHECK_EQ(stk_trace_start(fd, NULL, &diag), STK_EAGAIN);
    CHECK(strstr(diag.text, "already"));
    CHECK(stk_trace_on());
    const uint64_t outer = stk_trace_begin("outer"), inner = stk_trace_begin("inner");
    CHECK(outer && inner);
    for (int i = 0; i < 10; i++) CHECK_EQ(stk_trace_counter(i % 2 ? 3 : 63, i / 4.0), STK_OK);
    stk_trace_end(inner);
    stk_trace_end(outer);

    stk_thread threads[3] = {0};
    for (int i = 0; i < 3; i++)
        CHECK_EQ(stk_thread_start(&threads[i], "name of the os", work, "the thread"), STK_OK);
    for (int i = 0; i < 3; i++) stk_thread_join(&threads[i]);
    uint64_t dropped;
    CHECK_EQ(stk_trace_stop(&dropped, &diag), STK_OK);
    CHECK_EQ(dropped, 0);
    stk_trace_end(outer); /* of a trace that has ended */

    const counts c = read_file(fd);
    CHECK_EQ(c.processes, 1);
    CHECK_EQ(c.threads, 4);
    CHECK_EQ(c.counters, 2);
    CHECK_EQ(c.values, 10);
    CHECK_EQ(c.begins, 3002);
    CHECK_EQ(c.ends, 3002);
    CHECK(c.value == 2.25 && c.deepest >= 2);
    CHECK(!strcmp(c.process, "the process") && !strcmp(c.thread, "the thread"));
    CHECK(!strcmp(c.name, "work"));
}

static void long_names_are_cut_between_characters(void)
{
    const int fd = file();
    char name[403];
    for (int i = 0; i < 201; i++) memcpy(name + 2 * i, "\xc3\xa9", 2); /* e with an accent */
    memmove(name + 1, name, 401);
    name[0] = '-';
    name[402] = '\0';
    CHECK_EQ(stk_trace_start(fd, NULL, NULL), STK_OK);
    stk_trace_end(stk_trace_begin(name));
    CHECK_EQ(stk_trace_stop(NULL, NULL), STK_OK);
    const counts c = read_file(fd);
    CHECK_EQ(strlen(c.name), 199);
    CHECK_EQ((uint8_t)c.name[198], 0xa9);
}

static void *drain(void *arg)
{
    const int *ends = arg;
    uint8_t *data = malloc(1 << 20);
    size_t size = 0;
    for (ssize_t n; (n = read(ends[0], data + size, (1 << 20) - size)) > 0;) size += (size_t)n;
    const counts c = read_trace(data, size);
    CHECK(c.begins > 100);
    CHECK_EQ(c.begins, c.ends);
    CHECK_EQ(c.deepest, 2);
    free(data);
    return NULL;
}

/* A pipe that nobody reads takes 64 KiB, and then the buffer is full. */
static void what_finds_no_room_is_counted(void)
{
    int ends[2];
    CHECK_EQ(pipe(ends), 0);
    CHECK_EQ(stk_trace_start(ends[1], &(stk_trace_opts){.buffer_size = 1}, NULL), STK_OK);
    const uint64_t outer = stk_trace_begin("outer");
    for (int i = 0; i < 20000; i++) stk_trace_end(stk_trace_begin("inner"));
    stk_trace_end(outer);
    stk_thread reader = {0};
    CHECK_EQ(stk_thread_start(&reader, "reader", drain, ends), STK_OK);
    uint64_t dropped = 0;
    CHECK_EQ(stk_trace_stop(&dropped, NULL), STK_OK);
    CHECK(dropped > 1000 && dropped < 20000);
    close(ends[1]);
    stk_thread_join(&reader);
    close(ends[0]);
}

static void a_file_that_cannot_be_written(void)
{
    stk_diag diag = {0};
    const int fd = open("/dev/null", O_RDONLY);
    CHECK_EQ(stk_trace_start(fd, NULL, NULL), STK_OK);
    for (int i = 0; i < 100000; i++) stk_trace_end(stk_trace_begin("x"));
    CHECK_EQ(stk_trace_stop(NULL, &diag), STK_EIO);
    CHECK(strstr(diag.text, "write the trace: Bad file descriptor"));
    close(fd);
}

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define __SANITIZE_THREAD__ 1
#endif
#endif

/* Ends the process; under the thread sanitizer a child of a process with threads starts none. */
static void be_the_child(uint64_t slice)
{
    CHECK(!stk_trace_on());
    stk_trace_end(slice);
    CHECK_EQ(stk_trace_begin("not written"), 0);
    CHECK_EQ(stk_trace_stop(NULL, NULL), STK_OK);
#ifndef __SANITIZE_THREAD__
    const int own = file();
    CHECK_EQ(stk_trace_start(own, NULL, NULL), STK_OK);
    stk_trace_end(stk_trace_begin("of the child"));
    CHECK_EQ(stk_trace_stop(NULL, NULL), STK_OK);
    const counts c = read_file(own);
    CHECK(c.begins == 1 && c.ends == 1 && c.threads == 1);
#endif
    _exit(0);
}

static void a_child_has_a_trace_of_its_own(void)
{
    const int fd = file();
    CHECK_EQ(stk_trace_start(fd, NULL, NULL), STK_OK);
    const uint64_t slice = stk_trace_begin("before");
    const pid_t child = fork();
    if (child == 0) be_the_child(slice);
    int status;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    stk_trace_end(slice);
    CHECK_EQ(stk_trace_stop(NULL, NULL), STK_OK);
    CHECK_EQ(read_file(fd).ends, 1);
}

static void starting_may_fail(void)
{
    stk_err err = STK_OK;
    TORTURE (err) {
        const int fd = file();
        err = stk_trace_start(fd, NULL, NULL);
        CHECK_EQ(stk_trace_on(), err == STK_OK);
        if (!err) stk_trace_end(stk_trace_begin("x"));
        CHECK_EQ(stk_trace_stop(NULL, NULL), STK_OK);
        close(fd);
    }
}

static void packets_that_are_full_say_so(void)
{
    packet p = {.size = 0}, outer = {.size = 0};
    for (int i = 0; i < 100; i++) packet_number(&p, 1, UINT64_MAX);
    CHECK(p.full && p.size <= PACKET_SIZE);
    packet_nest(&outer, 2, &p);
    CHECK(outer.full);
}

TESTS(TEST(nothing_without_a_trace), TEST(slices_and_values),
      TEST(long_names_are_cut_between_characters), TEST(what_finds_no_room_is_counted),
      TEST(a_file_that_cannot_be_written), TEST(a_child_has_a_trace_of_its_own),
      TEST(starting_may_fail), TEST(packets_that_are_full_say_so))
