/*
 * CPU-ms an image of the parts of the main job, one thread, on files that are in memory:
 *
 *     decode_bench [-n ROUNDS] FILE.jpg...
 *
 * entropy: jpeg_read_coefficients, whole and once, the limit that the others are divided by.
 * Works are interleaved, and the fastest of all rounds counts.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <jpeglib.h>

#include <stoker/image.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "ops/image_decoder.h"

enum { MAX_FILES = 4096, SIDE = 224 };

static const char *paths[MAX_FILES];
static stk_buffer *files[MAX_FILES];
static size_t num_files;
static uint8_t sample[SIDE * SIDE * 3], exact[SIDE * SIDE * 3];

static double cpu_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static void fail(const char *what)
{
    fprintf(stderr, "%s\n", what);
    exit(1);
}

static void entropy(size_t i)
{
    static struct jpeg_decompress_struct c;
    static struct jpeg_error_mgr err;
    if (!c.err) {
        c.err = jpeg_std_error(&err);
        jpeg_create_decompress(&c);
    }
    jpeg_mem_src(&c, stk_buffer_data(files[i]), stk_buffer_size(files[i]));
    jpeg_read_header(&c, TRUE);
    jpeg_read_coefficients(&c);
    jpeg_finish_decompress(&c);
}

static void draw(void *ctx, uint32_t n, uint32_t out[4])
{
    const uint32_t key[2] = {(uint32_t) * (size_t *)ctx, 1}, counter[4] = {n, 0, 0, 0};
    stk_philox(key, counter, out);
}

static void decode(stk_image_decoder *d, const stk_image_opts *o, size_t i, size_t seed,
                   uint8_t *dst)
{
    stk_diag diag;
    int32_t width, height;
    stk_err err = stk_image_decoder_begin(d, o, stk_buffer_data(files[i]),
                                          stk_buffer_size(files[i]), &width, &height, &diag);
    if (err) fail(diag.text);
    stk_geometry g;
    stk_geometry_draw(o, width, height, draw, &seed, &g);
    const stk_spec spec = stk_image_spec(o, 0, g.width, g.height);
    const stk_tensor t = stk_tensor_over(dst, &spec);
    err = stk_image_decoder_run(d, o, 0, &g, &t, &diag);
    if (err) fail(diag.text);
}

static stk_image_opts options(stk_crop crop, stk_quality quality)
{
    const stk_image_opts o = {
        .width = SIDE, .height = SIDE, .crop = crop, .quality = quality, .flip = 0.5};
    stk_image_opts checked;
    if (stk_image_opts_check(&o, &checked, NULL)) fail("options");
    return checked;
}

static double squared_error(void)
{
    double sum = 0;
    for (size_t i = 0; i < sizeof(sample); i++) {
        const double diff = (double)sample[i] - exact[i];
        sum += diff * diff;
    }
    return sum;
}

/* PSNR of fast against exact: of all values, and of the worst image. */
static void compare(stk_image_decoder *d, stk_crop crop, const char *name)
{
    const stk_image_opts fast = options(crop, STK_QUALITY_FAST);
    const stk_image_opts full = options(crop, STK_QUALITY_EXACT);
    double total = 0, most = 1e-9, decibels = 0;
    for (size_t i = 0; i < num_files; i++) {
        decode(d, &fast, i, i, sample);
        decode(d, &full, i, i, exact);
        const double e = squared_error() / sizeof(sample);
        total += e;
        decibels += 10 * log10(255 * 255 / fmax(e, 1e-9));
        most = fmax(most, e);
    }
    printf("%-16s fast against exact: PSNR %.1f dB, mean of images %.1f, worst image %.1f\n", name,
           10 * log10(255 * 255 / fmax(total / (double)num_files, 1e-9)),
           decibels / (double)num_files, 10 * log10(255 * 255 / most));
}

typedef struct job {
    const char *name;
    stk_image_opts opts;
} job;

enum { ENTROPY, READ, FIRST_JOB };

/* CPU-ms of one piece of work. */
static double once(stk_image_decoder *d, int work, const job *jobs, size_t i)
{
    const double start = cpu_ms();
    if (work == ENTROPY)
        entropy(i);
    else if (work == READ) {
        stk_buffer *buf;
        if (stk_file_read(paths[i], 0, &buf, NULL)) fail(paths[i]);
        stk_buffer_unref(&buf);
    }
    else
        decode(d, &jobs[work - FIRST_JOB].opts, i, i, sample);
    return cpu_ms() - start;
}

/* The fastest of all rounds counts for each file: what other programs do to the caches does not. */
static void measure(stk_image_decoder *d, int rounds)
{
    const job jobs[] = {{"random fast", options(STK_CROP_RANDOM_RESIZED, STK_QUALITY_FAST)},
                        {"random exact", options(STK_CROP_RANDOM_RESIZED, STK_QUALITY_EXACT)},
                        {"center fast", options(STK_CROP_CENTER, STK_QUALITY_FAST)},
                        {"center exact", options(STK_CROP_CENTER, STK_QUALITY_EXACT)}};
    enum { WORKS = FIRST_JOB + sizeof(jobs) / sizeof(jobs[0]) };
    double sum[WORKS] = {0};
    for (size_t i = 0; i < num_files; i++) {
        double best[WORKS];
        for (int round = 0; round < rounds; round++)
            for (int work = 0; work < WORKS; work++) {
                const double ms = once(d, work, jobs, i);
                if (!round || ms < best[work]) best[work] = ms;
            }
        for (int work = 0; work < WORKS; work++) sum[work] += best[work];
    }
    for (int work = 0; work < WORKS; work++)
        printf("%-16s %.3f CPU-ms  %.3f\n",
               work == ENTROPY ? "entropy"
               : work == READ  ? "read"
                               : jobs[work - FIRST_JOB].name,
               sum[work] / (double)num_files, sum[work] / sum[ENTROPY]);
}

int main(int argc, char **argv)
{
    int first = 1, rounds = 5;
    if (argc > 2 && !strcmp(argv[1], "-n")) rounds = (int)strtol(argv[2], NULL, 10), first = 3;
    for (int i = first; i < argc && num_files < MAX_FILES; i++) {
        stk_diag diag;
        paths[num_files] = argv[i];
        if (stk_file_read(argv[i], 0, &files[num_files++], &diag)) fail(diag.text);
    }
    if (!num_files || rounds < 1) fail("usage: decode_bench [-n ROUNDS] FILE.jpg...");
    stk_image_decoder *d;
    if (stk_image_decoder_new(&d, NULL)) fail("no memory");
    measure(d, rounds);
    compare(d, STK_CROP_RANDOM_RESIZED, "random");
    compare(d, STK_CROP_CENTER, "center");
    stk_image_decoder_free(&d);
    for (size_t i = 0; i < num_files; i++) stk_buffer_unref(&files[i]);
    return 0;
}
