#include "av/video_reader.h"

#include "av/module.h"
#include "base/alloc.h"

#define MAX_PACKETS ((size_t)1 << 24) /* of which a reader knows about: six days at 30 a second */

static stk_err read_index(stk_video_reader *r, enum AVCodecID codec, stk_av_call *call)
{
    stk_demuxer *d = r->demuxer;
    stk_err err = stk_demuxer_rewind(d, r->stream, call);
    while (!err && !(err = stk_demuxer_packet(d, call))) {
        if (d->packet->stream_index != r->stream) continue;
        const bool in = !(d->packet->flags & AV_PKT_FLAG_DISCARD);
        if (r->index.n == MAX_PACKETS)
            return stk_av_say(call, STK_ELIMIT, "%s: more than %zu packets", d->input.name,
                              MAX_PACKETS);
        if (av_index_add(&r->index, d->packet, codec, in))
            return stk_av_say(call, STK_ENOMEM, "no memory for the list of packets");
    }
    if (err != STK_EEND) return err;
    /* FFmpeg complained about the end, or the header says more. */
    r->cut = call->used > 0 || stk_demuxer_is_short(d, r->stream, true);
    if (!r->index.n)
        return stk_av_say(call, STK_ECORRUPT, "%s: the stream holds no packet", d->input.name);
    if (av_index_finish(&r->index))
        return stk_av_say(call, STK_ENOMEM, "no memory for the list of packets");
    return stk_demuxer_rewind(d, r->stream, call); /* or there will be no second time */
}

static stk_err prepare(stk_video_reader *r, const stk_decode_opts *opts, stk_diag *diag)
{
    stk_av_codec *codec = NULL;
    stk_decode_opts own = *opts;
    own.max_frames = 0;
    own.strict = false;
    r->strict = opts->strict;
    r->stream = mod_demuxer_best(r->demuxer, STK_MEDIA_VIDEO);
    if (r->stream < 0)
        return stk_diag_set(diag, STK_ENOTFOUND, "%s: there is no video stream",
                            r->demuxer->input.name);
    stk_err err = mod_demuxer_codec(r->demuxer, r->stream, STK_MEDIA_VIDEO, &codec, diag);
    if (!err) err = mod_decoder_new(codec, &own, &r->decoder, diag);
    if (!err) {
        const AVCodecParameters *par = codec->par;
        r->index.refresh = av_refresh_of(par->codec_id, par->extradata, par->extradata_size);
        r->time_base = codec->time_base;
        stk_demuxer_select(r->demuxer, &r->stream, 1);
        stk_av_call call;
        stk_av_enter(&call, diag);
        err = read_index(r, par->codec_id, &call);
        stk_av_leave(&call);
    }
    mod_av_codec_unref(&codec);
    if (!err && r->index.untold) {
        r->counted = true;
        av_reader_set_whole(r, true);
    }
    return err;
}

stk_err mod_video_reader_new(stk_demuxer *demuxer, const stk_decode_opts *opts,
                             stk_video_reader **out, stk_diag *diag)
{
    static const stk_decode_opts none;
    stk_video_reader *r = *out = stk_alloc_zero(1, sizeof(*r));
    if (!r) return stk_diag_set(diag, STK_ENOMEM, "no memory for a reader");
    r->demuxer = demuxer;
    atomic_flag_clear(&r->busy);
    const stk_err err = prepare(r, opts ? opts : &none, diag);
    if (err) mod_video_reader_free(out);
    return err;
}

void mod_video_reader_free(stk_video_reader **pr)
{
    stk_video_reader *r = *pr;
    *pr = NULL;
    if (!r) return;
    mod_decoder_free(&r->decoder);
    av_index_fini(&r->index);
    stk_free(r);
}

size_t mod_video_reader_length(const stk_video_reader *r)
{
    return r->index.num_shown;
}

void mod_video_reader_times(const stk_video_reader *r, stk_ratio *time_base, int64_t *times,
                            bool *keys, size_t n)
{
    const av_index *x = &r->index;
    *time_base = stk_ratio_of(r->time_base);
    for (size_t i = 0; i < n && i < x->num_shown; i++) {
        times[i] = x->shown[i].time;
        if (keys) keys[i] = x->list[x->shown[i].at].key == x->shown[i].at;
    }
}

static size_t load(const atomic_size_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

void mod_video_reader_get_stats(const stk_video_reader *r, stk_video_reader_stats *out)
{
    *out = (stk_video_reader_stats){.num_decoded = load(&r->decoded),
                                    .num_converted = load(&r->converted),
                                    .num_seeks = load(&r->seeks),
                                    .num_failed = mod_decoder_failed(r->decoder),
                                    .kept_bytes = load(&r->kept)};
}
