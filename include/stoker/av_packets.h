/*
 * stk_packets: encoded audio, video or one image, as a demuxer gives it; and its codec.
 *
 * Packets never change once they were made, so they are shared by references.  They may carry a
 * window [start, end) of time.  Packets outside of it are there because decoding needs them: from
 * the key frame before the start on.  Decoding gives the frames in the window only.
 *
 * Threads: all functions, any thread.
 */
#ifndef STK_AV_PACKETS_H
#define STK_AV_PACKETS_H

#include <stoker/buffer.h>

STK_BEGIN

typedef enum stk_media {
    STK_MEDIA_NONE,
    STK_MEDIA_AUDIO,
    STK_MEDIA_VIDEO,
    STK_MEDIA_IMAGE,
} stk_media;

/* A number or a time in seconds: num / den, den > 0; den == 0: not known. */
typedef struct stk_ratio {
    int64_t num, den;
} stk_ratio;

typedef struct stk_window {
    stk_ratio start, end;
} stk_window;

#define STK_AV_NAME_SIZE 48

/* Texts are "" and numbers 0 where they are not known or make no sense. */
typedef struct stk_av_codec_info {
    stk_media media;
    char name[STK_AV_NAME_SIZE]; /* "h264" */
    int64_t bit_rate;
    int bits_per_sample;
    stk_ratio time_base;
    int sample_rate, num_channels;
    char sample_fmt[STK_AV_NAME_SIZE];
    char channel_layout[STK_AV_NAME_SIZE];
    int width, height; /* as stored, */
    int orientation;   /* and what makes them upright, as in EXIF: 1 to 8, 1 is nothing */
    char pix_fmt[STK_AV_NAME_SIZE];
    stk_ratio frame_rate, sample_aspect_ratio;
    char color_range[STK_AV_NAME_SIZE], colorspace[STK_AV_NAME_SIZE];
    char color_primaries[STK_AV_NAME_SIZE], color_trc[STK_AV_NAME_SIZE];
} stk_av_codec_info;

/* What a decoder must know of a stream before its first packet. */
typedef struct stk_av_codec stk_av_codec;

STK_API stk_av_codec *stk_av_codec_ref(stk_av_codec *codec);
STK_API void stk_av_codec_unref(stk_av_codec **codec);
STK_API void stk_av_codec_get_info(const stk_av_codec *codec, stk_av_codec_info *out);

/* Whether FFmpeg can mix the channels of such a stream to so many, of the layout that it takes for
 * that number.  STK_EUNSUPPORTED: no, as where either number has no layout. */
STK_API STK_NODISCARD stk_err stk_av_codec_mixes(const stk_av_codec *codec, int channels,
                                                 stk_diag *diag);

typedef struct stk_packets stk_packets;

STK_API stk_packets *stk_packets_ref(stk_packets *packets);
STK_API void stk_packets_unref(stk_packets **packets);

typedef struct stk_packets_info {
    stk_media media;
    bool windowed;
    stk_window window;
    size_t total;       /* packets, also outside of the window */
    size_t length;      /* of those the ones that begin inside the window */
    size_t keys;        /* of all the ones where decoding can begin */
    size_t bytes;       /* of all */
    bool ends_early;    /* the last one is damaged, or more should follow it */
    const char *source; /* what they were read from; lives as long as the packets */
} stk_packets_info;

STK_API void stk_packets_get_info(const stk_packets *packets, stk_packets_info *out);

/* A new reference; NULL: the packets do not say, as those of a stream that was read in parts. */
STK_API stk_av_codec *stk_packets_codec(const stk_packets *packets);

/* The times of the packets in the window, in the order in which they are displayed, as multiples
 * of *time_base.  `out` has room for `n`, which is info.length; `all`: info.total, in the order
 * of the file.  INT64_MIN stands for a time that is not known.  Gives how many there are. */
STK_API size_t stk_packets_times(const stk_packets *packets, bool all, stk_ratio *time_base,
                                 int64_t *out, size_t n);

/* When the frames are shown that decoding these packets gives, in that order, as multiples of
 * *time_base, and in *end when the last one ends, as far as the packets say.  Packets that are only
 * there to be decoded are left out, and of sound what encoders put in front and behind, where the
 * file says how much that is.  `out` has room for `n`, which is info.total.  Gives how many there
 * are; 0: a packet does not say when it is shown. */
STK_API size_t stk_packets_shown(const stk_packets *packets, stk_ratio *time_base, int64_t *end,
                                 int64_t *out, size_t n);

/* Of all packets of a stream those that a window needs, as stk_demuxer_read gives them; both share
 * the data.  STK_EUNSUPPORTED: a packet does not say when it is shown. */
STK_API STK_NODISCARD stk_err stk_packets_cut(const stk_packets *packets, const stk_window *window,
                                              stk_packets **out, stk_diag *diag);

/* The packets as bytes of a form of their own, and back.  Bytes may come from anywhere:
 * STK_ECORRUPT says that they were not made by stk_packets_write, or have changed since.
 * stk_packets_read copies nothing and keeps `bytes` alive. */
STK_API STK_NODISCARD stk_err stk_packets_write(const stk_packets *packets, stk_buffer **out,
                                                stk_diag *diag);
STK_API STK_NODISCARD stk_err stk_packets_read(stk_buffer *bytes, stk_packets **out,
                                               stk_diag *diag);

STK_END

#endif /* STK_AV_PACKETS_H */
