/*
 * stk_video_reader: the frames of one video by their numbers, as arrays; and plans, which say
 * beforehand what will be wanted.
 *
 *     stk_demuxer ──► stk_video_reader ──► stk_video_plan ──► a clip ──► a clip ──► ...
 *
 * All packets are read once, when the reader is made, and what is kept of each is when it is shown,
 * and whether decoding can begin there.  A clip is decoded from the key frame before it, or from
 * where the decoder is, if that is nearer.  What a plan wants later is kept when it comes past; so
 * each group of pictures is decoded once, as long as the clips that wait fit into `max_bytes`.
 *
 * Where times do not tell which packet a frame is, frames are counted from the first one on.
 *
 * Threads: one at a time uses a reader and its plans; a second one is told STK_EAGAIN.  Asking for
 * stats, frames and times: any.
 */
#ifndef STK_AV_READER_H
#define STK_AV_READER_H

#include <stoker/av_demux.h>
#include <stoker/av_frames.h>

STK_BEGIN

typedef struct stk_video_reader stk_video_reader;

/* Of the best video stream.  The demuxer stays the caller's, outlives the reader, and is used by
 * nobody else meanwhile, but to be cancelled.  opts.max_frames is not looked at; filters must give
 * one frame for one; strict: as stk_decoder_pick.
 * STK_ENOTFOUND: no video.  STK_EUNSUPPORTED: the input cannot seek, or no decoder. */
STK_API STK_NODISCARD stk_err stk_video_reader_new(stk_demuxer *demuxer,
                                                   const stk_decode_opts *opts,
                                                   stk_video_reader **out, stk_diag *diag);

/* After its plans.  &(stk_video_reader *){NULL} is fine. */
STK_API void stk_video_reader_free(stk_video_reader **reader);

/* How many frames there are by what the packets say. */
STK_API size_t stk_video_reader_length(const stk_video_reader *reader);

/* When each of the first `n` frames is shown, as multiples of *time_base, INT64_MIN: not known; and
 * in keys, if not NULL, whether decoding can begin at it. */
STK_API void stk_video_reader_times(const stk_video_reader *reader, stk_ratio *time_base,
                                    int64_t *times, bool *keys, size_t n);

typedef struct stk_video_reader_stats {
    size_t num_decoded;   /* frames that came out of the decoder */
    size_t num_converted; /* of those the ones that were wanted */
    size_t num_seeks;     /* in the file */
    size_t num_failed;    /* packets that could not be decoded */
    size_t kept_bytes;    /* of clips that wait for their turn */
} stk_video_reader_stats;

STK_API void stk_video_reader_get_stats(const stk_video_reader *reader,
                                        stk_video_reader_stats *out);

typedef struct stk_video_plan stk_video_plan;

/* `n` clips: the first has lengths[0] of `frames`, the second the next lengths[1] of them, ...  The
 * numbers of a clip are in any order, and may be the same.  max_bytes: of clips that are kept until
 * their turn; beyond it, frames are decoded again.  0: 256 MiB.
 * STK_ENOTFOUND: there is no such frame.  STK_EINVAL: a clip of no frames. */
STK_API STK_NODISCARD stk_err stk_video_plan_new(stk_video_reader *reader, const size_t *frames,
                                                 const size_t *lengths, size_t n, size_t max_bytes,
                                                 stk_video_plan **out, stk_diag *diag);
STK_API void stk_video_plan_free(stk_video_plan **plan);

/* The next clip: the array (frames, ...) of pictures, as stk_frames_spec has them, at the beginning
 * of *out.  STK_EEND: that was the last.
 * STK_ECORRUPT: a frame cannot be decoded.  STK_EINVAL: frames that differ in size or format, or
 * filters that give more or fewer frames than they get.  After such a failure comes the clip after
 * it. */
STK_API STK_NODISCARD stk_err stk_video_plan_next(stk_video_plan *plan, stk_spec *spec,
                                                  stk_buffer **out, stk_diag *diag);

STK_END

#endif /* STK_AV_READER_H */
