/* What channels can be mixed to. */
#include <libswresample/swresample.h>

#include "av/call.h"
#include "av/module.h"
#include "av/packet_list.h"

/* Asks what mixes: not all layouts that have a name can be. */
static int try_to_mix(AVChannelLayout *from, AVChannelLayout *to, int rate)
{
    SwrContext *s = NULL;
    int rc = swr_alloc_set_opts2(&s, to, AV_SAMPLE_FMT_FLTP, rate, from, AV_SAMPLE_FMT_FLTP, rate,
                                 0, NULL);
    if (rc >= 0) rc = swr_init(s);
    swr_free(&s);
    return rc;
}

stk_err mod_av_codec_mixes(const stk_av_codec *codec, int channels, stk_diag *diag)
{
    AVChannelLayout *from = &codec->par->ch_layout;
    const int rate = codec->par->sample_rate > 0 ? codec->par->sample_rate : 1;
    if (from->nb_channels == channels) return STK_OK;
    if (from->order == AV_CHANNEL_ORDER_UNSPEC)
        return stk_diag_set(diag, STK_EUNSUPPORTED,
                            "which of the %d channels is which is not known, so FFmpeg cannot mix "
                            "them to %d",
                            from->nb_channels, channels);
    AVChannelLayout to = {0};
    av_channel_layout_default(&to, channels);
    if (to.order == AV_CHANNEL_ORDER_UNSPEC)
        return stk_diag_set(diag, STK_EUNSUPPORTED,
                            "FFmpeg has no layout of %d channels that it could mix %d to", channels,
                            from->nb_channels);
    stk_av_call call;
    stk_av_enter(&call, diag);
    stk_err err = STK_OK;
    const int rc = try_to_mix(from, &to, rate);
    if (rc < 0) {
        (void)stk_av_fail(&call, rc, "FFmpeg cannot mix %d channels to %d", from->nb_channels,
                          channels);
        err = rc == AVERROR(ENOMEM) ? STK_ENOMEM : STK_EUNSUPPORTED;
        if (diag) diag->err = err;
    }
    stk_av_leave(&call);
    av_channel_layout_uninit(&to);
    return err;
}
