/*
 * stk_media_file: the packets of one stream of a file in memory, and decoding parts of them.
 *
 * Threads: one at a time.
 */
#ifndef STK_OPS_MEDIA_H
#define STK_OPS_MEDIA_H

#include <stoker/av_demux.h>
#include <stoker/av_frames.h>
#include <stoker/item.h>

typedef struct stk_media_file {
    stk_packets *packets; /* all of the stream, or all up to what was asked for */
    stk_av_codec *codec;
    stk_av_codec_info info;
    size_t total; /* packets */
} stk_media_file;

/* Of the bytes of an item's part.  `frames`: of video, as in stk_demux_opts.  After a failure, and
 * after _close, it holds nothing. */
STK_NODISCARD stk_err stk_media_open(const stk_item *item, size_t part, stk_media media,
                                     size_t frames, stk_media_file *out, stk_diag *diag);
void stk_media_close(stk_media_file *f);

typedef struct stk_media_opts {
    const stk_window *window; /* NULL: everything */
    const char *filter;
    bool strict;
    int64_t max_pixels; /* as in stk_decode_opts, */
    size_t max_bytes;   /* also this */
} stk_media_opts;

/* The packets of the window, and a decoder for them; also after a failure both are to be given
 * back. */
STK_NODISCARD stk_err stk_media_begin(const stk_media_file *f, const stk_media_opts *opts,
                                      stk_packets **packets, stk_decoder **decoder, stk_diag *diag);

/* All frames of the window. */
STK_NODISCARD stk_err stk_media_decode(const stk_media_file *f, const stk_media_opts *opts,
                                       stk_frames **out, stk_diag *diag);

#endif /* STK_OPS_MEDIA_H */
