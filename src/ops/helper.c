#include "ops/helper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/failpoint.h"
#include "base/thread.h"
#include "ops/beside.h"

#define PROGRAM "stoker-decoder"
#define LEAST_FD 5 /* what the helper has as 0 to 4 is made of descriptors from there on */

struct stk_helper {
    pid_t pid;
    int pidfd; /* so that nobody else's process is ever killed */
    int socket, memory;
};

/* --- the program --- */

typedef struct place {
    char *path;
    size_t size;
} place;

static bool look_for_program(void *ctx, const char *folder)
{
    const place *p = ctx;
    const int n = snprintf(p->path, p->size, "%s/" PROGRAM, folder);
    return n > 0 && (size_t)n < p->size && !access(p->path, X_OK);
}

stk_err stk_helper_find(char *path, size_t size, stk_diag *diag)
{
    const char *named = getenv("STOKER_DECODER");
    place p = {.path = path, .size = size};
    if (!named || !*named) {
        if (stk_beside(look_for_program, &p)) return STK_OK;
        return stk_diag_set(diag, STK_EUNSUPPORTED,
                            "the program " PROGRAM
                            " is not there, which decodes in a process of its "
                            "own: it comes with Stoker, beside its library; STOKER_DECODER names "
                            "another place");
    }
    const int n = snprintf(path, size, "%s", named);
    if (n < 0 || (size_t)n >= size)
        return stk_diag_set(diag, STK_ELIMIT, "STOKER_DECODER: the path is too long");
    if (access(path, X_OK))
        return stk_diag_set(diag, STK_EUNSUPPORTED, "STOKER_DECODER: %s: %s", path,
                            errno == ENOENT ? "there is no such program" : "it cannot be executed");
    return STK_OK;
}

/* --- start --- */

/* A descriptor of that number or above, in place of *fd. */
static bool lift(int *fd)
{
    if (*fd < 0 || *fd >= LEAST_FD) return *fd >= 0;
    const int lifted = fcntl(*fd, F_DUPFD_CLOEXEC, LEAST_FD);
    const int errnum = errno;
    close(*fd);
    errno = errnum;
    *fd = lifted;
    return lifted >= 0;
}

static bool make_connection(stk_helper *h, int *theirs)
{
    int ends[2];
    if (stk_failpoint("helper.socket")) return false;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends)) return false;
    h->socket = ends[0];
    *theirs = ends[1];
    h->memory = stk_failpoint("helper.memory") ? -1 : memfd_create("stoker-decoder", MFD_CLOEXEC);
    return h->memory >= 0 && lift(&h->socket) && lift(theirs) && lift(&h->memory);
}

static int add_files(posix_spawn_file_actions_t *files, int socket, int memory)
{
    int err = posix_spawn_file_actions_addopen(files, 0, "/dev/null", O_RDONLY, 0);
    if (!err) err = posix_spawn_file_actions_addopen(files, 1, "/dev/null", O_WRONLY, 0);
    if (!err) err = posix_spawn_file_actions_adddup2(files, socket, STK_HELPER_SOCKET);
    if (!err) err = posix_spawn_file_actions_adddup2(files, memory, STK_HELPER_MEMORY);
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 34) /* otherwise the program closes them itself */
    if (!err) err = posix_spawn_file_actions_addclosefrom_np(files, STK_HELPER_MEMORY + 1);
#endif
    return err;
}

static int add_attributes(posix_spawnattr_t *how)
{
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    int err = posix_spawnattr_setsigmask(how, &none); /* threads of ours block them all */
    if (!err) err = posix_spawnattr_setsigdefault(how, &all);
    if (!err)
        err = posix_spawnattr_setflags(how, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                                POSIX_SPAWN_SETPGROUP);
    return err;
}

static int spawn(const char *path, int socket, int memory, pid_t *out)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t how;
    char parent[24];
    char *const argv[] = {(char *)path, parent, NULL};
    snprintf(parent, sizeof(parent), "%ld", (long)getpid());
    if (stk_failpoint("helper.spawn")) return errno;
    int err = posix_spawn_file_actions_init(&files);
    if (err) return err;
    err = posix_spawnattr_init(&how);
    if (!err) {
        err = add_files(&files, socket, memory);
        if (!err) err = add_attributes(&how);
        if (!err) err = posix_spawn(out, path, &files, &how, argv, environ);
        posix_spawnattr_destroy(&how);
    }
    posix_spawn_file_actions_destroy(&files);
    return err;
}

