#include "ops/media.h"

void stk_media_close(stk_media_file *f)
{
    stk_packets_unref(&f->packets);
    stk_av_codec_unref(&f->codec);
    *f = (stk_media_file){0};
}

stk_err stk_media_open(const stk_item *item, size_t part, stk_media media, size_t frames,
                       stk_media_file *out, stk_diag *diag)
{
    stk_demuxer *demuxer = NULL;
    stk_buffer *bytes = stk_item_bytes(item, part);
    *out = (stk_media_file){0};
    if (!bytes) return stk_diag_set(diag, STK_EINVAL, "there are no bytes: read comes first");
    const stk_av_input input = {.bytes = bytes, .name = "the sample"};
    const stk_demux_opts opts = {.frames = frames};
    stk_err err = stk_demuxer_open(&input, &opts, &demuxer, diag);
    if (!err) err = stk_demuxer_read(demuxer, media, NULL, NULL, &out->packets, diag);
    stk_demuxer_free(&demuxer);
    if (err) return err;
    stk_packets_info info;
    stk_packets_get_info(out->packets, &info);
    out->total = info.total;
    out->codec = stk_packets_codec(out->packets); /* it was read as a whole, so it has one */
    stk_av_codec_get_info(out->codec, &out->info);
    return STK_OK;
}

stk_err stk_media_begin(const stk_media_file *f, const stk_media_opts *opts, stk_packets **packets,
                        stk_decoder **decoder, stk_diag *diag)
{
    const stk_decode_opts how = {
        .filter = opts->filter,
        .strict = opts->strict,
        .max_pixels = opts->max_pixels,
        .max_bytes = opts->max_bytes,
    };
    stk_err err = STK_OK;
    *decoder = NULL;
    if (opts->window)
        err = stk_packets_cut(f->packets, opts->window, packets, diag);
    else
        *packets = stk_packets_ref(f->packets);
    return err ? err : stk_decoder_new(f->codec, &how, decoder, diag);
}

stk_err stk_media_decode(const stk_media_file *f, const stk_media_opts *opts, stk_frames **out,
                         stk_diag *diag)
{
    stk_packets *packets;
    stk_decoder *decoder;
    *out = NULL;
    stk_err err = stk_media_begin(f, opts, &packets, &decoder, diag);
    if (!err) err = stk_decoder_decode(decoder, packets, true, out, diag);
    stk_decoder_free(&decoder);
    stk_packets_unref(&packets);
    return err;
}
