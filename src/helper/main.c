/*
 * stoker-decoder: decodes for an isolated op of another process, which starts it with a socket, a
 * memory and its own process id: see ops/helper.h.
 */
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ops/helper.h"
#include "ops/serve.h"

static volatile pid_t parent; /* never changes once signals come */

/* The system tells that the thread has ended that started this process; others of the parent may go
 * on with it. */
static void look_at_parent(int number)
{
    (void)number;
    if (getppid() != parent) _exit(0);
}

/* Also out of a decoder that never returns.  No SA_RESTART: the thread sanitizer runs handlers when
 * a call returns, and what waits here tries again. */
static void end_with_parent(void)
{
    const struct sigaction act = {.sa_handler = look_at_parent};
    (void)sigaction(SIGUSR1, &act, NULL);
    (void)prctl(PR_SET_PDEATHSIG, SIGUSR1);
    look_at_parent(0); /* it may have died before */
}

/* Nothing lies above what a sample leaves, so it would go back to the system each time: 3 ms for a
 * clip of 16 frames of 224 x 224. */
static void keep_memory(void)
{
#ifdef M_TRIM_THRESHOLD
    (void)mallopt(M_MMAP_THRESHOLD, 32 << 20);
    (void)mallopt(M_TRIM_THRESHOLD, 64 << 20);
#endif
}

static bool read_pid(const char *text)
{
    long pid = 0;
    for (; *text >= '0' && *text <= '9' && pid < 100000000; text++) pid = pid * 10 + (*text - '0');
    parent = (pid_t)pid;
    return !*text && pid > 0;
}

int main(int argc, char **argv)
{
    if (argc != 2 || !read_pid(argv[1])) {
        fprintf(stderr, "%s: it is started by Stoker, for stages that are isolated\n", argv[0]);
        return 2;
    }
    end_with_parent();
    keep_memory();
    (void)syscall(SYS_close_range, STK_HELPER_MEMORY + 1, ~0U, 0);
    return stk_serve(STK_HELPER_SOCKET, STK_HELPER_MEMORY) ? 1 : 0;
}
