/*
 * stk_helper: a process that decodes for one thread: src/helper/main.c, started when first needed.
 *
 *     this process   ══ socket (packets) ══   stoker-decoder
 *                    ══ memory (no name) ══
 *
 * It has no other descriptors of this process but stderr, all signals in their default state, and a
 * process group of its own, so that Ctrl-C is none of its business.  It ends with the socket, and
 * with this process however that dies.
 *
 * Threads: one at a time.
 */
#ifndef STK_OPS_HELPER_H
#define STK_OPS_HELPER_H

#include <sys/types.h>

#include <stoker/error.h>

typedef struct stk_helper stk_helper;

/* Descriptors in the helper. */
enum { STK_HELPER_SOCKET = 3, STK_HELPER_MEMORY = 4 };

/* Writes the path of the program: what STOKER_DECODER names, or what lies beside the library.
 * STK_EUNSUPPORTED: there is none, and how to get it; STK_ELIMIT: longer than `size`. */
STK_NODISCARD stk_err stk_helper_find(char *path, size_t size, stk_diag *diag);

/* STK_EIO: the system has no process or descriptor to give. */
STK_NODISCARD stk_err stk_helper_start(const char *path, stk_helper **out, stk_diag *diag);

/* False: it has ended by itself while nobody asked it. */
bool stk_helper_alive(const stk_helper *h);

int stk_helper_memory(const stk_helper *h);
pid_t stk_helper_pid(const stk_helper *h);

/* Sends one packet and waits for the one that answers; *size may be more than `room`, and then it
 * was cut.  `end` (-1: none) is readable when nobody wants the answer any more.  After a failure
 * the helper is of no use: end it.
 * STK_EEND: it has ended, or speaks no more; STK_ETIMEOUT: `deadline` (stk_clock_ns) has passed;
 * STK_ECANCELLED: `end`. */
STK_NODISCARD stk_err stk_helper_ask(stk_helper *h, const void *message, size_t message_size,
                                     void *answer, size_t room, size_t *size, int64_t deadline,
                                     int end);

/* How a helper ended: by a signal, with a status, or not known, as another part of the program has
 * waited for it. */
typedef struct stk_fate {
    int signal, status;
    bool known;
} stk_fate;

/* Closes the connection, waits for its end as long as `patience` ns, then kills it.  `fate` may be
 * NULL. */
void stk_helper_end(stk_helper **h, int64_t patience, stk_fate *fate);

/* "died of SIGSEGV", "ended with status 3". */
void stk_fate_print(const stk_fate *f, char *dst, size_t size);

#endif /* STK_OPS_HELPER_H */
