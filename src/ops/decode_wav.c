#include <stoker/wav.h>

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "ops/parts.h"
#include "ops/sound.h"

/* One channel, of samples `stride` bytes apart, as numbers from -1 to 1: what libswresample makes
 * of them, too. */
typedef void convert_fn(const uint8_t *src, size_t stride, size_t n, float *dst);

#define CONVERT(name, type, value)                                                     \
    static void name(const uint8_t *src, size_t stride, size_t n, float *restrict dst) \
    {                                                                                  \
        for (size_t i = 0; i < n; i++) {                                               \
            type v;                                                                    \
            memcpy(&v, src + i * stride, sizeof(v));                                   \
            dst[i] = (value);                                                          \
        }                                                                              \
    }

CONVERT(of_uint8, uint8_t, (float)(v - 128) * 0x1p-7f)
CONVERT(of_int16, int16_t, (float)v * 0x1p-15f)
CONVERT(of_int32, int32_t, (float)v * 0x1p-31f)
CONVERT(of_int64, int64_t, (float)v * 0x1p-63f)
CONVERT(of_float32, float, v)
CONVERT(of_float64, double, (float)v)

static void of_int24(const uint8_t *src, size_t stride, size_t n, float *restrict dst)
{
    for (size_t i = 0; i < n; i++) {
        int32_t v;
        stk_wav_widen(src + i * stride, 1, &v);
        dst[i] = (float)v * 0x1p-31f;
    }
}

static convert_fn *converter(const stk_wav_info *info)
{
    if (info->widened) return of_int24;
    switch (info->dtype) {
    case STK_UINT8: return of_uint8;
    case STK_INT16: return of_int16;
    case STK_INT32: return of_int32;
    case STK_INT64: return of_int64;
    case STK_FLOAT32: return of_float32;
    default: return of_float64;
    }
}

/* Converts a stretch of samples at a time, so that each is in the cache when the next channel is
 * read. */
#define STRETCH 1024

static void add_channel(const float *from, size_t n, float *to)
{
    for (size_t i = 0; i < n; i++) to[i] += from[i];
}

/* `src`: n frames. */
static void make_mono(const stk_wav_info *info, const uint8_t *src, size_t n, float *dst)
{
    const size_t bytes = info->block_align / info->channels;
    convert_fn *convert = converter(info);
    float one[STRETCH];
    for (size_t at = 0; at < n; at += STRETCH) {
        const size_t some = n - at < STRETCH ? n - at : STRETCH;
        const uint8_t *frames = src + at * info->block_align;
        convert(frames, info->block_align, some, dst + at);
        for (size_t c = 1; c < info->channels; c++) {
            convert(frames + c * bytes, info->block_align, some, one);
            add_channel(one, some, dst + at);
        }
        for (size_t i = at; i < at + some; i++) dst[i] /= (float)info->channels;
    }
}

static void make_same(const stk_wav_info *info, const uint8_t *src, size_t n, const stk_tensor *t)
{
    const size_t bytes = info->block_align / info->channels;
    convert_fn *convert = converter(info);
    float *dst = t->data;
    for (size_t at = 0; at < n; at += STRETCH) {
        const size_t some = n - at < STRETCH ? n - at : STRETCH;
        const uint8_t *frames = src + at * info->block_align;
        for (int64_t c = 0; c < t->shape[0]; c++)
            convert(frames + (info->channels == 1 ? 0 : (size_t)c * bytes), info->block_align, some,
                    dst + c * t->shape[1] + (int64_t)at);
    }
}

/* `sound` frames of the file from `start` on. */
static void make_channels(const stk_wav_info *info, const uint8_t *file, int64_t start,
                          size_t sound, const stk_tensor *t)
{
    const uint8_t *src = file + info->data_offset + (uint64_t)start * info->block_align;
    if (t->shape[0] == 1 && info->channels > 1)
        make_mono(info, src, sound, t->data);
    else
        make_same(info, src, sound, t);
}

