/* From an array to a file and back, with every allocation of ours failing in turn. */
#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "av/call.h"
#include "av/module.h"
#include "base/alloc.h"
#include "tests/check.h"

enum { SAMPLES = 5000, WIDTH = 16, HEIGHT = 8, PICTURES = 3 };

static char folder[] = "/tmp/stoker-encode-XXXXXX";
static char wav[64];

static void begin(void)
{
    static bool begun;
    if (begun) return;
    begun = true;
    stk_av_call_start();
    CHECK(mkdtemp(folder));
    snprintf(wav, sizeof(wav), "%s/a.wav", folder);
}

static stk_buffer *samples(void)
{
    stk_buffer *mem;
    CHECK_EQ(stk_buffer_new(SAMPLES * sizeof(int16_t), &mem), STK_OK);
    int16_t *at = (int16_t *)(void *)stk_buffer_writable(mem);
    for (int i = 0; i < SAMPLES; i++) at[i] = (int16_t)i;
    return mem;
}

static stk_av_array array_of(stk_buffer *mem)
{
    const stk_spec spec = {.dtype = STK_INT16, .ndim = 2, .shape = {SAMPLES, 1}};
    return (stk_av_array){.media = STK_MEDIA_AUDIO,
                          .view = stk_tensor_over((void *)stk_buffer_data(mem), &spec),
                          .mem = mem,
                          .format = "s16",
                          .rate = {8000, 1}};
}

static const stk_encode_opts pcm = {.media = STK_MEDIA_AUDIO,
                                    .format = "s16",
                                    .sample_rate = 8000,
                                    .num_channels = 1,
                                    .bit_rate = STK_ENCODER_OWN,
                                    .compression_level = STK_ENCODER_OWN,
                                    .qscale = STK_ENCODER_OWN};

static stk_err write_file(const char *path, const stk_encode_opts *opts, const stk_frames *frames,
                          stk_diag *diag)
{
    stk_muxer *m = NULL;
    stk_encoder *e = NULL;
    stk_packets *packets = NULL;
    stk_err err = mod_muxer_new(path, NULL, &m, diag);
    if (!err) err = mod_muxer_add_encoder(m, opts, &e, diag);
    if (!err) err = mod_muxer_open(m, NULL, diag);
    if (!err) err = mod_encoder_encode(e, frames, true, &packets, diag);
    if (!err) err = mod_muxer_write(m, 0, packets, diag);
    if (!err) err = mod_muxer_close(m, diag);
    mod_packets_unref(&packets);
    mod_encoder_free(&e);
    mod_muxer_free(&m);
    return err;
}

static void check_wav(void)
{
    stk_demuxer *d;
    stk_decoder *decoder;
    stk_packets *packets;
    stk_frames *frames;
    int16_t back[SAMPLES];
    CHECK_EQ(mod_demuxer_open(&(stk_av_input){.url = wav}, NULL, &d, NULL), STK_OK);
    CHECK_EQ(mod_demuxer_read(d, STK_MEDIA_AUDIO, NULL, NULL, &packets, NULL), STK_OK);
    stk_av_codec *codec = mod_packets_codec(packets);
    CHECK_EQ(mod_decoder_new(codec, NULL, &decoder, NULL), STK_OK);
    CHECK_EQ(mod_decoder_decode(decoder, packets, true, &frames, NULL), STK_OK);
    const stk_frames *one = frames;
    CHECK_EQ(mod_frames_copy(&one, 1, back, sizeof(back), NULL), STK_OK);
    for (int i = 0; i < SAMPLES; i++) CHECK_EQ(back[i], i);
    mod_frames_unref(&frames);
    mod_packets_unref(&packets);
    mod_decoder_free(&decoder);
    mod_av_codec_unref(&codec);
    mod_demuxer_free(&d);
}

static void array_to_file(void)
{
    begin();
    stk_buffer *mem = samples();
    const stk_av_array array = array_of(mem);
    stk_frames *frames;
    CHECK_EQ(mod_frames_over(&array, &frames, NULL), STK_OK);
    stk_buffer_unref(&mem); /* the frames keep it */
    CHECK_EQ(write_file(wav, &pcm, frames, NULL), STK_OK);
    mod_frames_unref(&frames);
    check_wav();
    CHECK_EQ(unlink(wav), 0);
}

