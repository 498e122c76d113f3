#include "av/bitstream.h"

#include <string.h>

#include "av/call.h"
#include "av/module.h"
#include "base/alloc.h"

static stk_err begin(stk_bsf *b, stk_av_call *call)
{
    av_bsf_free(&b->context);
    int rc = av_bsf_list_parse_str(b->text, &b->context);
    if (rc < 0) return stk_av_wrong(call, rc, "bitstream filters '%s'", b->text);
    rc = avcodec_parameters_copy(b->context->par_in, b->codec->par);
    b->context->time_base_in = b->codec->time_base;
    if (rc >= 0) rc = av_bsf_init(b->context);
    if (rc < 0)
        return stk_av_wrong(call, rc, "bitstream filters '%s' for %s", b->text,
                            avcodec_get_name(b->codec->par->codec_id));
    return STK_OK;
}

stk_err mod_bsf_new(const stk_av_codec *codec, const char *filters, stk_bsf **out, stk_diag *diag)
{
    stk_av_call call;
    stk_bsf *b = *out = stk_alloc_zero(1, sizeof(*b));
    if (!b) return stk_diag_set(diag, STK_ENOMEM, "no memory for bitstream filters");
    atomic_flag_clear(&b->busy);
    b->codec = mod_av_codec_ref((stk_av_codec *)codec);
    b->text = stk_alloc(strlen(filters) + 1);
    b->packet = b->text ? av_packet_alloc() : NULL;
    stk_err err = b->packet ? STK_OK : stk_diag_set(diag, STK_ENOMEM, "no memory");
    if (!err) {
        memcpy(b->text, filters, strlen(filters) + 1);
        stk_av_enter(&call, diag);
        err = begin(b, &call);
        stk_av_leave(&call);
    }
    if (err) mod_bsf_free(out);
    return err;
}

void mod_bsf_free(stk_bsf **pb)
{
    stk_bsf *b = *pb;
    *pb = NULL;
    if (!b) return;
    av_bsf_free(&b->context);
    av_packet_free(&b->packet);
    mod_av_codec_unref(&b->codec);
    stk_free(b->text);
    stk_free(b);
}

static stk_err receive(stk_bsf *b, stk_packets *to, stk_av_call *call)
{
    for (;;) {
        const int rc = av_bsf_receive_packet(b->context, b->packet);
        if (rc == AVERROR(EAGAIN) || rc == AVERROR_EOF) return STK_OK;
        if (rc < 0) return stk_av_fail(call, rc, "bitstream filters '%s'", b->text);
        const stk_err err = stk_packets_add(to, b->packet);
        av_packet_unref(b->packet);
        if (err) return stk_av_say(call, err, "no memory for packets");
    }
}

static stk_err send(stk_bsf *b, const AVPacket *from, stk_packets *to, stk_av_call *call)
{
    int rc = from ? av_packet_ref(b->packet, from) : 0;
    if (rc >= 0) rc = av_bsf_send_packet(b->context, from ? b->packet : NULL);
    if (rc < 0) {
        av_packet_unref(b->packet);
        return stk_av_fail(call, rc, "bitstream filters '%s'", b->text);
    }
    return receive(b, to, call);
}

static stk_err filter(stk_bsf *b, const stk_packets *packets, bool flush, stk_packets **out,
                      stk_av_call *call)
{
    const AVRational rate = b->codec->frame_rate, tb = b->context->time_base_out;
    const stk_window *window = packets && packets->windowed ? &packets->window : NULL;
    stk_av_codec *codec = NULL;
    stk_err err = STK_OK;
    if (packets && packets->codec)
        err = stk_av_codec_make(b->codec->media, b->context->par_out, tb, rate, &codec);
    if (codec && b->codec->has_display) {
        memcpy(codec->display, b->codec->display, sizeof(codec->display));
        codec->has_display = true;
    }
    if (!err)
        err = stk_packets_make(b->codec->media, codec, tb, window, packets ? packets->source : "",
                               out);
    mod_av_codec_unref(&codec);
    if (err) return stk_av_say(call, err, "no memory for packets");
    for (size_t i = 0; packets && i < packets->n && !err; i++)
        err = send(b, packets->list[i], *out, call);
    if (flush && !err) err = send(b, NULL, *out, call);
    if (flush && !err) err = begin(b, call);
    if (err) mod_packets_unref(out);
    return err;
}

stk_err mod_bsf_filter(stk_bsf *b, const stk_packets *packets, bool flush, stk_packets **out,
                       stk_diag *diag)
{
    *out = NULL;
    if (atomic_flag_test_and_set_explicit(&b->busy, memory_order_acquire))
        return stk_diag_set(diag, STK_EAGAIN, "the bitstream filters are in use by another thread");
    stk_av_call call;
    stk_av_enter(&call, diag);
    const stk_err err = filter(b, packets, flush, out, &call);
    stk_av_leave(&call);
    atomic_flag_clear_explicit(&b->busy, memory_order_release);
    return err;
}
