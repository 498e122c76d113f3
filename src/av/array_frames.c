/* Frames over arrays: what convert.c does, the other way round and without a copy. */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>

#include <libavutil/imgutils.h>
#include <libavutil/mem.h>
#include <libavutil/pixdesc.h>

#include "av/call.h"
#include "av/frame_list.h"
#include "av/module.h"
#include "base/alloc.h"

enum { MAX_CHANNELS = 1024, TEXT = 160 };

static void describe(char text[TEXT], stk_dtype dtype, const int64_t *shape, int ndim)
{
    size_t n = (size_t)snprintf(text, TEXT, "(");
    for (int i = 0; i < ndim && n < TEXT; i++)
        n += (size_t)snprintf(text + n, TEXT - n, "%s%" PRId64, i ? ", " : "", shape[i]);
    if (n < TEXT) snprintf(text + n, TEXT - n, ") of %s", stk_dtype_str(dtype));
}

static stk_err unlike(const stk_av_array *from, const char *shape, stk_dtype dtype, stk_diag *diag)
{
    char text[TEXT];
    describe(text, from->view.dtype, from->view.shape, from->view.ndim);
    return stk_diag_set(diag, STK_EINVAL, "an array for %s is %s of %s, not %s", from->format,
                        shape, stk_dtype_str(dtype), text);
}

static stk_err scattered(stk_diag *diag)
{
    return stk_diag_set(diag, STK_EINVAL,
                        "each row of the array must be contiguous, and rows must follow each other "
                        "upwards: numpy.ascontiguousarray makes it so");
}

static void release(void *opaque, uint8_t *data)
{
    stk_buffer *mem = opaque;
    (void)data;
    stk_buffer_unref(&mem);
}

/* The frame has a reference of the memory, of which it sees [low, high). */
static stk_err hold(AVFrame *f, const stk_av_array *from, uint8_t *low, const uint8_t *high)
{
    f->buf[0] = stk_fault() ? NULL
                            : av_buffer_create(low, (size_t)(high - low), release, from->mem,
                                               AV_BUFFER_FLAG_READONLY);
    if (!f->buf[0]) return STK_ENOMEM;
    stk_buffer_ref(from->mem);
    return STK_OK;
}

static stk_err add(stk_frames *to, AVFrame *f, stk_err err, stk_diag *diag)
{
    if (!err) err = stk_frames_add(to, f);
    return err ? stk_diag_set(diag, err, "no memory for frames") : STK_OK;
}

/* --- samples --- */

static stk_err samples(const stk_av_array *from, stk_frames *to, AVFrame *f, stk_diag *diag)
{
    const stk_tensor *t = &from->view;
    const enum AVSampleFormat format = av_get_sample_fmt(from->format);
    if (format == AV_SAMPLE_FMT_NONE)
        return stk_diag_set(diag, STK_EINVAL, "there is no sample format '%s'", from->format);
    const bool planar = av_sample_fmt_is_planar(format);
    const stk_dtype dtype = stk_sample_dtype(format);
    if (t->ndim != 2 || t->dtype != dtype)
        return unlike(from, planar ? "(channels, time)" : "(time, channels)", dtype, diag);
    const int64_t channels = t->shape[planar ? 0 : 1], n = t->shape[planar ? 1 : 0];
    const int64_t size = (int64_t)stk_dtype_size(dtype), row = t->shape[1] * size;
    if (channels < 1 || channels > MAX_CHANNELS || n < 1 || n > INT_MAX / size / channels)
        return stk_diag_set(diag, STK_EINVAL,
                            "%" PRId64 " samples of %" PRId64
                            " channels: there must be some, of at most %d channels and 2 GiB",
                            n, channels, MAX_CHANNELS);
    const bool whole = planar || n == 1 || t->strides[0] == row;
    if (!whole || (t->shape[1] > 1 && t->strides[1] != size)) return scattered(diag);

    const int planes = planar ? (int)channels : 1;
    uint8_t *low = t->data, *high = t->data;
    f->format = format;
    f->nb_samples = (int)n;
    f->sample_rate = (int)from->rate.num;
    f->pts = from->pts;
    f->linesize[0] = (int)(planar ? row : row * n);
    av_channel_layout_default(&f->ch_layout, (int)channels);
    if (planes > AV_NUM_DATA_POINTERS) {
        f->extended_data = av_calloc((size_t)planes, sizeof(*f->extended_data));
        if (!f->extended_data) {
            f->extended_data = f->data;
            return stk_diag_set(diag, STK_ENOMEM, "no memory for frames");
        }
    }
    for (int i = 0; i < planes; i++) {
        uint8_t *at = (uint8_t *)t->data + (planar && channels > 1 ? i * t->strides[0] : 0);
        f->extended_data[i] = at;
        if (i < AV_NUM_DATA_POINTERS) f->data[i] = at;
        if (at < low) low = at;
        if (at + f->linesize[0] > high) high = at + f->linesize[0];
    }
    return add(to, f, hold(f, from, low, high), diag);
}

