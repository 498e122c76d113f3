/*
 * stk_zip: the directory of a zip archive, and its entries one by one.
 *
 *     [prefix] { local header, name, data, [descriptor] }... directory [zip64 end] end [comment]
 *
 * (PKWARE's APPNOTE.TXT 6.3.10.)  The directory at the end says what there is.  It is copied and
 * checked when the archive is opened: entries lie inside the archive, before the directory, and
 * none overlaps another.  Names are bytes that mean nothing here: `../`, absolute names and links
 * are as the archive has them, and nothing is ever written to a path.
 *
 * Threads: any; an open archive does not change.  The bytes may, by other hands: then entries fail.
 * Memory:  the archive's bytes are borrowed until stk_zip_free.
 */
#ifndef STK_ZIP_H
#define STK_ZIP_H

#include <stoker/error.h>

STK_BEGIN

typedef struct stk_zip stk_zip;

/* Gives exactly `size` bytes at `offset`, which lie inside the archive. */
typedef stk_err stk_zip_read_fn(void *ctx, uint64_t offset, void *dst, size_t size, stk_diag *diag);

/* Where an archive's bytes are. */
typedef struct stk_zip_input {
    const void *data; /* in memory; NULL: `read` gets them */
    uint64_t size;
    stk_zip_read_fn *read;
    void *ctx;
} stk_zip_input;

/* 0: the default. */
typedef struct stk_zip_opts {
    uint64_t max_directory; /* bytes; 1 GiB */
    uint64_t max_ratio; /* bytes that one of deflated data stands for; 1032, which is the most */
} stk_zip_opts;

typedef enum stk_zip_kind {
    STK_ZIP_FILE = 0,
    STK_ZIP_FOLDER, /* its name ends with a slash */
    STK_ZIP_LINK,   /* its data is where it leads */
    STK_ZIP_DEVICE, /* or a FIFO, or a socket */
} stk_zip_kind;

enum { STK_ZIP_STORED = 0, STK_ZIP_DEFLATED = 8 }; /* methods that can be read */

typedef struct stk_zip_entry {
    const char *name; /* not terminated; holds no NUL; lives as long as the stk_zip */
    uint16_t name_size;
    bool utf8; /* else the name is in code page 437 */
    stk_zip_kind kind;
    uint16_t flags, method;
    uint32_t crc;
    uint64_t compressed, size; /* bytes of the data, and of what it stands for, as declared */
    uint64_t offset;           /* of the local header, from the input's first byte */
} stk_zip_entry;

/* STK_ECORRUPT: no archive, or a broken one; STK_EUNSUPPORTED: one of several disks;
 * STK_ELIMIT: a directory over the limit; and what `read` says. */
STK_API STK_NODISCARD stk_err stk_zip_new(const stk_zip_input *in, const stk_zip_opts *opts,
                                          stk_zip **out, stk_diag *diag);
STK_API void stk_zip_free(stk_zip **zip);

/* Entries in the order of the directory; several may have one name.  Borrowed. */
STK_API size_t stk_zip_count(const stk_zip *zip);
STK_API const stk_zip_entry *stk_zip_get(const stk_zip *zip, size_t i);

/* Where the data of entry `i` begins, from the input's first byte: inside the archive, all of it.
 * STK_EUNSUPPORTED: encrypted, or another method; STK_ELIMIT: over max_ratio; STK_ECORRUPT: sizes
 * that cannot be, or a local header that does not belong to the entry; and what `read` says. */
STK_API STK_NODISCARD stk_err stk_zip_locate(const stk_zip *zip, size_t i, uint64_t *offset,
                                             stk_diag *diag);

/* Turns the data of entry `i`, as much as `compressed` says, into `size` bytes at `dst`, and checks
 * their CRC-32.  The limit on `size` is the caller's, who has made `dst`; NULL: a stored entry is
 * only checked.  STK_ECORRUPT: the data is damaged, or stands for another number of bytes. */
STK_API STK_NODISCARD stk_err stk_zip_unpack(const stk_zip *zip, size_t i, const void *data,
                                             void *dst, stk_diag *diag);

/* Both, for entries whose bytes are not in memory as well: `dst` has room for `size` bytes. */
STK_API STK_NODISCARD stk_err stk_zip_read(const stk_zip *zip, size_t i, void *dst, stk_diag *diag);

STK_END

#endif /* STK_ZIP_H */
