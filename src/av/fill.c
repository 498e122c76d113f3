/* Frames that are wanted, from the decoder straight into an array. */
#include <string.h>

#include "av/decoder.h"
#include "av/module.h"

typedef struct filling {
    const stk_frames_wanted *is;
    uint8_t *dst;
    size_t each;    /* bytes of a picture */
    int64_t number; /* of the next frame */
    size_t next;    /* which is wanted next, */
    size_t place;   /* and where it goes */
} filling;

static stk_err unfit(stk_av_call *call)
{
    return stk_av_say(call, STK_EUNSUPPORTED,
                      "these frames cannot be written straight into an array");
}

/* What can be told without decoding. */
static bool is_hopeless(const stk_decoder *d)
{
    AVFrame *like = d->frame; /* holds nothing */
    like->format = d->context->pix_fmt;
    like->width = d->context->width;
    like->height = d->context->height;
    const bool can = d->media != STK_MEDIA_AUDIO && av_scale_fits_array(&d->scale, like);
    av_frame_unref(like);
    return !can;
}

static bool fits(const stk_decoder *d, const filling *f)
{
    stk_spec spec;
    size_t bytes;
    if (!av_scale_fits_array(&d->scale, d->frame)) return false;
    av_scale_spec(&d->scale, d->frame, &spec);
    if (spec.shape[0] != f->is->height || spec.shape[1] != f->is->width) return false;
    return !stk_spec_bytes(&spec, &bytes) && bytes == f->each;
}

/* STK_ENOTFOUND: it is not what should have come. */
static stk_err is_next(const filling *f, const AVFrame *frame, bool *out)
{
    const stk_frames_wanted *is = f->is;
    const bool by_number = !is->numbers || is->numbers[f->next] == f->number;
    const bool by_time = !is->times || is->times[f->next] == frame->pts;
    *out = by_number && by_time;
    if (*out) return STK_OK;
    if (is->numbers && by_number) return STK_ENOTFOUND;
    /* One more of the time of the last one: which of them is meant is not known. */
    if (!is->numbers && f->next && is->times[f->next - 1] == frame->pts) return STK_ENOTFOUND;
    return STK_OK;
}

static stk_err write_picture(stk_decoder *d, filling *f, stk_av_call *call)
{
    const stk_frames_wanted *is = f->is;
    uint8_t *made = f->dst + f->place * f->each;
    const stk_err err = av_scale_into(&d->scale, d->frame, made, call);
    if (err) return err;
    for (f->place++; f->place < is->n && is->pick[f->place] == f->next; f->place++)
        memcpy(f->dst + f->place * f->each, made, f->each);
    f->next++;
    return STK_OK;
}

static stk_err look(stk_decoder *d, filling *f, stk_av_call *call)
{
    bool wanted;
    stk_err err = is_next(f, d->frame, &wanted);
    f->number++;
    if (err || !wanted) return err;
    return fits(d, f) ? write_picture(d, f, call) : unfit(call);
}

/* Each of those that are wanted is a picture, and in order. */
static bool is_sound(const stk_frames_wanted *w, size_t size)
{
    if (!w->n || !w->num || size % w->n || w->pick[0]) return false;
    for (size_t i = 1; i < w->n; i++)
        if (w->pick[i] != w->pick[i - 1] && w->pick[i] != w->pick[i - 1] + 1) return false;
    return w->pick[w->n - 1] == w->num - 1;
}

stk_err stk_decoder_write(stk_decoder *d, const stk_frames_wanted *wanted, uint8_t *dst,
                          size_t size, stk_av_call *call)
{
    if (!is_sound(wanted, size))
        return stk_av_say(call, STK_EINVAL, "%zu frames in an array of %zu pictures, %zu bytes",
                          wanted->num, wanted->n, size);
    filling f = {.is = wanted, .dst = dst, .each = size / wanted->n};
    stk_err err = STK_OK;
    if (is_hopeless(d) || (uintptr_t)dst % AV_SCALE_ALIGN) return unfit(call);
    while (!err && f.next < wanted->num) {
        err = stk_decoder_frame(d, call);
        if (err == STK_EEND || err == STK_EAGAIN) err = STK_ENOTFOUND;
        if (!err) err = look(d, &f, call);
        av_frame_unref(d->frame);
    }
    if (err == STK_ENOTFOUND)
        stk_av_say(call, err, "frame %zu of %zu did not come as it should", f.next, wanted->num);
    return err;
}
