/*
 * stk_frames: decoded audio, video or one image; the decoder that makes them; and arrays of them.
 *
 *     stk_packets ──► stk_decoder (decode, cut to the window, filter) ──► stk_frames ──► array
 *
 * Frames never change once they were made, so they are shared by references.
 *
 * Threads: frames: any.  A decoder: one at a time; a second one is told STK_EAGAIN.
 */
#ifndef STK_AV_FRAMES_H
#define STK_AV_FRAMES_H

#include <stoker/av_packets.h>
#include <stoker/tensor.h>

STK_BEGIN

typedef struct stk_frames stk_frames;

typedef struct stk_frames_info {
    stk_media media;
    size_t num_frames;
    stk_ratio time_base, frame_rate;
    int64_t num_samples; /* of each channel, in all frames */
    int sample_rate, num_channels;
    char sample_fmt[STK_AV_NAME_SIZE];
    int width, height, num_planes; /* of the first frame */
    char pix_fmt[STK_AV_NAME_SIZE];
    size_t num_failed; /* packets that could not be decoded, and were left out */
} stk_frames_info;

STK_API stk_frames *stk_frames_ref(stk_frames *frames);
STK_API void stk_frames_unref(stk_frames **frames);
STK_API void stk_frames_get_info(const stk_frames *frames, stk_frames_info *out);

/* The times of the frames as multiples of info.time_base; INT64_MIN: not known. */
STK_API void stk_frames_times(const stk_frames *frames, int64_t *out, size_t n);

/* One pair of FFmpeg's metadata of the first frame, from *at 0 on; both live as long as the frames.
 * False: no more. */
STK_API bool stk_frames_metadata(const stk_frames *frames, size_t *at, const char **key,
                                 const char **value);

/* Frames with those of the given indices, in that order.  media: STK_MEDIA_NONE keeps it. */
STK_API STK_NODISCARD stk_err stk_frames_pick(const stk_frames *frames, const size_t *indices,
                                              size_t n, stk_media media, stk_frames **out,
                                              stk_diag *diag);

/*
 * The array that `n` frames objects make: of one, `batched` false, its own shape
 *
 *     audio    planar: (channels, time); packed: (time, channels)
 *     image    rgb24, rgba, bgr24...: (height, width, components), gray: (height, width, 1)
 *              planes of one size, yuv444p, gbrp, gray16: (planes, height, width)
 *              planes of several sizes, yuv420p, nv12, p010...: (1, rows, width), where the planes
 *              follow each other
 *     video    (frames, ...) of images
 *
 * and otherwise one more extent in front.  Elements are those of the format: planes are in the
 * order in which FFmpeg stores them, big-endian samples stay so.
 * STK_EINVAL: the objects differ in shape or format, or there are none.  STK_EUNSUPPORTED: a format
 * whose pixels are no array; the text says what to convert to.
 */
STK_API STK_NODISCARD stk_err stk_frames_spec(const stk_frames *const *frames, size_t n,
                                              bool batched, stk_spec *out, stk_diag *diag);

/* The memory of the array that one object makes, without a copy, where its pictures lie in one
 * piece that no other frames share; otherwise *out is NULL, which is no error: copy.  The object
 * must not be used afterwards, but to give it back. */
STK_API STK_NODISCARD stk_err stk_frames_memory(const stk_frames *frames, stk_buffer **out,
                                                stk_diag *diag);

/* Writes that array to `dst`, of `size` bytes, which must be those of the spec. */
STK_API STK_NODISCARD stk_err stk_frames_copy(const stk_frames *const *frames, size_t n, void *dst,
                                              size_t size, stk_diag *diag);

typedef struct stk_decoder stk_decoder;

typedef struct stk_decode_opts {
    const char *decoder;        /* one of FFmpeg's; NULL: its first for the codec */
    const char *const *options; /* of the decoder: name, value..., NULL; it has one thread */
    const char *filter;         /* FFmpeg's filter text; NULL: frames as they were decoded */
    bool strict;                /* a packet that cannot be decoded is an error */
    int64_t max_frames;         /* no more frames than these; 0: all */
    int64_t max_pixels;         /* of a frame; 0: 256 Mi */
    size_t max_bytes;           /* of the frames that one call gives, but for _next; 0: 4 GiB */
    bool join; /* of sound, all that a call gives is one frame, made in what becomes its array; a
                  new one begins where the format, the channels or the rate change */
} stk_decode_opts;