/* --- pictures --- */

/* One picture of the array, with three extents. */
typedef struct picture {
    enum AVPixelFormat format;
    stk_pixels pixels;
    bool packed; /* rows are the first extent, else the second */
    int64_t shape[3], strides[3];
    int width, height;
} picture;

/* How many rows of luma (1, rows, width) has, where the planes follow each other; 0: none does. */
static int luma_rows(const picture *p)
{
    const int64_t width = p->shape[2], wanted = p->shape[1] * width;
    int low = 1, high = p->shape[1] > INT_MAX ? INT_MAX : (int)p->shape[1];
    const int64_t size = (int64_t)stk_dtype_size(p->pixels.dtype);
    while (low <= high) {
        const int middle = low + (high - low) / 2;
        const int bytes = av_image_get_buffer_size(p->format, (int)width, middle, 1);
        if (bytes < 0 || bytes / size > wanted)
            high = middle - 1;
        else if (bytes / size < wanted)
            low = middle + 1;
        else
            return middle;
    }
    return 0;
}

static const char *shape_text(const picture *p)
{
    if (p->pixels.planes == 1 && p->pixels.packed == 1) return "(frames, height, width)";
    if (p->pixels.planes == 1) return "(frames, height, width, components)";
    return p->pixels.same_size ? "(frames, planes, height, width)" : "(frames, 1, rows, width)";
}

/* What a picture of the array is, by its format and extents. */
static stk_err measure(const stk_av_array *from, picture *p, AVFrame *like, stk_diag *diag)
{
    const stk_tensor *t = &from->view;
    p->format = av_get_pix_fmt(from->format);
    if (p->format == AV_PIX_FMT_NONE)
        return stk_diag_set(diag, STK_EINVAL, "there is no pixel format '%s'", from->format);
    if (!stk_pixels_of(p->format, &p->pixels))
        return stk_diag_set(diag, STK_EINVAL, "pixels of %s are no elements of an array",
                            from->format);
    const bool one = p->pixels.planes == 1 && p->pixels.packed == 1;
    const bool packed = p->packed = p->pixels.planes == 1 && (!one || p->pixels.dtype == STK_UINT8);
    const bool flat = one && t->ndim == 3; /* (frames, height, width) */
    if (t->dtype != p->pixels.dtype || (t->ndim != 4 && !flat))
        return unlike(from, shape_text(p), p->pixels.dtype, diag);
    for (int i = 0, k = 1; i < 3; i++) {
        const bool added = flat && i == (packed ? 2 : 0);
        p->shape[i] = added ? 1 : t->shape[k];
        p->strides[i] = added ? (int64_t)stk_dtype_size(t->dtype) : t->strides[k];
        k += !added;
    }
    for (int i = 0; i < 3; i++)
        if (p->shape[i] < 1 || p->shape[i] > INT_MAX)
            return unlike(from, shape_text(p), p->pixels.dtype, diag);
    p->width = (int)p->shape[packed ? 1 : 2];
    p->height = (int)p->shape[packed ? 0 : 1];
    if (!packed && !one && !p->pixels.same_size) p->height = luma_rows(p);
    like->format = p->format;
    like->width = p->width;
    like->height = p->height;
    stk_spec spec;
    if (!p->height || stk_picture_spec(like, &spec, NULL) || spec.shape[0] != p->shape[0] ||
        spec.shape[1] != p->shape[1] || spec.shape[2] != p->shape[2])
        return unlike(from, shape_text(p), p->pixels.dtype, diag);
    return STK_OK;
}

/* The bytes of a row, and whether rows are as frames have them. */
static bool rows_fit(const picture *p, int64_t *line)
{
    const int64_t size = (int64_t)stk_dtype_size(p->pixels.dtype);
    const int rows = p->packed ? 0 : 1; /* which extent */
    int64_t bytes = size;
    for (int i = 2; i > rows; i--) {
        if (p->shape[i] > 1 && p->strides[i] != bytes) return false;
        bytes *= p->shape[i];
    }
    *line = p->shape[rows] > 1 ? p->strides[rows] : bytes;
    if (*line < bytes || *line > INT_MAX || *line % size) return false;
    return p->pixels.same_size || p->pixels.planes == 1 || *line == bytes;
}