static void every_allocation_fails(void)
{
    begin();
    stk_buffer *mem = samples();
    const stk_av_array array = array_of(mem);
    stk_err err;
    TORTURE (err) {
        stk_frames *frames = NULL;
        err = mod_frames_over(&array, &frames, NULL);
        if (!err) err = write_file(wav, &pcm, frames, NULL);
        CHECK(!err || err == STK_ENOMEM);
        mod_frames_unref(&frames);
    }
    stk_buffer_unref(&mem);
    check_wav();
    CHECK_EQ(unlink(wav), 0);
}

static stk_err over(const char *format, stk_spec spec, stk_frames **out, stk_diag *diag)
{
    static uint8_t bytes[PICTURES * WIDTH * HEIGHT * 16];
    stk_buffer *mem;
    CHECK_EQ(stk_buffer_wrap(bytes, sizeof(bytes), NULL, NULL, &mem), STK_OK);
    const stk_av_array array = {.media = STK_MEDIA_VIDEO,
                                .view = stk_tensor_over(bytes, &spec),
                                .mem = mem,
                                .format = format,
                                .rate = {25, 1}};
    const stk_err err = mod_frames_over(&array, out, diag);
    stk_buffer_unref(&mem);
    return err;
}

static void pictures_of_all_shapes(void)
{
    static const struct {
        const char *format;
        stk_spec spec;
    } good[] = {
        {"rgb24", {STK_UINT8, 4, {PICTURES, HEIGHT, WIDTH, 3}}},
        {"gray", {STK_UINT8, 3, {PICTURES, HEIGHT, WIDTH}}},
        {"gray8", {STK_UINT8, 4, {PICTURES, HEIGHT, WIDTH, 1}}},
        {"gray16", {STK_UINT16, 3, {PICTURES, HEIGHT, WIDTH}}},
        {"gray16be", {STK_UINT16, 4, {PICTURES, 1, HEIGHT, WIDTH}}},
        {"yuv444p", {STK_UINT8, 4, {PICTURES, 3, HEIGHT, WIDTH}}},
        {"yuv420p", {STK_UINT8, 4, {PICTURES, 1, HEIGHT / 2 * 3, WIDTH}}},
        {"nv12", {STK_UINT8, 4, {PICTURES, 1, HEIGHT / 2 * 3, WIDTH}}},
        {"yuv422p", {STK_UINT8, 4, {PICTURES, 1, HEIGHT * 2, WIDTH}}},
        {"yuyv422", {STK_UINT8, 4, {PICTURES, HEIGHT, WIDTH, 2}}},
        {"gbrpf32le", {STK_FLOAT32, 4, {PICTURES, 3, HEIGHT, WIDTH}}},
    };
    begin();
    for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
        stk_frames *frames;
        stk_frames_info info;
        stk_spec back;
        stk_diag diag;
        CHECK_EQ(over(good[i].format, good[i].spec, &frames, &diag), STK_OK);
        mod_frames_get_info(frames, &info);
        CHECK_EQ(info.width, WIDTH);
        CHECK_EQ(info.height, HEIGHT);
        CHECK_EQ(info.num_frames, PICTURES);
        const stk_frames *one = frames;
        CHECK_EQ(mod_frames_spec(&one, 1, false, &back, &diag), STK_OK);
        if (good[i].spec.ndim == 4) CHECK(stk_spec_equal(&back, &good[i].spec));
        mod_frames_unref(&frames);
    }
}

