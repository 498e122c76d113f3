/*
 * stk_sound: what the ops that decode audio have in common: options, the place of a clip, the mask.
 *
 *     file   |--------------------------------|      total samples at its rate
 *     clip           start |-----------|             `seconds`, at the rate of the result
 *
 * Threads: never changes after stk_sound_new.
 */
#ifndef STK_OPS_SOUND_H
#define STK_OPS_SOUND_H

#include <stoker/clip.h>

typedef struct stk_sound {
    stk_audio_opts o; /* with the defaults put in; `mask` is NULL where there is none */
    char name[];      /* of the mask */
} stk_sound;

/* Checked and copied, by stk_alloc; `op` is for messages.  NULL: *diag says why. */
stk_sound *stk_sound_new(const char *op, const stk_audio_opts *opts, stk_diag *diag);

/* For the op's class. */
uint32_t stk_sound_takes(const void *params);
void stk_sound_spec(const void *params, size_t part, stk_spec *out);
const char *stk_sound_adds(const void *params, size_t i, stk_spec *spec);
void stk_sound_print(const stk_sound *s, const char *op, char *dst, size_t size);

/* Where the clip of a sample lies: the same time in all of its parts. */
typedef struct stk_sound_place {
    int64_t start; /* in samples of `rate` */
    int32_t rate;  /* of the first part; 0: not decided yet */
    int64_t time;  /* length of the result, of each part */
    int64_t sound; /* of that: samples that are none of the padding, in all parts so far */
} stk_sound_place;

/* Decides it, if it is not yet, for a first part of `total` samples at `rate`.
 * STK_EINVAL: longer than a clip, and all of it was asked for. */
STK_NODISCARD stk_err stk_sound_decide(const stk_sound *s, const stk_item *item, int64_t total,
                                       int32_t rate, stk_sound_place *place, stk_diag *diag);

/* Memory for the part's next array: (channels, place->time). */
STK_NODISCARD stk_err stk_sound_array(const stk_sound *s, stk_item *item, size_t part,
                                      int32_t channels, const stk_sound_place *place,
                                      stk_tensor *out, stk_diag *diag);

/* Of that array the first `sound` samples of each channel are there: zeros behind them. */
void stk_sound_pad(const stk_tensor *t, int64_t sound, stk_sound_place *place);

/* Behind all parts: adds the mask, if there is to be one. */
STK_NODISCARD stk_err stk_sound_mask(const stk_sound *s, stk_item *item,
                                     const stk_sound_place *place, stk_diag *diag);

#endif /* STK_OPS_SOUND_H */
