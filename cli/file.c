#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

bool file_open(file *f, const char *path)
{
    struct stat st;
    *f = (file){.path = path, .fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
    if (f->fd < 0) return false;
    if (!fstat(f->fd, &st) && S_ISREG(st.st_mode)) {
        f->size = (uint64_t)st.st_size;
        return true;
    }
    file_close(f);
    return false;
}

void file_close(file *f)
{
    close(f->fd);
    f->fd = -1;
}

stk_err file_read_at(void *ctx, uint64_t offset, void *dst, size_t size, stk_diag *diag)
{
    const file *f = ctx;
    for (size_t got = 0; got < size;) {
        const ssize_t n = pread(f->fd, (char *)dst + got, size - got, (off_t)(offset + got));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return stk_diag_errno(diag, errno, "read %s", f->path);
        if (n == 0) return stk_diag_set(diag, STK_EIO, "%s: it has become shorter", f->path);
        got += (size_t)n;
    }
    return STK_OK;
}
