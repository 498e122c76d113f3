/* The module's functions from bytes to an array, with every allocation of ours failing in turn. */
#include <string.h>
#include <unistd.h>

#include "av/decoder.h"
#include "av/module.h"
#include "base/alloc.h"
#include "tests/check.h"

enum { SAMPLES = 1000, HEADER = 44 };

/* 16 bits, one channel, 8 kHz: sample i is i. */
static void make_wav(uint8_t wav[HEADER + 2 * SAMPLES])
{
    static const uint8_t head[HEADER] = {'R',  'I',  'F', 'F', 0xF4, 0x07, 0, 0, 'W', 'A', 'V', 'E',
                                         'f',  'm',  't', ' ', 16,   0,    0, 0, 1,   0,   1,   0,
                                         0x40, 0x1F, 0,   0,   0x80, 0x3E, 0, 0, 2,   0,   16,  0,
                                         'd',  'a',  't', 'a', 0xD0, 0x07, 0, 0};
    memcpy(wav, head, HEADER);
    for (int i = 0; i < SAMPLES; i++) {
        wav[HEADER + 2 * i] = (uint8_t)i;
        wav[HEADER + 2 * i + 1] = (uint8_t)(i >> 8);
    }
}

static stk_buffer *wav_buffer(void)
{
    static bool started;
    stk_buffer *buf;
    if (!started) stk_av_call_start();
    started = true;
    CHECK_EQ(stk_buffer_new(HEADER + 2 * SAMPLES, &buf), STK_OK);
    make_wav(stk_buffer_writable(buf));
    return buf;
}

static stk_err read_packets(stk_buffer *bytes, const stk_window *window, stk_packets **out,
                            stk_diag *diag)
{
    stk_demuxer *d;
    *out = NULL;
    stk_err err = mod_demuxer_open(&(stk_av_input){.bytes = bytes}, NULL, &d, diag);
    if (err) return err;
    err = mod_demuxer_read(d, STK_MEDIA_AUDIO, window, NULL, out, diag);
    mod_demuxer_free(&d);
    return err;
}

static stk_err decode(stk_packets *packets, const char *filter, stk_frames **out, stk_diag *diag)
{
    stk_decoder *d;
    *out = NULL;
    stk_av_codec *codec = mod_packets_codec(packets);
    stk_err err = mod_decoder_new(codec, &(stk_decode_opts){.filter = filter}, &d, diag);
    mod_av_codec_unref(&codec);
    if (err) return err;
    err = mod_decoder_decode(d, packets, true, out, diag);
    mod_decoder_free(&d);
    return err;
}

static void bytes_to_array(void)
{
    stk_buffer *wav = wav_buffer();
    stk_packets *packets;
    stk_frames *frames;
    stk_spec spec;
    stk_diag diag;
    int16_t array[SAMPLES];
    const stk_window window = {{1, 80}, {1, 40}}; /* samples 100 to 199 */

    CHECK_EQ(read_packets(wav, NULL, &packets, &diag), STK_OK);
    CHECK_EQ(decode(packets, NULL, &frames, &diag), STK_OK);
    const stk_frames *one = frames;
    CHECK_EQ(mod_frames_spec(&one, 1, false, &spec, &diag), STK_OK);
    CHECK_EQ(spec.shape[0], SAMPLES);
    CHECK_EQ(spec.shape[1], 1);
    CHECK_EQ(spec.dtype, STK_INT16);
    CHECK_EQ(mod_frames_copy(&one, 1, array, sizeof(array), &diag), STK_OK);
    for (int i = 0; i < SAMPLES; i++) CHECK_EQ(array[i], i);
    CHECK_EQ(mod_frames_copy(&one, 1, array, sizeof(array) - 2, &diag), STK_EINVAL);
    mod_frames_unref(&frames);
    mod_packets_unref(&packets);

    CHECK_EQ(read_packets(wav, &window, &packets, &diag), STK_OK);
    CHECK_EQ(decode(packets, "atrim=start=0.0125:end=0.025", &frames, &diag), STK_OK);
    one = frames;
    CHECK_EQ(mod_frames_copy(&one, 1, array, 200, &diag), STK_OK);
    for (int i = 0; i < 100; i++) CHECK_EQ(array[i], 100 + i);
    mod_frames_unref(&frames);
    mod_packets_unref(&packets);
    stk_buffer_unref(&wav);
}

