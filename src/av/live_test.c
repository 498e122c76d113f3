/* Live input: a WAV file that comes through a pipe. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "av/call.h"
#include "av/frame_list.h"
#include "av/input.h"
#include "av/module.h"
#include "base/alloc.h"
#include "base/thread.h"
#include "tests/check.h"

enum { SAMPLES = 8000, HEADER = 44 };

/* FFmpeg is not built with the thread sanitizer, which then does not see that references to frames
 * are counted before one thread frees what another has read. */
const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void)
{
    return "race:libav\nrace:libsw\n";
}

static void begin(void)
{
    static bool begun;
    if (!begun) stk_av_call_start();
    begun = true;
    CHECK(signal(SIGPIPE, SIG_IGN) != SIG_ERR);
}

/* 16 bits, one channel, 8 kHz: sample i is i. */
static void write_wav(int fd, size_t samples)
{
    static const uint8_t head[HEADER] = {'R',  'I',  'F', 'F', 0xA4, 0x3E, 0, 0, 'W', 'A', 'V', 'E',
                                         'f',  'm',  't', ' ', 16,   0,    0, 0, 1,   0,   1,   0,
                                         0x40, 0x1F, 0,   0,   0x80, 0x3E, 0, 0, 2,   0,   16,  0,
                                         'd',  'a',  't', 'a', 0x80, 0x3E, 0, 0};
    uint8_t wav[HEADER + 2 * SAMPLES];
    memcpy(wav, head, HEADER);
    for (int i = 0; i < SAMPLES; i++) {
        wav[HEADER + 2 * i] = (uint8_t)i;
        wav[HEADER + 2 * i + 1] = (uint8_t)(i >> 8);
    }
    const size_t n = HEADER + 2 * samples; /* less than a pipe holds */
    CHECK_EQ(write(fd, wav, n), n);
}

static stk_err open_live(const int *fd, const stk_live_opts *opts, int64_t timeout, stk_live **out,
                         stk_diag *diag)
{
    const stk_demux_opts demux = {.format = "wav", .timeout = timeout};
    stk_live_opts all = *opts;
    all.media = STK_MEDIA_AUDIO;
    all.demux = &demux;
    return mod_live_open(&(stk_av_input){.fd = fd, .name = "a pipe"}, &all, out, diag);
}

/* The frames to their end, whose samples rise: how many samples. */
static stk_err read_all(stk_live *live, bool all, int64_t *samples, stk_diag *diag)
{
    stk_frames *f;
    stk_err err;
    int64_t next = 0;
    *samples = 0;
    while (!(err = mod_live_next(live, STK_FOREVER, &f, diag))) {
        const int16_t *data = (const int16_t *)(const void *)f->list[0]->data[0];
        CHECK_EQ(f->n, 1);
        CHECK(all ? data[0] == next : data[0] >= next);
        *samples += f->list[0]->nb_samples;
        next = data[0] + f->list[0]->nb_samples;
        mod_frames_unref(&f);
    }
    return err;
}

static void a_stream_to_its_end(void)
{
    for (int keep = 0; keep < 2; keep++) {
        int ends[2];
        stk_live *live;
        stk_diag diag;
        stk_live_stats s;
        int64_t samples;
        CHECK_EQ(pipe(ends), 0);
        write_wav(ends[1], SAMPLES);
        close(ends[1]);
        const stk_live_opts opts = {.queue = 2, .keep_all = keep};
        CHECK_EQ(open_live(&ends[0], &opts, 0, &live, &diag), STK_OK);
        close(ends[0]); /* it has a descriptor of its own */
        CHECK_EQ(read_all(live, keep, &samples, &diag), STK_EEND);
        CHECK(keep ? samples == SAMPLES : samples <= SAMPLES && samples > 0);
        mod_live_get_stats(live, &s);
        CHECK_EQ(s.received, s.delivered + s.dropped);
        CHECK_EQ(s.failed, 0);
        CHECK(s.max >= s.p50 && s.p50 > 0);
        if (keep) CHECK_EQ(s.dropped, 0);
        mod_live_free(&live);
        mod_live_free(&live);
    }
}

static void silence_ends_it(void)
{
    for (int sent = 0; sent < 2; sent++) {
        int ends[2];
        stk_live *live;
        stk_diag diag;
        int64_t samples;
        CHECK_EQ(pipe(ends), 0);
        if (sent) write_wav(ends[1], SAMPLES / 2);
        const int64_t timeout = sent ? 2000000000 : 20000000; /* the first includes the opening */
        CHECK_EQ(open_live(&ends[0], &(stk_live_opts){.keep_all = true}, timeout, &live, &diag),
                 STK_OK);
        for (int i = 0; i < 2; i++) {
            CHECK_EQ(read_all(live, true, &samples, &diag), STK_ETIMEOUT);
            CHECK(strstr(diag.text, sent ? "a pipe: nothing came for 2 s"
                                         : "a pipe: nothing came for 0.02 s"));
            CHECK(i || !sent == !samples);
        }
        mod_live_free(&live);
        close(ends[0]);
        close(ends[1]);
    }
}

static void *wait_for_a_frame(void *arg)
{
    stk_frames *f;
    while (!mod_live_next(arg, STK_FOREVER, &f, NULL)) mod_frames_unref(&f);
    return NULL;
}

