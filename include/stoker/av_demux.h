/*
 * stk_demuxer: takes packets out of a file, memory, a pipe or a stream from the network.
 *
 *     stk_demuxer_open ──► stk_demuxer_read (a window, from wherever it is) ──► stk_packets
 *                     └──► stk_demuxer_next (on from where it is) ──► stk_packets of each stream
 *
 * It opens what it was given and nothing else: a playlist that names other files or addresses is
 * refused, unless the options name the protocols that may be used.
 *
 * Threads: one at a time; a second one is told STK_EAGAIN.  stk_demuxer_cancel: any.  So may
 * stk_demuxer_best, _num_streams and _get_info be called, which say what was known when the last
 * call on the demuxer ended.
 */
#ifndef STK_AV_DEMUX_H
#define STK_AV_DEMUX_H

#include <stoker/av_packets.h>

STK_BEGIN

typedef struct stk_demuxer stk_demuxer;

/* Bytes by functions of the caller, on the thread that calls the demuxer.  All give a negative
 * number for a failure, and are told nothing else about it. */
typedef struct stk_av_reader {
    int64_t (*read)(void *ctx, uint8_t *dst, size_t n); /* 0: the end; else at most n */
    int64_t (*seek)(void *ctx, int64_t at);             /* from the start; NULL: it cannot */
    int64_t (*size)(void *ctx);                         /* NULL or negative: not known */
    void (*close)(void *ctx);                           /* runs once, also if opening fails */
    void *ctx;
} stk_av_reader;

/* One of the four. */
typedef struct stk_av_input {
    const char *url;             /* a path; with opts.protocols also an address */
    stk_buffer *bytes;           /* the demuxer has a reference of its own */
    const stk_av_reader *reader; /* copied */
    const int
        *fd; /* of a pipe, a socket or a file; the demuxer has a duplicate, and it stays open */
    const char *name; /* for messages; NULL: the url, or a description */
} stk_av_input;

/* Asks about ten times a second, on the thread that calls, while a call may wait for its input:
 * true ends the call with STK_ECANCELLED. */
typedef struct stk_av_interrupt {
    bool (*wanted)(void *ctx); /* NULL: nobody is asked */
    void *ctx;
} stk_av_interrupt;

typedef struct stk_demux_opts {
    const char *format;         /* one of FFmpeg's demuxers; NULL: found out from the bytes */
    const char *const *options; /* of the demuxer: name, value, name, value..., NULL */
    size_t buffer_size;         /* of reads, in bytes; 0: 8096 */
    const char *protocols;      /* "file,http,tcp": what may be opened; NULL: only the input */
    int64_t timeout;            /* ns for opening, and for each packet; 0: 60 s; STK_FOREVER */
    size_t max_bytes;           /* of the packets of one call; 0: 4 GiB */
    size_t frames; /* of a video, from its first on, that suffice: stk_demuxer_read of no
                      window may leave out what follows the key frame behind them; 0: all */
    stk_av_interrupt interrupt; /* not asked by stk_demuxer_free */
} stk_demux_opts;

STK_API STK_NODISCARD stk_err stk_demuxer_open(const stk_av_input *input,
                                               const stk_demux_opts *opts, stk_demuxer **out,
                                               stk_diag *diag);

/* The last call: nobody uses it any more.  &(stk_demuxer *){NULL} is fine. */
STK_API void stk_demuxer_free(stk_demuxer **demuxer);

/* What runs on it, and every later call, says STK_ECANCELLED. */
STK_API void stk_demuxer_cancel(stk_demuxer *demuxer);

/* The stream that stk_demuxer_read would take, and how many there are; -1: none of that kind. */
STK_API int stk_demuxer_best(const stk_demuxer *demuxer, stk_media media);
STK_API int stk_demuxer_num_streams(const stk_demuxer *demuxer);

/* What the container says; texts are "" and times have den == 0 where it does not. */
typedef struct stk_demuxer_info {
    char format[STK_AV_NAME_SIZE]; /* FFmpeg's names of it: "mov,mp4,m4a,3gp,3g2,mj2" */
    stk_ratio duration;            /* seconds */
    int64_t bit_rate;              /* bits a second; 0: not known */
} stk_demuxer_info;

STK_API void stk_demuxer_get_info(const stk_demuxer *demuxer, stk_demuxer_info *out);

typedef struct stk_stream_info {
    stk_media media;             /* STK_MEDIA_NONE: what has no codec here */
    char kind[STK_AV_NAME_SIZE]; /* "video", "audio", "subtitle", "data", "attachment" */
    char codec[STK_AV_NAME_SIZE];
    char language[STK_AV_NAME_SIZE];
    stk_ratio start, duration; /* seconds */
} stk_stream_info;

/* STK_ENOTFOUND: no such stream. */
STK_API STK_NODISCARD stk_err stk_demuxer_stream_info(stk_demuxer *demuxer, int stream,
                                                      stk_stream_info *out, stk_diag *diag);

/* The codec of one stream.  STK_ENOTFOUND: no such stream. */
STK_API STK_NODISCARD stk_err stk_demuxer_codec(stk_demuxer *demuxer, int stream, stk_media media,
                                                stk_av_codec **out, stk_diag *diag);

/* All packets of the best stream, or those that the window needs: NULL for no window.  An image is
 * the first packet of the best video stream.  `bsf`: bitstream filters for them, in FFmpeg's
 * syntax, or NULL.
 * STK_ENOTFOUND: no such stream.  STK_EINVAL: a window that ends before it starts, or wrong
 * filters. STK_ETIMEOUT, STK_ECANCELLED.  STK_ELIMIT: more bytes than allowed.  STK_ECORRUPT: the
 * data. */
STK_API STK_NODISCARD stk_err stk_demuxer_read(stk_demuxer *demuxer, stk_media media,
                                               const stk_window *window, const char *bsf,
                                               stk_packets **out, stk_diag *diag);

/* Goes on reading: packets of `n` streams, until there are `num_packets` of them together (0: no
 * limit), or `duration` seconds have passed (den == 0: no limit).  out[i]: those of streams[i],
 * or NULL.  STK_EEND: there are none.  Where the input ends early, as far as FFmpeg complains or
 * the header says so, and all of a stream was read, its last packet counts as damaged: decoding
 * says so.  To see that, one packet more is read where nobody has to be waited for. */
STK_API STK_NODISCARD stk_err stk_demuxer_next(stk_demuxer *demuxer, const int *streams, size_t n,
                                               stk_ratio duration, size_t num_packets,
                                               stk_packets **out, stk_diag *diag);

/*
 * stk_bsf: bitstream filters, which change how packets are packed without decoding them.
 * Threads: one at a time, as above.
 */
typedef struct stk_bsf stk_bsf;

STK_API STK_NODISCARD stk_err stk_bsf_new(const stk_av_codec *codec, const char *filters,
                                          stk_bsf **out, stk_diag *diag);
STK_API void stk_bsf_free(stk_bsf **bsf);

/* `packets`: NULL to flush only.  Afterwards, with `flush`, it begins anew.  The packets that are
 * given have the codec that the filters make if those that were put in had one. */
STK_API STK_NODISCARD stk_err stk_bsf_filter(stk_bsf *bsf, const stk_packets *packets, bool flush,
                                             stk_packets **out, stk_diag *diag);

STK_END

#endif /* STK_AV_DEMUX_H */