/* All the frames of a decoder in which packets wait, counted. */
static stk_err decode_parts(stk_decoder *d, size_t max_frames, size_t *parts, size_t *frames,
                            stk_diag *diag)
{
    stk_err err;
    stk_frames *some;
    stk_frames_info info = {.num_frames = 1};
    *parts = *frames = 0;
    while (info.num_frames) {
        err = mod_decoder_next(d, max_frames, 0, &some, diag);
        if (err) return err;
        mod_frames_get_info(some, &info);
        mod_frames_unref(&some);
        *frames += info.num_frames;
        *parts += info.num_frames > 0;
    }
    return STK_OK;
}

static void in_parts(void)
{
    enum { TIMES = 3 };
    stk_buffer *wav = wav_buffer();
    stk_packets *packets;
    stk_decoder *d;
    stk_frames *frames;
    stk_diag diag;
    size_t n, parts, all;
    CHECK_EQ(read_packets(wav, NULL, &packets, &diag), STK_OK);
    const size_t each = packets->n;
    CHECK_EQ(mod_decoder_new(packets->codec, NULL, &d, &diag), STK_OK);

    for (int i = 0; i < TIMES; i++) CHECK_EQ(mod_decoder_put(d, packets, &diag), STK_OK);
    CHECK_EQ(decode_parts(d, 1, &parts, &all, &diag), STK_OK);
    CHECK_EQ(all, TIMES * each);
    CHECK_EQ(parts, all);

    for (int i = 0; i < TIMES; i++) { /* none from both sides of an end */
        CHECK_EQ(mod_decoder_put(d, packets, &diag), STK_OK);
        CHECK_EQ(mod_decoder_put(d, NULL, &diag), STK_OK);
        CHECK_EQ(mod_decoder_put(d, NULL, &diag), STK_OK);
    }
    CHECK_EQ(decode_parts(d, 0, &parts, &all, &diag), STK_OK);
    CHECK_EQ(all, TIMES * each);
    CHECK_EQ(parts, TIMES);

    for (n = 0; !mod_decoder_put(d, packets, &diag); n++) continue;
    CHECK_EQ(n, STK_DECODER_WAITING);
    CHECK_EQ(diag.err, STK_ELIMIT);
    CHECK_EQ(mod_decoder_decode(d, NULL, true, &frames, &diag), STK_OK); /* an end fits */
    CHECK_EQ(frames->n, n * each);
    mod_frames_unref(&frames);
    mod_decoder_free(&d);
    mod_packets_unref(&packets);
    stk_buffer_unref(&wav);
}

static void one_user_at_a_time(void)
{
    stk_buffer *wav = wav_buffer();
    stk_packets *packets;
    stk_decoder *d;
    stk_frames *frames;
    stk_diag diag;
    CHECK_EQ(read_packets(wav, NULL, &packets, &diag), STK_OK);
    CHECK_EQ(mod_decoder_new(packets->codec, NULL, &d, &diag), STK_OK);
    CHECK(!atomic_flag_test_and_set(&d->busy));
    CHECK_EQ(mod_decoder_put(d, packets, &diag), STK_EAGAIN);
    CHECK_EQ(mod_decoder_next(d, 0, 0, &frames, &diag), STK_EAGAIN);
    CHECK(!frames);
    CHECK_EQ(mod_decoder_decode(d, packets, true, &frames, &diag), STK_EAGAIN);
    CHECK(!frames && strstr(diag.text, "another thread"));
    atomic_flag_clear(&d->busy);
    CHECK_EQ(mod_decoder_put(d, packets, &diag), STK_OK);
    mod_decoder_free(&d); /* with what waits */
    mod_packets_unref(&packets);
    stk_buffer_unref(&wav);
}

static void every_allocation_fails_in_parts(void)
{
    stk_buffer *wav = wav_buffer();
    stk_packets *packets;
    stk_err err;
    CHECK_EQ(read_packets(wav, NULL, &packets, NULL), STK_OK);
    TORTURE (err) {
        stk_decoder *d = NULL;
        size_t parts, frames;
        err = mod_decoder_new(packets->codec, &(stk_decode_opts){.filter = "anull"}, &d, NULL);
        if (!err) err = mod_decoder_put(d, packets, NULL);
        if (!err) err = mod_decoder_put(d, NULL, NULL);
        if (!err) err = decode_parts(d, 2, &parts, &frames, NULL);
        CHECK(!err || err == STK_ENOMEM);
        mod_decoder_free(&d);
    }
    mod_packets_unref(&packets);
    stk_buffer_unref(&wav);
}

