/* Frames as arrays: which shape a format has, and one copy into it. */
#include <inttypes.h>
#include <string.h>

#include <libavutil/imgutils.h>
#include <libavutil/pixdesc.h>

#include "av/frame_list.h"
#include "av/module.h"

stk_dtype stk_sample_dtype(enum AVSampleFormat format)
{
    switch (av_get_packed_sample_fmt(format)) {
    case AV_SAMPLE_FMT_U8: return STK_UINT8;
    case AV_SAMPLE_FMT_S16: return STK_INT16;
    case AV_SAMPLE_FMT_S32: return STK_INT32;
    case AV_SAMPLE_FMT_S64: return STK_INT64;
    case AV_SAMPLE_FMT_FLT: return STK_FLOAT32;
    case AV_SAMPLE_FMT_DBL: return STK_FLOAT64;
    default: return STK_DTYPE_NONE;
    }
}

static stk_err differ(stk_diag *diag, const char *what)
{
    return stk_diag_set(diag, STK_EINVAL,
                        "the frames differ in %s: an array has one shape; scale, format and "
                        "aresample are filters that make them alike",
                        what);
}

/* --- pixels --- */

static bool refused(const AVPixFmtDescriptor *d)
{
    const uint64_t no = AV_PIX_FMT_FLAG_BITSTREAM | AV_PIX_FMT_FLAG_PAL | AV_PIX_FMT_FLAG_HWACCEL |
                        AV_PIX_FMT_FLAG_BAYER;
    return (d->flags & no) || d->nb_components == 0;
}

bool stk_pixels_of(enum AVPixelFormat format, stk_pixels *out)
{
    const AVPixFmtDescriptor *d = av_pix_fmt_desc_get(format);
    if (!d || refused(d)) return false;
    const int size = (d->comp[0].depth + d->comp[0].shift + 7) / 8;
    const bool floats = d->flags & AV_PIX_FMT_FLAG_FLOAT;
    *out = (stk_pixels){.planes = av_pix_fmt_count_planes(format), .same_size = true};
    out->dtype = floats ? (size == 4   ? STK_FLOAT32
                           : size == 2 ? STK_FLOAT16
                                       : STK_DTYPE_NONE)
                        : (size == 1   ? STK_UINT8
                           : size == 2 ? STK_UINT16
                                       : STK_DTYPE_NONE);
    const int element = (int)stk_dtype_size(out->dtype);
    if (!element) return false;
    for (int i = 0; i < d->nb_components; i++) { /* fields of a few bits are no elements */
        const AVComponentDescriptor *c = &d->comp[i];
        if (c->depth < 8 || (c->depth + c->shift + 7) / 8 != size || c->step % element ||
            c->offset % element)
            return false;
    }
    out->same_size = !d->log2_chroma_w && !d->log2_chroma_h && out->planes == d->nb_components;
    if (out->planes != 1) return true;
    /* rgb24: the step of a component is a pixel.  yuyv422: two pixels share theirs. */
    if (!d->log2_chroma_w && !d->log2_chroma_h)
        out->packed = d->comp[0].step / element;
    else if (d->log2_chroma_w == 1 && !d->log2_chroma_h)
        out->packed = 2;
    return out->packed > 0;
}

static stk_err no_array(const AVFrame *f, stk_diag *diag)
{
    const char *name = av_get_pix_fmt_name((enum AVPixelFormat)f->format);
    return stk_diag_set(diag, STK_EUNSUPPORTED,
                        "frames in %s, %dx%d, are no array: convert them with the filter "
                        "format=pix_fmts=rgb24, or scale to even sizes",
                        name ? name : "an unknown pixel format", f->width, f->height);
}

