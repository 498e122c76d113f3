/*
 * stk_tar: the members of a tar archive, one after the other, from memory or a stream.
 *
 *     { header of 512 bytes, data, zeros up to 512 }...  two blocks of zeros
 *
 * ustar and pax (POSIX.1-2017, pax, "ustar Interchange Format"), GNU tar's long names, base-256
 * numbers ("Basic Tar Format" of its manual), and the format of Unix V7.  Checksums are verified.
 * Names are what the archive says, "../" and all: nothing is written anywhere.
 *
 *     err = stk_tar_next(t, &member, &diag);
 *     if (err == STK_EAGAIN) err = stk_tar_fill(t, &diag), and again
 *
 * Only stk_tar_fill, and stk_tar_read of what is not buffered yet, wait for the stream.
 *
 * Threads: one at a time for each archive.
 * Memory:  a block of 256 KiB for a stream; long names and pax headers up to max_header.
 */
#ifndef STK_TAR_H
#define STK_TAR_H

#include <stoker/stream.h>

STK_BEGIN

typedef struct stk_tar stk_tar;

typedef struct stk_tar_opts {
    bool all;            /* directories, links and the like, too */
    bool open_end;       /* no blocks of zeros are needed behind the last member */
    bool drain;          /* a stream is read to its end: whoever writes a pipe wants that */
    size_t max_header;   /* bytes of names and pax records of one member; 0: 1 MiB */
    uint64_t max_member; /* bytes of one that comes from a stream; 0: 1 GiB */
} stk_tar_opts;

/* Its strings are borrowed until the next stk_tar_next, and end with no NUL. */
typedef struct stk_tar_member {
    const char *name;
    size_t name_size;
    const char *link; /* where a link leads */
    size_t link_size;
    char type; /* as in ustar: '0' a regular file, '1' hard link, '2' symbolic link, '5' folder */
    uint64_t size;    /* of its data */
    uint64_t offset;  /* of its data, in the unpacked archive */
    const void *data; /* borrowed from the archive, if that is in memory */
} stk_tar_member;

/* `data` is borrowed until the archive is freed, and not unpacked. */
STK_API STK_NODISCARD stk_err stk_tar_over(const void *data, size_t size, const stk_tar_opts *opts,
                                           stk_tar **out);

/* Takes *stream on success.  One that is packed is read to its end, where its checksum is. */
STK_API STK_NODISCARD stk_err stk_tar_from(stk_stream **stream, const stk_tar_opts *opts,
                                           stk_tar **out);

/* Gives exactly `size` bytes at `offset`, which lie inside the archive. */
typedef stk_err stk_tar_read_fn(void *ctx, uint64_t offset, void *dst, size_t size, stk_diag *diag);

/* An archive of `size` bytes, not packed, that is read where it is needed: the data of members that
 * nobody reads is not read at all. */
STK_API STK_NODISCARD stk_err stk_tar_at(stk_tar_read_fn *read, void *ctx, uint64_t size,
                                         const stk_tar_opts *opts, stk_tar **out);

STK_API void stk_tar_free(stk_tar **t);

/* The next member; what was not read of the last one is skipped.
 * STK_EAGAIN: stk_tar_fill first.  STK_EEND: there are no more.
 * STK_ECORRUPT: a wrong checksum, a broken number, data that ends too early: the text names the
 * offset.  STK_EUNSUPPORTED: a sparse file, by name.  STK_ELIMIT.  All but EAGAIN are final. */
STK_API STK_NODISCARD stk_err stk_tar_next(stk_tar *t, stk_tar_member *out, stk_diag *diag);

/* Waits for more of the stream. */
STK_API STK_NODISCARD stk_err stk_tar_fill(stk_tar *t, stk_diag *diag);

/* How many of the member's next bytes stk_tar_read gives without waiting. */
STK_API size_t stk_tar_buffered(const stk_tar *t);

/* Reads exactly the next `size` bytes of the member, of which so many must be left (STK_EINVAL). */
STK_API STK_NODISCARD stk_err stk_tar_read(stk_tar *t, void *dst, size_t size, stk_diag *diag);

STK_END

#endif /* STK_TAR_H */
