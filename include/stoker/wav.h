/*
 * stk_wav_info: what a WAV file says of itself, and where its samples lie.
 *
 *     RIFF size WAVE {id, size, bytes, pad to 2}...     Microsoft and IBM, Multimedia Programming
 *                                                       Interface 1.0; WAVEFORMATEXTENSIBLE
 *     RF64 ~0   WAVE {ds64: sizes of 64 bits} ...       EBU Tech 3306; BW64: ITU-R BS.2088
 *     riff size wave {guid, size, bytes, pad to 8}...   Sony Wave64: all sizes have 64 bits
 *
 * Whoever writes to a pipe cannot go back and fill in sizes.  These reach to the end of the file,
 * down to whole frames: all ones; the largest positive number of their width; in 32 bits
 * 0x7fff0000 and more, if past the end; 0, if the size of the whole is such a number, 0, or ends
 * where the samples begin.  Any other size that is past the end is an error.  The size of the whole
 * serves for nothing else.
 *
 * Threads: any.
 */
#ifndef STK_WAV_H
#define STK_WAV_H

#include <stoker/buffer.h>
#include <stoker/tensor.h>

STK_BEGIN

typedef enum stk_wav_kind { STK_WAV_RIFF = 0, STK_WAV_RF64, STK_WAV_W64 } stk_wav_kind;

/* Formats that can be read; others are reported as they are. */
enum { STK_WAV_PCM = 1, STK_WAV_FLOAT = 3 };

typedef struct stk_wav_info {
    stk_wav_kind kind;
    bool extensible; /* WAVEFORMATEXTENSIBLE: `format` is that of its GUID */
    bool unsized;    /* the samples reach to the end for want of a size */
    uint16_t format; /* STK_WAV_PCM... */
    uint16_t channels;
    uint16_t bits;         /* of a sample, as stored */
    uint16_t valid_bits;   /* of them; the same unless extensible */
    uint16_t block_align;  /* bytes of a frame: one sample of each channel */
    uint32_t channel_mask; /* which speakers; 0: not said */
    uint32_t sample_rate;  /* frames a second */
    uint32_t byte_rate;
    stk_dtype dtype; /* of an array of samples; 24 bits are widened; NONE: cannot be read */
    bool widened;    /* 24 bits: the samples are no array of `dtype` where they lie */
    uint64_t data_offset, data_size; /* bytes */
    uint64_t frames;                 /* 0 if the format cannot be read */
} stk_wav_info;

/* "RIFF", "RF64", "W64". */
STK_API const char *stk_wav_kind_str(stk_wav_kind kind);

/* STK_EUNSUPPORTED: no WAV file; STK_ECORRUPT: a broken one.  A format that cannot be read is no
 * error here, but one of stk_wav_window. */
STK_API STK_NODISCARD stk_err stk_wav_parse(const void *data, size_t size, stk_wav_info *out,
                                            stk_diag *diag);

/* The same of a regular file, of which it reads the headers alone.  STK_EIO, STK_ENOTFOUND, too. */
STK_API STK_NODISCARD stk_err stk_wav_probe(const char *path, stk_wav_info *out, stk_diag *diag);

/* Frames [*first, *first + *frames) of the window that begins at `offset` and lasts for `duration`
 * seconds (infinity: to the end), as far as there are samples: both rounded down to frames.
 * STK_EINVAL: negative, not a number, or it begins at the end of the samples or past it (at 0 it
 * never does); STK_EUNSUPPORTED: see above. */
STK_API STK_NODISCARD stk_err stk_wav_window(const stk_wav_info *info, double offset,
                                             double duration, uint64_t *first, uint64_t *frames,
                                             stk_diag *diag);

/* Little-endian numbers of 24 bits to 32 by a shift, so that the largest stays the largest. */
STK_API void stk_wav_widen(const void *src, size_t samples, int32_t *dst);

/* Reads the header of a file and the samples of one window, nothing else: (frames, channels) of
 * info->dtype.  Gives *mem, which holds *out.
 * STK_ELIMIT: more than max_bytes (0: 1 GiB); those of the two above, STK_EIO, STK_ENOTFOUND. */
STK_API STK_NODISCARD stk_err stk_wav_read(const char *path, double offset, double duration,
                                           size_t max_bytes, stk_wav_info *info, stk_tensor *out,
                                           stk_buffer **mem, stk_diag *diag);

STK_END

#endif /* STK_WAV_H */
