/*
 * stk_encoder: makes packets of frames; and frames over arrays, for those who have no others.
 *
 *     array ──► stk_frames_over ──► stk_frames ──► stk_encoder ──► stk_packets ──► stk_muxer
 *
 * A muxer makes encoders (av_mux.h), since its format says which codec it has, and how.  An encoder
 * converts nothing: frames have the format and the size that it was made for.
 *
 * Threads: one at a time for each encoder; a second one is told STK_EAGAIN.
 */
#ifndef STK_AV_ENCODE_H
#define STK_AV_ENCODE_H

#include <stoker/av_frames.h>

STK_BEGIN

typedef struct stk_av_array {
    stk_media media;    /* STK_MEDIA_AUDIO or STK_MEDIA_VIDEO */
    stk_tensor view;    /* as of stk_frames_spec, for video with the frames in front; rows are
                         * contiguous, other strides are free */
    stk_buffer *mem;    /* keeps the elements alive; the frames have a reference of their own */
    const char *format; /* FFmpeg's name of the pixel or sample format */
    stk_ratio rate;     /* samples or frames a second */
    int64_t pts;        /* of the first sample or frame, in units of 1 / rate */
} stk_av_array;

/* Frames that are the array's elements, without a copy.  Gray pictures may also be (frames, height,
 * width).  STK_EINVAL: no such format, or an array that is not of it; the text says what is. */
STK_API STK_NODISCARD stk_err stk_frames_over(const stk_av_array *array, stk_frames **out,
                                              stk_diag *diag);

typedef struct stk_encoder stk_encoder;

#define STK_ENCODER_OWN (-1) /* a number that the encoder chooses */

typedef struct stk_encode_opts {
    stk_media media;            /* STK_MEDIA_AUDIO or STK_MEDIA_VIDEO */
    const char *encoder;        /* one of FFmpeg's; NULL: the muxer's for this kind */
    const char *const *options; /* of the encoder: name, value..., NULL; it has one thread */
    const char *format;         /* the pixel or sample format of the frames */

    int width, height;    /* video */
    stk_ratio frame_rate; /* also its times' unit */
    int gop_size, max_b_frames;
    const char *colorspace, *color_primaries, *color_trc; /* FFmpeg's names; NULL: not said */

    int sample_rate, num_channels; /* audio */

    int64_t bit_rate; /* these, and the two above, may be STK_ENCODER_OWN */
    int compression_level, qscale;
} stk_encode_opts;

STK_API void stk_encoder_free(stk_encoder **encoder);

/* Audio: the samples of a packet; 0: any number.  stk_encoder_encode cuts frames to it. */
STK_API int stk_encoder_frame_size(const stk_encoder *encoder);

/* A new reference to what decoders of its packets must know. */
STK_API stk_av_codec *stk_encoder_codec(const stk_encoder *encoder);

/* The packets that can be given; *out may hold none.  `frames`: NULL, with flush only.  `flush`:
 * these were the last, and the encoder takes no more.  Samples follow each other from the time of
 * the first one on; frames of video without a time follow the one before.
 * STK_EINVAL: frames of another format or size, or not after those before. */
STK_API STK_NODISCARD stk_err stk_encoder_encode(stk_encoder *encoder, const stk_frames *frames,
                                                 bool flush, stk_packets **out, stk_diag *diag);

STK_END

#endif /* STK_AV_ENCODE_H */
