#include "av/result.h"

#include "av/module.h"

static stk_err run_filters(av_result *out, stk_decoder *d, AVFrame *frame, stk_av_call *call)
{
    const av_filter_input input = stk_decoder_filter_input(d);
    stk_frames *left = NULL;
    stk_err err = stk_frames_make(d->media, &out->filtered);
    if (!err) err = stk_frames_make(d->media, &left);
    if (err) stk_av_say(call, err, "no memory for frames");
    if (!err && !av_filter_fits(&d->filter, &input, frame))
        err = av_filter_finish(&d->filter, &input, left, call);
    if (!err) err = av_filter_put(&d->filter, &input, frame, call);
    if (!err) err = av_filter_get_all(&d->filter, &input, out->filtered, call);
    mod_frames_unref(&left);
    if (!err && out->filtered->n != 1)
        err = stk_av_say(call, STK_EINVAL,
                         "filters '%s' made %zu frames of one: single frames go through filters "
                         "that make one of one",
                         input.text, out->filtered->n);
    if (err) av_filter_fini(&d->filter);
    if (!err) out->frame = out->filtered->list[0];
    return err;
}

stk_err av_result_init(av_result *out, stk_decoder *d, AVFrame *frame, stk_av_call *call)
{
    stk_err err = STK_OK;
    out->frame = frame;
    out->scaled = d->filter_text && !d->filter.graph && av_scale_fits_array(&d->scale, frame);
    if (out->scaled) {
        av_scale_spec(&d->scale, frame, &out->spec);
    }
    else {
        if (d->filter_text) err = run_filters(out, d, frame, call);
        if (!err) err = stk_picture_spec(out->frame, &out->spec, call->diag);
    }
    if (!err && (err = stk_spec_bytes(&out->spec, &out->bytes)))
        stk_av_say(call, err, "a picture of that size is too large");
    return err;
}

void av_result_fini(av_result *r)
{
    mod_frames_unref(&r->filtered);
    *r = (av_result){0};
}

stk_err av_result_write(const av_result *r, stk_decoder *d, uint8_t *dst, stk_av_call *call)
{
    if (r->scaled) return av_scale_into(&d->scale, r->frame, dst, call);
    if (stk_picture_copy(r->frame, dst)) return STK_OK;
    return stk_av_say(call, STK_EUNSUPPORTED, "a frame cannot be copied");
}
