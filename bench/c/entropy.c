/* SPDX-License-Identifier: BSD-2-Clause
 *
 * entropy: what no JPEG loader can go below while it decodes whole files: the entropy decoding.
 *
 *     entropy LIST
 *
 * Reads each file named in LIST (a line each) into memory by read(), then runs
 * jpeg_read_coefficients over it, whole and once, on one thread.  Only the decoding is the
 * limit; reading is timed apart.  Prints one line of JSON, times in CPU seconds.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <jpeglib.h> /* needs FILE and size_t first */

typedef struct file {
    unsigned char *data; /* grows to the largest file */
    size_t size, capacity;
} file;

typedef struct fatal {
    struct jpeg_error_mgr base;
    jmp_buf jump;
} fatal;

typedef struct totals {
    long images;
    double bytes, read_s, decode_s;
} totals;

static double cpu_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void on_fatal(j_common_ptr info)
{
    longjmp(((fatal *)(void *)info->err)->jump, 1);
}

static bool reserve(file *f, size_t size)
{
    if (size <= f->capacity) return true;
    unsigned char *data = realloc(f->data, size);
    if (!data) return false;
    f->data = data;
    f->capacity = size;
    return true;
}

static bool read_file(const char *path, file *f)
{
    struct stat st;
    bool ok = false;
    f->size = 0;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    if (fstat(fd, &st) || st.st_size <= 0 || !reserve(f, (size_t)st.st_size)) goto done;

    while (f->size < (size_t)st.st_size) {
        const ssize_t got = read(fd, f->data + f->size, (size_t)st.st_size - f->size);
        if (got <= 0) goto done;
        f->size += (size_t)got;
    }
    ok = true;
done:
    close(fd);
    return ok;
}

static bool decode(struct jpeg_decompress_struct *jpeg, fatal *err, const file *f)
{
    if (setjmp(err->jump)) {
        jpeg_abort_decompress(jpeg);
        return false;
    }
    jpeg_mem_src(jpeg, f->data, f->size);
    (void)jpeg_read_header(jpeg, TRUE);
    if (!jpeg_read_coefficients(jpeg)) return false;
    return jpeg_finish_decompress(jpeg) == TRUE;
}

static bool measure(struct jpeg_decompress_struct *jpeg, fatal *err, const char *path, file *f,
                    totals *t)
{
    const double start = cpu_seconds();
    if (!read_file(path, f)) return false;
    const double loaded = cpu_seconds();
    if (!decode(jpeg, err, f)) return false;
    t->decode_s += cpu_seconds() - loaded;
    t->read_s += loaded - start;
    t->bytes += (double)f->size;
    t->images++;
    return true;
}

static int run(FILE *list)
{
    struct jpeg_decompress_struct jpeg;
    fatal err;
    file f = {0};
    totals t = {0};
    char *line = NULL;
    size_t room = 0;
    int status = EXIT_SUCCESS;

    jpeg.err = jpeg_std_error(&err.base);
    err.base.error_exit = on_fatal;
    jpeg_create_decompress(&jpeg);
    for (ssize_t n = getline(&line, &room, list); n > 0; n = getline(&line, &room, list)) {
        line[strcspn(line, "\n")] = '\0';
        if (measure(&jpeg, &err, line, &f, &t)) continue;
        (void)fprintf(stderr, "entropy: %s: cannot be read or decoded\n", line);
        status = EXIT_FAILURE;
        break;
    }
    (void)printf("{\"images\": %ld, \"bytes\": %.0f, \"read_s\": %.6f, \"decode_s\": %.6f}\n",
                 t.images, t.bytes, t.read_s, t.decode_s);
    jpeg_destroy_decompress(&jpeg);
    free(line);
    free(f.data);
    return status;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        (void)fprintf(stderr, "usage: entropy LIST\n");
        return EXIT_FAILURE;
    }
    FILE *list = fopen(argv[1], "r");
    if (!list) {
        perror(argv[1]);
        return EXIT_FAILURE;
    }
    const int status = run(list);
    (void)fclose(list);
    return status;
}
