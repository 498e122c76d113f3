/*
 * stk_muxer: writes packets, encoded here or taken from elsewhere as they are, to a file.
 *
 *     stk_muxer_new ──► add_encoder, add_codec (streams 0, 1...) ──► open ──► write... ──► close
 *
 * Threads: one at a time; a second one is told STK_EAGAIN.  stk_muxer_cancel: any.
 */
#ifndef STK_AV_MUX_H
#define STK_AV_MUX_H

#include <stoker/av_demux.h>
#include <stoker/av_encode.h>

STK_BEGIN

typedef struct stk_muxer stk_muxer;

typedef struct stk_mux_opts {
    const char *format;    /* one of FFmpeg's muxers; NULL: by the ending of the url */
    const char *protocols; /* "file,tcp,rtmp": with these the url may be an address; NULL: a path */
    int64_t timeout;       /* of an address: ns for opening, for each packet and for closing;
                            * 0: 60 s; STK_FOREVER */
    stk_av_interrupt interrupt; /* of an address or a pipe, also while stk_muxer_close waits for
                                 * another thread; not asked by stk_muxer_free */
} stk_mux_opts;

/* Nothing is written before stk_muxer_open.  STK_EINVAL: no format goes by that ending.
 * STK_EUNSUPPORTED: no such muxer, or "fifo", which writes on a thread of its own. */
STK_API STK_NODISCARD stk_err stk_muxer_new(const char *url, const stk_mux_opts *opts,
                                            stk_muxer **out, stk_diag *diag);

/* A file that was opened and not closed stays incomplete. */
STK_API void stk_muxer_free(stk_muxer **muxer);

/* What waits for an address, and every later call that opens, writes or flushes, says
 * STK_ECANCELLED. */
STK_API void stk_muxer_cancel(stk_muxer *muxer);

/* FFmpeg's name of the muxer; lives as long as it. */
STK_API const char *stk_muxer_format(const stk_muxer *muxer);

/* A stream for what the encoder makes, which lives as long as its owner wants.
 * STK_EUNSUPPORTED: no such encoder, a format that it does not take (the text lists those that it
 * takes), or one that the file cannot hold. */
STK_API STK_NODISCARD stk_err stk_muxer_add_encoder(stk_muxer *muxer, const stk_encode_opts *opts,
                                                    stk_encoder **out, stk_diag *diag);

/* A stream for packets of that codec, which are written as they are. */
STK_API STK_NODISCARD stk_err stk_muxer_add_codec(stk_muxer *muxer, const stk_av_codec *codec,
                                                  stk_diag *diag);

/* Makes the file and writes what comes before the packets.  `options`: of the muxer: name,
 * value..., NULL.  STK_EIO, STK_ENOTFOUND: the system's reason.  STK_ETIMEOUT, STK_ECANCELLED: of
 * an address, and nothing can be written behind what was cut short; likewise below. */
STK_API STK_NODISCARD stk_err stk_muxer_open(stk_muxer *muxer, const char *const *options,
                                             stk_diag *diag);

/* All packets, also those outside of a window.  They are put into the order of time with those of
 * other streams, for which they may wait. */
STK_API STK_NODISCARD stk_err stk_muxer_write(stk_muxer *muxer, size_t stream,
                                              const stk_packets *packets, stk_diag *diag);

/* Nothing waits any more. */
STK_API STK_NODISCARD stk_err stk_muxer_flush(stk_muxer *muxer, stk_diag *diag);

/* Writes what comes behind the packets and closes the file, which happens after a failure, too.
 * Later calls do nothing.  Of an address it ends what another thread's call waits for, which says
 * STK_ECANCELLED, and waits for that; STK_ECANCELLED: `interrupt` ended the waiting, and the file
 * is not closed.  STK_EAGAIN: `interrupt` called it, whose own call is ended likewise.  After
 * stk_muxer_cancel, what would wait is left out, and that is no failure. */
STK_API STK_NODISCARD stk_err stk_muxer_close(stk_muxer *muxer, stk_diag *diag);

STK_END

#endif /* STK_AV_MUX_H */
