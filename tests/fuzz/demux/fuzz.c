/* Demuxing, decoding and converting what the bytes are; also as packets that were serialized. */
#include <stdlib.h>
#include <string.h>

#include "av/call.h"
#include "av/module.h"
#include "tests/fuzz/fuzz.h"

static void convert(const stk_frames *frames)
{
    stk_spec spec;
    size_t bytes;
    if (mod_frames_spec(&frames, 1, false, &spec, NULL) || stk_spec_bytes(&spec, &bytes)) return;
    if (bytes > (size_t)64 << 20) return;
    void *dst = malloc(bytes ? bytes : 1);
    if (dst && mod_frames_copy(&frames, 1, dst, bytes, NULL)) abort();
    free(dst);
}

/* The same in parts, and some frames by number. */
static void decode_otherwise(stk_decoder *decoder, stk_packets *packets)
{
    static const size_t numbers[] = {0, 2, 3, 7};
    stk_frames *frames;
    stk_frames_info info = {.num_frames = 1};
    if (mod_decoder_put(decoder, packets, NULL) || mod_decoder_put(decoder, NULL, NULL)) abort();
    while (info.num_frames && !mod_decoder_next(decoder, 3, 1 << 20, &frames, NULL)) {
        mod_frames_get_info(frames, &info);
        mod_frames_unref(&frames);
    }
    if (!mod_decoder_pick(decoder, packets, numbers, 4, &frames, NULL)) convert(frames);
    mod_frames_unref(&frames);
}

static void decode(stk_packets *packets)
{
    stk_av_codec *codec = mod_packets_codec(packets);
    stk_decoder *decoder = NULL;
    stk_frames *frames = NULL;
    stk_diag diag;
    const stk_decode_opts opts = {.max_frames = 8, .max_pixels = 1 << 18};
    if (!codec) return;
    if (!mod_decoder_new(codec, &opts, &decoder, &diag) &&
        !mod_decoder_decode(decoder, packets, true, &frames, &diag))
        convert(frames);
    mod_frames_unref(&frames);
    if (decoder) decode_otherwise(decoder, packets);
    mod_decoder_free(&decoder);
    mod_av_codec_unref(&codec);
}

static void demux(stk_buffer *bytes)
{
    static const stk_window window = {{1, 10}, {1, 2}};
    const stk_demux_opts opts = {.timeout = INT64_C(2000000000), .max_bytes = 1 << 20};
    stk_demuxer *d;
    stk_diag diag;
    if (mod_demuxer_open(&(stk_av_input){.bytes = bytes}, &opts, &d, &diag)) return;
    for (stk_media media = STK_MEDIA_AUDIO; media <= STK_MEDIA_IMAGE; media++)
        for (int windowed = 0; windowed < 2; windowed++) {
            stk_packets *packets;
            if (mod_demuxer_read(d, media, windowed ? &window : NULL, NULL, &packets, &diag))
                continue;
            if (!windowed) decode(packets);
            mod_packets_unref(&packets);
        }
    mod_demuxer_free(&d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static bool started;
    stk_buffer *bytes;
    stk_packets *packets;
    if (!started) stk_av_call_start();
    started = true;
    if (stk_buffer_new(size, &bytes)) return 0;
    if (size) memcpy(stk_buffer_writable(bytes), data, size);
    if (!mod_packets_read(bytes, &packets, NULL)) decode(packets);
    mod_packets_unref(&packets);
    demux(bytes);
    stk_buffer_unref(&bytes);
    return 0;
}
