#include "progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define WIDTH 24

int64_t progress_clock(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

void progress_init(progress *p)
{
    *p = (progress){.terminal = isatty(STDERR_FILENO), .started = progress_clock()};
}

void progress_show(progress *p, const char *noun, int64_t done, int64_t total)
{
    if (!p->terminal) return;
    const int64_t t = progress_clock();
    if (t - p->shown < 100 * 1000 * 1000) return;
    p->shown = t;
    const double rate = (double)done * 1e9 / (double)(t - p->started + 1);
    if (total > 0) {
        const int64_t part = done < total ? done : total;
        char bar[WIDTH + 1];
        for (int i = 0; i < WIDTH; i++) bar[i] = i < part * WIDTH / total ? '#' : '.';
        bar[WIDTH] = 0;
        fprintf(stderr, "\r[%s] %" PRId64 " of %" PRId64 " %ss, %.0f a second\033[K", bar, done,
                total, noun, rate);
    }
    else {
        fprintf(stderr, "\r%" PRId64 " %ss, %.0f a second\033[K", done, noun, rate);
    }
    fflush(stderr);
}

void progress_fini(progress *p)
{
    if (!p->terminal || !p->shown) return;
    fputs("\r\033[K", stderr);
    fflush(stderr);
    p->shown = 0;
}
