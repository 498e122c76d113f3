/*
 * resample_bench: microseconds for one image through stk_resample, by each table of kernels.
 *
 *     resample_bench [SRC_WIDTH SRC_HEIGHT [DST_WIDTH DST_HEIGHT [FILTER]]]
 *
 * FILTER is a number of stk_filter.  The image is planned anew each time, as random crops are,
 * and converted from YCbCr to RGB.  The best of many rounds is printed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/alloc.h"
#include "transform/resample_impl.h"

enum { ROUNDS = 40, EACH = 20 };

typedef struct times {
    double plan, rows; /* microseconds */
} times;

/* Time that this thread ran, so that others on the machine matter less. */
static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static bool once(stk_resample *r, const stk_resample_params *p, const uint8_t *src, uint8_t *dst,
                 times *t)
{
    double start = now_us();
    if (stk_resample_plan(r, p)) return false;
    t->plan += (now_us() - start) / EACH;
    start = now_us();
    int32_t first, end;
    stk_resample_rows(r, &first, &end);
    stk_resample_start(r, dst, (ptrdiff_t)p->dst_width * 3, first);
    while (stk_resample_row(r, src + (ptrdiff_t)first++ * p->src_width * 3)) {
    }
    t->rows += (now_us() - start) / EACH;
    return stk_resample_done(r);
}

static bool measure(const stk_kernels *k, const stk_resample_params *p, const uint8_t *src,
                    uint8_t *dst)
{
    stk_resample *r;
    times best = {1e9, 1e9};
    if (stk_resample_new(&r)) return false;
    stk_resample_use_kernels(r, k);
    bool ok = true;
    for (int round = 0; round < ROUNDS && ok; round++) {
        times t = {0, 0};
        for (int i = 0; i < EACH && ok; i++) ok = once(r, p, src, dst, &t);
        if (t.plan + t.rows < best.plan + best.rows) best = t;
    }
    if (ok)
        printf("%-8s plan %6.1f us   rows %6.1f us   together %6.1f us\n", k->name, best.plan,
               best.rows, best.plan + best.rows);
    stk_resample_free(&r);
    return ok;
}

int main(int argc, char **argv)
{
    int32_t v[5] = {350, 300, 224, 224, STK_FILTER_BILINEAR};
    for (int i = 1; i < argc && i <= 5; i++) v[i - 1] = (int32_t)strtol(argv[i], NULL, 10);
    const stk_resample_params p = {.src_width = v[0],
                                   .src_height = v[1],
                                   .x1 = v[0],
                                   .y1 = v[1],
                                   .dst_width = v[2],
                                   .dst_height = v[3],
                                   .channels = 3,
                                   .filter = (stk_filter)v[4],
                                   .ycc_to_rgb = true};
    const size_t size = (size_t)v[0] * (size_t)v[1] * 3;
    uint8_t *src = stk_alloc(size), *dst = stk_alloc((size_t)v[2] * (size_t)v[3] * 3);
    bool ok = src && dst;
    for (size_t i = 0; ok && i < size; i++) src[i] = (uint8_t)(i * 2654435761u >> 13);

    printf("%dx%d to %dx%d, filter %d\n", v[0], v[1], v[2], v[3], v[4]);
    const stk_kernels *k;
    for (size_t i = 0; ok && (k = stk_kernels_at(i)); i++) ok = measure(k, &p, src, dst);
    stk_free(src);
    stk_free(dst);
    if (!ok) fprintf(stderr, "resample_bench: sizes out of range, or no memory\n");
    return ok ? 0 : 1;
}
