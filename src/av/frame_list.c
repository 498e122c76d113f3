#include "av/frame_list.h"

#include <stdio.h>

#include <libavutil/imgutils.h>
#include <libavutil/pixdesc.h>

#include "av/module.h"
#include "av/packet_list.h"
#include "base/alloc.h"

stk_err stk_frames_make(stk_media media, stk_frames **out)
{
    stk_frames *f = *out = stk_alloc_zero(1, sizeof(*f));
    if (!f) return STK_ENOMEM;
    atomic_init(&f->refs, 1);
    f->media = media;
    return STK_OK;
}

size_t stk_frame_bytes(const AVFrame *f)
{
    const int bytes =
        f->width > 0
            ? av_image_get_buffer_size((enum AVPixelFormat)f->format, f->width, f->height, 1)
            : av_samples_get_buffer_size(NULL, f->ch_layout.nb_channels, f->nb_samples,
                                         (enum AVSampleFormat)f->format, 1);
    return bytes > 0 ? (size_t)bytes : 0;
}

stk_err stk_frames_add(stk_frames *f, AVFrame *from)
{
    if (f->n == f->room) {
        const size_t room = f->room ? f->room * 2 : 16;
        AVFrame **list = stk_alloc_resize(f->list, room * sizeof(*list));
        if (!list) return STK_ENOMEM;
        f->list = list;
        f->room = room;
    }
    AVFrame *own = stk_fault() ? NULL : av_frame_alloc();
    if (!own) return STK_ENOMEM;
    av_frame_move_ref(own, from);
    f->bytes += stk_frame_bytes(own);
    f->list[f->n++] = own;
    return STK_OK;
}

int64_t stk_frame_end(const AVFrame *f, bool audio, AVRational tb, AVRational frame_rate)
{
    int64_t lasts = compat_duration(f);
    if (f->pts == AV_NOPTS_VALUE) return f->pts;
    if (audio)
        lasts = f->sample_rate > 0
                    ? av_rescale_q(f->nb_samples, (AVRational){1, f->sample_rate}, tb)
                    : 0;
    else if (lasts <= 0 && frame_rate.num > 0 && frame_rate.den > 0)
        lasts = av_rescale_q(1, av_inv_q(frame_rate), tb);
    return lasts > 0 && f->pts <= INT64_MAX - lasts ? f->pts + lasts : f->pts;
}

void stk_frames_clear(stk_frames *f)
{
    while (f->n) av_frame_free(&f->list[--f->n]);
    f->bytes = 0;
}

stk_frames *mod_frames_ref(stk_frames *f)
{
    atomic_fetch_add_explicit(&f->refs, 1, memory_order_relaxed);
    return f;
}

void mod_frames_unref(stk_frames **pf)
{
    stk_frames *f = *pf;
    *pf = NULL;
    if (!f || atomic_fetch_sub_explicit(&f->refs, 1, memory_order_acq_rel) > 1) return;
    stk_frames_clear(f);
    stk_free(f->list);
    stk_free(f);
}

static void set_name(char dst[STK_AV_NAME_SIZE], const char *name)
{
    snprintf(dst, STK_AV_NAME_SIZE, "%s", name ? name : "");
}

void mod_frames_get_info(const stk_frames *f, stk_frames_info *out)
{
    *out = (stk_frames_info){.media = f->media,
                             .num_frames = f->n,
                             .time_base = stk_ratio_of(f->time_base),
                             .num_failed = f->num_failed};
    if (f->frame_rate.num > 0) out->frame_rate = stk_ratio_of(f->frame_rate);
    if (!f->n) return;
    const AVFrame *first = f->list[0];
    if (f->media == STK_MEDIA_AUDIO) {
        for (size_t i = 0; i < f->n; i++) out->num_samples += f->list[i]->nb_samples;
        out->sample_rate = first->sample_rate;
        out->num_channels = first->ch_layout.nb_channels;
        set_name(out->sample_fmt, av_get_sample_fmt_name((enum AVSampleFormat)first->format));
        return;
    }
    const int planes = av_pix_fmt_count_planes((enum AVPixelFormat)first->format);
    out->width = first->width;
    out->height = first->height;
    out->num_planes = planes > 0 ? planes : 0;
    set_name(out->pix_fmt, av_get_pix_fmt_name((enum AVPixelFormat)first->format));
}

void mod_frames_times(const stk_frames *f, int64_t *out, size_t n)
{
    for (size_t i = 0; i < n && i < f->n; i++) out[i] = f->list[i]->pts;
}

bool mod_frames_metadata(const stk_frames *f, size_t *at, const char **key, const char **value)
{
    const AVDictionaryEntry *entry = NULL;
    if (!f->n) return false;
    for (size_t i = 0; i <= *at; i++) {
        entry = av_dict_get(f->list[0]->metadata, "", entry, AV_DICT_IGNORE_SUFFIX);
        if (!entry) return false;
    }
    ++*at;
    *key = entry->key;
    *value = entry->value;
    return true;
}

static stk_err pick(const stk_frames *f, const size_t *indices, size_t n, stk_frames *to,
                    stk_diag *diag)
{
    AVFrame *shared = av_frame_alloc();
    stk_err err = shared ? STK_OK : STK_ENOMEM;
    for (size_t i = 0; i < n && !err; i++) {
        if (indices[i] >= f->n) {
            av_frame_free(&shared);
            return stk_diag_set(diag, STK_EINVAL, "there is no frame %zu, of %zu", indices[i],
                                f->n);
        }
        err =
            av_frame_ref(shared, f->list[indices[i]]) < 0 ? STK_ENOMEM : stk_frames_add(to, shared);
        av_frame_unref(shared);
    }
    av_frame_free(&shared);
    return err ? stk_diag_set(diag, err, "no memory for frames") : STK_OK;
}

stk_err mod_frames_pick(const stk_frames *f, const size_t *indices, size_t n, stk_media media,
                        stk_frames **out, stk_diag *diag)
{
    stk_err err = stk_frames_make(media ? media : f->media, out);
    if (err) return stk_diag_set(diag, err, "no memory for frames");
    (*out)->time_base = f->time_base;
    (*out)->frame_rate = f->frame_rate;
    err = pick(f, indices, n, *out, diag);
    if (err) mod_frames_unref(out);
    return err;
}
