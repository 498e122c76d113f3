/*
 * job: the main job that bench, plan and sheet share: a folder of images, or of video or sound,
 * read, decoded to one size, and batched.
 *
 *     Directory ──► read ──► decode_image, decode_video or decode_audio ──► batch ──► sink
 */
#ifndef STK_CLI_JOB_H
#define STK_CLI_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <stoker/plan.h>

#include "kind.h"

typedef struct job {
    int64_t size, batch, threads, epochs, seed, limit, reads;
    int crop, quality, filter, order, on_error; /* numbers of words in their option's list */
    bool shuffle, json;
    int64_t columns, rows;  /* of a sheet */
    int64_t frames, stride; /* of a clip of video */
    int64_t seconds, rate;  /* of a clip of sound */
    int wanted;             /* a sample_kind; KIND_NONE: what most files are */
    bool images_first;      /* then images, if there are any */
    sample_kind kind;       /* what job_plan takes */
} job;

/* What every option is when it is not given. */
extern const job job_defaults;

/* Lines for tables of options. */
// clang-format off
#define JOB_IMAGE_OPTIONS                                                                                                     \
    {"crop", OPTION_CHOICE, "random|center|none", offsetof(job, crop), 0, 0, "part of each image that is taken (random)"},    \
    {"quality", OPTION_CHOICE, "fast|exact", offsetof(job, quality), 0, 0, "fast decoding, or equal to Pillow's (fast)"},     \
    {"filter", OPTION_CHOICE, "bilinear|bicubic|lanczos|box|nearest", offsetof(job, filter), 0, 0, "resampling (bilinear)"},  \
    {"shuffle", OPTION_SWITCH, NULL, offsetof(job, shuffle), 0, 0, "visit the images in random order, or in listing order"},  \
    {"seed", OPTION_INT, "N", offsetof(job, seed), 0, INT64_MAX, "of the order, the crops and the flips (0)"},                \
    {"threads", OPTION_INT, "N", offsetof(job, threads), 0, 1024, "decoding threads; 0: one for each processor (0)"}

#define JOB_RUN_OPTIONS                                                                                                       \
    {"kind", OPTION_CHOICE, KIND_WORDS, offsetof(job, wanted), 0, 0, "what is loaded (what most files are)"},                 \
    {"size", OPTION_INT, "N", offsetof(job, size), 1, 65500, "width and height of the decoded images (224)"},                 \
    {"batch", OPTION_INT, "N", offsetof(job, batch), 1, 65536, "images or clips in a batch (64; of video 8)"},                \
    {"frames", OPTION_INT, "N", offsetof(job, frames), 1, 1024, "of a clip of video (16)"},                                   \
    {"stride", OPTION_INT, "N", offsetof(job, stride), 1, 65536, "from one frame of a clip to the next (2)"},                 \
    {"seconds", OPTION_INT, "N", offsetof(job, seconds), 1, 86400, "of a clip of sound (4)"},                                 \
    {"rate", OPTION_INT, "N", offsetof(job, rate), 1, 768000, "that FFmpeg resamples sound to, in Hz (16000)"},               \
    JOB_IMAGE_OPTIONS,                                                                                                        \
    {"reads", OPTION_INT, "N", offsetof(job, reads), 1, 64, "files read at once (16)"},                                       \
    {"epochs", OPTION_INT, "N", offsetof(job, epochs), 1, INT32_MAX, "passes over the images (1)"},                           \
    {"order", OPTION_CHOICE, "input|completion", offsetof(job, order), 0, 0, "order in which images leave a stage (input)"},  \
    {"on-error", OPTION_CHOICE, "raise|skip|substitute", offsetof(job, on_error), 0, 0, "what an image that fails does (raise)"}
// clang-format on

/* Looks at `path`, a folder of images, video, sound or archives, or one archive, and makes the
 * plan.  Gives *out and, unless NULL, *source; free both. Returns an exit_code; when it is not
 * EXIT_FINE, it has been said why. */
int job_plan(job *j, const char *path, stk_plan **out, stk_source **source);

#endif /* STK_CLI_JOB_H */
