#include "ops/helper.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <stoker/clip.h>

#include "base/alloc.h"
#include "base/failpoint.h"
#include "base/thread.h"
#include "ops/recipe.h"
#include "ops/wire.h"
#include "tests/check.h"

#define LONG (INT64_C(100) * 1000000000)

static char program[4096];

static stk_helper *start(void)
{
    stk_helper *h;
    stk_diag diag;
    CHECK_EQ(stk_helper_find(program, sizeof(program), &diag), STK_OK);
    if (stk_helper_start(program, &h, &diag)) check_fail(__FILE__, __LINE__, diag.text);
    CHECK(stk_helper_pid(h) > 0 && stk_helper_memory(h) > 4);
    return h;
}

/* A hello that it does not understand, which it says. */
static stk_err ask(stk_helper *h, int64_t timeout, int end)
{
    static uint8_t answer[1 << 16];
    size_t size;
    const stk_err err =
        stk_helper_ask(h, "?", 1, answer, sizeof(answer), &size, stk_clock_ns() + timeout, end);
    CHECK(err || (size > 1000 && size < sizeof(answer)));
    return err;
}

/* Makes it an isolated decode_wav. */
static void greet(stk_helper *h)
{
    struct {
        stk_wire_hello hello;
        uint8_t recipe[1000];
    } m = {{.build = STK_WIRE_BUILD, .sizes = stk_wire_sizes()}, {0}};
    stk_op *op = stk_op_decode_wav(&(stk_audio_opts){.seconds = 1}, NULL);
    stk_buffer *recipe;
    stk_wire_reply reply;
    size_t size;
    CHECK_EQ(stk_recipe_write(op, &recipe, NULL), STK_OK);
    memcpy(m.recipe, stk_buffer_data(recipe), stk_buffer_size(recipe));
    CHECK_EQ(stk_helper_ask(h, &m, sizeof(m.hello) + stk_buffer_size(recipe), &reply, sizeof(reply),
                            &size, stk_clock_ns() + LONG, -1),
             STK_OK);
    CHECK(size == sizeof(reply) && !reply.number && !reply.diag.err);
    stk_buffer_unref(&recipe);
    stk_op_unref(&op);
}

/* For a sample without bytes. */
static void ask_sample(stk_helper *h)
{
    const stk_wire_request r = {.number = 9, .num_parts = 1, .sizes = {STK_WIRE_NO_BYTES}};
    stk_wire_reply reply;
    size_t size;
    CHECK_EQ(
        stk_helper_ask(h, &r, sizeof(r), &reply, sizeof(reply), &size, stk_clock_ns() + LONG, -1),
        STK_OK);
    CHECK(reply.number == 9 && reply.diag.err == STK_EINVAL);
}