STK_API STK_NODISCARD stk_err stk_decoder_new(const stk_av_codec *codec,
                                              const stk_decode_opts *opts, stk_decoder **out,
                                              stk_diag *diag);
STK_API void stk_decoder_free(stk_decoder **decoder);

/* The frames that can be given, cut to the window of the packets if they have one.  `packets`:
 * NULL, with flush only.  `flush`: these were the last; afterwards it begins anew.  *out may hold
 * no frame.
 * STK_ECORRUPT: a packet that cannot be decoded, if strict, or if none could.
 * STK_EINVAL: wrong filters.  STK_ELIMIT: they have more than max_bytes.  After a failure it begins
 * anew. */
STK_API STK_NODISCARD stk_err stk_decoder_decode(stk_decoder *decoder, stk_packets *packets,
                                                 bool flush, stk_frames **out, stk_diag *diag);

/*
 * The same in parts: what is put in waits, and a call decodes as much of it as its frames need.
 *
 *     stk_decoder_put(decoder, packets) ... stk_decoder_put(decoder, NULL): an end, as `flush`
 *     stk_decoder_next, until it gives no frame: then nothing waits any more
 */
#define STK_DECODER_WAITING 64 /* packets objects and ends that may wait */

/* The decoder has a reference of its own.  STK_ELIMIT: too many wait. */
STK_API STK_NODISCARD stk_err stk_decoder_put(stk_decoder *decoder, stk_packets *packets,
                                              stk_diag *diag);

/* At most `max_frames`, 0 for any number, and no more once they have `max_bytes`, 0 for 16 MiB;
 * none from both sides of an end.  Failures as above, after the frames that came before; what waits
 * is dropped. */
STK_API STK_NODISCARD stk_err stk_decoder_next(stk_decoder *decoder, size_t max_frames,
                                               size_t max_bytes, stk_frames **out, stk_diag *diag);

/* The frames of these numbers, ascending, in the order in which they are shown and counted in the
 * window, of packets of video or an image.  Only what they need is decoded, from the key frame
 * before each; where times do not tell which packet a frame is, all of it.  Filters get these
 * frames only, one after the other.  It begins anew before and afterwards, and drops what waits.
 * STK_ENOTFOUND: there is no such frame.  STK_EINVAL: numbers that do not ascend, none of them, or
 * filters that give more or fewer frames than they get.  STK_ELIMIT: as above, also of frames that
 * wait, before filters, until all is decoded, as which they are is known then.  STK_ECORRUPT: a
 * frame cannot be decoded, or if strict, a packet on the way. */
STK_API STK_NODISCARD stk_err stk_decoder_pick(stk_decoder *decoder, const stk_packets *packets,
                                               const size_t *indices, size_t n, stk_frames **out,
                                               stk_diag *diag);

/* Which frames of a video are wanted, and where they go. */
typedef struct stk_frames_wanted {
    const size_t *numbers; /* [num] as stk_decoder_pick takes them */
    const int64_t *times;  /* [num] when each is shown, in the codec's time base; NULL: any time */
    size_t num;
    const size_t *pick; /* [n] rising from 0 on: which of them each picture is; all are */
    size_t n;
    int32_t width, height; /* of a picture of the array */
} stk_frames_wanted;

/* What stk_decoder_pick gives as an array (n, height, width, components) straight into `dst`, of
 * `size` bytes, aligned to 16: no frame lies between the decoder's and it, and each is written
 * before the next is decoded.  Filters that make that possible are
 *
 *     [crop=w=W:h=H:x=X:y=Y:exact=1,][scale=w=W:h=H:flags=F,]format=pix_fmts=P[,hflip]
 *
 * with rgb24, bgr24, rgba or bgra, and rows of 16, 32, 48... pixels.  It begins anew before and
 * afterwards, and drops what waits.
 * STK_EINVAL: the array does not hold n such pictures, or pick is not as it should be.
 * STK_EUNSUPPORTED: other filters, or frames of another size or format, or an FFmpeg later than 6,
 * whose filters know more: pick.  STK_ENOTFOUND: a frame is not there, or has another time.  Other
 * failures as stk_decoder_pick; `dst` may hold anything after one. */
STK_API STK_NODISCARD stk_err stk_decoder_fill(stk_decoder *decoder, const stk_packets *packets,
                                               const stk_frames_wanted *wanted, void *dst,
                                               size_t size, stk_diag *diag);

/* Packets that could not be decoded, since it was made.  Any thread. */
STK_API size_t stk_decoder_failed(const stk_decoder *decoder);

STK_END

#endif /* STK_AV_FRAMES_H */