static void arrays_that_are_none(void)
{
    static const struct {
        const char *format;
        stk_spec spec;
    } bad[] = {
        {"rgb24", {STK_UINT8, 3, {HEIGHT, WIDTH, 3}}},
        {"rgb24", {STK_UINT8, 4, {PICTURES, HEIGHT, WIDTH, 4}}},
        {"rgb24", {STK_UINT16, 4, {PICTURES, HEIGHT, WIDTH, 3}}},
        {"rgb24", {STK_UINT8, 4, {PICTURES, 0, WIDTH, 3}}},
        {"rgb24", {STK_UINT8, 4, {0, HEIGHT, WIDTH, 3}}},
        {"yuv444p", {STK_UINT8, 4, {PICTURES, HEIGHT, WIDTH, 3}}},
        {"yuv420p", {STK_UINT8, 4, {PICTURES, 1, HEIGHT + 2, WIDTH}}},
        {"nonsense", {STK_UINT8, 4, {PICTURES, HEIGHT, WIDTH, 3}}},
        {"monow", {STK_UINT8, 4, {PICTURES, HEIGHT, WIDTH, 1}}},
    };
    begin();
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        stk_frames *frames;
        stk_diag diag;
        CHECK_EQ(over(bad[i].format, bad[i].spec, &frames, &diag), STK_EINVAL);
        CHECK(!frames && diag.text[0]);
    }
}

static void wrong_order(void)
{
    begin();
    stk_muxer *m;
    stk_encoder *e;
    stk_packets *packets;
    stk_diag diag;
    stk_buffer *mem = samples();
    const stk_av_array array = array_of(mem);
    stk_frames *frames;
    CHECK_EQ(mod_muxer_new("x.nonsense", NULL, &m, &diag), STK_EINVAL);
    CHECK_EQ(mod_muxer_new(wav, NULL, &m, &diag), STK_OK);
    CHECK_EQ(mod_muxer_open(m, NULL, &diag), STK_EINVAL); /* no stream */
    CHECK_EQ(mod_muxer_add_encoder(m, &pcm, &e, &diag), STK_OK);
    CHECK_EQ(mod_frames_over(&array, &frames, NULL), STK_OK);
    CHECK_EQ(mod_encoder_encode(e, frames, true, &packets, &diag), STK_OK);
    CHECK_EQ(mod_encoder_encode(e, frames, true, &(stk_packets *){NULL}, &diag), STK_EINVAL);
    CHECK_EQ(mod_muxer_write(m, 0, packets, &diag), STK_EINVAL);
    CHECK_EQ(mod_muxer_open(m, NULL, &diag), STK_OK);
    stk_av_codec *codec = mod_encoder_codec(e);
    CHECK_EQ(mod_muxer_add_codec(m, codec, &diag), STK_EINVAL);
    mod_av_codec_unref(&codec);
    CHECK_EQ(mod_muxer_write(m, 1, packets, &diag), STK_EINVAL);
    CHECK_EQ(mod_muxer_close(m, &diag), STK_OK);
    CHECK_EQ(mod_muxer_close(m, &diag), STK_OK);
    CHECK_EQ(mod_muxer_write(m, 0, packets, &diag), STK_EINVAL);
    mod_packets_unref(&packets);
    mod_frames_unref(&frames);
    stk_buffer_unref(&mem);
    mod_encoder_free(&e);
    mod_muxer_free(&m);
    CHECK_EQ(unlink(wav), 0);
    CHECK_EQ(rmdir(folder), 0);
}

static int free_port(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof(at);
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    CHECK_EQ(bind(fd, (struct sockaddr *)&at, size), 0);
    CHECK_EQ(getsockname(fd, (struct sockaddr *)&at, &size), 0);
    CHECK_EQ(close(fd), 0);
    return ntohs(at.sin_port);
}

static bool count_to_three(void *ctx)
{
    return ++*(int *)ctx >= 3;
}

static void nobody_connects(void)
{
    enum { LATE, UNWANTED, CANCELLED, WAYS };
    begin();
    for (int way = 0; way < WAYS; way++) {
        int asked = 0;
        char url[80];
        stk_muxer *m;
        stk_encoder *e;
        stk_diag diag;
        stk_mux_opts opts = {.format = "wav", .protocols = "tcp", .timeout = STK_FOREVER};
        snprintf(url, sizeof(url), "tcp://me:secret@127.0.0.1:%d?listen", free_port());
        if (way == LATE) opts.timeout = 1000000;
        if (way == UNWANTED) opts.interrupt = (stk_av_interrupt){count_to_three, &asked};
        CHECK_EQ(mod_muxer_new(url, &opts, &m, &diag), STK_OK);
        CHECK_EQ(mod_muxer_add_encoder(m, &pcm, &e, &diag), STK_OK);
        if (way == CANCELLED) mod_muxer_cancel(m);
        CHECK_EQ(mod_muxer_open(m, NULL, &diag), way == LATE ? STK_ETIMEOUT : STK_ECANCELLED);
        CHECK(strstr(diag.text, "tcp://127.0.0.1:") && !strstr(diag.text, "secret"));
        CHECK_EQ(asked, way == UNWANTED ? 3 : 0);
        CHECK_EQ(mod_muxer_close(m, &diag), STK_OK);
        mod_encoder_free(&e);
        mod_muxer_free(&m);
    }
}

