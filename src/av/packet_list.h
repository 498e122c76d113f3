/*
 * Packets and codecs, as the module knows them (include/stoker/av_packets.h).
 *
 * Both are filled by the one who made them and never change afterwards.
 */
#ifndef STK_AV_PACKET_LIST_H
#define STK_AV_PACKET_LIST_H

#include <stdatomic.h>

#include <stoker/av_packets.h>

#include "av/compat.h"

struct stk_av_codec {
    atomic_size_t refs;
    stk_media media;
    AVCodecParameters *par;
    AVRational time_base, frame_rate;
    bool has_display;
    int32_t display[9]; /* the container's display matrix */
};

struct stk_packets {
    atomic_size_t refs;
    stk_media media;
    stk_av_codec *codec; /* NULL: of a stream read in parts */
    AVRational time_base;
    bool windowed;
    stk_window window;
    int64_t first, end; /* the window in time_base: first <= pts < end */
    AVPacket **list;
    size_t n, room;
    size_t bytes;
    char *source;
};

/* A ratio of FFmpeg's as one of ours. */
stk_ratio stk_ratio_of(AVRational q);

/* The smallest multiple of time_base that is not before `t`; clamped to INT64_MIN + 1..MAX. */
int64_t stk_ticks(stk_ratio t, AVRational time_base);

/* A layout of which only the number of channels is known becomes the usual one of that number. */
void stk_av_layout_guess(AVChannelLayout *layout);

/* STK_EINVAL: denominators of 0 or below, or an end before the start. */
STK_NODISCARD stk_err stk_window_check(const stk_window *window, stk_diag *diag);

/* Copies `par`. */
STK_NODISCARD stk_err stk_av_codec_make(stk_media media, const AVCodecParameters *par,
                                        AVRational time_base, AVRational frame_rate,
                                        stk_av_codec **out);

/* What side data of its stream says of how it is displayed; other kinds say nothing. */
void stk_av_codec_note(stk_av_codec *codec, const AVPacketSideData *side);

/* Without packets.  `codec`: a reference is added; may be NULL.  `source` is copied. */
STK_NODISCARD stk_err stk_packets_make(stk_media media, stk_av_codec *codec, AVRational time_base,
                                       const stk_window *window, const char *source,
                                       stk_packets **out);

/* Moves what `from` holds to the end. */
STK_NODISCARD stk_err stk_packets_add(stk_packets *packets, AVPacket *from);

/* Whether it begins inside the window; a picture that is never shown does not. */
bool stk_packets_inside(const stk_packets *packets, const AVPacket *packet);

/* The time of a packet: when it is shown, or if that is not known, when it is decoded. */
int64_t stk_packet_time(const AVPacket *packet);

#endif /* STK_AV_PACKET_LIST_H */
