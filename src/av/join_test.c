/* Frames that are joined make the array that they make one by one, whatever their packets say. */
#include "av/join.h"

#include <libavutil/intreadwrite.h>

#include "av/module.h"
#include "base/alloc.h"
#include "tests/check.h"

enum { RATE = 8000, FRAMES = 7, MOST_BYTES = 1 << 18 };

static void start(void)
{
    static bool started;
    if (!started) stk_av_call_start();
    started = true;
}

/* Of any samples. */
static AVFrame *make_frame(enum AVSampleFormat format, int channels, int rate, int samples)
{
    static uint32_t word = 1;
    AVFrame *f = av_frame_alloc();
    CHECK(f);
    f->format = format;
    f->sample_rate = rate;
    f->nb_samples = samples ? samples : 1;
    f->pts = 5;
    av_channel_layout_default(&f->ch_layout, channels);
    CHECK_EQ(av_frame_get_buffer(f, 0), 0);
    const int rows = av_sample_fmt_is_planar(format) ? channels : 1;
    for (int r = 0; r < rows; r++)
        for (int k = 0; k < f->linesize[0]; k++) {
            word = word * 1664525 + 1013904223; /* Numerical Recipes */
            f->extended_data[r][k] = (uint8_t)(word >> 24);
        }
    f->nb_samples = samples;
    return f;
}

/* Frames of 100, 101... samples. */
static stk_frames *make_frames(enum AVSampleFormat format, int channels)
{
    stk_frames *frames;
    start();
    CHECK_EQ(stk_frames_make(STK_MEDIA_AUDIO, &frames), STK_OK);
    for (int i = 0; i < FRAMES; i++) {
        AVFrame *f = make_frame(format, channels, RATE, 100 + i);
        CHECK_EQ(stk_frames_add(frames, f), STK_OK);
        av_frame_free(&f);
    }
    return frames;
}

/* Packets that say that they last so many samples each. */
static stk_packets *make_packets(int64_t duration)
{
    stk_packets *packets;
    stk_av_codec *codec;
    AVPacket *p = av_packet_alloc();
    AVCodecParameters *par = avcodec_parameters_alloc();
    CHECK(p && par);
    par->codec_type = AVMEDIA_TYPE_AUDIO;
    par->sample_rate = RATE;
    const AVRational tb = {1, RATE};
    CHECK_EQ(stk_av_codec_make(STK_MEDIA_AUDIO, par, tb, (AVRational){0, 1}, &codec), STK_OK);
    CHECK_EQ(stk_packets_make(STK_MEDIA_AUDIO, codec, tb, NULL, "test", &packets), STK_OK);
    for (int i = 0; i < FRAMES; i++) {
        CHECK_EQ(av_new_packet(p, 1), 0);
        p->duration = duration;
        CHECK_EQ(stk_packets_add(packets, p), STK_OK);
        av_packet_unref(p);
    }
    mod_av_codec_unref(&codec);
    avcodec_parameters_free(&par);
    av_packet_free(&p);
    return packets;
}

static stk_err join_as(enum AVSampleFormat format, const stk_frames *frames,
                       const stk_packets *from, stk_frames **out)
{
    av_join j = {0};
    stk_av_call call;
    AVFrame *f = av_frame_alloc();
    CHECK(f);
    stk_err err = stk_frames_make(STK_MEDIA_AUDIO, out);
    stk_av_enter(&call, NULL);
    for (size_t i = 0; i < frames->n && !err; i++) {
        CHECK_EQ(av_frame_ref(f, frames->list[i]), 0);
        err = stk_frames_add(*out, f);
        if (!err) err = av_join_push(&j, *out, from, format, &call);
        av_frame_unref(f);
    }
    if (!err) err = av_join_end(&j, *out, &call);
    av_join_fini(&j);
    stk_av_leave(&call);
    av_frame_free(&f);
    return err;
}

