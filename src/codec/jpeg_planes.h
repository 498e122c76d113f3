/*
 * stk_jpeg_planes: Y, Cb and Cr as they come out of the inverse DCT, cropped and skipped.
 *
 * Chroma is neither upsampled nor interleaved with luma nor converted: the resampler brings each
 * plane to its size at once.
 *
 *     fits? ──► jpeg_start_decompress, jpeg_crop_scanline ──► open ──► rows
 *
 * Threads: one.
 */
#ifndef STK_CODEC_JPEG_PLANES_H
#define STK_CODEC_JPEG_PLANES_H

#include "codec/codec.h"
#include "codec/jpeg_io.h"
#include "codec/rowbuf.h"

typedef struct stk_jpeg_planes {
    int32_t across, down; /* luma pixels of one chroma sample */
    int32_t lines[2];     /* of luma, of chroma: in a row of MCUs */
    size_t stride[2];
    int32_t first[2], end[2]; /* rows of the scaled image that are wanted */
} stk_jpeg_planes;

/* True for YCbCr whose chroma is as fine as luma, or half as fine, at the scale that is set. */
bool stk_jpeg_planes_fit(j_decompress_ptr c, stk_jpeg_planes *out);

/* After jpeg_crop_scanline, which made rows begin at pixel `x`: fills in the rest of *p from rows
 * [first, end) of luma, and the chroma of *w from its luma; makes room in `buf`. */
STK_NODISCARD stk_err stk_jpeg_planes_open(stk_jpeg_planes *p, j_decompress_ptr c, int32_t x,
                                           int32_t first, int32_t end, stk_row_window *w,
                                           stk_rowbuf *buf);

/* As the codec's `planes`; errors leave by longjmp. */
void stk_jpeg_planes_rows(const stk_jpeg_planes *p, j_decompress_ptr c, const stk_rowbuf *buf,
                          stk_planes_fn *push, void *ctx);

#endif /* STK_CODEC_JPEG_PLANES_H */