stk_err stk_picture_spec(const AVFrame *f, stk_spec *out, stk_diag *diag)
{
    stk_pixels l;
    const enum AVPixelFormat format = (enum AVPixelFormat)f->format;
    if (!stk_pixels_of(format, &l) || f->width <= 0 || f->height <= 0) return no_array(f, diag);
    *out = (stk_spec){.dtype = l.dtype, .ndim = 3};
    const bool gray16 = l.planes == 1 && l.packed == 1 && l.dtype != STK_UINT8;
    const int64_t w = f->width, h = f->height;
    if (l.planes == 1 && !gray16) {
        if (l.packed == 2 && w % 2 && format != AV_PIX_FMT_YA8 &&
            av_pix_fmt_desc_get(format)->log2_chroma_w)
            return no_array(f, diag);
        memcpy(out->shape, (int64_t[]){h, w, l.packed}, 3 * sizeof(int64_t));
        return STK_OK;
    }
    if (l.same_size) {
        memcpy(out->shape, (int64_t[]){l.planes, h, w}, 3 * sizeof(int64_t));
        return STK_OK;
    }
    const int bytes = av_image_get_buffer_size(format, f->width, f->height, 1);
    const int64_t row = w * (int64_t)stk_dtype_size(l.dtype);
    if (bytes < 0 || bytes % row) return no_array(f, diag);
    memcpy(out->shape, (int64_t[]){1, bytes / row, w}, 3 * sizeof(int64_t));
    return STK_OK;
}

static void prepend(stk_spec *spec, int64_t extent)
{
    memmove(spec->shape + 1, spec->shape, (size_t)spec->ndim * sizeof(*spec->shape));
    spec->shape[0] = extent;
    spec->ndim++;
}

static stk_err pictures_spec(const stk_frames *f, stk_spec *out, stk_diag *diag)
{
    stk_err err = stk_picture_spec(f->list[0], out, diag);
    for (size_t i = 1; i < f->n && !err; i++) {
        const AVFrame *a = f->list[0], *b = f->list[i];
        if (a->format != b->format) return differ(diag, "pixel format");
        if (a->width != b->width || a->height != b->height) return differ(diag, "size");
    }
    if (!err && f->media == STK_MEDIA_VIDEO) prepend(out, (int64_t)f->n);
    return err;
}

/* --- samples --- */

static stk_err audio_spec(const stk_frames *f, stk_spec *out, stk_diag *diag)
{
    const AVFrame *first = f->list[0];
    const enum AVSampleFormat format = (enum AVSampleFormat)first->format;
    int64_t samples = 0;
    for (size_t i = 0; i < f->n; i++) {
        const AVFrame *b = f->list[i];
        if (b->format != first->format) return differ(diag, "sample format");
        if (b->ch_layout.nb_channels != first->ch_layout.nb_channels)
            return differ(diag, "number of channels");
        if (b->sample_rate != first->sample_rate) return differ(diag, "sample rate");
        samples += b->nb_samples;
    }
    *out = (stk_spec){.dtype = stk_sample_dtype(format), .ndim = 2};
    if (!out->dtype)
        return stk_diag_set(diag, STK_EUNSUPPORTED, "a sample format that is not known");
    const bool planar = av_sample_fmt_is_planar(format);
    out->shape[planar ? 0 : 1] = first->ch_layout.nb_channels;
    out->shape[planar ? 1 : 0] = samples;
    return STK_OK;
}

static stk_err one_spec(const stk_frames *f, stk_spec *out, stk_diag *diag)
{
    *out = (stk_spec){0};
    if (!f->n) return stk_diag_set(diag, STK_EINVAL, "there are no frames");
    if (f->media == STK_MEDIA_AUDIO) return audio_spec(f, out, diag);
    return pictures_spec(f, out, diag);
}

/* Elements alone do not say what a picture is: yuv420p and nv12 look alike. */
static bool alike(const stk_frames *a, const stk_frames *b)
{
    return a->media == b->media && a->list[0]->format == b->list[0]->format;
}

stk_err mod_frames_spec(const stk_frames *const *frames, size_t n, bool batched, stk_spec *out,
                        stk_diag *diag)
{
    *out = (stk_spec){0};
    if (!n || (!batched && n > 1)) return stk_diag_set(diag, STK_EINVAL, "there are no frames");
    stk_spec all;
    stk_err err = one_spec(frames[0], &all, diag);
    for (size_t i = 1; i < n && !err; i++) {
        stk_spec next;
        err = one_spec(frames[i], &next, diag);
        if (!err && !alike(frames[0], frames[i])) err = differ(diag, "format");
        if (!err && !stk_spec_equal(&all, &next)) err = differ(diag, "shape");
    }
    size_t bytes;
    if (!err && batched) prepend(&all, (int64_t)n);
    if (!err && (err = stk_spec_bytes(&all, &bytes)))
        err = stk_diag_set(diag, err, "an array of that many elements is too large");
    if (!err) *out = all;
    return err;
}

