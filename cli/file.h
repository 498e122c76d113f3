/* An open file, read at places that archives ask for. */
#ifndef STK_CLI_FILE_H
#define STK_CLI_FILE_H

#include <stoker/error.h>

typedef struct file {
    const char *path; /* borrowed; for errors */
    int fd;
    uint64_t size; /* when it was opened */
} file;

/* False: no such file, none that may be read, or no regular one.  file_close it otherwise. */
bool file_open(file *f, const char *path);
void file_close(file *f);

/* Exactly `size` bytes, for stk_tar_at and stk_zip_new; `ctx` is a file.  STK_EIO: it fails, or has
 * become shorter. */
stk_err file_read_at(void *ctx, uint64_t offset, void *dst, size_t size, stk_diag *diag);

#endif /* STK_CLI_FILE_H */
