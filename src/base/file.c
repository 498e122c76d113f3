#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/failpoint.h"

static const char *kind_of_file(mode_t mode)
{
    if (S_ISDIR(mode)) return "a directory";
    if (S_ISFIFO(mode)) return "a FIFO";
    if (S_ISSOCK(mode)) return "a socket";
    return "a device";
}

static stk_err look(int fd, const char *path, uint64_t *size, stk_diag *diag)
{
    struct stat st;
    if (fstat(fd, &st) < 0) return stk_diag_errno(diag, errno, "stat %s", path);
    if (!S_ISREG(st.st_mode))
        return stk_diag_set(diag, STK_EINVAL, "%s: not a regular file but %s", path,
                            kind_of_file(st.st_mode));
    *size = st.st_size < 0 ? 0 : (uint64_t)st.st_size;
    return STK_OK;
}

stk_err stk_file_open(const char *path, int *fd, uint64_t *size, stk_diag *diag)
{
    *size = 0;
    /* A FIFO without a writer would make a blocking open wait for ever. */
    *fd =
        stk_failpoint("read.open") ? -1 : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (*fd < 0 && errno == ENXIO)
        return stk_diag_set(diag, STK_EINVAL, "%s: not a regular file but a socket", path);
    if (*fd < 0) return stk_diag_errno(diag, errno, "open %s", path);
    const stk_err err = look(*fd, path, size, diag);
    if (err) {
        close(*fd);
        *fd = -1;
    }
    return err;
}

stk_err stk_file_read_at(int fd, const char *path, uint64_t offset, void *dst, size_t size,
                         stk_diag *diag)
{
    for (size_t got = 0; got < size;) {
        const size_t left = size - got < INT_MAX ? size - got : INT_MAX; /* what the kernel takes */
        const ssize_t n = stk_failpoint("read.pread")
                              ? -1
                              : pread(fd, (char *)dst + got, left, (off_t)(offset + got));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return stk_diag_errno(diag, errno, "read %s", path);
        if (n == 0)
            return stk_diag_set(diag, STK_EIO,
                                "%s: shrank since it was listed: it ends at byte %" PRIu64, path,
                                offset + got);
        got += (size_t)n;
    }
    return STK_OK;
}
