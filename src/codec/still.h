/*
 * stk_still: formats of which Stoker reads the header, and FFmpeg the pixels.
 *
 *     parse (header: size, limits, where the data is) ──► stk_picture_decoder (FFmpeg) ──► rows
 *
 * FFmpeg is looked for when the first rows are wanted.  It gets the pieces of the file that make
 * the picture, and nothing of what else is in the file.
 */
#ifndef STK_CODEC_STILL_H
#define STK_CODEC_STILL_H

#include <stoker/av_picture.h>

#include "codec/codec.h"

enum { STK_STILL_PIECES = 16, STK_STILL_OWN = 800 };

/* What a header says. */
typedef struct stk_still {
    stk_image_info info;
    uint8_t own[STK_STILL_OWN]; /* goes to FFmpeg before the pieces, and what follows behind them */
    size_t head, tail;
    struct {
        const uint8_t *data;
        size_t size;
    } pieces[STK_STILL_PIECES]; /* of the file, in their order */
    size_t num_pieces;
    int matrix; /* as in stk_picture */
    stk_picture_range range;
    stk_rect drawn;  /* GIF: what is there of the picture */
    uint8_t fill[3]; /* and the colour of the rest */
} stk_still;

typedef struct stk_still_format {
    const stk_codec *codec;
    const char *decoder; /* FFmpeg's name of it */
    bool strict;         /* as in stk_picture */
    bool drawn;          /* stk_still.drawn counts: there no pixel may be transparent */
    /* *out is all zero; sizes are positive, and the pieces inside the data, if it gives STK_OK. */
    stk_err (*parse)(const uint8_t *data, size_t size, stk_still *out, stk_diag *diag);
} stk_still_format;

/* The functions of a codec's table; open and probe take the format. */
STK_NODISCARD stk_err stk_still_probe(const stk_still_format *format, const uint8_t *data,
                                      size_t size, stk_image_info *out, stk_diag *diag);
STK_NODISCARD stk_err stk_still_open(const stk_still_format *format, void **state, stk_diag *diag);
void stk_still_close(void *state);
stk_err stk_still_begin(void *state, const uint8_t *data, size_t size,
                        const stk_image_limits *limits, stk_image_info *info, stk_diag *diag);
stk_err stk_still_window(void *state, const stk_window_request *req, stk_row_window *out,
                         stk_diag *diag);
stk_err stk_still_rows(void *state, stk_row_fn *push, void *ctx, stk_diag *diag);

/* For parse: adds a piece.  False: it is not inside the data, or there are too many. */
bool stk_still_add(stk_still *still, const uint8_t *data, size_t size, uint64_t at,
                   uint64_t length);

#endif /* STK_CODEC_STILL_H */