typedef struct meeting {
    stk_muxer *m;
    stk_err closed;
    pthread_t opener;
    pthread_barrier_t asked, over;
} meeting;

static stk_muxer *to_nobody(stk_encoder **e, stk_av_interrupt interrupt)
{
    char url[80];
    stk_muxer *m;
    const stk_mux_opts opts = {
        .format = "wav", .protocols = "tcp", .timeout = STK_FOREVER, .interrupt = interrupt};
    snprintf(url, sizeof(url), "tcp://127.0.0.1:%d?listen", free_port());
    CHECK_EQ(mod_muxer_new(url, &opts, &m, NULL), STK_OK);
    CHECK_EQ(mod_muxer_add_encoder(m, &pcm, e, NULL), STK_OK);
    return m;
}

static bool close_it(void *ctx)
{
    meeting *at = ctx;
    stk_diag diag;
    at->closed = mod_muxer_close(at->m, &diag);
    CHECK(strstr(diag.text, "in use by this thread"));
    return false;
}

/* As a signal's handler does. */
static void closed_by_its_own_call(void)
{
    stk_encoder *e;
    stk_diag diag;
    meeting at = {0};
    begin();
    at.m = to_nobody(&e, (stk_av_interrupt){close_it, &at});
    CHECK_EQ(mod_muxer_open(at.m, NULL, &diag), STK_ECANCELLED);
    CHECK_EQ(at.closed, STK_EAGAIN);
    CHECK_EQ(mod_muxer_close(at.m, &diag), STK_OK);
    mod_encoder_free(&e);
    mod_muxer_free(&at.m);
}

/* The thread that opens stays here, whoever cancels it; the one that closes wants to go. */
static bool stay(void *ctx)
{
    meeting *at = ctx;
    if (!pthread_equal(at->opener, pthread_self())) return true;
    pthread_barrier_wait(&at->asked);
    pthread_barrier_wait(&at->over);
    return false;
}

static void *open_it(void *ctx)
{
    meeting *at = ctx;
    at->opener = pthread_self();
    CHECK_EQ(mod_muxer_open(at->m, NULL, NULL), STK_ECANCELLED);
    return NULL;
}

static void closing_that_waits_asks(void)
{
    stk_encoder *e;
    stk_diag diag;
    pthread_t thread;
    meeting at = {0};
    begin();
    at.m = to_nobody(&e, (stk_av_interrupt){stay, &at});
    pthread_barrier_init(&at.asked, NULL, 2);
    pthread_barrier_init(&at.over, NULL, 2);
    CHECK_EQ(pthread_create(&thread, NULL, open_it, &at), 0);
    pthread_barrier_wait(&at.asked);
    CHECK_EQ(mod_muxer_close(at.m, &diag), STK_ECANCELLED);
    CHECK(strstr(diag.text, "cannot close: tcp://127.0.0.1"));
    pthread_barrier_wait(&at.over);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(mod_muxer_close(at.m, &diag), STK_OK);
    pthread_barrier_destroy(&at.asked);
    pthread_barrier_destroy(&at.over);
    mod_encoder_free(&e);
    mod_muxer_free(&at.m);
}

TESTS(TEST(array_to_file), TEST(every_allocation_fails), TEST(pictures_of_all_shapes),
      TEST(arrays_that_are_none), TEST(nobody_connects), TEST(closed_by_its_own_call),
      TEST(closing_that_waits_asks), TEST(wrong_order))
