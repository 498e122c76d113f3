#include <fcntl.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <stoker/image.h>

#include "base/alloc.h"
#include "base/failpoint.h"
#include "tests/check.h"

static char folder[] = "/tmp/stoker-read-XXXXXX";

static const char *in_folder(const char *name)
{
    static char path[128];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return path;
}

static const char *make_file(const char *name, size_t size)
{
    const char *path = in_folder(name);
    FILE *f = fopen(path, "wb");
    CHECK(f);
    for (size_t i = 0; i < size; i++) fputc((int)(i * 7 & 255), f);
    CHECK_EQ(fclose(f), 0);
    return path;
}

static void check_fails(const char *path, size_t max_bytes, stk_err want, const char *text)
{
    stk_buffer *buf;
    stk_diag diag = {0};
    CHECK_EQ(stk_file_read(path, max_bytes, &buf, &diag), want);
    CHECK(!buf && diag.err == want);
    if (!strstr(diag.text, text) || !strstr(diag.text, path)) fprintf(stderr, "%s\n", diag.text);
    CHECK(strstr(diag.text, text) && strstr(diag.text, path));
}

static void whole_files(void)
{
    static const size_t sizes[] = {0, 1, 4096, 300001};
    for (size_t n = 0; n < sizeof(sizes) / sizeof(sizes[0]); n++) {
        const char *path = make_file("whole", sizes[n]);
        stk_buffer *buf;
        CHECK_EQ(stk_file_read(path, 300001, &buf, NULL), STK_OK);
        CHECK_EQ(stk_buffer_size(buf), sizes[n]);
        for (size_t i = 0; i < sizes[n]; i++) CHECK(stk_buffer_data(buf)[i] == (i * 7 & 255));
        stk_buffer_unref(&buf);
    }
    unlink(in_folder("whole"));
}

static void what_is_no_file(void)
{
    check_fails(in_folder("missing"), 0, STK_ENOTFOUND, "No such file");
    check_fails(folder, 0, STK_EINVAL, "a directory");
    CHECK_EQ(mkfifo(in_folder("fifo"), 0600), 0);
    check_fails(in_folder("fifo"), 0, STK_EINVAL, "a FIFO");
    unlink(in_folder("fifo"));
    check_fails("/dev/null", 0, STK_EINVAL, "a device");

    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", in_folder("socket"));
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK_EQ(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    check_fails(in_folder("socket"), 0, STK_EINVAL, "a socket");
    close(fd);
    unlink(in_folder("socket"));
}

static void failing_world(void)
{
    const char *path = make_file("file", 1000);
    check_fails(path, 999, STK_ELIMIT, "1000 bytes");
    CHECK(stk_failpoints_set("read.open=EACCES"));
    check_fails(path, 0, STK_EIO, "Permission denied");
    CHECK(stk_failpoints_set("read.pread=EIO"));
    check_fails(path, 0, STK_EIO, "Input/output error");
    CHECK(stk_failpoints_set(NULL));
    unlink(in_folder("file"));
}

static void *cut_or_grow(void *size)
{
    stk_failpoint_await("read.pread");
    CHECK_EQ(truncate(in_folder("changing"), (off_t)(intptr_t)size), 0);
    CHECK(stk_failpoints_set(NULL));
    return NULL;
}

static void changes_while_read(void)
{
    char path[128];
    for (int n = 0; n < 2; n++) {
        snprintf(path, sizeof(path), "%s", make_file("changing", 1000));
        CHECK(stk_failpoints_set("read.pread=hold"));
        pthread_t thread;
        CHECK_EQ(pthread_create(&thread, NULL, cut_or_grow, (void *)(intptr_t)(n ? 1500 : 600)), 0);
        check_fails(path, 0, STK_EIO, n ? "grew" : "shrank from 1000 to 600");
        pthread_join(thread, NULL);
    }
    unlink(path);
}

static void no_memory(void)
{
    const char *path = make_file("file", 1000);
    stk_err err;
    TORTURE (err) {
        stk_buffer *buf;
        err = stk_file_read(path, 0, &buf, NULL);
        CHECK(err == STK_OK || err == STK_ENOMEM);
        CHECK(!err == !!buf);
        stk_buffer_unref(&buf);
    }
    stk_fault_arm(-1);
    TORTURE (err) {
        stk_diag diag = {0};
        stk_op *op = stk_op_read(NULL, &diag);
        err = diag.err;
        CHECK(!op == (err == STK_ENOMEM));
        stk_op_unref(&op);
    }
    stk_fault_arm(-1);
    unlink(path);
}

static void set_up(void)
{
    CHECK(mkdtemp(folder));
}

static void tear_down(void)
{
    CHECK_EQ(rmdir(folder), 0);
}

TESTS(TEST(set_up), TEST(whole_files), TEST(what_is_no_file), TEST(failing_world),
      TEST(changes_while_read), TEST(no_memory), TEST(tear_down))