static stk_err join(const stk_frames *frames, const stk_packets *from, stk_frames **out)
{
    return join_as(AV_SAMPLE_FMT_NONE, frames, from, out);
}

static void same_array(const stk_frames *a, const stk_frames *b)
{
    static uint8_t one[MOST_BYTES], other[MOST_BYTES];
    stk_spec spec, again;
    size_t bytes;
    CHECK_EQ(mod_frames_spec(&a, 1, false, &spec, NULL), STK_OK);
    CHECK_EQ(mod_frames_spec(&b, 1, false, &again, NULL), STK_OK);
    CHECK(stk_spec_equal(&spec, &again));
    CHECK_EQ(stk_spec_bytes(&spec, &bytes), STK_OK);
    CHECK(bytes && bytes <= MOST_BYTES);
    CHECK_EQ(mod_frames_copy(&a, 1, one, bytes, NULL), STK_OK);
    CHECK_EQ(mod_frames_copy(&b, 1, other, bytes, NULL), STK_OK);
    CHECK(!memcmp(one, other, bytes));
    stk_buffer *mem;
    CHECK_EQ(mod_frames_memory(a, &mem, NULL), STK_OK);
    CHECK(!mem);
    CHECK_EQ(mod_frames_memory(b, &mem, NULL), STK_OK);
    CHECK(mem && stk_buffer_size(mem) == bytes);
    CHECK(!memcmp(one, stk_buffer_data(mem), bytes));
    stk_buffer_unref(&mem);
}

static void joined(const stk_frames *frames, const stk_packets *from)
{
    stk_frames *one;
    CHECK_EQ(join(frames, from, &one), STK_OK);
    CHECK_EQ(one->n, 1);
    CHECK_EQ(one->list[0]->pts, 5);
    CHECK_EQ(one->bytes, frames->bytes);
    same_array(frames, one);
    mod_frames_unref(&one);
}

static void whatever_packets_say(void)
{
    static const int64_t durations[] = {103, 50, 1, 104, 110, 2000, 1 << 28, INT64_MAX, 0, -1};
    static const struct {
        enum AVSampleFormat format;
        int channels;
    } kinds[] = {{AV_SAMPLE_FMT_FLTP, 2},
                 {AV_SAMPLE_FMT_S16, 2},
                 {AV_SAMPLE_FMT_U8P, 1},
                 {AV_SAMPLE_FMT_DBLP, 6},
                 {AV_SAMPLE_FMT_S32P, 12}};
    for (size_t k = 0; k < sizeof(kinds) / sizeof(*kinds); k++) {
        stk_frames *frames = make_frames(kinds[k].format, kinds[k].channels);
        joined(frames, NULL);
        for (size_t i = 0; i < sizeof(durations) / sizeof(*durations); i++) {
            stk_packets *packets = make_packets(durations[i]);
            joined(frames, packets);
            mod_packets_unref(&packets);
        }
        mod_frames_unref(&frames);
    }
}

static void what_is_left_out_has_no_room(void)
{
    stk_frames *frames = make_frames(AV_SAMPLE_FMT_FLTP, 2);
    for (uint32_t begin = 0; begin <= 400; begin += 50) {
        stk_packets *packets = make_packets(110);
        uint8_t *data = av_packet_new_side_data(packets->list[0], AV_PKT_DATA_SKIP_SAMPLES, 10);
        CHECK(data);
        AV_WL32(data, begin);
        AV_WL32(data + 4, 7);
        joined(frames, packets);
        AV_WL32(data, UINT32_MAX);
        joined(frames, packets);
        mod_packets_unref(&packets);
    }
    mod_frames_unref(&frames);
}