uint8_t *stk_picture_copy(const AVFrame *f, uint8_t *dst)
{
    const enum AVPixelFormat format = (enum AVPixelFormat)f->format;
    const int bytes = av_image_get_buffer_size(format, f->width, f->height, 1);
    const int wrote = av_image_copy_to_buffer(dst, bytes, (const uint8_t *const *)f->data,
                                              f->linesize, format, f->width, f->height, 1);
    return wrote < 0 ? NULL : dst + wrote;
}

static uint8_t *copy_audio(const stk_frames *f, uint8_t *dst)
{
    const enum AVSampleFormat format = (enum AVSampleFormat)f->list[0]->format;
    const int channels = f->list[0]->ch_layout.nb_channels;
    const bool planar = av_sample_fmt_is_planar(format);
    const size_t one = (size_t)av_get_bytes_per_sample(format) * (planar ? 1 : (size_t)channels);
    for (int c = 0; c < (planar ? channels : 1); c++)
        for (size_t i = 0; i < f->n; i++) {
            const size_t n = (size_t)f->list[i]->nb_samples * one;
            memcpy(dst, f->list[i]->extended_data[c], n);
            dst += n;
        }
    return dst;
}

/* --- memory that is an array already --- */

static void release_block(void *data, size_t size, void *ctx)
{
    AVBufferRef *block = ctx;
    (void)data;
    (void)size;
    av_buffer_unref(&block);
}

/* Pictures of av_scale, all of a block's, to which nobody else refers. */
static bool in_a_row(const stk_frames *f)
{
    const AVFrame *first = f->list[0];
    const AVBufferRef *block = first->buf[0];
    const int row = av_image_get_linesize((enum AVPixelFormat)first->format, first->width, 0);
    if (f->media == STK_MEDIA_AUDIO || !block || first->linesize[0] != row || first->data[1])
        return false;
    const size_t picture = (size_t)row * (size_t)first->height;
    for (size_t i = 0; i < f->n; i++) {
        const AVFrame *at = f->list[i];
        if (!at->buf[0] || at->buf[0]->data != block->data || at->linesize[0] != row ||
            at->height != first->height || at->data[0] != first->data[0] + i * picture)
            return false;
    }
    if (f->n == 1 && !av_buffer_is_writable(block)) return false; /* somebody's array */
    return (size_t)av_buffer_get_ref_count(block) == f->n &&
           atomic_load_explicit(&f->refs, memory_order_acquire) == 1;
}

/* What av_join made, to which nobody else refers. */
static bool in_one_piece(const stk_frames *f)
{
    return f->joined && av_buffer_get_ref_count(f->list[0]->buf[0]) == 1 &&
           atomic_load_explicit(&f->refs, memory_order_acquire) == 1;
}

stk_err mod_frames_memory(const stk_frames *f, stk_buffer **out, stk_diag *diag)
{
    *out = NULL;
    stk_spec spec;
    size_t bytes = 0;
    stk_err err = one_spec(f, &spec, diag);
    if (!err) err = stk_spec_bytes(&spec, &bytes);
    if (err || (!in_one_piece(f) && !in_a_row(f))) return err;
    AVBufferRef *block = av_buffer_ref(f->list[0]->buf[0]);
    if (!block) return stk_diag_set(diag, STK_ENOMEM, "no memory for an array");
    err = stk_buffer_wrap(f->list[0]->data[0], bytes, release_block, block, out);
    if (err) av_buffer_unref(&block);
    return err ? stk_diag_set(diag, err, "no memory for an array") : STK_OK;
}

stk_err mod_frames_copy(const stk_frames *const *frames, size_t n, void *dst, size_t size,
                        stk_diag *diag)
{
    stk_spec spec;
    size_t bytes = 0;
    stk_err err = mod_frames_spec(frames, n, true, &spec, diag);
    if (!err) err = stk_spec_bytes(&spec, &bytes);
    if (err) return err;
    if (bytes != size)
        return stk_diag_set(diag, STK_EINVAL, "the frames make %zu bytes, not %zu", bytes, size);
    uint8_t *at = dst;
    for (size_t i = 0; i < n; i++) {
        const stk_frames *f = frames[i];
        if (f->media == STK_MEDIA_AUDIO)
            at = copy_audio(f, at);
        else
            for (size_t k = 0; k < f->n && at; k++) at = stk_picture_copy(f->list[k], at);
        if (!at) return stk_diag_set(diag, STK_EUNSUPPORTED, "a frame cannot be copied");
    }
    return STK_OK;
}
