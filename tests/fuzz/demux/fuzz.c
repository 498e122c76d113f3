/*
 * Demuxing, bitstream filters, decoding, filters and arrays, where all that can be chosen is as
 * hostile as the bytes:
 *
 *     format | ways | window | n | n bytes of texts | the input
 *
 * A byte each for the first four.  The texts, with a newline between: options of the demuxer,
 * bitstream filters, filters, options of the decoder (name=value&name=value).  An execution goes
 * one way only, which is faster than all of them.
 *
 *     printf '\0\2\0\0' | cat - clip.mp4    (its video, decoded)
 */
#include <stdlib.h>
#include <string.h>

#include <libavutil/mem.h>

#include "av/call.h"
#include "tests/fuzz/demux/choices.h"
#include "tests/fuzz/fuzz.h"

/* One allocation: more than pictures of 2^18 pixels need, less than FFmpeg's parsers of parameter
 * sets clear each time. */
enum { MAX_FRAMES = 8, MAX_ALLOC = 4 << 20 };

/* --- what becomes of packets --- */

static void convert(const stk_frames *frames)
{
    stk_spec spec;
    size_t bytes;
    if (mod_frames_spec(&frames, 1, false, &spec, NULL) || stk_spec_bytes(&spec, &bytes)) return;
    if (bytes > MAX_FRAMES * (size_t)MAX_ALLOC) return;
    void *dst = malloc(bytes ? bytes : 1);
    if (dst && mod_frames_copy(&frames, 1, dst, bytes, NULL)) abort();
    free(dst);
}

static void decode_whole(stk_decoder *decoder, stk_packets *packets)
{
    stk_frames *frames;
    stk_diag diag;
    if (!mod_decoder_decode(decoder, packets, true, &frames, &diag)) convert(frames);
    mod_frames_unref(&frames);
}

static void decode_parts(stk_decoder *decoder, stk_packets *packets)
{
    stk_frames *frames;
    stk_frames_info info = {.num_frames = 1};
    if (mod_decoder_put(decoder, packets, NULL) || mod_decoder_put(decoder, NULL, NULL)) abort();
    while (info.num_frames && !mod_decoder_next(decoder, 3, 1 << 20, &frames, NULL)) {
        mod_frames_get_info(frames, &info);
        convert(frames);
        mod_frames_unref(&frames);
    }
}

static void decode_some(stk_decoder *decoder, stk_packets *packets)
{
    static const size_t numbers[] = {0, 2, 3, 7};
    stk_frames *frames;
    if (!mod_decoder_pick(decoder, packets, numbers, 4, &frames, NULL)) convert(frames);
    mod_frames_unref(&frames);
}

/* The filters as a graph with an input that is described as these frames are. */
static void through_graph(const stk_frames *frames, const char *filter)
{
    stk_frames_info info;
    stk_filter_graph *graph;
    stk_frames *made;
    char text[MAX_TEXT + 200];
    mod_frames_get_info(frames, &info);
    if (info.media == STK_MEDIA_AUDIO)
        snprintf(text, sizeof(text),
                 "abuffer@a=sample_rate=%d:sample_fmt=%s:channels=%d,%s%sabuffersink",
                 info.sample_rate, info.sample_fmt, info.num_channels, filter, *filter ? "," : "");
    else
        snprintf(text, sizeof(text),
                 "buffer@a=video_size=%dx%d:pix_fmt=%s:time_base=1/25,%s%sbuffersink", info.width,
                 info.height, info.pix_fmt, filter, *filter ? "," : "");
    if (mod_filter_graph_new(text, &graph, NULL)) return;
    if (!mod_filter_graph_add(graph, NULL, frames, NULL) && !mod_filter_graph_flush(graph, NULL)) {
        if (!mod_filter_graph_get(graph, NULL, MAX_FRAMES, 1 << 24, &made, NULL)) convert(made);
        mod_frames_unref(&made);
    }
    mod_filter_graph_free(&graph);
}

static void decode_into_graph(stk_decoder *decoder, stk_packets *packets, const char *filter)
{
    stk_frames *frames;
    if (!mod_decoder_decode(decoder, packets, true, &frames, NULL)) through_graph(frames, filter);
    mod_frames_unref(&frames);
}

/* What is written is read back the same. */
static void store(stk_packets *packets)
{
    stk_buffer *bytes, *again;
    stk_packets *read;
    if (mod_packets_write(packets, &bytes, NULL)) return;
    if (mod_packets_read(bytes, &read, NULL) || mod_packets_write(read, &again, NULL)) abort();
    if (stk_buffer_size(bytes) != stk_buffer_size(again) ||
        memcmp(stk_buffer_data(bytes), stk_buffer_data(again), stk_buffer_size(bytes)) != 0)
        abort();
    mod_packets_unref(&read);
    stk_buffer_unref(&again);
    stk_buffer_unref(&bytes);
}

static void decode(const choices *c, stk_packets *packets, stk_av_codec *codec)
{
    stk_decoder *decoder;
    stk_diag diag;
    const bool graph = c->way == WAY_GRAPH;
    const stk_decode_opts opts = {.options = c->decoder_options,
                                  .filter = graph ? NULL : c->filter,
                                  .strict = c->strict,
                                  .max_frames = MAX_FRAMES,
                                  .max_pixels = 1 << 18,
                                  .join = c->way == WAY_WHOLE};
    if (c->way == WAY_STORE) store(packets);
    if (!codec || mod_decoder_new(codec, &opts, &decoder, &diag)) return;
    if (graph)
        decode_into_graph(decoder, packets, c->filter);
    else if (c->way == WAY_PARTS)
        decode_parts(decoder, packets);
    else if (c->way == WAY_SOME)
        decode_some(decoder, packets);
    else
        decode_whole(decoder, packets);
    mod_decoder_free(&decoder);
}