static stk_err check_format(const stk_sound *s, const stk_wav_info *info,
                            const stk_sound_place *place, stk_diag *diag)
{
    const stk_audio_opts *o = &s->o;
    if (o->sample_rate && info->sample_rate != (uint32_t)o->sample_rate)
        return stk_diag_set(diag, STK_EINVAL,
                            "WAV: %u Hz, not %d: decode_wav does not resample, decode_audio does",
                            (unsigned)info->sample_rate, (int)o->sample_rate);
    if (place->rate && info->sample_rate != (uint32_t)place->rate)
        return stk_diag_set(diag, STK_EINVAL, "WAV: %u Hz, but the sample's first part has %d",
                            (unsigned)info->sample_rate, (int)place->rate);
    if (info->sample_rate > INT32_MAX)
        return stk_diag_set(diag, STK_ELIMIT, "WAV: %u Hz", (unsigned)info->sample_rate);
    if (o->channels > 1 && info->channels > 1 && info->channels != o->channels)
        return stk_diag_set(diag, STK_EINVAL,
                            "WAV: %u channels, not %d: decode_wav makes one of several, or several "
                            "of one; decode_audio mixes",
                            (unsigned)info->channels, (int)o->channels);
    return STK_OK;
}

static stk_err decode_part(const void *params, void *ctx, stk_item *item, size_t part,
                           stk_diag *diag)
{
    const stk_sound *s = params;
    stk_sound_place *place = ctx;
    stk_buffer *bytes = stk_item_bytes(item, part);
    stk_wav_info info;
    uint64_t first, total;
    stk_err err = stk_wav_parse(stk_buffer_data(bytes), stk_buffer_size(bytes), &info, diag);
    if (!err) err = stk_wav_window(&info, 0, INFINITY, &first, &total, diag);
    if (!err) err = check_format(s, &info, place, diag);
    const int32_t rate = (int32_t)info.sample_rate;
    if (!err) err = stk_sound_decide(s, item, (int64_t)total, rate, place, diag);
    if (err) return err;

    stk_tensor t;
    const int32_t channels = s->o.channels ? s->o.channels : info.channels;
    err = stk_sound_array(s, item, part, channels, place, &t, diag);
    if (err) return err;
    int64_t sound = (int64_t)total - place->start;
    if (sound < 0) sound = 0; /* the first part is longer */
    if (sound > place->time) sound = place->time;
    if (sound) make_channels(&info, stk_buffer_data(bytes), place->start, (size_t)sound, &t);
    stk_sound_pad(&t, sound, place);
    stk_item_commit_array(item, part);
    return STK_OK;
}

static stk_err decode_run(const void *params, void *state, stk_item *item, stk_diag *diag)
{
    const stk_sound *s = params;
    stk_sound_place place = {0};
    (void)state;
    const stk_err err = stk_parts_decode(s->o.parts, item, decode_part, params, &place, diag);
    return err ? err : stk_sound_mask(s, item, &place, diag);
}

static void decode_print(const void *params, char *dst, size_t size)
{
    stk_sound_print(params, "decode_wav", dst, size);
}

stk_op *stk_op_decode_wav(const stk_audio_opts *opts, stk_diag *diag)
{
    static const stk_op_class cls = {
        .name = "decode_wav",
        .flags = STK_OP_ALONE,
        .in = STK_KIND_BYTES,
        .out = STK_KIND_ARRAY,
        .run = decode_run,
        .takes = stk_sound_takes,
        .spec = stk_sound_spec,
        .adds = stk_sound_adds,
        .fini = stk_free,
        .print = decode_print,
    };
    stk_sound *params = stk_sound_new("decode_wav", opts, diag);
    stk_op *op = params ? stk_op_new(&cls, params) : NULL;
    if (params && !op) stk_diag_set(diag, STK_ENOMEM, "decode_wav: no memory");
    return op;
}