/* In turn: before anything came, in the middle, and with a queue that is full. */
static void closing_ends_a_wait(void)
{
    for (int kind = 0; kind < 3; kind++) {
        int ends[2];
        stk_live *live;
        stk_diag diag;
        stk_frames *f;
        stk_thread reader = {0};
        CHECK_EQ(pipe(ends), 0);
        if (kind) write_wav(ends[1], SAMPLES);
        const stk_live_opts opts = {.queue = 1, .keep_all = kind == 2};
        CHECK_EQ(open_live(&ends[0], &opts, STK_FOREVER, &live, &diag), STK_OK);
        close(ends[0]);
        if (kind < 2) CHECK_EQ(stk_thread_start(&reader, "reader", wait_for_a_frame, live), STK_OK);
        mod_live_cancel(live);
        stk_thread_join(&reader);
        mod_live_close(live);
        CHECK_EQ(mod_live_next(live, STK_FOREVER, &f, &diag), STK_ECANCELLED);
        struct pollfd gone = {.fd = ends[1]};
        CHECK_EQ(poll(&gone, 1, 0), 1); /* nobody has the other end */
        CHECK(gone.revents & POLLERR);
        mod_live_close(live);
        mod_live_free(&live);
        close(ends[1]);
    }
}

static void what_is_wrong_is_said_at_once(void)
{
    stk_live *live;
    stk_diag diag;
    const int none = -1;
    const stk_demux_opts format = {.format = "no such thing"};
    CHECK_EQ(mod_live_open(&(stk_av_input){.url = "/nowhere/at all"}, NULL, &live, &diag),
             STK_ENOTFOUND);
    CHECK_EQ(mod_live_open(&(stk_av_input){.fd = &none}, NULL, &live, &diag), STK_EIO);
    CHECK_EQ(mod_live_open(&(stk_av_input){.url = "nfs://a/b"}, NULL, &live, &diag),
             STK_EUNSUPPORTED);
    CHECK(strstr(diag.text, "protocols"));
    CHECK_EQ(mod_live_open(&(stk_av_input){.url = "/dev/null"}, &(stk_live_opts){.demux = &format},
                           &live, &diag),
             STK_EUNSUPPORTED);
    CHECK_EQ(mod_live_open(&(stk_av_input){.url = "/dev/null"},
                           &(stk_live_opts){.media = STK_MEDIA_IMAGE}, &live, &diag),
             STK_EINVAL);
    CHECK_EQ(mod_live_open(&(stk_av_input){.url = "/dev/null"}, &(stk_live_opts){.queue = 1 << 20},
                           &live, &diag),
             STK_EINVAL);
    CHECK(!live);
}

static void addresses(void)
{
    static const struct {
        const char *url, *by;
    } cases[] = {{"udp://h:1", "udp"},    {"rtsp://u@h/x", "rtp,udp,tcp"},
                 {"/a/b", NULL},          {"a://b", ""},
                 {"pipe:0", NULL},        {"x/udp://h", NULL},
                 {"file:///dev/x", ""},   {"UDP://h", NULL},
                 {"://", NULL},           {"srtp://h", ""},
                 {"tcp://[::1]:5", "tcp"}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const char *by;
        const stk_err err = av_input_protocols(&(stk_av_input){.url = cases[i].url}, &by, NULL);
        CHECK_EQ(err, cases[i].by && !*cases[i].by ? STK_EUNSUPPORTED : STK_OK);
        CHECK(cases[i].by && *cases[i].by ? by && !strcmp(by, cases[i].by) : !by);
    }
}

static void a_child_leaves_it_alone(void)
{
    int ends[2], status;
    stk_live *live;
    stk_diag diag;
    stk_frames *f;
    int64_t samples;
    CHECK_EQ(pipe(ends), 0);
    CHECK_EQ(open_live(&ends[0], &(stk_live_opts){.keep_all = true}, 0, &live, &diag), STK_OK);
    const pid_t pid = fork();
    CHECK(pid >= 0);
    if (!pid) {
        const stk_err err = mod_live_next(live, STK_FOREVER, &f, NULL);
        mod_live_close(live);
        mod_live_free(&live);
        _exit(err == STK_EFORK ? 0 : 1);
    }
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK_EQ(status, 0);
    write_wav(ends[1], SAMPLES);
    close(ends[1]);
    CHECK_EQ(read_all(live, true, &samples, &diag), STK_EEND);
    CHECK_EQ(samples, SAMPLES);
    mod_live_free(&live);
    close(ends[0]);
}

static void without_memory(void)
{
    stk_err err;
    TORTURE (err) {
        int ends[2];
        stk_live *live;
        int64_t samples = 0;
        const char *const options[] = {"max_size", "4096", NULL};
        const stk_decode_opts codec = {.decoder = "pcm_s16le", .filter = "anull"};
        const stk_demux_opts demux = {.format = "wav", .options = options};
        const stk_live_opts opts = {
            .media = STK_MEDIA_AUDIO, .demux = &demux, .codec = &codec, .keep_all = true};
        CHECK_EQ(pipe(ends), 0);
        write_wav(ends[1], SAMPLES);
        close(ends[1]);
        err = mod_live_open(&(stk_av_input){.fd = &ends[0]}, &opts, &live, NULL);
        if (!err) err = read_all(live, true, &samples, NULL);
        if (err == STK_EEND) err = STK_OK;
        if (err) CHECK(err == STK_ENOMEM || err == STK_EAGAIN); /* the latter: no thread */
        if (!err) CHECK_EQ(samples, SAMPLES);
        mod_live_free(&live);
        close(ends[0]);
    }
}

int main(void)
{
    begin();
    a_stream_to_its_end();
    silence_ends_it();
    closing_ends_a_wait();
    what_is_wrong_is_said_at_once();
    addresses();
    a_child_leaves_it_alone();
    without_memory();
    return 0;
}
