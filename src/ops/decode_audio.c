#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "ops/av.h"
#include "ops/media.h"
#include "ops/parts.h"
#include "ops/sound.h"

/* What decoders leave out at the begin of a file, and resamplers keep back: at most so much more is
 * decoded than a clip has. */
#define MARGIN_S 0.25

#define MOST_MIXED 64 /* channels, of FFmpeg's filters */

/* Texts of filters. */
enum { LAYOUT_SIZE = 128 + 8 * MOST_MIXED, FILTER_SIZE = LAYOUT_SIZE + 256 };

/* The stream, from when on it has sound, in samples of its own rate. */
typedef struct track {
    int32_t rate;
    int64_t first, total; /* total 0: not known */
    bool timed;
} track;

static stk_err measure(const stk_media_file *f, track *out, stk_diag *diag)
{
    stk_ratio tb;
    int64_t end, first = 0;
    *out = (track){.rate = f->info.sample_rate};
    if (out->rate <= 0) return stk_diag_set(diag, STK_ECORRUPT, "the stream has no sample rate");
    int64_t *times = stk_alloc_zero(f->total, sizeof(*times));
    if (!times)
        return stk_diag_set(diag, STK_ENOMEM, "no memory for the times of %zu packets", f->total);
    out->timed = stk_packets_shown(f->packets, &tb, &end, times, f->total) > 0;
    if (out->timed) first = times[0];
    stk_free(times);
    if (!out->timed) return STK_OK;
    /* Before 0 there is what encoders put in front. */
    if (first < 0 && end > 0) first = 0;
    const double a_second = (double)out->rate * (double)tb.num / (double)tb.den;
    const double begins = (double)first * a_second, ends = (double)end * a_second;
    if (!(fabs(begins) < 0x1p52 && fabs(ends) < 0x1p52))
        return stk_diag_set(diag, STK_ECORRUPT, "the stream has times beyond all measure");
    out->first = (int64_t)floor(begins);
    out->total = (int64_t)floor(ends) - out->first;
    /* Times that are coarser than samples: what there is for sure. */
    if (a_second > 1) out->total -= (int64_t)ceil(a_second);
    if (out->total < 0) out->total = 0;
    return STK_OK;
}

/* Neither the file nor FFmpeg says which channel is which. */
static bool has_no_layout(const stk_av_codec_info *info)
{
    char plain[STK_AV_NAME_SIZE];
    snprintf(plain, sizeof(plain), "%d channels", info->num_channels);
    return !*info->channel_layout || !strcmp(info->channel_layout, plain);
}

/* Whether all that is to be done is to keep the channels as they are; `out` is the filter for it.
 */
static bool keeps_channels(const stk_av_codec_info *info, int32_t want, char out[LAYOUT_SIZE])
{
    static const char format[] = "aformat=sample_fmts=fltp";
    const int32_t have = info->num_channels;
    const bool plain = has_no_layout(info);
    if (want && want != have) return false;
    if (plain && have > 0)
        snprintf(out, LAYOUT_SIZE, "%s:channel_layouts=%dC", format, (int)have);
    else if (want && !strpbrk(info->channel_layout, " '\\"))
        snprintf(out, LAYOUT_SIZE, "%s:channel_layouts=%s", format, info->channel_layout);
    else
        snprintf(out, LAYOUT_SIZE, "%s", format);
    return true;
}

/* FFmpeg divides by the sum of what `<` gives the channels. */
static void put_mean(int32_t have, char out[LAYOUT_SIZE])
{
    int n = snprintf(out, LAYOUT_SIZE,
                     "aformat=sample_fmts=fltp:channel_layouts=%dC,pan=mono|c0<c0", (int)have);
    for (int32_t c = 1; c < have; c++)
        n += snprintf(out + n, LAYOUT_SIZE - (size_t)n, "+c%d", (int)c);
}

/* The filters that make the channels. */
static stk_err choose_channels(const stk_media_file *f, int32_t want, char out[LAYOUT_SIZE],
                               stk_diag *diag)
{
    const int32_t have = f->info.num_channels;
    if (have > MOST_MIXED)
        return stk_diag_set(diag, STK_EUNSUPPORTED, "%d channels: FFmpeg's filters take at most %d",
                            (int)have, MOST_MIXED);
    if (keeps_channels(&f->info, want, out)) return STK_OK;
    if (want == 1 && have > 0 && has_no_layout(&f->info)) {
        put_mean(have, out);
        return STK_OK;
    }
    snprintf(out, LAYOUT_SIZE, "aformat=sample_fmts=fltp:channel_layouts=%dc", (int)want);
    return have > 0 ? stk_av_codec_mixes(f->codec, want, diag) : STK_OK;
}

/* Resampled and mixed, then cut: so a clip in the middle of a file begins with what was there. */
static stk_err make_filter(const stk_audio_opts *o, const stk_media_file *f, const track *t,
                           const stk_sound_place *p, int64_t most, char dst[FILTER_SIZE],
                           stk_diag *diag)
{
    char channels[LAYOUT_SIZE], start[64] = "";
    const stk_err err = choose_channels(f, o->channels, channels, diag);
    if (err) return err;
    if (p->start > 0)
        snprintf(start, sizeof(start), "atrim=start=%.6f,",
                 (double)t->first / t->rate + (double)p->start / p->rate);
    snprintf(dst, FILTER_SIZE, "aresample=%d:rematrix_maxval=1,%s,%satrim=end_sample=%" PRId64,
             o->sample_rate ? (int)o->sample_rate : (int)t->rate, channels, start, most);
    return STK_OK;
}

