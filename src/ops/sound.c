#include "ops/sound.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "ops/draws.h"

#define DEFAULT_MAX_BYTES ((size_t)1 << 30)
#define MAX_SECONDS 1e6
#define MAX_RATE 10000000
#define MAX_CHANNELS 64

static stk_err check(const char *op, const stk_audio_opts *o, stk_diag *diag)
{
    if (!(o->seconds >= 0 && o->seconds <= MAX_SECONDS))
        return stk_diag_set(diag, STK_EINVAL, "%s: seconds is %g: it must be from 0 to %g", op,
                            o->seconds, MAX_SECONDS);
    if (o->where < STK_WHERE_START || o->where > STK_WHERE_ALL)
        return stk_diag_set(diag, STK_EINVAL, "%s: unknown place %d", op, (int)o->where);
    if (o->seconds == 0 && o->where != STK_WHERE_ALL)
        return stk_diag_set(diag, STK_EINVAL,
                            "%s: a clip needs its seconds: only all of a file goes without", op);
    if (o->sample_rate < 0 || o->sample_rate > MAX_RATE)
        return stk_diag_set(diag, STK_EINVAL, "%s: sample_rate is %d: it must be from 1 to %d", op,
                            (int)o->sample_rate, MAX_RATE);
    if (o->seconds > 0 && o->sample_rate && o->seconds * o->sample_rate < 0.5)
        return stk_diag_set(diag, STK_EINVAL, "%s: a clip of %g seconds at %d Hz has no sample", op,
                            o->seconds, (int)o->sample_rate);
    if (o->channels < 0 || o->channels > MAX_CHANNELS)
        return stk_diag_set(diag, STK_EINVAL, "%s: channels is %d: it must be from 1 to %d", op,
                            (int)o->channels, MAX_CHANNELS);
    return STK_OK;
}

stk_sound *stk_sound_new(const char *op, const stk_audio_opts *opts, stk_diag *diag)
{
    static const stk_audio_opts none;
    if (!opts) opts = &none;
    if (check(op, opts, diag)) return NULL;
    const char *mask = opts->mask ? opts->mask : "mask";
    stk_sound *s = stk_alloc(sizeof(*s) + strlen(mask) + 1);
    if (!s) {
        stk_diag_set(diag, STK_ENOMEM, "%s: no memory", op);
        return NULL;
    }
    s->o = *opts;
    if (!s->o.max_bytes) s->o.max_bytes = DEFAULT_MAX_BYTES;
    memcpy(s->name, mask, strlen(mask) + 1);
    s->o.mask = *mask && s->o.seconds > 0 ? s->name : NULL;
    return s;
}

static int64_t samples_in(double seconds, int32_t rate)
{
    return llround(seconds * rate);
}

/* The length of a clip; 0: not known beforehand. */
static int64_t known_time(const stk_audio_opts *o)
{
    return o->seconds > 0 && o->sample_rate ? samples_in(o->seconds, o->sample_rate) : 0;
}

uint32_t stk_sound_takes(const void *params)
{
    return ((const stk_sound *)params)->o.parts;
}

void stk_sound_spec(const void *params, size_t part, stk_spec *out)
{
    const stk_audio_opts *o = &((const stk_sound *)params)->o;
    const int64_t time = known_time(o);
    (void)part;
    if (o->channels && time)
        *out = (stk_spec){.dtype = STK_FLOAT32, .ndim = 2, .shape = {o->channels, time}};
}

const char *stk_sound_adds(const void *params, size_t i, stk_spec *spec)
{
    const stk_audio_opts *o = &((const stk_sound *)params)->o;
    const int64_t time = known_time(o);
    if (i > 0 || !o->mask) return NULL;
    if (time) *spec = (stk_spec){.dtype = STK_BOOL, .ndim = 1, .shape = {time}};
    return o->mask;
}

