/* Loading of the module for FFmpeg, where it is not there. */
#include "ops/av.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/check.h"

static char folder[] = "/tmp/stoker-av-XXXXXX";
static char fifo[64];
static int writer = -1; /* keeps whoever loads the FIFO waiting */

static void name_module(const char *path)
{
    CHECK_EQ(setenv("STOKER_AV_MODULE", path, 1), 0);
}

static void says_what_it_looked_for(void)
{
    stk_diag diag = {0};
    name_module("/nonexistent/module.so");
    CHECK(!stk_av_get(&diag));
    CHECK_EQ(diag.err, STK_EUNSUPPORTED);
    CHECK(strstr(diag.text, "STOKER_AV_MODULE: /nonexistent/module.so"));
    CHECK(strstr(diag.text, "install the libraries of FFmpeg"));
    name_module("58");
    CHECK(!stk_av_get(&diag) && strstr(diag.text, "there is no stoker-av-58.so"));
    CHECK(strstr(diag.text, "unset") && strstr(diag.text, "-Dffmpeg_prefixes"));
}

static void *load(void *arg)
{
    (void)arg;
    CHECK(!stk_av_get(NULL)); /* an empty file is no library */
    return NULL;
}

static void let_go(void)
{
    if (writer >= 0) close(writer);
    writer = -1;
}

/* A thread is in the midst of loading when another one forks; the child loads, too.  What loads a
 * FIFO waits for what is written to it; handlers of forks run in the opposite order of their
 * making, so that it is let go of before the loader's own handler waits for it. */
static void forks_in_the_middle_of_loading(void)
{
    pthread_t thread;
    int status;
    CHECK(mkdtemp(folder));
    snprintf(fifo, sizeof(fifo), "%s/module.so", folder);
    CHECK_EQ(mkfifo(fifo, 0600), 0);
    says_what_it_looked_for(); /* so that the loader's handler is there */
    CHECK_EQ(pthread_atfork(let_go, NULL, NULL), 0);
    name_module(fifo);
    CHECK_EQ(pthread_create(&thread, NULL, load, NULL), 0);
    while ((writer = open(fifo, O_WRONLY | O_NONBLOCK | O_CLOEXEC)) < 0) sched_yield();

    const pid_t child = fork();
    if (child == 0) {
        alarm(100); /* the child ends, whatever it waits for */
        name_module("/nonexistent/module.so");
        /* Not by an exit, at which TSan would look for the parent's thread. */
        raise(stk_av_get(NULL) ? SIGTERM : SIGKILL);
    }
    CHECK(child > 0);
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(unlink(fifo), 0);
    CHECK_EQ(rmdir(folder), 0);
}

TESTS(TEST(says_what_it_looked_for), TEST(forks_in_the_middle_of_loading))