static stk_err decode(const stk_sound *s, const stk_media_file *f, const track *t,
                      const stk_sound_place *p, stk_frames **out, stk_diag *diag)
{
    const stk_audio_opts *o = &s->o;
    const bool all = o->where == STK_WHERE_ALL;
    const int64_t room = (int64_t)(o->max_bytes / sizeof(float));
    char filter[FILTER_SIZE];
    stk_window window = {{0, t->rate}, {0, t->rate}};
    stk_media_opts opts = {.filter = filter, .strict = !s->o.lenient, .max_bytes = o->max_bytes};
    /* One more than fits shows that there is more. */
    const int64_t most = (o->seconds > 0 && p->time < room ? p->time : room) + (all ? 1 : 0);
    if (!all) {
        const double begins = (double)t->first + (double)p->start / p->rate * t->rate;
        window.start.num = p->start > 0 ? (int64_t)floor(begins) : INT64_MIN / 4;
        window.end.num = (int64_t)ceil(begins + (o->seconds + MARGIN_S) * t->rate);
        if (t->timed) opts.window = &window;
    }
    const stk_err err = make_filter(o, f, t, p, most, filter, diag);
    return err ? err : stk_media_decode(f, &opts, out, diag);
}

static stk_err check_length(const stk_sound *s, int64_t got, int32_t rate, stk_diag *diag)
{
    if (s->o.where != STK_WHERE_ALL || s->o.seconds == 0) return STK_OK;
    if (got <= llround(s->o.seconds * rate)) return STK_OK;
    return stk_diag_set(diag, STK_EINVAL,
                        "more sound than the %g seconds of a clip: choose a place other than all",
                        s->o.seconds);
}

/* The frames into the part's array, and zeros behind them. */
static stk_err store(const stk_sound *s, stk_item *item, size_t part, stk_sound_place *p,
                     const stk_frames *frames, stk_diag *diag)
{
    stk_frames_info info;
    stk_tensor t;
    stk_frames_get_info(frames, &info);
    const int64_t got = info.num_samples;
    const int32_t channels = info.num_frames ? info.num_channels : s->o.channels;
    if (!channels) return stk_diag_set(diag, STK_ECORRUPT, "there is no sound in the stream");
    stk_err err = check_length(s, got, s->o.sample_rate ? s->o.sample_rate : p->rate, diag);
    if (err) return err;
    if (s->o.seconds == 0) p->time = got;
    err = stk_sound_array(s, item, part, channels, p, &t, diag);
    if (err) return err;
    /* Where the stream changes its format the filters are made anew, and count from there. */
    const int64_t kept = got < p->time ? got : p->time;
    float *all = t.data, *packed = all;
    const size_t bytes = (size_t)got * (size_t)channels * sizeof(*all);
    const bool apart = got > p->time || (got < p->time && got && channels > 1);
    if (apart && !(packed = stk_alloc(bytes)))
        return stk_diag_set(diag, STK_ENOMEM, "no memory for %" PRId64 " samples", got);
    if (got) err = stk_frames_copy(&frames, 1, packed, bytes, diag);
    for (int32_t c = 0; !err && apart && c < channels; c++)
        memcpy(all + c * p->time, packed + c * got, (size_t)kept * sizeof(*all));
    if (apart) stk_free(packed);
    if (err) return err;
    stk_sound_pad(&t, kept, p);
    stk_item_commit_array(item, part);
    return STK_OK;
}

static stk_err decode_part(const void *params, void *ctx, stk_item *item, size_t part,
                           stk_diag *diag)
{
    const stk_sound *s = params;
    stk_sound_place *place = ctx;
    stk_media_file f;
    track t;
    stk_frames *frames = NULL;
    stk_err err = stk_media_open(item, part, STK_MEDIA_AUDIO, 0, &f, diag);
    if (err) return err;
    err = measure(&f, &t, diag);
    if (!err && !s->o.sample_rate && place->rate && place->rate != t.rate)
        err = stk_diag_set(diag, STK_EINVAL, "%d Hz, but the sample's first part has %d",
                           (int)t.rate, (int)place->rate);
    /* Whether all of it is too long is seen when it was decoded. */
    const int64_t total = s->o.where == STK_WHERE_ALL ? 0 : t.total;
    if (!err) err = stk_sound_decide(s, item, total, t.rate, place, diag);
    if (!err && !t.timed && place->start > 0)
        err = stk_diag_set(diag, STK_EUNSUPPORTED,
                           "the stream has no times: a clip can only be its start");
    if (!err) err = decode(s, &f, &t, place, &frames, diag);
    if (!err) err = store(s, item, part, place, frames, diag);
    if (frames) stk_frames_unref(&frames);
    stk_media_close(&f);
    return err;
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
    stk_sound_print(params, "decode_audio", dst, size);
}

stk_op *stk_op_decode_audio(const stk_audio_opts *opts, stk_diag *diag)
{
    static const stk_op_class cls = {
        .name = "decode_audio",
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
    if (!stk_av_get(diag)) return NULL;
    stk_sound *params = stk_sound_new("decode_audio", opts, diag);
    stk_op *op = params ? stk_op_new(&cls, params) : NULL;
    if (params && !op) stk_diag_set(diag, STK_ENOMEM, "decode_audio: no memory");
    return op;
}
