/*
 * stk_jpeg_io: what stands between libjpeg and the rest: where its bytes come from, and where its
 * errors go.
 *
 * libjpeg leaves by longjmp, so every entry into it begins with
 *
 *     if (setjmp(io->jump)) return stk_jpeg_io_fail(io, diag);
 *
 * Damage that libjpeg only warns of (and paints gray) is an error here.
 *
 * Threads: one.
 */
#ifndef STK_CODEC_JPEG_IO_H
#define STK_CODEC_JPEG_IO_H

#include <setjmp.h>
#include <stdio.h>

#include <jpeglib.h>

#include <stoker/error.h>

/* A file may hold no more scans: each goes over the whole image, for a few bytes. */
#define STK_JPEG_MAX_SCANS 500

typedef struct stk_jpeg_io {
    struct jpeg_error_mgr err;
    struct jpeg_source_mgr src;
    struct jpeg_progress_mgr progress;
    jmp_buf jump;
    size_t size; /* of the input */
    bool ended;  /* more was asked for than there is */
    stk_err code;
    char text[JMSG_LENGTH_MAX];
} stk_jpeg_io;

/* Makes io->err the error manager of `c`, before jpeg_create_decompress. */
void stk_jpeg_io_init(stk_jpeg_io *io, j_decompress_ptr c);

/* Makes `data`, which is borrowed, the input of `c`, after jpeg_create_decompress. */
void stk_jpeg_io_start(stk_jpeg_io *io, j_decompress_ptr c, const uint8_t *data, size_t size);

/* Leaves by longjmp with this error. */
_Noreturn void stk_jpeg_io_raise(stk_jpeg_io *io, stk_err code, const char *text);

/* What was raised. */
stk_err stk_jpeg_io_fail(const stk_jpeg_io *io, stk_diag *diag);

#endif /* STK_CODEC_JPEG_IO_H */