static void others_begin_anew(void)
{
    stk_frames *frames, *made;
    stk_spec spec;
    stk_diag diag;
    start();
    CHECK_EQ(stk_frames_make(STK_MEDIA_AUDIO, &frames), STK_OK);
    AVFrame *all[] = {make_frame(AV_SAMPLE_FMT_FLTP, 2, RATE, 10),
                      make_frame(AV_SAMPLE_FMT_FLTP, 2, RATE, 0),
                      make_frame(AV_SAMPLE_FMT_FLTP, 2, RATE, 20),
                      make_frame(AV_SAMPLE_FMT_FLTP, 1, RATE, 30),
                      make_frame(AV_SAMPLE_FMT_FLTP, 1, 2 * RATE, 40),
                      make_frame(AV_SAMPLE_FMT_S16P, 1, 2 * RATE, 50),
                      make_frame(AV_SAMPLE_FMT_S16P, 1, 2 * RATE, 60)};
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
        CHECK_EQ(stk_frames_add(frames, all[i]), STK_OK);
        av_frame_free(&all[i]);
    }
    CHECK_EQ(join(frames, NULL, &made), STK_OK);
    CHECK_EQ(made->n, 4);
    static const int samples[] = {30, 30, 40, 110};
    for (size_t i = 0; i < made->n; i++) CHECK_EQ(made->list[i]->nb_samples, samples[i]);
    CHECK_EQ(mod_frames_spec((const stk_frames *const *)&made, 1, false, &spec, &diag), STK_EINVAL);
    CHECK(strstr(diag.text, "differ in number of channels"));
    mod_frames_unref(&made);
    mod_frames_unref(&frames);
}

/* As FFmpeg has it: -1 to 1. */
static float sample_of(const AVFrame *f, int channel, int at)
{
    const enum AVSampleFormat format = (enum AVSampleFormat)f->format;
    const bool planar = av_sample_fmt_is_planar(format);
    const int i = planar ? at : at * f->ch_layout.nb_channels + channel;
    const uint8_t *row = f->extended_data[planar ? channel : 0];
    switch (av_get_packed_sample_fmt(format)) {
    case AV_SAMPLE_FMT_U8: return (float)(row[i] - 128) / 128;
    case AV_SAMPLE_FMT_S16: return (float)((const int16_t *)(const void *)row)[i] / 32768;
    case AV_SAMPLE_FMT_S32: return (float)((const int32_t *)(const void *)row)[i] / 2147483648.0f;
    default: return ((const float *)(const void *)row)[i];
    }
}

static void check_samples(const stk_frames *frames, const AVFrame *one)
{
    int at = 0;
    for (size_t i = 0; i < frames->n; at += frames->list[i++]->nb_samples)
        for (int k = 0; k < frames->list[i]->nb_samples; k++)
            for (int c = 0; c < one->ch_layout.nb_channels; c++)
                CHECK(sample_of(one, c, at + k) == sample_of(frames->list[i], c, k));
    CHECK_EQ(one->nb_samples, at);
}

static void samples_are_converted(void)
{
    static const enum AVSampleFormat formats[] = {AV_SAMPLE_FMT_S16, AV_SAMPLE_FMT_S16P,
                                                  AV_SAMPLE_FMT_S32, AV_SAMPLE_FMT_U8P};
    static const enum AVSampleFormat targets[] = {AV_SAMPLE_FMT_FLTP, AV_SAMPLE_FMT_FLT};
    stk_packets *packets = make_packets(104);
    for (size_t i = 0; i < sizeof(formats) / sizeof(*formats); i++)
        for (int channels = 1; channels <= 8; channels += 1 + 2 * (channels > 1)) {
            stk_frames *frames = make_frames(formats[i], channels), *one;
            for (size_t k = 0; k < sizeof(targets) / sizeof(*targets); k++) {
                CHECK_EQ(join_as(targets[k], frames, packets, &one), STK_OK);
                CHECK_EQ(one->n, 1);
                CHECK_EQ(one->list[0]->format, targets[k]);
                CHECK_EQ(one->bytes,
                         frames->bytes * 4 / (size_t)av_get_bytes_per_sample(formats[i]));
                check_samples(frames, one->list[0]);
                mod_frames_unref(&one);
            }
            mod_frames_unref(&frames);
        }
    mod_packets_unref(&packets);
}

