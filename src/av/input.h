/*
 * av_input: where a demuxer's bytes come from: memory, a descriptor, functions of the caller, or,
 * by an address, FFmpeg's own protocols.
 *
 * A read that waits for a pipe is woken by an eventfd when it is cancelled.
 *
 * Threads: one at a time; av_input_cancel: any.
 */
#ifndef STK_AV_INPUT_H
#define STK_AV_INPUT_H

#include <libavformat/avformat.h>

#include "av/stop.h"

enum { AV_INPUT_HEAD = 1024 };

typedef struct av_input {
    AVIOContext *io;      /* NULL: FFmpeg opens the url itself */
    AVIOContext *address; /* FFmpeg's own, of the url */
    char *url;            /* that FFmpeg opens; NULL: none */
    stk_buffer *bytes;
    stk_av_reader reader;
    int fd;
    bool regular;
    int64_t size; /* -1: not known */
    int64_t at;
    int64_t known;               /* bytes that came, up to the furthest */
    uint8_t head[AV_INPUT_HEAD]; /* the first of them */
    char *name;                  /* for messages: of an address without its password */

    av_stop stop;
    int wake_fd;       /* readable once it was cancelled */
    int os_error;      /* of the last read that failed */
    char refused[256]; /* the first nested input that was not opened */
} av_input;

/* `in` is all zero.  `by`: protocols by which the url is opened, besides those of the options;
 * NULL: none.  After a failure, too, av_input_fini is called. */
STK_NODISCARD stk_err av_input_init(av_input *in, const stk_av_input *from,
                                    const stk_demux_opts *opts, const char *by, stk_diag *diag);

/* The protocols that open this address alone, in static storage; NULL: the url is a path.
 * STK_EUNSUPPORTED: an address of another kind. */
STK_NODISCARD stk_err av_input_protocols(const stk_av_input *from, const char **out,
                                         stk_diag *diag);
void av_input_fini(av_input *in);

/* The time for what is done next begins. */
void av_input_begin(av_input *in);
void av_input_cancel(av_input *in);

/* Whether it begins as AVI and WAV do; false if FFmpeg opened it itself. */
bool av_input_has_riff(const av_input *in);

/* Whether it has such a beginning, and ended more than `slack` bytes before the size that is told
 * there.  Whoever writes into a pipe tells the most that fits, or nothing: that is no size. */
bool av_input_is_cut(const av_input *in, int64_t slack);

/* FFmpeg asks this one: 1 to stop. */
int av_input_interrupted(void *in);

/* Says no to each nested input. */
int av_input_refuse(AVFormatContext *fc, AVIOContext **io, const char *url, int flags,
                    AVDictionary **options);

#endif /* STK_AV_INPUT_H */
