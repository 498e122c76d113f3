/* Opening what is to be read: regular files alone. */
#ifndef STK_BASE_FILE_H
#define STK_BASE_FILE_H

#include <stoker/error.h>

/* Opens a regular file, without waiting for anything, and gives its size; the caller closes *fd,
 * which is -1 on failure.  STK_EINVAL: it is something else; STK_ENOTFOUND, STK_EIO. */
STK_NODISCARD stk_err stk_file_open(const char *path, int *fd, uint64_t *size, stk_diag *diag);

/* Reads exactly `size` bytes from `offset` on: a file that ends before has shrunk since somebody
 * knew that they are there.  `path`: for messages. */
STK_NODISCARD stk_err stk_file_read_at(int fd, const char *path, uint64_t offset, void *dst,
                                       size_t size, stk_diag *diag);

#endif /* STK_BASE_FILE_H */