static void every_allocation_fails(void)
{
    stk_buffer *wav = wav_buffer();
    stk_err err;
    TORTURE (err) {
        stk_packets *packets = NULL, *again = NULL;
        stk_frames *frames = NULL, *some = NULL;
        stk_buffer *bytes = NULL;
        err = read_packets(wav, NULL, &packets, NULL);
        if (!err) err = mod_packets_write(packets, &bytes, NULL);
        if (!err) err = mod_packets_read(bytes, &again, NULL);
        if (!err) err = decode(again, "anull", &frames, NULL);
        if (!err) err = mod_frames_pick(frames, &(size_t){0}, 1, STK_MEDIA_NONE, &some, NULL);
        CHECK(!err || err == STK_ENOMEM);
        mod_packets_unref(&packets);
        mod_packets_unref(&again);
        mod_frames_unref(&frames);
        mod_frames_unref(&some);
        stk_buffer_unref(&bytes);
    }
    stk_buffer_unref(&wav);
}

static void cut_at_every_byte(void)
{
    stk_buffer *wav = wav_buffer(), *part;
    for (size_t n = 0; n < HEADER + 20; n++) {
        stk_packets *packets;
        CHECK_EQ(stk_buffer_slice(wav, 0, n, &part), STK_OK);
        const stk_err err = read_packets(part, NULL, &packets, NULL);
        CHECK(!err || err == STK_ECORRUPT || err == STK_ENOTFOUND || err == STK_EUNSUPPORTED);
        mod_packets_unref(&packets);
        stk_buffer_unref(&part);
    }
    stk_buffer_unref(&wav);
}

static void serialized_packets_are_checked(void)
{
    stk_buffer *wav = wav_buffer(), *bytes, *part;
    stk_packets *packets, *again;
    CHECK_EQ(read_packets(wav, NULL, &packets, NULL), STK_OK);
    CHECK_EQ(mod_packets_write(packets, &bytes, NULL), STK_OK);
    for (size_t n = 0; n < stk_buffer_size(bytes); n++) {
        CHECK_EQ(stk_buffer_slice(bytes, 0, n, &part), STK_OK);
        CHECK_EQ(mod_packets_read(part, &again, NULL), STK_ECORRUPT);
        CHECK(!again);
        stk_buffer_unref(&part);
    }
    for (size_t i = 0; i < stk_buffer_size(bytes); i++) {
        uint8_t *byte = stk_buffer_writable(bytes) + i;
        *byte ^= 0x81;
        if (!mod_packets_read(bytes, &again, NULL)) mod_packets_unref(&again);
        *byte ^= 0x81;
    }
    mod_packets_unref(&packets);
    stk_buffer_unref(&bytes);
    stk_buffer_unref(&wav);
}

static int64_t no_more(void *ctx, uint8_t *dst, size_t n)
{
    (void)ctx;
    (void)dst;
    (void)n;
    return -1;
}

static void closes(void *ctx)
{
    ++*(int *)ctx;
}

static void a_reader_is_closed_once(void)
{
    int closed = 0;
    stk_demuxer *d;
    const stk_av_reader reader = {.read = no_more, .close = closes, .ctx = &closed};
    stk_diag diag;
    CHECK_EQ(mod_demuxer_open(&(stk_av_input){.reader = &reader}, NULL, &d, &diag), STK_EIO);
    CHECK(!d);
    CHECK_EQ(closed, 1);
    CHECK_EQ(mod_demuxer_open(&(stk_av_input){.reader = &reader, .url = "x"}, NULL, &d, &diag),
             STK_EINVAL);
    CHECK_EQ(closed, 2);
}

