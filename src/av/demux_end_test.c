/* Inputs that end early, read in parts of one packet: WAV, cut between packets. */
#include <string.h>

#include "av/call.h"
#include "av/demuxer.h"
#include "av/module.h"
#include "base/alloc.h"
#include "tests/check.h"

enum { HEADER = 44, DATA = 40000, RIFF = HEADER - 8 + DATA };

/* 16 bits, one channel, 8 kHz; it is DATA bytes that the header tells of. */
static stk_buffer *make_wav(void)
{
    static bool started;
    static const uint8_t head[HEADER] = {
        'R', 'I', 'F',  'F',  RIFF & 0xff, RIFF >> 8, 0,    0,           'W',      'A', 'V',
        'E', 'f', 'm',  't',  ' ',         16,        0,    0,           0,        1,   0,
        1,   0,   0x40, 0x1F, 0,           0,         0x80, 0x3E,        0,        0,   2,
        0,   16,  0,    'd',  'a',         't',       'a',  DATA & 0xff, DATA >> 8};
    stk_buffer *buf;
    if (!started) stk_av_call_start();
    started = true;
    CHECK_EQ(stk_buffer_new(HEADER + DATA, &buf), STK_OK);
    memset(stk_buffer_writable(buf), 0, HEADER + DATA);
    memcpy(stk_buffer_writable(buf), head, HEADER);
    return buf;
}

static stk_err next(stk_demuxer *d, stk_packets_info *info, stk_diag *diag)
{
    stk_packets *part;
    const stk_err err = mod_demuxer_next(d, &(int){0}, 1, (stk_ratio){0, 0}, 1, &part, diag);
    if (err) return err;
    mod_packets_get_info(part, info);
    mod_packets_unref(&part);
    return STK_OK;
}

/* How many parts there are, and whether the last one is cut; no other is. */
static stk_err read_parts(stk_demuxer *d, size_t *n, bool *cut)
{
    stk_packets_info info;
    stk_err err;
    *cut = false;
    for (*n = 0; !(err = next(d, &info, NULL)); ++*n) {
        CHECK_EQ(info.total, 1);
        CHECK(!*cut);
        *cut = info.ends_early;
    }
    return err == STK_EEND ? STK_OK : err;
}

static stk_demuxer *open_bytes(stk_buffer *bytes)
{
    stk_demuxer *d;
    CHECK_EQ(mod_demuxer_open(&(stk_av_input){.bytes = bytes}, NULL, &d, NULL), STK_OK);
    return d;
}

/* The beginning of `wav` that holds so many packets, and how many there are in all. */
static stk_buffer *beginning(stk_buffer *wav, size_t packets, size_t *all)
{
    stk_demuxer *d = open_bytes(wav);
    stk_packets_info info;
    stk_buffer *part;
    size_t size = HEADER;
    for (*all = 0; !next(d, &info, NULL); ++*all)
        if (*all < packets) size += info.bytes;
    mod_demuxer_free(&d);
    CHECK(packets < *all);
    CHECK_EQ(stk_buffer_slice(wav, 0, size, &part), STK_OK);
    return part;
}

static void the_last_part_is_marked(void)
{
    stk_buffer *wav = make_wav();
    size_t all, n;
    bool cut;
    stk_buffer *part = beginning(wav, 3, &all);
    stk_demuxer *d = open_bytes(wav);
    CHECK_EQ(read_parts(d, &n, &cut), STK_OK);
    CHECK(n == all && !cut);
    mod_demuxer_free(&d);

    d = open_bytes(part);
    CHECK_EQ(read_parts(d, &n, &cut), STK_OK);
    CHECK(n == 3 && cut);
    mod_demuxer_free(&d);
    stk_buffer_unref(&part);
    stk_buffer_unref(&wav);
}

