/*
 * A video reader's state (include/stoker/av_reader.h).
 *
 *     demuxer ──► packets [from, to) ──► decoder ──► picture `next` ──► the plan's clips
 *
 * The decoder begins at a key frame and goes on packet by packet, as long as what is wanted lies
 * ahead and no key frame is nearer to it.
 */
#ifndef STK_AV_VIDEO_READER_H
#define STK_AV_VIDEO_READER_H

#include <stoker/av_reader.h>

#include "av/decoder.h"
#include "av/demuxer.h"
#include "av/video_index.h"

struct stk_video_reader {
    stk_demuxer *demuxer;
    int stream;
    AVRational time_base;
    stk_decoder *decoder;
    bool strict;
    bool cut; /* the file ends before it should */

    atomic_size_t decoded, converted, seeks, kept; /* written by who has `busy` */
    atomic_flag busy;                              /* guards everything below */
    av_index index;
    size_t at;    /* the packet that the demuxer gives next */
    bool lost;    /* or that is not known */
    bool counted; /* times do not tell which packet a picture is */

    bool whole;      /* decoded is everything from the first packet on, and pictures are counted */
    bool running;    /* the decoder is, and can go on */
    size_t from, to; /* packets that it was given since it began */
    size_t lead, next; /* pictures: the first that must come since then; the one that comes next */
};

/* A plan takes what it wants of the pictures that come past (clip_plan.c). */

#define AV_NO_FRAME SIZE_MAX

/* Whether a clip waits for the picture. */
bool av_plan_wants(const stk_video_plan *p, size_t frame);

/* The first picture from `frame` to `last` that a clip waits for; `kept`: and that could be kept
 * until its turn.  AV_NO_FRAME: there is none. */
size_t av_plan_ahead(const stk_video_plan *p, size_t frame, size_t last, bool kept);

/* The picture goes to the clips that wait for it, as far as they can be kept. */
STK_NODISCARD stk_err av_plan_put(stk_video_plan *p, size_t frame, AVFrame *picture,
                                  stk_av_call *call);

/* Decoding for a plan (reader_run.c). */
typedef struct av_run {
    stk_video_reader *r;
    stk_video_plan *plan;
    stk_av_call *call;
    size_t last;   /* the last picture that the clip wants */
    size_t target; /* the picture that is wanted now */
    bool several;  /* the plan has other clips: nobody will ask for what comes next */
    bool bad;      /* what came is not what the index says */
} av_run;

/* Decodes until `frame` should have come, or run->bad. */
STK_NODISCARD stk_err av_run_to(av_run *run, size_t frame);

/* What to say of a frame that did not come although everything was decoded. */
STK_NODISCARD stk_err av_run_missing(const av_run *run, size_t frame);

/* From the first packet on; or by times again. */
void av_reader_set_whole(stk_video_reader *r, bool whole);

/* The packet `i` into demuxer->packet.  STK_EEND: there is none.  *same: it is what the index says.
 */
STK_NODISCARD stk_err av_reader_packet(stk_video_reader *r, size_t i, bool *same,
                                       stk_av_call *call);

#endif /* STK_AV_VIDEO_READER_H */
