#include "av/packet_list.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libavutil/display.h>
#include <libavutil/pixdesc.h>

#include "av/module.h"
#include "base/alloc.h"

__extension__ typedef __int128 wide; /* holds any product of a ratio and a time base */

stk_ratio stk_ratio_of(AVRational q)
{
    return q.den > 0 ? (stk_ratio){q.num, q.den} : (stk_ratio){0, 0};
}

int64_t stk_ticks(stk_ratio t, AVRational tb)
{
    const wide a = (wide)t.num * tb.den, b = (wide)t.den * tb.num;
    wide q = a / b;
    if (a % b > 0) q++; /* C rounds to zero, which is up for what is negative */
    if (q > INT64_MAX) return INT64_MAX;
    return q <= INT64_MIN ? INT64_MIN + 1 : (int64_t)q;
}

stk_err stk_window_check(const stk_window *w, stk_diag *diag)
{
    if (w->start.den <= 0 || w->end.den <= 0)
        return stk_diag_set(diag, STK_EINVAL, "a time needs a denominator above 0");
    if ((wide)w->start.num * w->end.den > (wide)w->end.num * w->start.den)
        return stk_diag_set(diag, STK_EINVAL,
                            "the window [%" PRId64 "/%" PRId64 ", %" PRId64 "/%" PRId64
                            ") ends before it starts",
                            w->start.num, w->start.den, w->end.num, w->end.den);
    return STK_OK;
}

void stk_av_layout_guess(AVChannelLayout *layout)
{
    if (layout->order == AV_CHANNEL_ORDER_UNSPEC && layout->nb_channels > 0)
        av_channel_layout_default(layout, layout->nb_channels);
}

/* --- codecs --- */

stk_err stk_av_codec_make(stk_media media, const AVCodecParameters *par, AVRational time_base,
                          AVRational frame_rate, stk_av_codec **out)
{
    stk_av_codec *codec = *out = stk_alloc_zero(1, sizeof(*codec));
    if (!codec) return STK_ENOMEM;
    atomic_init(&codec->refs, 1);
    codec->media = media;
    codec->time_base = time_base;
    codec->frame_rate = frame_rate;
    codec->par = avcodec_parameters_alloc();
    if (codec->par && avcodec_parameters_copy(codec->par, par) >= 0) {
        stk_av_layout_guess(&codec->par->ch_layout);
        return STK_OK;
    }
    mod_av_codec_unref(out);
    return STK_ENOMEM;
}

void stk_av_codec_note(stk_av_codec *codec, const AVPacketSideData *side)
{
    if (side->type != AV_PKT_DATA_DISPLAYMATRIX || side->size != sizeof(codec->display)) return;
    memcpy(codec->display, side->data, sizeof(codec->display));
    codec->has_display = true;
}

stk_av_codec *mod_av_codec_ref(stk_av_codec *codec)
{
    atomic_fetch_add_explicit(&codec->refs, 1, memory_order_relaxed);
    return codec;
}

void mod_av_codec_unref(stk_av_codec **pcodec)
{
    stk_av_codec *codec = *pcodec;
    *pcodec = NULL;
    if (!codec || atomic_fetch_sub_explicit(&codec->refs, 1, memory_order_acq_rel) > 1) return;
    avcodec_parameters_free(&codec->par);
    stk_free(codec);
}

static void set_name(char dst[STK_AV_NAME_SIZE], const char *name)
{
    snprintf(dst, STK_AV_NAME_SIZE, "%s", name ? name : "");
}

/* Names of colours that are known: FFmpeg's for "not known" are left out. */
static void set_color(char dst[STK_AV_NAME_SIZE], const char *name)
{
    if (name && strcmp(name, "unknown") != 0) set_name(dst, name);
}

/* As EXIF counts them, 1 to 8, and as the ffmpeg command reads the matrix; 1 is any other angle,
 * too.
 */
static int orientation_of(const stk_av_codec *codec)
{
    const int32_t *m = codec->display;
    if (!codec->has_display) return 1;
    double turn = -av_display_rotation_get(m); /* clockwise; NaN: it is none */
    if (turn < -1) turn += 360;
    if (fabs(turn - 90) < 1) return m[3] > 0 ? 5 : 6;
    if (fabs(turn - 180) < 1) return m[0] >= 0 ? 4 : m[4] >= 0 ? 2 : 3;
    if (fabs(turn - 270) < 1) return m[3] < 0 ? 7 : 8;
    return fabs(turn) < 1 && m[4] < 0 ? 4 : 1;
}

static void video_info(const stk_av_codec *codec, stk_av_codec_info *out)
{
    const AVCodecParameters *par = codec->par;
    out->width = par->width;
    out->height = par->height;
    out->orientation = orientation_of(codec);
    set_name(out->pix_fmt, av_get_pix_fmt_name((enum AVPixelFormat)par->format));
    out->frame_rate = stk_ratio_of(codec->frame_rate);
    if (codec->frame_rate.num <= 0) out->frame_rate = (stk_ratio){0, 0};
    out->sample_aspect_ratio = stk_ratio_of(par->sample_aspect_ratio);
    set_color(out->color_range, av_color_range_name(par->color_range));
    set_color(out->colorspace, av_color_space_name(par->color_space));
    set_color(out->color_primaries, av_color_primaries_name(par->color_primaries));
    set_color(out->color_trc, av_color_transfer_name(par->color_trc));
}

