/* main for fuzz targets without a fuzzer: runs every file that is named, and every file in the
 * folders that are named. */
#include <dirent.h>
#include <sys/stat.h>

#include "tests/check.h"
#include "tests/fuzz/fuzz.h"

static int count;

static void run_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    CHECK(f);
    CHECK_EQ(fseek(f, 0, SEEK_END), 0);
    const long size = ftell(f);
    CHECK(size >= 0);
    rewind(f);
    uint8_t *data =
        malloc(size ? (size_t)size : 1); /* no byte more: the sanitizer watches its end */
    CHECK_EQ(fread(data, 1, (size_t)size, f), size);
    fclose(f);
    fprintf(stderr, "%s\n", path);
    (void)LLVMFuzzerTestOneInput(data, (size_t)size);
    free(data);
    count++;
}

static void run_folder(const char *path)
{
    DIR *dir = opendir(path);
    CHECK(dir);
    for (const struct dirent *e; (e = readdir(dir));) {
        char file[4096];
        snprintf(file, sizeof(file), "%s/%s", path, e->d_name);
        if (e->d_name[0] != '.') run_file(file);
    }
    closedir(dir);
}

int main(int argc, char **argv)
{
    (void)LLVMFuzzerTestOneInput((const uint8_t *)"", 0);
    for (int i = 1; i < argc; i++) {
        struct stat st;
        CHECK_EQ(stat(argv[i], &st), 0);
        if (S_ISDIR(st.st_mode))
            run_folder(argv[i]);
        else
            run_file(argv[i]);
    }
    fprintf(stderr, "%d inputs\n", count);
    CHECK(count > 0); /* an empty corpus tests nothing */
    return 0;
}
