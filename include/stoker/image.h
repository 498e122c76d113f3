/*
 * stk_image_info: what an encoded image says of itself, read from its header.
 *
 * Threads: any.
 */
#ifndef STK_IMAGE_H
#define STK_IMAGE_H

#include <stoker/ops.h>

STK_BEGIN

typedef enum stk_image_format {
    STK_IMAGE_UNKNOWN = 0,
    STK_IMAGE_JPEG,
    STK_IMAGE_PNG,
    STK_IMAGE_WEBP,
    STK_IMAGE_AVIF, /* these through FFmpeg, but for what stk_image_probe says */
    STK_IMAGE_BMP,
    STK_IMAGE_GIF, /* the first image */
    STK_IMAGE_TIFF,
} stk_image_format;

typedef struct stk_image_info {
    stk_image_format format;
    int32_t width, height; /* as stored, before orientation */
    int32_t channels;      /* as stored: 1 to 4; palettes count as what they expand to */
    int32_t bits;          /* per channel */
    int32_t orientation;   /* EXIF, 1 to 8; 1: upright */
    bool progressive;      /* progressive JPEG, interlaced PNG and GIF */
    bool animated;
    char detail[32]; /* "YCbCr 4:2:0", "palette", "lossy" */
} stk_image_info;

STK_API const char *stk_image_format_str(stk_image_format format);

/* STK_EUNSUPPORTED: not a picture we know; STK_ECORRUPT: one whose header is broken. */
STK_API STK_NODISCARD stk_err stk_image_probe(const void *data, size_t size, stk_image_info *out,
                                              stk_diag *diag);

/* Decodes one whole image outside of any run, with the same options as decode_image (random
 * crops use seed (seed, 0)).  Gives *mem, which holds *out. */
STK_API STK_NODISCARD stk_err stk_image_decode(const void *data, size_t size,
                                               const stk_image_opts *opts, uint64_t seed,
                                               stk_tensor *out, stk_buffer **mem, stk_diag *diag);

/* Writes an (h, w, 3) or (h, w, 1) uint8 tensor as a PNG file; the file appears whole or not at
 * all. */
STK_API STK_NODISCARD stk_err stk_image_write_png(const char *path, const stk_tensor *image,
                                                  stk_diag *diag);

/* Reads a whole regular file; ELIMIT over max_bytes (0: 256 MiB). */
STK_API STK_NODISCARD stk_err stk_file_read(const char *path, size_t max_bytes, stk_buffer **out,
                                            stk_diag *diag);

STK_END

#endif /* STK_IMAGE_H */
