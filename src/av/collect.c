/* Pictures that were picked, through the filters into frames: filters make one of each. */
#include "av/decoder.h"

typedef struct collecting {
    stk_decoder *d;
    stk_frames *out;
} collecting;

static void begin(void *ctx)
{
    stk_frames_clear(((collecting *)ctx)->out);
}

static stk_err filter(stk_decoder *d, AVFrame *frame, stk_frames *out, stk_av_call *call)
{
    const av_filter_input input = stk_decoder_filter_input(d);
    const av_room one = {1, SIZE_MAX}; /* each picture in memory of its own */
    stk_err err = STK_OK;
    if (!d->filter.graph && av_scale_fits(&d->scale, frame)) {
        if (!out->n) out->time_base = d->time_base;
        return av_scale_push(&d->scale, frame, &one, out, call);
    }
    if (!av_filter_fits(&d->filter, &input, frame))
        err = av_filter_finish(&d->filter, &input, out, call);
    if (!err) err = av_filter_put(&d->filter, &input, frame, call);
    return err ? err : av_filter_get_all(&d->filter, &input, out, call);
}

static stk_err take(void *ctx, AVFrame *frame, stk_av_call *call)
{
    const collecting *c = ctx;
    stk_err err = STK_OK;
    if (c->d->filter_text)
        err = filter(c->d, frame, c->out, call);
    else if (stk_frames_add(c->out, frame))
        err = stk_av_say(call, STK_ENOMEM, "no memory for frames");
    if (!err && c->out->bytes > c->d->max_bytes) err = stk_decoder_too_much(c->d, call);
    return err;
}

static stk_err finish(stk_decoder *d, size_t n, stk_frames *out, stk_av_call *call)
{
    if (!d->filter_text) {
        out->time_base = d->time_base;
        out->frame_rate = d->frame_rate;
        return STK_OK;
    }
    const av_filter_input input = stk_decoder_filter_input(d);
    const stk_err err = av_filter_finish(&d->filter, &input, out, call);
    if (err || out->n == n) return err;
    return stk_av_say(call, STK_EINVAL,
                      "filters '%s' made %zu frames of %zu: single frames go through filters that "
                      "make one of one",
                      input.text, out->n, n);
}

stk_err stk_decoder_collect(stk_decoder *d, const stk_packets *packets, const size_t *indices,
                            size_t n, stk_frames *out, stk_av_call *call)
{
    collecting c = {d, out};
    const stk_decoder_taker to = {begin, take, &c};
    stk_err err = stk_decoder_visit(d, packets, indices, n, &to, call);
    if (!err) err = finish(d, n, out, call);
    out->num_failed = d->failed;
    return err;
}
