/*
 * stk_tar_header: one header block of a tar archive, and the records of pax headers.
 *
 *       0 name 100 mode 108 uid 116 gid 124 size 136 mtime 148 chksum 156 typeflag 157 linkname
 *     257 magic 265 uname 297 gname 329 device 345 prefix 500        (POSIX.1-2017, pax)
 *
 * Threads: any.
 */
#ifndef STK_CODEC_TAR_HEADER_H
#define STK_CODEC_TAR_HEADER_H

#include <stoker/error.h>

enum { STK_TAR_BLOCK = 512, STK_TAR_NAME = 100, STK_TAR_PREFIX = 155 };

/* Bytes that grow.  All zero: empty. */
typedef struct stk_tar_text {
    char *data;
    size_t size, capacity;
    bool set; /* else it is not said */
} stk_tar_text;

void stk_tar_text_fini(stk_tar_text *text);
STK_NODISCARD stk_err stk_tar_text_append(stk_tar_text *text, const void *data, size_t size);

/* What pax records say. */
typedef struct stk_tar_pax {
    stk_tar_text path, link;
    uint64_t size;
    bool has_size, sparse;
} stk_tar_pax;

/* As if nothing was said; keeps the memory. */
void stk_tar_pax_clear(stk_tar_pax *pax);
void stk_tar_pax_fini(stk_tar_pax *pax);

/* Adds the records to *pax: an empty value means that it is not said. */
STK_NODISCARD stk_err stk_tar_pax_parse(stk_tar_pax *pax, const char *data, size_t size,
                                        uint64_t offset, stk_diag *diag);

typedef enum stk_tar_sum { STK_TAR_GOOD, STK_TAR_ZEROS, STK_TAR_WRONG } stk_tar_sum;

stk_tar_sum stk_tar_checksum(const uint8_t *block);

/* The size field: octal, or base-256.  False: neither, negative, or over 2^63 - 1. */
bool stk_tar_size(const uint8_t *block, uint64_t *out);

#endif /* STK_CODEC_TAR_HEADER_H */