/* --- where packets come from --- */

/* The best stream, or what the window needs of it. */
static void read_best(const choices *c, stk_demuxer *d)
{
    stk_packets *packets;
    stk_diag diag;
    const char *bsf = *c->bsf ? c->bsf : NULL;
    if (mod_demuxer_read(d, c->media, c->windowed ? &c->window : NULL, bsf, &packets, &diag))
        return;
    stk_av_codec *codec = mod_packets_codec(packets);
    if (c->way != WAY_DEMUX) decode(c, packets, codec);
    mod_av_codec_unref(&codec);
    mod_packets_unref(&packets);
}

static void decode_part(const choices *c, stk_packets *part, stk_av_codec *codec, stk_bsf *bsf)
{
    stk_packets *made;
    if (!bsf) {
        decode(c, part, codec);
    }
    else if (!mod_bsf_filter(bsf, part, c->strict, &made, NULL)) {
        decode(c, made, codec);
        mod_packets_unref(&made);
    }
}

/* Streams in parts, of which the first is decoded. */
static void read_parts(const choices *c, stk_demuxer *d)
{
    enum { STREAMS = 3 };
    static const int numbers[STREAMS] = {0, 1, 2};
    const int has = mod_demuxer_num_streams(d);
    const size_t n = (size_t)(has < STREAMS ? has : STREAMS);
    stk_packets *parts[STREAMS];
    stk_av_codec *codec;
    stk_bsf *bsf = NULL;
    if (!n || mod_demuxer_codec(d, 0, STK_MEDIA_NONE, &codec, NULL)) return;
    const bool wrong = *c->bsf && mod_bsf_new(codec, c->bsf, &bsf, NULL);
    for (int i = 0; i < 3 && !wrong; i++) {
        if (mod_demuxer_next(d, numbers, n, c->window.start, 5, parts, NULL)) break;
        if (parts[0]) decode_part(c, parts[0], codec, bsf);
        for (size_t k = 0; k < n; k++) mod_packets_unref(&parts[k]);
    }
    mod_bsf_free(&bsf);
    mod_av_codec_unref(&codec);
}

/* Clips that overlap, and one that goes back. */
static void read_clips(const choices *c, stk_demuxer *d)
{
    static const size_t frames[] = {3, 4, 5, 1, 2, 3, 7}, lengths[] = {3, 3, 1};
    const stk_decode_opts opts = {.options = c->decoder_options,
                                  .filter = c->filter,
                                  .strict = c->strict,
                                  .max_pixels = 1 << 18};
    stk_video_reader *reader;
    stk_video_plan *plan;
    stk_buffer *clip;
    stk_spec spec;
    if (mod_video_reader_new(d, &opts, &reader, NULL)) return;
    if (!mod_video_plan_new(reader, frames, lengths, 3, 0, &plan, NULL)) {
        for (int i = 0; i < 3; i++) {
            (void)!mod_video_plan_next(plan, &spec, &clip, NULL);
            stk_buffer_unref(&clip);
        }
        mod_video_plan_free(&plan);
    }
    mod_video_reader_free(&reader);
}

static void look(stk_demuxer *d)
{
    stk_demuxer_info info;
    stk_stream_info stream;
    mod_demuxer_get_info(d, &info);
    for (int i = 0; i < mod_demuxer_num_streams(d); i++)
        if (mod_demuxer_stream_info(d, i, &stream, NULL)) abort();
}

/* A pipe: it cannot seek, and gives few bytes at a time. */
static int64_t trickle(void *ctx, uint8_t *dst, size_t n)
{
    rest *from = ctx;
    const size_t some = 1 + from->size % 509;
    if (n > some) n = some;
    if (n > from->size) n = from->size;
    memcpy(dst, from->data, n);
    from->data += n;
    from->size -= n;
    return (int64_t)n;
}

static void demux(const choices *c, stk_buffer *bytes)
{
    rest pipe = c->input;
    const stk_av_reader reader = {.read = trickle, .ctx = &pipe};
    const stk_av_input input = {.bytes = c->pipe ? NULL : bytes,
                                .reader = c->pipe ? &reader : NULL};
    const stk_demux_opts opts = {.format = c->format,
                                 .options = c->demuxer_options,
                                 .timeout = INT64_C(2000000000),
                                 .max_bytes = 1 << 20};
    stk_demuxer *d;
    stk_diag diag;
    if (mod_demuxer_open(&input, &opts, &d, &diag)) return;
    look(d);
    if (c->way == WAY_CLIPS)
        read_clips(c, d);
    else if (c->media == STK_MEDIA_NONE)
        read_parts(c, d);
    else
        read_best(c, d);
    mod_demuxer_free(&d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static bool started;
    stk_buffer *bytes;
    stk_packets *packets;
    choices c;
    if (!started) stk_av_call_start();
    if (!started) av_max_alloc(MAX_ALLOC); /* sizes that data claims cost no time */
    started = true;
    if (!choose(data, size, &c) || stk_buffer_new(c.input.size, &bytes)) return 0;
    if (c.input.size) memcpy(stk_buffer_writable(bytes), c.input.data, c.input.size);
    if (!c.stored) {
        demux(&c, bytes);
    }
    else if (!mod_packets_read(bytes, &packets, NULL)) {
        stk_av_codec *codec = mod_packets_codec(packets);
        decode(&c, packets, codec);
        mod_av_codec_unref(&codec);
        mod_packets_unref(&packets);
    }
    stk_buffer_unref(&bytes);
    return 0;
}