static int num_descriptors(pid_t pid)
{
    char path[64];
    int n = 0;
    snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
    DIR *d = opendir(path);
    CHECK(d);
    for (const struct dirent *e; (e = readdir(d));) n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

static void finds_its_program(void)
{
    char path[4096], *named = strdup(getenv("STOKER_DECODER"));
    stk_diag diag;
    CHECK(named);
    CHECK_EQ(stk_helper_find(path, 3, &diag), STK_ELIMIT);
    setenv("STOKER_DECODER", "/nowhere/at/all", 1);
    CHECK_EQ(stk_helper_find(path, sizeof(path), &diag), STK_EUNSUPPORTED);
    CHECK(strstr(diag.text, "no such program"));
    setenv("STOKER_DECODER", "/proc/self/status", 1);
    CHECK_EQ(stk_helper_find(path, sizeof(path), &diag), STK_EUNSUPPORTED);
    CHECK(strstr(diag.text, "executed"));
    setenv("STOKER_DECODER", named, 1);
    CHECK_EQ(stk_helper_find(path, sizeof(path), &diag), STK_OK);
    CHECK(!strcmp(path, named));
    free(named);
}

/* It has none of ours, though they are open across exec, and blocks no signal. */
static void inherits_nothing(void)
{
    char line[256], path[64];
    int mine = fcntl(0, F_DUPFD, 50);
    sigset_t all, before;
    sigfillset(&all);
    CHECK_EQ(pthread_sigmask(SIG_SETMASK, &all, &before), 0);
    stk_helper *h = start();
    CHECK_EQ(pthread_sigmask(SIG_SETMASK, &before, NULL), 0);
    greet(h);
    CHECK_EQ(getpgid(stk_helper_pid(h)), stk_helper_pid(h));
    CHECK_EQ(num_descriptors(stk_helper_pid(h)), STK_HELPER_MEMORY + 1);
    snprintf(path, sizeof(path), "/proc/%d/status", (int)stk_helper_pid(h));
    FILE *f = fopen(path, "r");
    CHECK(f);
    while (fgets(line, sizeof(line), f))
        if (!strncmp(line, "SigBlk:", 7)) CHECK(!strcmp(line, "SigBlk:\t0000000000000000\n"));
    fclose(f);
    stk_fate fate;
    stk_helper_end(&h, LONG, &fate);
    CHECK(!h && fate.known && !fate.signal && !fate.status);
    close(mine);
}

/* Descriptors 0 to 4 are no others than in any other program. */
static void low_descriptors(void)
{
    const int kept = fcntl(0, F_DUPFD_CLOEXEC, 60);
    close(0);
    stk_helper *h = start();
    CHECK(stk_helper_memory(h) > 4);
    CHECK_EQ(ask(h, LONG, -1), STK_OK);
    stk_helper_end(&h, LONG, NULL);
    if (kept >= 0) CHECK_EQ(dup2(kept, 0), 0);
    close(kept);
}

static void dies(void)
{
    char text[64];
    stk_fate fate;
    stk_helper *h = start();
    CHECK(stk_helper_alive(h));
    CHECK_EQ(kill(stk_helper_pid(h), SIGKILL), 0);
    CHECK_EQ(ask(h, LONG, -1), STK_EEND);
    CHECK(!stk_helper_alive(h));
    stk_helper_end(&h, LONG, &fate);
    CHECK(fate.known && fate.signal == SIGKILL);
    stk_fate_print(&fate, text, sizeof(text));
    CHECK(!strcmp(text, "died of SIGKILL"));
    stk_fate_print(&(stk_fate){.known = true, .status = 3}, text, sizeof(text));
    CHECK(!strcmp(text, "ended with status 3"));
    stk_fate_print(&(stk_fate){.known = true, .signal = 63}, text, sizeof(text));
    CHECK(!strcmp(text, "died of signal 63"));
    stk_fate_print(&(stk_fate){0}, text, sizeof(text));
    CHECK(!strcmp(text, "has ended"));
}

/* A stopped one neither answers nor ends, until it is killed. */
static void is_stuck(void)
{
    stk_fate fate;
    stk_helper *h = start();
    CHECK_EQ(kill(stk_helper_pid(h), SIGSTOP), 0);
    CHECK_EQ(ask(h, 1000000, -1), STK_ETIMEOUT);
    int end = eventfd(1, EFD_CLOEXEC);
    CHECK_EQ(ask(h, LONG, end), STK_ECANCELLED);
    close(end);
    stk_helper_end(&h, 1000000, &fate);
    CHECK_EQ(fate.signal, SIGKILL);
}

/* Somebody else's wait, as programs that wait for all children have: nothing hangs. */
static void is_waited_for_by_others(void)
{
    stk_fate fate;
    stk_helper *h = start();
    CHECK_EQ(kill(stk_helper_pid(h), SIGTERM), 0);
    CHECK_EQ(waitpid(-1, NULL, 0), stk_helper_pid(h));
    CHECK_EQ(ask(h, LONG, -1), STK_EEND);
    stk_helper_end(&h, LONG, &fate);
    CHECK(!fate.known);
}

/* The program that started it is killed: it ends, though a child of that has the socket, too. */
static void parent_dies(void)
{
    int pids[2], pid[2];
    CHECK_EQ(pipe(pids), 0);
    const pid_t parent = fork();
    if (parent == 0) {
        stk_helper *h = start();
        greet(h);
        pid[0] = stk_helper_pid(h);
        pid[1] = fork();
        if (pid[1] && write(pids[1], pid, sizeof(pid)) < 0) _exit(1);
        pause();
    }
    close(pids[1]);
    CHECK_EQ(read(pids[0], pid, sizeof(pid)), sizeof(pid));
    struct pollfd helper = {.fd = (int)syscall(SYS_pidfd_open, pid[0], 0), .events = POLLIN};
    CHECK(helper.fd >= 0);
    CHECK_EQ(kill(parent, SIGKILL), 0);
    CHECK_EQ(poll(&helper, 1, 100000), 1);
    CHECK_EQ(kill(pid[1], SIGKILL), 0);
    CHECK_EQ(waitpid(parent, NULL, 0), parent);
    close(helper.fd);
    close(pids[0]);
}

static void *start_in_thread(void *arg)
{
    stk_helper *h = start();
    greet(h);
    *(stk_helper **)arg = h;
    return NULL;
}

/* The thread that started it ends, and others go on with it. */
static void thread_ends(void)
{
    stk_helper *h;
    stk_thread t = {0};
    CHECK_EQ(stk_thread_start(&t, "starter", start_in_thread, &h), STK_OK);
    stk_thread_join(&t);
    ask_sample(h);
    CHECK(stk_helper_alive(h));
    stk_helper_end(&h, LONG, NULL);
}

static void cannot_start(void)
{
    static const char *const points[] = {"helper.socket=EMFILE", "helper.memory=ENOMEM",
                                         "helper.spawn=EAGAIN"};
    const int before = num_descriptors(getpid());
    stk_helper *h;
    stk_diag diag;
    for (size_t i = 0; i < sizeof(points) / sizeof(*points); i++) {
        CHECK(stk_failpoints_set(points[i]));
        CHECK_EQ(stk_helper_start(program, &h, &diag), i == 1 ? STK_ENOMEM : STK_EIO);
        CHECK(!h && diag.text[0]);
    }
    CHECK(stk_failpoints_set(NULL));
    CHECK_EQ(stk_helper_start("/nowhere/at/all", &h, &diag), STK_EIO);
    CHECK(strstr(diag.text, "/nowhere/at/all is not there any more"));
    stk_err err;
    TORTURE (err) {
        err = stk_helper_start(program, &h, &diag);
        stk_helper_end(&h, 0, NULL);
    }
    CHECK_EQ(num_descriptors(getpid()), before);
    CHECK_EQ(waitpid(-1, NULL, WNOHANG), -1); /* no child is left */
}

TESTS(TEST(finds_its_program), TEST(inherits_nothing), TEST(low_descriptors), TEST(dies),
      TEST(is_stuck), TEST(is_waited_for_by_others), TEST(parent_dies), TEST(thread_ends),
      TEST(cannot_start))
