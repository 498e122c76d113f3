/* Frames that are wanted, from the decoder straight into an array. */
#include <string.h>

#include "av/decoder.h"
#include "av/module.h"

typedef struct filling {
    stk_decoder *d;
    const stk_frames_wanted *is;
    uint8_t *dst;
    size_t each;  /* bytes of a picture */
    size_t next;  /* which is wanted next, */
    size_t place; /* and where it goes */
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

static bool fits(const filling *f, const AVFrame *frame)
{
    stk_spec spec;
    size_t bytes;
    if (!av_scale_fits_array(&f->d->scale, frame)) return false;
    av_scale_spec(&f->d->scale, frame, &spec);
    if (spec.shape[0] != f->is->height || spec.shape[1] != f->is->width) return false;
    return !stk_spec_bytes(&spec, &bytes) && bytes == f->each;
}

static void begin(void *ctx)
{
    filling *f = ctx;
    f->next = f->place = 0;
}

static stk_err take(void *ctx, AVFrame *frame, stk_av_call *call)
{
    filling *f = ctx;
    const stk_frames_wanted *is = f->is;
    uint8_t *made = f->dst + f->place * f->each;
    if (is->times && is->times[f->next] != frame->pts)
        return stk_av_say(call, STK_ENOTFOUND, "frame %zu of %zu did not come as it should",
                          f->next, is->num);
    if (!fits(f, frame)) return unfit(call);
    const stk_err err = av_scale_into(&f->d->scale, frame, made, call);
    if (err) return err;
    for (f->place++; f->place < is->n && is->pick[f->place] == f->next; f->place++)
        memcpy(f->dst + f->place * f->each, made, f->each);
    f->next++;
    return STK_OK;
}

/* Each of those that are wanted is a picture, and in order. */
static bool is_sound(const stk_decoder *d, const stk_packets *packets, const stk_frames_wanted *w,
                     size_t size)
{
    if (packets->media != d->media || !w->n || !w->num || size % w->n || w->pick[0]) return false;
    for (size_t i = 1; i < w->n; i++)
        if (w->pick[i] != w->pick[i - 1] && w->pick[i] != w->pick[i - 1] + 1) return false;
    return w->pick[w->n - 1] == w->num - 1;
}

stk_err stk_decoder_write(stk_decoder *d, const stk_packets *packets,
                          const stk_frames_wanted *wanted, uint8_t *dst, size_t size,
                          stk_av_call *call)
{
    if (!is_sound(d, packets, wanted, size))
        return stk_av_say(call, STK_EINVAL, "%zu frames in an array of %zu pictures, %zu bytes",
                          wanted->num, wanted->n, size);
    if (is_hopeless(d) || (uintptr_t)dst % AV_SCALE_ALIGN) return unfit(call);
    filling f = {.d = d, .is = wanted, .dst = dst, .each = size / wanted->n};
    const stk_decoder_taker to = {begin, take, &f};
    return stk_decoder_visit(d, packets, wanted->numbers, wanted->num, &to, call);
}
