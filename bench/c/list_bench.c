/*
 * Makes a tree of empty files named as ImageNet's, then lists it as Directory does.
 *
 *     list_bench -n 1300000 DIR     1,300 files a folder; DIR is made, and kept for the next time
 *
 * Prints seconds of wall and CPU time until the first sample and until all, and bytes a sample.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <stoker/source.h>

#define FILES_A_FOLDER 1300

static double seconds(clockid_t clock)
{
    struct timespec ts;
    clock_gettime(clock, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static int make_folder(int root, long folder, long num)
{
    char name[64];
    snprintf(name, sizeof(name), "n%08ld", 1440764 + folder);
    if (mkdirat(root, name, 0777) && errno != EEXIST) return -1;
    const int dir = openat(root, name, O_RDONLY | O_DIRECTORY);
    if (dir < 0) return -1;
    for (long i = 0; i < num; i++) {
        snprintf(name, sizeof(name), "n%08ld_%ld.JPEG", 1440764 + folder, 10000 + i * 7 % 89989);
        const int fd = openat(dir, name, O_CREAT | O_WRONLY, 0666);
        if (fd < 0) break;
        close(fd);
    }
    close(dir);
    return 0;
}

/* Only what is missing is made: the number of files is kept in a file beside the tree. */
static int make_tree(const char *path, long num)
{
    char mark[4200], text[32];
    snprintf(mark, sizeof(mark), "%s.files", path);
    snprintf(text, sizeof(text), "%ld\n", num);
    FILE *f = fopen(mark, "r");
    char before[32] = "";
    if (f) {
        if (!fgets(before, sizeof(before), f)) before[0] = 0;
        fclose(f);
    }
    if (!strcmp(before, text)) return 0;
    if (before[0]) {
        fprintf(stderr, "%s holds another number of files: remove it and %s\n", path, mark);
        return -1;
    }
    if (mkdir(path, 0777)) return -1;
    const int root = open(path, O_RDONLY | O_DIRECTORY);
    if (root < 0) return -1;
    for (long folder = 0, left = num; left > 0; folder++, left -= FILES_A_FOLDER)
        if (make_folder(root, folder, left < FILES_A_FOLDER ? left : FILES_A_FOLDER)) return -1;
    close(root);
    f = fopen(mark, "w");
    if (!f) return -1;
    fputs(text, f);
    return fclose(f);
}

static int list(const char *path)
{
    stk_diag diag = {0};
    const double wall = seconds(CLOCK_MONOTONIC), cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
    int64_t count = 0;
    size_t classes = 0;
    stk_source *s = stk_dir_source(path, &(stk_dir_opts){.labels = STK_LABELS_DIR}, &diag);
    stk_err err = s ? stk_dir_source_classes(s, &classes, &diag) : diag.err;
    const double first = seconds(CLOCK_MONOTONIC) - wall;
    if (!err) err = stk_source_count(s, &count, &diag);
    if (err)
        fprintf(stderr, "%s\n", diag.text);
    else
        printf("%lld names, %zu classes: classes after %.4f s, all after %.3f s wall, %.3f s CPU; "
               "%.1f bytes a sample\n",
               (long long)count, classes, first, seconds(CLOCK_MONOTONIC) - wall,
               seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu,
               (double)stk_source_memory(s) / (double)count);
    stk_source_unref(&s);
    return err ? 1 : 0;
}

int main(int argc, char **argv)
{
    long num = 1300000;
    int option;
    while ((option = getopt(argc, argv, "n:")) == 'n') num = strtol(optarg, NULL, 10);
    if (option != -1 || optind + 1 != argc || num < 1) {
        fprintf(stderr, "usage: list_bench [-n FILES] DIR\n");
        return 2;
    }
    if (make_tree(argv[optind], num)) {
        perror(argv[optind]);
        return 1;
    }
    int status = 0;
    for (int round = 0; round < 3 && !status; round++) status = list(argv[optind]);
    return status;
}