static void windows_in_ticks(void)
{
    const AVRational tb = {1, 90000};
    CHECK_EQ(stk_ticks((stk_ratio){1, 3}, tb), 30000);
    CHECK_EQ(stk_ticks((stk_ratio){100001, 300000}, tb), 30001); /* 30000.3: the next one */
    CHECK_EQ(stk_ticks((stk_ratio){-100001, 300000}, tb), -30000);
    CHECK_EQ(stk_ticks((stk_ratio){INT64_MAX, 1}, tb), INT64_MAX);
    CHECK_EQ(stk_ticks((stk_ratio){-INT64_MAX, 1}, tb), INT64_MIN + 1);
    CHECK_EQ(stk_ticks((stk_ratio){1, INT64_MAX}, tb), 1);
    CHECK_EQ(stk_window_check(&(stk_window){{1, 2}, {1, 3}}, NULL), STK_EINVAL);
    CHECK_EQ(stk_window_check(&(stk_window){{1, 0}, {1, 3}}, NULL), STK_EINVAL);
    CHECK_EQ(stk_window_check(&(stk_window){{1, 3}, {1, 2}}, NULL), STK_OK);
}

static void cancelled(void)
{
    stk_buffer *wav = wav_buffer();
    stk_demuxer *d;
    stk_diag diag;
    CHECK_EQ(mod_demuxer_open(&(stk_av_input){.bytes = wav}, NULL, &d, &diag), STK_OK);
    stk_packets *packets;
    mod_demuxer_cancel(d);
    CHECK_EQ(mod_demuxer_read(d, STK_MEDIA_AUDIO, NULL, NULL, &packets, &diag), STK_ECANCELLED);
    CHECK(strstr(diag.text, "cancelled"));
    mod_demuxer_free(&d);
    stk_buffer_unref(&wav);
}

static bool count_to_three(void *ctx)
{
    return ++*(int *)ctx >= 3;
}

static void interrupted(void)
{
    int ends[2], asked = 0;
    stk_demuxer *d;
    stk_diag diag;
    const stk_demux_opts opts = {.timeout = STK_FOREVER, .interrupt = {count_to_three, &asked}};
    stk_buffer *wav = wav_buffer(); /* starts what the module needs */
    CHECK_EQ(pipe(ends), 0);
    CHECK_EQ(mod_demuxer_open(&(stk_av_input){.fd = &ends[0]}, &opts, &d, &diag), STK_ECANCELLED);
    CHECK_EQ(asked, 3);
    CHECK(!d);
    close(ends[0]);
    close(ends[1]);
    stk_buffer_unref(&wav);
}

static void streams(void)
{
    stk_buffer *wav = wav_buffer();
    stk_demuxer *d;
    stk_demuxer_info info;
    stk_stream_info stream;
    stk_packets *packets;
    stk_packets_info counts;
    stk_diag diag;
    CHECK_EQ(mod_demuxer_open(&(stk_av_input){.bytes = wav}, NULL, &d, &diag), STK_OK);
    mod_demuxer_get_info(d, &info);
    CHECK(!strcmp(info.format, "wav"));
    CHECK_EQ(info.duration.num * 8, info.duration.den); /* 1000 samples of 8 kHz */
    CHECK_EQ(mod_demuxer_stream_info(d, 0, &stream, &diag), STK_OK);
    CHECK_EQ(stream.media, STK_MEDIA_AUDIO);
    CHECK(!strcmp(stream.kind, "audio") && !strcmp(stream.codec, "pcm_s16le"));
    CHECK(!*stream.language);
    CHECK_EQ(stream.duration.num * 8, stream.duration.den);
    CHECK_EQ(mod_demuxer_stream_info(d, 1, &stream, &diag), STK_ENOTFOUND);
    CHECK(!*stream.kind && strstr(diag.text, "there is no stream 1, of 1"));
    CHECK_EQ(mod_demuxer_stream_info(d, -1, &stream, &diag), STK_ENOTFOUND);
    CHECK_EQ(mod_demuxer_read(d, STK_MEDIA_AUDIO, NULL, NULL, &packets, &diag), STK_OK);
    mod_packets_get_info(packets, &counts);
    CHECK(counts.total > 0);
    CHECK_EQ(counts.keys, counts.total);
    mod_packets_unref(&packets);
    mod_demuxer_free(&d);
    stk_buffer_unref(&wav);
}

TESTS(TEST(bytes_to_array), TEST(streams), TEST(every_allocation_fails), TEST(cut_at_every_byte),
      TEST(serialized_packets_are_checked), TEST(a_reader_is_closed_once), TEST(windows_in_ticks),
      TEST(cancelled), TEST(interrupted), TEST(in_parts), TEST(one_user_at_a_time),
      TEST(every_allocation_fails_in_parts))