static void formats_that_change_become_one(void)
{
    stk_frames *frames, *one;
    start();
    CHECK_EQ(stk_frames_make(STK_MEDIA_AUDIO, &frames), STK_OK);
    AVFrame *all[] = {
        make_frame(AV_SAMPLE_FMT_S16, 2, RATE, 10), make_frame(AV_SAMPLE_FMT_S16P, 2, RATE, 20),
        make_frame(AV_SAMPLE_FMT_U8, 2, RATE, 30), make_frame(AV_SAMPLE_FMT_S16, 2, RATE, 40)};
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
        CHECK_EQ(stk_frames_add(frames, all[i]), STK_OK);
        av_frame_free(&all[i]);
    }
    CHECK_EQ(join_as(AV_SAMPLE_FMT_FLTP, frames, NULL, &one), STK_OK);
    CHECK_EQ(one->n, 1);
    check_samples(frames, one->list[0]);
    mod_frames_unref(&one);
    mod_frames_unref(&frames);
}

/* The filters know more of them. */
static void many_channels_stay(void)
{
    stk_frames *frames = make_frames(AV_SAMPLE_FMT_S32P, 12), *one;
    CHECK_EQ(join_as(AV_SAMPLE_FMT_FLTP, frames, NULL, &one), STK_OK);
    CHECK_EQ(one->list[0]->format, AV_SAMPLE_FMT_S32P);
    same_array(frames, one);
    mod_frames_unref(&one);
    mod_frames_unref(&frames);
}

/* Somebody else has the frame: its memory is not given away. */
static void what_is_shared_is_copied(void)
{
    stk_frames *frames = make_frames(AV_SAMPLE_FMT_FLTP, 2), *one, *picked;
    stk_buffer *mem;
    CHECK_EQ(join(frames, NULL, &one), STK_OK);
    CHECK_EQ(mod_frames_pick(one, &(size_t){0}, 1, STK_MEDIA_NONE, &picked, NULL), STK_OK);
    CHECK_EQ(mod_frames_memory(one, &mem, NULL), STK_OK);
    CHECK(!mem);
    mod_frames_unref(&picked);
    stk_frames *again = mod_frames_ref(one);
    CHECK_EQ(mod_frames_memory(one, &mem, NULL), STK_OK);
    CHECK(!mem);
    mod_frames_unref(&again);
    same_array(frames, one);
    mod_frames_unref(&one);
    mod_frames_unref(&frames);
}

static void every_allocation_fails(void)
{
    static const int64_t durations[] = {103, 50, 2000};
    stk_frames *frames = make_frames(AV_SAMPLE_FMT_S16P, 12);
    for (size_t i = 0; i < sizeof(durations) / sizeof(*durations); i++) {
        stk_packets *packets = make_packets(durations[i]);
        stk_err err;
        TORTURE (err) {
            stk_frames *one;
            err = join(frames, packets, &one);
            CHECK(!err || err == STK_ENOMEM);
            mod_frames_unref(&one);
        }
        mod_packets_unref(&packets);
    }
    mod_frames_unref(&frames);
    frames = make_frames(AV_SAMPLE_FMT_S16, 2);
    stk_err err;
    TORTURE (err) {
        stk_frames *one;
        err = join_as(AV_SAMPLE_FMT_FLTP, frames, NULL, &one);
        CHECK(!err || err == STK_ENOMEM);
        mod_frames_unref(&one);
    }
    mod_frames_unref(&frames);
}

TESTS(TEST(whatever_packets_say), TEST(what_is_left_out_has_no_room), TEST(others_begin_anew),
      TEST(samples_are_converted), TEST(formats_that_change_become_one), TEST(many_channels_stay),
      TEST(what_is_shared_is_copied), TEST(every_allocation_fails))
