/* An encoder: how it is made (encoder.c), and the encoding (encode.c). */
#ifndef STK_AV_ENCODER_H
#define STK_AV_ENCODER_H

#include <stdatomic.h>

#include <libavutil/audio_fifo.h>

#include <stoker/av_encode.h>

#include "av/call.h"
#include "av/compat.h"

struct stk_encoder {
    stk_media media;
    AVRational frame_rate;
    stk_av_codec *codec; /* what its packets are of */

    atomic_flag busy; /* guards everything below */
    stk_av_log log; /* of the context's threads, which some encoders have whatever they are told */
    AVCodecContext *context;
    AVPacket *packet;
    AVFrame *frame;
    AVAudioFifo *fifo; /* samples that make no whole packet yet; NULL: any number makes one */
    int64_t next;      /* when what is encoded next begins, in the context's time base */
    bool begun;        /* `next` is known */
    bool ended, broken;
};

/* `format`: for which file; `guess`: its usual codec of that kind, where the options name none. */
STK_NODISCARD stk_err stk_encoder_make(const stk_encode_opts *opts, const AVOutputFormat *format,
                                       enum AVCodecID guess, stk_encoder **out, stk_av_call *call);

/* A dictionary of name, value..., NULL. */
STK_NODISCARD int stk_av_options(const char *const *options, AVDictionary **out);

#endif /* STK_AV_ENCODER_H */
