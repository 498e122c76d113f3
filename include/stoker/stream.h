/*
 * stk_stream: bytes one after the other, unpacked if they are compressed.
 *
 *     memory, or a function that reads ──► gzip? zstd? ──► stk_stream_read
 *
 * gzip (RFC 1952) and zstd (RFC 8878) are recognised by their first bytes.  Several members or
 * frames one behind the other are one stream; checksums are verified; zeros behind the last gzip
 * member are padding.  What is inside is not looked at: an archive in an archive stays packed.
 *
 * Threads: one at a time for each stream.
 * Memory:  256 KiB and what the decompressor needs, at most 128 MiB and usually 8.
 */
#ifndef STK_STREAM_H
#define STK_STREAM_H

#include <stoker/error.h>

STK_BEGIN

typedef struct stk_stream stk_stream;

/* Reads at least one and at most `size` bytes to dst; *got 0: the end. */
typedef stk_err stk_stream_read_fn(void *ctx, void *dst, size_t size, size_t *got, stk_diag *diag);

typedef enum stk_packing { STK_PACKING_NONE = 0, STK_PACKING_GZIP, STK_PACKING_ZSTD } stk_packing;

typedef struct stk_stream_opts {
    bool as_is;         /* compressed bytes stay as they are */
    uint64_t max_bytes; /* that a compressed stream may unpack to; 0: 64 GiB */
    uint32_t max_ratio; /* unpacked over packed bytes, from 64 MiB on; 0: 500 */
} stk_stream_opts;

/* "none", "gzip", "zstd". */
STK_API const char *stk_packing_str(stk_packing packing);

/* By the first bytes; four are enough. */
STK_API stk_packing stk_packing_of(const void *data, size_t size);

/* `data` is borrowed until the stream is freed. */
STK_API STK_NODISCARD stk_err stk_stream_over(const void *data, size_t size,
                                              const stk_stream_opts *opts, stk_stream **out);

/* `read` is called inside stk_stream_read alone. */
STK_API STK_NODISCARD stk_err stk_stream_from(stk_stream_read_fn *read, void *ctx,
                                              const stk_stream_opts *opts, stk_stream **out);

STK_API void stk_stream_free(stk_stream **s);

/* Gives at least one and at most `size` bytes (not 0); *got 0: the end.
 * STK_ECORRUPT: broken compressed data, or its end is missing; STK_ELIMIT; what `read` says.
 * After a failure the stream is good for nothing else. */
STK_API STK_NODISCARD stk_err stk_stream_read(stk_stream *s, void *dst, size_t size, size_t *got,
                                              stk_diag *diag);

/* Known from the first read on. */
STK_API stk_packing stk_stream_packing(const stk_stream *s);

STK_END

#endif /* STK_STREAM_H */