static void audio_info(const AVCodecParameters *par, stk_av_codec_info *out)
{
    out->sample_rate = par->sample_rate;
    out->num_channels = par->ch_layout.nb_channels;
    set_name(out->sample_fmt, av_get_sample_fmt_name((enum AVSampleFormat)par->format));
    if (av_channel_layout_describe(&par->ch_layout, out->channel_layout, STK_AV_NAME_SIZE) < 0)
        out->channel_layout[0] = '\0';
}

void mod_av_codec_get_info(const stk_av_codec *codec, stk_av_codec_info *out)
{
    const AVCodecParameters *par = codec->par;
    *out = (stk_av_codec_info){.media = codec->media,
                               .bit_rate = par->bit_rate,
                               .bits_per_sample = par->bits_per_coded_sample,
                               .time_base = stk_ratio_of(codec->time_base)};
    set_name(out->name, avcodec_get_name(par->codec_id));
    if (codec->media == STK_MEDIA_AUDIO)
        audio_info(par, out);
    else
        video_info(codec, out);
}

/* --- packets --- */

stk_err stk_packets_make(stk_media media, stk_av_codec *codec, AVRational time_base,
                         const stk_window *window, const char *source, stk_packets **out)
{
    stk_packets *p = *out = stk_alloc_zero(1, sizeof(*p));
    if (!p) return STK_ENOMEM;
    atomic_init(&p->refs, 1);
    p->media = media;
    p->codec = codec ? mod_av_codec_ref(codec) : NULL;
    p->time_base = time_base;
    p->first = INT64_MIN;
    p->end = INT64_MAX;
    if (window) {
        p->windowed = true;
        p->window = *window;
        p->first = stk_ticks(window->start, time_base);
        p->end = stk_ticks(window->end, time_base);
    }
    p->source = stk_alloc(strlen(source) + 1);
    if (!p->source) {
        mod_packets_unref(out);
        return STK_ENOMEM;
    }
    memcpy(p->source, source, strlen(source) + 1);
    return STK_OK;
}

stk_err stk_packets_add(stk_packets *p, AVPacket *from)
{
    if (p->n == p->room) {
        const size_t room = p->room ? p->room * 2 : 64;
        AVPacket **list = stk_alloc_resize(p->list, room * sizeof(*list));
        if (!list) return STK_ENOMEM;
        p->list = list;
        p->room = room;
    }
    AVPacket *own = stk_fault() ? NULL : av_packet_alloc();
    if (!own) return STK_ENOMEM;
    if (!from->buf && av_packet_make_refcounted(from) < 0) {
        av_packet_free(&own);
        return STK_ENOMEM;
    }
    p->bytes += (size_t)from->size;
    av_packet_move_ref(own, from);
    p->list[p->n++] = own;
    return STK_OK;
}

stk_packets *mod_packets_ref(stk_packets *p)
{
    atomic_fetch_add_explicit(&p->refs, 1, memory_order_relaxed);
    return p;
}

void mod_packets_unref(stk_packets **pp)
{
    stk_packets *p = *pp;
    *pp = NULL;
    if (!p || atomic_fetch_sub_explicit(&p->refs, 1, memory_order_acq_rel) > 1) return;
    for (size_t i = 0; i < p->n; i++) av_packet_free(&p->list[i]);
    stk_free(p->list);
    stk_free(p->source);
    mod_av_codec_unref(&p->codec);
    stk_free(p);
}

int64_t stk_packet_time(const AVPacket *packet)
{
    return packet->pts != AV_NOPTS_VALUE ? packet->pts : packet->dts;
}

bool stk_packets_inside(const stk_packets *p, const AVPacket *packet)
{
    const int64_t at = stk_packet_time(packet);
    if (p->media != STK_MEDIA_AUDIO && (packet->flags & AV_PKT_FLAG_DISCARD))
        return false; /* cut off by an edit list: no picture */
    return !p->windowed || (at != AV_NOPTS_VALUE && at >= p->first && at < p->end);
}

void mod_packets_get_info(const stk_packets *p, stk_packets_info *out)
{
    *out = (stk_packets_info){.media = p->media,
                              .windowed = p->windowed,
                              .window = p->window,
                              .total = p->n,
                              .bytes = p->bytes,
                              .source = p->source};
    for (size_t i = 0; i < p->n; i++) {
        out->length += stk_packets_inside(p, p->list[i]);
        out->keys += (p->list[i]->flags & AV_PKT_FLAG_KEY) != 0;
    }
    out->ends_early = p->n && p->list[p->n - 1]->flags & AV_PKT_FLAG_CORRUPT;
}

stk_av_codec *mod_packets_codec(const stk_packets *p)
{
    return p->codec ? mod_av_codec_ref(p->codec) : NULL;
}

static int compare(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

size_t mod_packets_times(const stk_packets *p, bool all, stk_ratio *time_base, int64_t *out,
                         size_t n)
{
    size_t found = 0;
    _Static_assert(AV_NOPTS_VALUE == INT64_MIN, "what is not known");
    *time_base = stk_ratio_of(p->time_base);
    for (size_t i = 0; i < p->n && found < n; i++)
        if (all || stk_packets_inside(p, p->list[i])) out[found++] = stk_packet_time(p->list[i]);
    if (!all) qsort(out, found, sizeof(*out), compare);
    return found;
}