/* Planes of `f`, whose picture begins at `at`; false: a size that FFmpeg does not take. */
static bool set_planes(AVFrame *f, const picture *p, int64_t line, uint8_t *at)
{
    if (p->pixels.planes > 1 && !p->pixels.same_size)
        return av_image_fill_arrays(f->data, f->linesize, at, p->format, p->width, p->height, 1) >=
               0;
    for (int i = 0; i < p->pixels.planes; i++) {
        f->data[i] = at + (i ? i * p->strides[0] : 0);
        f->linesize[i] = (int)line;
    }
    return true;
}

static stk_err one_picture(const stk_av_array *from, const picture *p, int64_t line, uint8_t *at,
                           AVFrame *f)
{
    f->format = p->format;
    f->width = p->width;
    f->height = p->height;
    if (!set_planes(f, p, line, at)) return STK_EINVAL;
    const AVPixFmtDescriptor *d = av_pix_fmt_desc_get(p->format);
    uint8_t *low = f->data[0];
    const uint8_t *high = low;
    for (int i = 0; i < p->pixels.planes; i++) {
        const bool chroma = i == 1 || i == 2;
        const int rows = chroma ? AV_CEIL_RSHIFT(p->height, d->log2_chroma_h) : p->height;
        const int width = av_image_get_linesize(p->format, p->width, i);
        const uint8_t *end = f->data[i] + (int64_t)(rows - 1) * f->linesize[i] + width;
        if (f->data[i] < low) low = f->data[i];
        if (end > high) high = end;
    }
    return hold(f, from, low, high);
}

static stk_err pictures(const stk_av_array *from, stk_frames *to, AVFrame *f, stk_diag *diag)
{
    const stk_tensor *t = &from->view;
    picture p;
    int64_t line;
    stk_err err = measure(from, &p, f, diag);
    if (err) return err;
    if (!rows_fit(&p, &line)) return scattered(diag);
    if (t->shape[0] < 1) return stk_diag_set(diag, STK_EINVAL, "the array has no frames");
    if (from->pts > INT64_MAX - t->shape[0])
        return stk_diag_set(diag, STK_EINVAL, "pts is too large");
    to->frame_rate = av_inv_q(to->time_base);
    for (int64_t i = 0; i < t->shape[0] && !err; i++) {
        uint8_t *at = (uint8_t *)t->data + (i ? i * t->strides[0] : 0);
        err = one_picture(from, &p, line, at, f);
        f->pts = from->pts + i;
        compat_duration(f) = 1;
        if (err == STK_EINVAL) return unlike(from, shape_text(&p), p.pixels.dtype, diag);
        err = add(to, f, err, diag);
    }
    return err;
}

static stk_err fill(const stk_av_array *from, stk_frames *to, stk_diag *diag)
{
    const bool audio = from->media == STK_MEDIA_AUDIO;
    const stk_ratio r = from->rate;
    if (r.num < 1 || r.den < 1 || r.num > INT_MAX || r.den > INT_MAX || (audio && r.den != 1))
        return stk_diag_set(diag, STK_EINVAL, "%" PRId64 "/%" PRId64 " is no %s", r.num, r.den,
                            audio ? "sample rate" : "frame rate");
    if (from->pts == INT64_MIN) return stk_diag_set(diag, STK_EINVAL, "pts is too small");
    to->time_base = (AVRational){(int)r.den, (int)r.num};
    AVFrame *f = stk_fault() ? NULL : av_frame_alloc();
    if (!f) return stk_diag_set(diag, STK_ENOMEM, "no memory for frames");
    const stk_err err = audio ? samples(from, to, f, diag) : pictures(from, to, f, diag);
    av_frame_free(&f);
    return err;
}

stk_err mod_frames_over(const stk_av_array *array, stk_frames **out, stk_diag *diag)
{
    *out = NULL;
    if (array->media != STK_MEDIA_AUDIO && array->media != STK_MEDIA_VIDEO)
        return stk_diag_set(diag, STK_EINVAL, "an array is audio or video");
    stk_err err = stk_frames_make(array->media, out);
    if (err) return stk_diag_set(diag, err, "no memory for frames");
    stk_av_call call;
    stk_av_enter(&call, diag); /* FFmpeg logs sizes that it does not take */
    err = fill(array, *out, diag);
    stk_av_leave(&call);
    if (err) mod_frames_unref(out);
    return err;
}
