#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/failpoint.h"
#include "tests/codec_check.h"

static char folder[64];

static const char *in_folder(const char *name)
{
    static char path[128];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return path;
}

/* How many files there are. */
static int count_files(void)
{
    int n = -2; /* "." and ".." */
    DIR *d = opendir(folder);
    CHECK(d);
    while (readdir(d)) n++;
    closedir(d);
    return n;
}

static void make_folder(void)
{
    snprintf(folder, sizeof(folder), "/tmp/stk_png_write_XXXXXX");
    CHECK(mkdtemp(folder));
}

static void remove_folder(void)
{
    (void)unlink(in_folder("a.png"));
    CHECK_EQ(rmdir(folder), 0);
}

/* Reads a file back; its pixels must be those of the tensor. */
static void check_file(const char *path, const stk_tensor *t)
{
    static uint8_t data[100000];
    FILE *f = fopen(path, "rb");
    CHECK(f);
    const size_t size = fread(data, 1, sizeof(data), f);
    fclose(f);
    void *state = codec_state(&stk_codec_png);
    struct pixels p = {0};
    CHECK_EQ(codec_decode(&stk_codec_png, state, data, size, (stk_window_request){0}, &p, NULL), 0);
    CHECK_EQ(p.window.pixels, t->shape[2]);
    CHECK_EQ(p.window.height, t->shape[0]);
    CHECK_EQ(p.window.width, t->shape[1]);
    const uint8_t *got = p.data;
    for (int64_t y = 0; y < t->shape[0]; y++)
        for (int64_t x = 0; x < t->shape[1]; x++)
            for (int64_t c = 0; c < t->shape[2]; c++)
                CHECK_EQ(*got++,
                         ((uint8_t *)
                              t->data)[y * t->strides[0] + x * t->strides[1] + c * t->strides[2]]);
    free(p.data);
    stk_codec_png.close(state);
}

static stk_tensor image(int64_t height, int64_t width, int64_t channels)
{
    static uint8_t data[40 * 50 * 3];
    for (size_t i = 0; i < sizeof(data); i++) data[i] = (uint8_t)(i * 37 + i / 100);
    return stk_tensor_over(
        data, &(stk_spec){.dtype = STK_UINT8, .ndim = 3, .shape = {height, width, channels}});
}

static void round_trip(void)
{
    make_folder();
    const stk_tensor all[] = {image(40, 50, 3), image(50, 40, 1), image(1, 1, 3), image(1, 7, 1)};
    for (int i = 0; i < 4; i++) { /* each replaces the last */
        stk_diag diag;
        CHECK_EQ(stk_image_write_png(in_folder("a.png"), &all[i], &diag), STK_OK);
        check_file(in_folder("a.png"), &all[i]);
        CHECK_EQ(count_files(), 1);
    }
    struct stat st;
    const mode_t mask = umask(0);
    umask(mask);
    CHECK_EQ(stat(in_folder("a.png"), &st), 0);
    CHECK_EQ(st.st_mode & 0777, 0666 & ~mask);
    remove_folder();
}

static void strided(void)
{
    make_folder();
    stk_tensor t = image(40, 50, 3);
    t.shape[0] = 10, t.shape[1] = 20; /* a window */
    CHECK_EQ(stk_image_write_png(in_folder("a.png"), &t, NULL), STK_OK);
    check_file(in_folder("a.png"), &t);

    t = image(3, 10, 20); /* planes: channels first */
    t.shape[0] = 10, t.shape[1] = 20, t.shape[2] = 3;
    t.strides[0] = 20, t.strides[1] = 1, t.strides[2] = 200;
    CHECK_EQ(stk_image_write_png(in_folder("a.png"), &t, NULL), STK_OK);
    check_file(in_folder("a.png"), &t);

    t = image(10, 20, 1); /* mirrored */
    t.data = (uint8_t *)t.data + 19, t.strides[1] = -1;
    CHECK_EQ(stk_image_write_png(in_folder("a.png"), &t, NULL), STK_OK);
    check_file(in_folder("a.png"), &t);
    remove_folder();
}

static void bad_images(void)
{
    make_folder();
    stk_tensor t = image(4, 4, 2);
    stk_diag diag;
    CHECK_EQ(stk_image_write_png(in_folder("a.png"), &t, &diag), STK_EINVAL);
    CHECK(strstr(diag.text, "a.png"));
    t = image(4, 0, 3);
    CHECK_EQ(stk_image_write_png(in_folder("a.png"), &t, &diag), STK_EINVAL);
    CHECK(strstr(diag.text, "4 x 0"));
    t = image(4, 4, 3), t.dtype = STK_INT8;
    CHECK_EQ(stk_image_write_png(in_folder("a.png"), &t, NULL), STK_EINVAL);
    t = image(4, 4, 3), t.ndim = 2;
    CHECK_EQ(stk_image_write_png(in_folder("a.png"), &t, NULL), STK_EINVAL);
    CHECK_EQ(count_files(), 0);
    remove_folder();
}

static void bad_places(void)
{
    make_folder();
    const stk_tensor t = image(4, 4, 3);
    stk_diag diag;
    CHECK_EQ(stk_image_write_png(in_folder("no/a.png"), &t, &diag), STK_ENOTFOUND);
    CHECK_EQ(diag.os_error, ENOENT);
    CHECK(strstr(diag.text, "no/a.png"));
    CHECK_EQ(mkdir(in_folder("a.png"), 0777), 0);
    CHECK_EQ(stk_image_write_png(in_folder("a.png"), &t, &diag), STK_EIO);
    CHECK_EQ(diag.os_error, EISDIR);
    CHECK_EQ(count_files(), 1);
    CHECK_EQ(rmdir(in_folder("a.png")), 0);
    remove_folder();
}

/* A full disk leaves what was there before, and nothing beside it. */
static void disk_full(void)
{
    make_folder();
    const stk_tensor small = image(4, 4, 3), large = image(40, 50, 3);
    stk_diag diag;
    CHECK_EQ(stk_image_write_png(in_folder("a.png"), &small, NULL), STK_OK);
    CHECK(stk_failpoints_set("png.write=ENOSPC@2+"));
    CHECK_EQ(stk_image_write_png(in_folder("a.png"), &large, &diag), STK_EIO);
    CHECK_EQ(diag.os_error, ENOSPC);
    CHECK(strstr(diag.text, "a.png"));
    CHECK(stk_failpoints_set(NULL));
    check_file(in_folder("a.png"), &small);
    CHECK_EQ(count_files(), 1);
    remove_folder();
}

static void out_of_memory(void)
{
    make_folder();
    const stk_tensor t = image(40, 50, 3);
    stk_err err;
    TORTURE (err) {
        err = stk_image_write_png(in_folder("a.png"), &t, NULL);
        CHECK(err == STK_OK || err == STK_ENOMEM);
        CHECK_EQ(count_files(), err ? 0 : 1);
    }
    check_file(in_folder("a.png"), &t);
    remove_folder();
}

TESTS(TEST(round_trip), TEST(strided), TEST(bad_images), TEST(bad_places), TEST(disk_full),
      TEST(out_of_memory))
