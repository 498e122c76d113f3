/*
 * stk_zip_end: where the directory of a zip archive is, from the records behind it.
 *
 * Threads: any.
 */
#ifndef STK_CODEC_ZIP_END_H
#define STK_CODEC_ZIP_END_H

#include <stoker/zip.h>

/* The longest comment, the end, the zip64 locator, the zip64 end. */
#define STK_ZIP_TAIL (65535 + 22 + 20 + 56)

typedef struct stk_zip_end {
    uint64_t at, size; /* the directory, from the input's first byte */
    uint64_t prefix;   /* bytes before the archive, which its own offsets do not count */
    uint64_t entries;
    bool zip64; /* else `entries` is the number's lower 16 bits */
} stk_zip_end;

/* The bytes of the input. */
STK_NODISCARD stk_err stk_zip_get_bytes(const stk_zip_input *in, uint64_t offset, void *dst,
                                        size_t size, stk_diag *diag);

/* The directory it gives lies inside the input. */
STK_NODISCARD stk_err stk_zip_end_find(const stk_zip_input *in, stk_zip_end *out, stk_diag *diag);

#endif /* STK_CODEC_ZIP_END_H */