stk_err stk_helper_start(const char *path, stk_helper **out, stk_diag *diag)
{
    int theirs = -1;
    stk_err err = STK_OK;
    stk_helper *h = *out = stk_alloc(sizeof(*h));
    if (!h) return stk_diag_set(diag, STK_ENOMEM, "no memory for a helper process");
    *h = (stk_helper){.pidfd = -1, .socket = -1, .memory = -1};
    if (!make_connection(h, &theirs))
        err = stk_diag_errno(diag, errno, "no descriptors for a helper process");
    const int failed = err ? 0 : spawn(path, theirs, h->memory, &h->pid);
    if (failed) {
        h->pid = 0;
        err = stk_diag_errno(diag, failed, "%s does not start", path);
        if (err == STK_ENOTFOUND)
            err = stk_diag_set(diag, STK_EIO, "%s is not there any more", path);
    }
    if (!err && (h->pidfd = (int)syscall(SYS_pidfd_open, h->pid, 0)) < 0)
        err = stk_diag_errno(diag, errno, "a helper process cannot be watched");
    if (theirs >= 0) close(theirs);
    if (err) stk_helper_end(out, 0, NULL);
    return err;
}

/* --- use --- */

int stk_helper_memory(const stk_helper *h)
{
    return h->memory;
}

pid_t stk_helper_pid(const stk_helper *h)
{
    return h->pid;
}

bool stk_helper_alive(const stk_helper *h)
{
    struct pollfd ends[] = {{.fd = h->socket, .events = POLLIN},
                            {.fd = h->pidfd, .events = POLLIN}};
    return poll(ends, 2, 0) == 0;
}

/* Waits until one of them has something to say; the first has the last word. */
static stk_err wait_for(int fd, int end, int64_t deadline)
{
    struct pollfd on[] = {{.fd = fd, .events = POLLIN}, {.fd = end, .events = POLLIN}};
    for (;;) {
        const int64_t left = deadline - stk_clock_ns();
        const struct timespec t = {left / 1000000000, left % 1000000000};
        const int n = left < 0 ? 0 : ppoll(on, 2, &t, NULL);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return STK_EEND;
        if (n == 0) return STK_ETIMEOUT;
        return on[0].revents ? STK_OK : STK_ECANCELLED;
    }
}

stk_err stk_helper_ask(stk_helper *h, const void *message, size_t message_size, void *answer,
                       size_t room, size_t *size, int64_t deadline, int end)
{
    ssize_t n;
    *size = 0;
    do n = send(h->socket, message, message_size, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    if (n != (ssize_t)message_size) return STK_EEND;
    const stk_err err = wait_for(h->socket, end, deadline);
    if (err) return err;
    do n = recv(h->socket, answer, room, MSG_TRUNC | MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    if (n <= 0) return STK_EEND;
    *size = (size_t)n;
    return STK_OK;
}

/* --- end --- */

static void wait_for_end(stk_helper *h, stk_fate *fate)
{
    siginfo_t info = {0};
    int n;
    do n = waitid(P_PIDFD, (id_t)h->pidfd, &info, WEXITED);
    while (n && errno == EINTR);
    if (n) return; /* somebody has waited for it */
    fate->known = true;
    if (info.si_code == CLD_EXITED)
        fate->status = info.si_status;
    else
        fate->signal = info.si_status;
}

void stk_helper_end(stk_helper **ph, int64_t patience, stk_fate *fate)
{
    stk_helper *h = *ph;
    stk_fate own = {0};
    *ph = NULL;
    if (!h) return;
    if (h->socket >= 0) {
        (void)shutdown(h->socket, SHUT_RDWR); /* a child of fork may have it, too */
        close(h->socket);
    }
    if (h->pidfd >= 0) {
        if (wait_for(h->pidfd, -1, stk_clock_ns() + patience))
            (void)syscall(SYS_pidfd_send_signal, h->pidfd, SIGKILL, NULL, 0);
        wait_for_end(h, &own);
        close(h->pidfd);
    }
    else if (h->pid) {
        (void)kill(h->pid, SIGKILL); /* there is no pidfd */
        (void)waitpid(h->pid, NULL, 0);
    }
    if (h->memory >= 0) close(h->memory);
    if (fate) *fate = own;
    stk_free(h);
}

void stk_fate_print(const stk_fate *f, char *dst, size_t size)
{
    static const struct {
        int number;
        const char *name;
    } names[] = {{SIGSEGV, "SIGSEGV"}, {SIGBUS, "SIGBUS"},   {SIGABRT, "SIGABRT"},
                 {SIGILL, "SIGILL"},   {SIGFPE, "SIGFPE"},   {SIGKILL, "SIGKILL"},
                 {SIGTRAP, "SIGTRAP"}, {SIGSYS, "SIGSYS"},   {SIGTERM, "SIGTERM"},
                 {SIGINT, "SIGINT"},   {SIGXCPU, "SIGXCPU"}, {SIGXFSZ, "SIGXFSZ"}};
    if (!f->known) {
        snprintf(dst, size, "has ended");
        return;
    }
    if (!f->signal) {
        snprintf(dst, size, "ended with status %d", f->status);
        return;
    }
    snprintf(dst, size, "died of signal %d", f->signal);
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (names[i].number == f->signal) snprintf(dst, size, "died of %s", names[i].name);
}
