#include "base/failpoint.h"

#include <stddef.h>

#if defined(STK_FAULTS) || defined(STK_FAILPOINTS)

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Test equipment: plain pthreads and one global table, because it must work before, during and
 * after everything else. */
#define MAX_POINTS 16

struct point {
    char name[48];
    int errnum; /* 0: hold */
    long from;  /* first hit that counts */
    bool on;    /* and every later one */
    long hits;
    int held;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct point points[MAX_POINTS];
static size_t num_points;
static unsigned generation;
static bool seen_environment;

static int errno_of(const char *name)
{
    static const struct {
        const char *name;
        int value;
    } known[] = {{"EIO", EIO},       {"ENOENT", ENOENT}, {"EACCES", EACCES}, {"ENOMEM", ENOMEM},
                 {"ENOSPC", ENOSPC}, {"EAGAIN", EAGAIN}, {"EMFILE", EMFILE}, {"hold", 0}};
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (!strcmp(known[i].name, name)) return known[i].value;
    return -1;
}

/* "NAME=ERRNO@N+" */
static bool parse_point(char *text, struct point *p)
{
    char *what = strchr(text, '=');
    if (!what || what == text || (size_t)(what - text) >= sizeof(p->name)) return false;
    *what++ = 0;
    *p = (struct point){.from = 1, .on = true};
    char *at = strchr(what, '@');
    if (at) {
        char *end;
        *at++ = 0;
        p->from = strtol(at, &end, 10);
        p->on = *end == '+';
        if (p->from < 1 || end == at || end[p->on]) return false;
    }
    memcpy(p->name, text, strlen(text) + 1);
    p->errnum = errno_of(what);
    return p->errnum >= 0;
}

static bool set_locked(const char *text)
{
    num_points = 0;
    generation++;
    pthread_cond_broadcast(&changed);
    char *copy = text ? strdup(text) : NULL, *rest = NULL;
    bool good = !text || copy;
    for (char *p = copy ? strtok_r(copy, ";", &rest) : NULL; p && good;
         p = strtok_r(NULL, ";", &rest)) {
        good = num_points < MAX_POINTS && parse_point(p, &points[num_points]);
        if (good) num_points++;
    }
    free(copy);
    return good;
}

bool stk_failpoints_set(const char *text)
{
    pthread_mutex_lock(&lock);
    seen_environment = true;
    bool good = set_locked(text);
    pthread_mutex_unlock(&lock);
    return good;
}

static struct point *find_locked(const char *name)
{
    if (!seen_environment) {
        seen_environment = true;
        if (!set_locked(getenv("STK_FAILPOINTS"))) abort(); /* a test with a typo must not pass */
    }
    for (size_t i = 0; i < num_points; i++)
        if (!strcmp(points[i].name, name)) return &points[i];
    return NULL;
}

bool stk_failpoint(const char *name)
{
    int errnum = 0;
    pthread_mutex_lock(&lock);
    struct point *p = find_locked(name);
    if (p) {
        const long hit = ++p->hits;
        const bool counts = p->on ? hit >= p->from : hit == p->from;
        if (counts) errnum = p->errnum;
        if (counts && !errnum) {
            const unsigned now = generation;
            p->held++;
            pthread_cond_broadcast(&changed);
            while (now == generation) pthread_cond_wait(&changed, &lock);
        }
    }
    pthread_mutex_unlock(&lock);
    if (errnum) errno = errnum;
    return errnum != 0;
}

void stk_failpoint_await(const char *name)
{
    pthread_mutex_lock(&lock);
    for (;;) {
        const struct point *p = find_locked(name);
        if (p && p->held) break;
        pthread_cond_wait(&changed, &lock);
    }
    pthread_mutex_unlock(&lock);
}

#endif