void stk_sound_print(const stk_sound *s, const char *op, char *dst, size_t size)
{
    static const char *const places[] = {"start", "middle", "random", "all"};
    char seconds[40] = "whole files", rate[24] = "own", channels[16] = "own";
    if (s->o.seconds > 0) snprintf(seconds, sizeof(seconds), "%gs", s->o.seconds);
    if (s->o.sample_rate) snprintf(rate, sizeof(rate), "%d", (int)s->o.sample_rate);
    if (s->o.channels) snprintf(channels, sizeof(channels), "%d", (int)s->o.channels);
    snprintf(dst, size, "%s(%s, where=%s, sample_rate=%s, channels=%s)", op, seconds,
             places[s->o.where], rate, channels);
}

/* 0 to n - 1, also where n has more bits than one random word. */
static int64_t draw_below(const stk_item *item, int64_t n)
{
    stk_draws d = {.item = item};
    const double high = stk_draws_word(&d);
    const double u = (high + stk_draws_word(&d) * 0x1p-32) * 0x1p-32;
    const int64_t at = (int64_t)(u * (double)n);
    return at < n ? at : n - 1;
}

stk_err stk_sound_decide(const stk_sound *s, const stk_item *item, int64_t total, int32_t rate,
                         stk_sound_place *p, stk_diag *diag)
{
    const stk_audio_opts *o = &s->o;
    const int32_t out_rate = o->sample_rate ? o->sample_rate : rate;
    if (p->rate) return STK_OK;
    *p = (stk_sound_place){.rate = rate, .time = total, .sound = INT64_MAX};
    if (o->seconds == 0) return STK_OK;
    p->time = samples_in(o->seconds, out_rate);
    const int64_t want = out_rate == rate ? p->time : (int64_t)ceil(o->seconds * rate);
    const int64_t spare = total - want;
    if (o->where == STK_WHERE_ALL && spare > 0)
        return stk_diag_set(diag, STK_EINVAL,
                            "%g seconds of sound, but a clip has %g: choose a place other than all",
                            (double)total / rate, o->seconds);
    if (spare > 0 && o->where == STK_WHERE_MIDDLE) p->start = spare / 2;
    if (spare > 0 && o->where == STK_WHERE_RANDOM) p->start = draw_below(item, spare + 1);
    return STK_OK;
}

stk_err stk_sound_array(const stk_sound *s, stk_item *item, size_t part, int32_t channels,
                        const stk_sound_place *p, stk_tensor *out, stk_diag *diag)
{
    const stk_spec spec = {.dtype = STK_FLOAT32, .ndim = 2, .shape = {channels, p->time}};
    size_t bytes;
    stk_err err = stk_spec_bytes(&spec, &bytes);
    if (!err && bytes > s->o.max_bytes) err = STK_ELIMIT;
    if (err)
        return stk_diag_set(diag, err,
                            "%" PRId64 " samples of %d channels: the limit is %zu bytes, max_bytes",
                            p->time, (int)channels, s->o.max_bytes);
    err = stk_item_new_array(item, part, &spec, out);
    return err ? stk_diag_set(diag, err, "no place for the samples: %s", stk_err_str(err)) : err;
}

void stk_sound_pad(const stk_tensor *t, int64_t sound, stk_sound_place *p)
{
    const int64_t time = t->shape[1];
    float *data = t->data;
    if (sound < p->sound) p->sound = sound;
    for (int64_t c = 0; c < t->shape[0] && sound < time; c++)
        memset(data + c * time + sound, 0, (size_t)(time - sound) * sizeof(*data));
}

stk_err stk_sound_mask(const stk_sound *s, stk_item *item, const stk_sound_place *p, stk_diag *diag)
{
    const size_t part = stk_item_num_parts(item);
    const stk_spec spec = {.dtype = STK_BOOL, .ndim = 1, .shape = {p->time}};
    const int64_t sound = p->sound < p->time ? p->sound : p->time;
    stk_tensor t;
    if (!s->o.mask) return STK_OK;
    stk_err err = stk_item_set_num_parts(item, part + 1);
    if (!err) err = stk_item_new_array(item, part, &spec, &t);
    if (err) return stk_diag_set(diag, err, "no place for the mask: %s", stk_err_str(err));
    memset(t.data, 1, (size_t)sound);
    memset((uint8_t *)t.data + sound, 0, (size_t)(p->time - sound));
    stk_item_commit_array(item, part);
    return STK_OK;
}