static void what_was_passed_over_is_not_counted(void)
{
    stk_buffer *wav = make_wav();
    size_t all, n;
    bool cut;
    stk_packets *packets;
    stk_packets_info info;
    stk_demuxer *d = open_bytes(wav);
    CHECK_EQ(read_parts(d, &all, &cut), STK_OK);
    mod_demuxer_free(&d);
    const size_t some = all * 3 / 5; /* how long a packet is FFmpeg decides: 1.5 s are in these */
    stk_buffer *part = beginning(wav, some, &all);
    d = open_bytes(part);
    const stk_window window = {{1, 2}, {6, 10}};
    CHECK_EQ(mod_demuxer_read(d, STK_MEDIA_AUDIO, &window, NULL, &packets, NULL), STK_OK);
    mod_packets_unref(&packets);
    CHECK_EQ(read_parts(d, &n, &cut), STK_OK);
    CHECK(n > 0 && n < some);

    CHECK_EQ(mod_demuxer_read(d, STK_MEDIA_AUDIO, NULL, NULL, &packets, NULL), STK_OK);
    mod_packets_get_info(packets, &info); /* it is from the first one on */
    CHECK(info.total == some && info.ends_early);
    mod_packets_unref(&packets);
    mod_demuxer_free(&d);

    d = open_bytes(wav); /* what comes after a window is not all, and not short therefore */
    CHECK_EQ(mod_demuxer_read(d, STK_MEDIA_AUDIO, &window, NULL, &packets, NULL), STK_OK);
    mod_packets_unref(&packets);
    CHECK_EQ(read_parts(d, &n, &cut), STK_OK);
    CHECK(n > 0 && n < all && !cut);
    mod_demuxer_free(&d);
    stk_buffer_unref(&part);
    stk_buffer_unref(&wav);
}

typedef struct source {
    stk_buffer *bytes;
    size_t at, fails; /* it fails from there on */
} source;

static int64_t read_some(void *ctx, uint8_t *dst, size_t n)
{
    source *s = ctx;
    const size_t left = (s->fails ? s->fails : stk_buffer_size(s->bytes)) - s->at;
    if (!left && s->fails) return -1;
    if (n > left) n = left;
    memcpy(dst, stk_buffer_data(s->bytes) + s->at, n);
    s->at += n;
    return (int64_t)n;
}

static int64_t size_of(void *ctx)
{
    return (int64_t)stk_buffer_size(((source *)ctx)->bytes);
}

/* Nobody knows its size, but the header says that there is more. */
static void a_pipe_that_ends_early(void)
{
    stk_buffer *wav = make_wav();
    size_t all, n;
    bool cut;
    stk_buffer *part = beginning(wav, 4, &all);
    for (int whole = 0; whole < 2; whole++) {
        source s = {.bytes = whole ? wav : part};
        const stk_av_reader reader = {.read = read_some, .ctx = &s};
        stk_demuxer *d;
        CHECK_EQ(mod_demuxer_open(&(stk_av_input){.reader = &reader}, NULL, &d, NULL), STK_OK);
        CHECK_EQ(read_parts(d, &n, &cut), STK_OK);
        CHECK(n == (whole ? all : 4) && cut == !whole);
        mod_demuxer_free(&d);
    }
    stk_buffer_unref(&part);
    stk_buffer_unref(&wav);
}

/* What was looked for ahead failed: the packets before it come first. */
static void errors_come_after_what_was_read(void)
{
    stk_buffer *wav = make_wav();
    size_t all, n = 0;
    stk_buffer *part = beginning(wav, 5, &all);
    source s = {.bytes = wav, .fails = stk_buffer_size(part)};
    const stk_av_reader reader = {.read = read_some, .size = size_of, .ctx = &s};
    const stk_demux_opts opts = {.buffer_size = 512};
    stk_packets_info info;
    stk_demuxer *d;
    stk_diag diag;
    CHECK_EQ(mod_demuxer_open(&(stk_av_input){.reader = &reader}, &opts, &d, &diag), STK_OK);
    stk_err err;
    for (; !(err = next(d, &info, &diag)); n++) CHECK(!info.ends_early);
    CHECK_EQ(err, STK_EIO);
    CHECK_EQ(n, 5);
    CHECK(strstr(diag.text, "cannot read"));
    mod_demuxer_free(&d);
    stk_buffer_unref(&part);
    stk_buffer_unref(&wav);
}

static void every_allocation_fails(void)
{
    stk_buffer *wav = make_wav();
    size_t all, n;
    bool cut;
    stk_buffer *part = beginning(wav, 2, &all);
    stk_err err;
    TORTURE (err) {
        stk_demuxer *d = NULL;
        err = mod_demuxer_open(&(stk_av_input){.bytes = part}, NULL, &d, NULL);
        if (!err) err = read_parts(d, &n, &cut);
        CHECK(err ? err == STK_ENOMEM : cut);
        mod_demuxer_free(&d);
    }
    stk_buffer_unref(&part);
    stk_buffer_unref(&wav);
}

TESTS(TEST(the_last_part_is_marked), TEST(what_was_passed_over_is_not_counted),
      TEST(a_pipe_that_ends_early), TEST(errors_come_after_what_was_read),
      TEST(every_allocation_fails))
