/*
 * stk_clip: ops that cut a clip out of each audio or video file, all of one length, into batches.
 *
 *     bytes ──► decode_wav, decode_audio   (n, channels, time) float32, and a mask (n, time) bool
 *     bytes ──► decode_video             (n, frames, height, width, channels) uint8
 *
 * Constructors are as those of stoker/ops.h.
 */
#ifndef STK_CLIP_H
#define STK_CLIP_H

#include <stoker/ops.h>

STK_BEGIN

/* Where a clip begins; one that is longer than the file begins with it. */
typedef enum stk_where {
    STK_WHERE_START = 0,
    STK_WHERE_MIDDLE,
    STK_WHERE_RANDOM, /* anywhere where it fits, each place as probable as any other */
    STK_WHERE_ALL,    /* the whole file: one that is longer than a clip fails */
} stk_where;

typedef struct stk_audio_opts {
    double seconds;      /* of a clip; 0, with STK_WHERE_ALL only: each file's own */
    int32_t sample_rate; /* of the result; 0: each file's own */
    int32_t channels;    /* of the result; 0: each file's own */
    stk_where where;
    const char *mask; /* what the part is called that the op adds; NULL: "mask"; "": it adds none */
    size_t max_bytes; /* of one array, and of what is decoded for it; 0: 1 GiB */
    uint32_t parts;   /* bit i: part i is decoded, others stay as they are; 0: all */
    bool lenient;     /* decode_audio: packets that cannot be decoded are left out, else it fails */
} stk_audio_opts;

/* decode_wav: bytes of WAV files to arrays (channels, time) of float32; integers become -1 to 1.
 * Files that are shorter than a clip are followed by zeros.  With `seconds`, it adds a part (time)
 * of bool, true where there is sound, in all parts of the sample.  These all get the same place.
 * Nothing is resampled: with a sample_rate, files of another one fail.  Of channels, several
 * become one by their mean, and one becomes several that are the same. */
STK_API stk_op *stk_op_decode_wav(const stk_audio_opts *opts, stk_diag *diag);

/* decode_audio: the same of whatever FFmpeg decodes, the best stream of sound.  It is resampled to
 * sample_rate, and mixed as FFmpeg does, normalised, so that sums stay within -1 to 1.  As many
 * channels as there are stay as they are.  Where nobody says which channel is which, one is their
 * mean, and other numbers fail, before anything is decoded, as does all that FFmpeg cannot mix.
 * What encoders put in front and behind is no sound, where the file says how much that is.
 * NULL with STK_EUNSUPPORTED: there is no FFmpeg. */
STK_API stk_op *stk_op_decode_audio(const stk_audio_opts *opts, stk_diag *diag);

typedef struct stk_video_opts {
    int32_t frames;         /* of a clip; 0, with STK_WHERE_ALL only: all of each file */
    int32_t stride;         /* from one frame of a clip to the next; 0: 1 */
    stk_where where;        /* all, with `frames`: spread evenly over the file, no stride */
    bool repeat;            /* the last frame, where a file is too short; else that fails */
    stk_image_opts picture; /* all but quality, max_side, nearest and gray parts */
    size_t max_bytes;       /* of one array, and of what is decoded for it; 0: 1 GiB */
} stk_video_opts;

/* decode_video: bytes to arrays (frames, height, width, channels) of uint8, of whatever FFmpeg
 * decodes; from the key frame before a clip to its end, without the groups of pictures that have no
 * frame of it.  The filter is libswscale's of that name, the crop and the flip are the same for all
 * frames, and for all parts of a sample, which have one size and get the same frames.  A packet
 * that cannot be decoded, of those that the clip needs, fails the sample.  Frames are turned and
 * mirrored by quarter turns as the container's display matrix says, but for ignore_orientation:
 * sizes, boxes and the limit of pixels are those of upright frames.  NULL with STK_EUNSUPPORTED:
 * there is no FFmpeg. */
STK_API stk_op *stk_op_decode_video(const stk_video_opts *opts, stk_diag *diag);

STK_END

#endif /* STK_CLIP_H */
