#include <stoker/wav.h>

#include <fcntl.h>
#include <math.h>
#include <unistd.h>

#include "base/alloc.h"
#include "tests/check.h"

struct file {
    uint8_t data[2048];
    size_t size;
};

static void put(struct file *f, const void *data, size_t size)
{
    memcpy(f->data + f->size, data, size);
    f->size += size;
}

static void put_number(struct file *f, uint64_t v, int bytes)
{
    for (int i = 0; i < bytes; i++) f->data[f->size++] = (uint8_t)(v >> (8 * i));
}

struct format {
    unsigned tag, channels, rate, bits;
};

/* The bytes of a format chunk; the tag 0xfffe gives an extensible one, of PCM. */
static void put_format(struct file *f, struct format fmt)
{
    const unsigned align = fmt.channels * ((fmt.bits + 7) / 8);
    put_number(f, fmt.tag, 2);
    put_number(f, fmt.channels, 2);
    put_number(f, fmt.rate, 4);
    put_number(f, (uint64_t)fmt.rate * align, 4);
    put_number(f, align, 2);
    put_number(f, fmt.bits, 2);
    if (fmt.tag != 0xfffe) return;
    put_number(f, 22, 2);
    put_number(f, fmt.bits - 4, 2);
    put_number(f, 3, 4);
    put(f, "\1\0\0\0\0\0\x10\0\x80\0\0\xaa\0\x38\x9b\x71", 16);
}

/* RIFF, format and the head of the samples with these sizes; `n` bytes of samples 0, 1, 2... */
static void make_sized(struct file *f, struct format fmt, uint64_t riff, uint64_t size, size_t n)
{
    f->size = 0;
    put(f, "RIFF", 4);
    put_number(f, riff, 4);
    put(f, "WAVEfmt ", 8);
    put_number(f, fmt.tag == 0xfffe ? 40 : 16, 4);
    put_format(f, fmt);
    put(f, "data", 4);
    put_number(f, size, 4);
    for (size_t i = 0; i < n; i++) f->data[f->size++] = (uint8_t)i;
}

static void make(struct file *f, struct format fmt, size_t n)
{
    make_sized(f, fmt, (fmt.tag == 0xfffe ? 60 : 36) + n, n, n);
}

static const struct format cd = {1, 2, 44100, 16};

static stk_err parse(const struct file *f, stk_wav_info *info, stk_diag *diag)
{
    uint8_t *copy = malloc(f->size ? f->size : 1); /* no byte more: the sanitizer watches its end */
    memcpy(copy, f->data, f->size);
    *diag = (stk_diag){0};
    const stk_err err = stk_wav_parse(copy, f->size, info, diag);
    free(copy);
    CHECK(err == diag->err);
    if (!err) CHECK(info->data_offset + info->data_size <= f->size);
    return err;
}

static void formats(void)
{
    static const struct {
        struct format fmt;
        stk_dtype dtype;
    } cases[] = {
        {{1, 1, 8000, 8}, STK_UINT8},      {{1, 2, 44100, 16}, STK_INT16},
        {{1, 2, 48000, 24}, STK_INT32},    {{1, 6, 96000, 32}, STK_INT32},
        {{1, 1, 8000, 64}, STK_INT64},     {{3, 2, 44100, 32}, STK_FLOAT32},
        {{3, 1, 44100, 64}, STK_FLOAT64},  {{0xfffe, 2, 48000, 24}, STK_INT32},
        {{1, 2, 8000, 12}, STK_INT16},     {{1, 1, 8000, 20}, STK_INT32},
        {{6, 1, 8000, 8}, STK_DTYPE_NONE}, {{3, 1, 8000, 16}, STK_DTYPE_NONE},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct file f;
        stk_wav_info info;
        stk_diag diag;
        const struct format fmt = cases[i].fmt;
        const unsigned align = fmt.channels * ((fmt.bits + 7) / 8);
        make(&f, fmt, align * 5);
        CHECK_EQ(parse(&f, &info, &diag), STK_OK);
        CHECK_EQ(info.dtype, cases[i].dtype);
        CHECK_EQ(info.format, fmt.tag == 0xfffe ? 1 : fmt.tag);
        CHECK(info.extensible == (fmt.tag == 0xfffe) && info.kind == STK_WAV_RIFF);
        CHECK(info.channels == fmt.channels && info.sample_rate == fmt.rate);
        CHECK(info.bits == fmt.bits && info.valid_bits == fmt.bits - (info.extensible ? 4 : 0));
        CHECK(info.byte_rate == fmt.rate * align && info.block_align == align);
        CHECK_EQ(info.channel_mask, info.extensible ? 3 : 0);
        CHECK(info.widened == (info.dtype == STK_INT32 && align == fmt.channels * 3));
        CHECK(info.data_size == align * 5 && !info.unsized);
        CHECK_EQ(info.frames, info.dtype ? 5 : 0);
        uint64_t first, frames;
        CHECK_EQ(stk_wav_window(&info, 0, INFINITY, &first, &frames, &diag),
                 info.dtype ? STK_OK : STK_EUNSUPPORTED);
        if (info.dtype) CHECK(first == 0 && frames == 5);
    }
}

static void other_chunks_and_padding(void)
{
    struct file f = {.size = 0}, tail;
    stk_wav_info info;
    stk_diag diag;
    make(&tail, cd, 8);
    put(&f, "RIFF\0\1\0\0WAVE", 12);
    put(&f, "LIST\5\0\0\0abcde\0", 14);
    put(&f, "data", 0);
    put(&f, tail.data + 12, tail.size - 12);
    put(&f, "junk behind", 11);
    CHECK_EQ(parse(&f, &info, &diag), STK_OK);
    CHECK(info.data_offset == 14 + 44 && info.frames == 2);
    make(&f, (struct format){1, 1, 8000, 8}, 3); /* odd, without its pad byte */
    CHECK_EQ(parse(&f, &info, &diag), STK_OK);
    CHECK_EQ(info.frames, 3);
}

static void sizes_that_were_never_filled_in(void)
{
    static const struct {
        uint64_t riff, data;
        bool unsized;
        uint64_t frames; /* of 10 and a half */
    } cases[] = {
        {UINT32_MAX, UINT32_MAX, true, 10},
        {0, UINT32_MAX, true, 10},
        {0, 0, true, 10},
        {UINT32_MAX, 0, true, 10},
        {0x7fffffff, 0, true, 10},
        {36, 0, true, 10},
        {0x80000024, 0x7fffffff, true, 10},
        {36, 0x7ffff000 - 36, true, 10},
        {36 + 42, 0, false, 0},
        {0, 40, false, 10},
        {7, 40, false, 10},
        {UINT32_MAX, 36, false, 9},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct file f;
        stk_wav_info info;
        stk_diag diag;
        make_sized(&f, cd, cases[i].riff, cases[i].data, 42);
        CHECK_EQ(parse(&f, &info, &diag), STK_OK);
        CHECK_EQ(info.unsized, cases[i].unsized);
        CHECK_EQ(info.frames, cases[i].frames);
        CHECK_EQ(info.data_size, 4 * cases[i].frames);
    }
    struct file f;
    stk_wav_info info;
    stk_diag diag;
    make(&f, cd, 0); /* empty, and says so */
    CHECK_EQ(parse(&f, &info, &diag), STK_OK);
    CHECK(!info.unsized && info.frames == 0 && info.data_size == 0);
}

static void make_rf64(struct file *f, const char *id, uint64_t riff, uint64_t data, size_t n)
{
    struct file tail;
    make_sized(&tail, cd, UINT32_MAX, UINT32_MAX, n);
    f->size = 0;
    put(f, id, 4);
    put(f, "\xff\xff\xff\xffWAVEds64", 12);
    put_number(f, 28 + 12, 4);
    put_number(f, riff, 8);
    put_number(f, data, 8);
    put_number(f, 0, 8);
    put_number(f, 1, 4);
    put(f, "big ", 4);
    put_number(f, 6, 8);
    put(f,
        "big \xff\xff\xff\xff"
        "abcdef",
        14);
    put(f, tail.data + 12, tail.size - 12);
}

static void rf64(void)
{
    static const struct {
        uint64_t riff, data;
        stk_err err;
        uint64_t frames;
    } cases[] = {
        {200, 40, STK_OK, 10},
        {0, 40, STK_OK, 10},
        {0, UINT64_MAX, STK_OK, 10},
        {0, INT64_MAX, STK_OK, 10},
        {0, 44, STK_ECORRUPT, 0},
        {0, (uint64_t)1 << 63, STK_ECORRUPT, 0},
        {0, 0xfffffffe, STK_ECORRUPT, 0},
        {0, 41, STK_ECORRUPT, 0},
        {0, 0, STK_OK, 10},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct file f;
        stk_wav_info info;
        stk_diag diag;
        make_rf64(&f, i % 2 ? "BW64" : "RF64", cases[i].riff, cases[i].data, 42);
        CHECK_EQ(parse(&f, &info, &diag), cases[i].err);
        if (!cases[i].err) CHECK(info.kind == STK_WAV_RF64 && info.frames == cases[i].frames);
    }
}

static void put_w64(struct file *f, const char *id, uint64_t size)
{
    static const uint8_t tail[12] = {0xf3, 0xac, 0xd3, 0x11, 0x8c, 0xd1,
                                     0x00, 0xc0, 0x4f, 0x8e, 0xdb, 0x8a};
    static const uint8_t riff[12] = {0x2e, 0x91, 0xcf, 0x11, 0xa5, 0xd6,
                                     0x28, 0xdb, 0x04, 0xc1, 0x00, 0x00};
    put(f, id, 4);
    put(f, *id == 'r' ? riff : tail, 12);
    if (*id != 'w') put_number(f, size, 8);
}

static void make_w64(struct file *f, uint64_t data, size_t n)
{
    f->size = 0;
    put_w64(f, "riff", 40 + 32 + 40 + 24 + n);
    put_w64(f, "wave", 0);
    put_w64(f, "LIST", 24 + 3);
    put(f, "abc\0\0\0\0\0", 8);
    put_w64(f, "fmt ", 24 + 16);
    put_format(f, cd);
    put_w64(f, "data", data);
    for (size_t i = 0; i < n; i++) f->data[f->size++] = (uint8_t)i;
}

static void w64(void)
{
    static const struct {
        uint64_t data;
        stk_err err;
        uint64_t frames;
    } cases[] = {
        {24 + 40, STK_OK, 10},      {UINT64_MAX, STK_OK, 10},
        {INT64_MAX, STK_OK, 10},    {24, STK_OK, 0},
        {23, STK_ECORRUPT, 0},      {24 + 44, STK_ECORRUPT, 0},
        {24 + 41, STK_ECORRUPT, 0}, {(uint64_t)1 << 63, STK_ECORRUPT, 0},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct file f;
        stk_wav_info info;
        stk_diag diag;
        make_w64(&f, cases[i].data, 42);
        CHECK_EQ(parse(&f, &info, &diag), cases[i].err);
        if (!cases[i].err) CHECK(info.kind == STK_WAV_W64 && info.frames == cases[i].frames);
    }
    CHECK(!strcmp(stk_wav_kind_str(STK_WAV_W64), "W64"));
}

/* Sets bytes of a good file, which then must fail with a text that has `text`. */
static void fails(size_t at, uint64_t value, int bytes, stk_err want, const char *text)
{
    struct file f;
    stk_wav_info info;
    stk_diag diag;
    make(&f, at >= 60 ? (struct format){0xfffe, 2, 44100, 16} : cd, 40);
    const size_t size = f.size;
    f.size = at;
    put_number(&f, value, bytes);
    f.size = size;
    CHECK_EQ(parse(&f, &info, &diag), want);
    CHECK(strstr(diag.text, text) && !strncmp(diag.text, "WAV: ", 5));
}

static void what_is_wrong(void)
{
    fails(0, 0x58464952, 4, STK_EUNSUPPORTED, "big-endian");
    fails(0, 0, 4, STK_EUNSUPPORTED, "no WAV file");
    fails(8, 0, 4, STK_EUNSUPPORTED, "no WAV file");
    fails(12, 0x61746164, 4, STK_ECORRUPT, "before its format");
    fails(12, 0, 4, STK_ECORRUPT, "before its format");
    fails(16, 15, 4, STK_ECORRUPT, "format chunk of 15");
    fails(16, 0x70000000, 4, STK_ECORRUPT, "'fmt ' has 1879048192 bytes");
    fails(22, 0, 2, STK_ECORRUPT, "0 channels");
    fails(24, 0, 4, STK_ECORRUPT, "at 0 Hz");
    fails(28, 1, 4, STK_ECORRUPT, "byte rate of 1,");
    fails(32, 3, 2, STK_ECORRUPT, "block align of 3");
    fails(34, 0, 2, STK_ECORRUPT, "0 bits");
    fails(34, 0xffff, 2, STK_ECORRUPT, "65535 bits");
    fails(20, 0xfffe, 2, STK_ECORRUPT, "extensible");
    fails(36, 0, 4, STK_ECORRUPT, "");
    fails(40, 41, 4, STK_ECORRUPT, "but the data ends after 40");
    fails(40, 39, 4, STK_ECORRUPT, "whole number of frames of 4");
    fails(40, 0x7ffeffff, 4, STK_ECORRUPT, "but the data ends");
}

/* At every length, of each kind: an error, and nothing is read beyond it. */
static void truncated(void)
{
    for (int kind = 0; kind < 3; kind++) {
        struct file f;
        stk_wav_info info;
        stk_diag diag;
        if (kind == 0) make(&f, (struct format){0xfffe, 2, 44100, 16}, 40);
        if (kind == 1) make_rf64(&f, "RF64", 0, 40, 40);
        if (kind == 2) make_w64(&f, 24 + 40, 40);
        CHECK_EQ(parse(&f, &info, &diag), STK_OK);
        while (f.size--) CHECK_EQ(parse(&f, &info, &diag), STK_ECORRUPT);
    }
    stk_wav_info info;
    CHECK_EQ(stk_wav_parse(NULL, 0, &info, NULL), STK_ECORRUPT);
}

static void flipped(void)
{
    for (int kind = 0; kind < 3; kind++) {
        struct file f;
        stk_wav_info info;
        stk_diag diag;
        if (kind == 0) make(&f, (struct format){0xfffe, 2, 44100, 16}, 40);
        if (kind == 1) make_rf64(&f, "RF64", 0, 40, 40);
        if (kind == 2) make_w64(&f, 24 + 40, 40);
        for (size_t i = 0; i < f.size * 8; i++) {
            f.data[i / 8] ^= (uint8_t)(1 << i % 8);
            (void)parse(&f, &info, &diag); /* which checks that what it gives lies inside */
            f.data[i / 8] ^= (uint8_t)(1 << i % 8);
        }
    }
}

static void windows(void)
{
    const stk_wav_info info = {.dtype = STK_INT16, .sample_rate = 8000, .frames = 16000};
    static const struct {
        double offset, duration;
        stk_err err;
        uint64_t first, frames;
    } cases[] = {
        {0, INFINITY, STK_OK, 0, 16000}, {0, 1, STK_OK, 0, 8000},
        {0.5, 0.25, STK_OK, 4000, 2000}, {1.5, 1, STK_OK, 12000, 4000},
        {2, 1, STK_EINVAL, 0, 0},        {0, 0, STK_OK, 0, 0},
        {0, 1e300, STK_OK, 0, 16000},    {1.99999, 1, STK_OK, 15999, 1},
        {2.0001, 1, STK_EINVAL, 0, 0},   {-0.1, 1, STK_EINVAL, 0, 0},
        {0, -1, STK_EINVAL, 0, 0},       {NAN, 1, STK_EINVAL, 0, 0},
        {0, NAN, STK_EINVAL, 0, 0},      {INFINITY, 1, STK_EINVAL, 0, 0},
        {1e300, 1, STK_EINVAL, 0, 0},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        uint64_t first, frames;
        CHECK_EQ(stk_wav_window(&info, cases[i].offset, cases[i].duration, &first, &frames, NULL),
                 cases[i].err);
        CHECK(first == cases[i].first && frames == cases[i].frames);
    }
}

static void widening(void)
{
    const uint8_t src[] = {0xff, 0xff, 0x7f, 0, 0, 0x80, 1, 0, 0, 0xff, 0xff, 0xff};
    int32_t dst[4];
    stk_wav_widen(src, 4, dst);
    CHECK(dst[0] == 0x7fffff00 && dst[1] == INT32_MIN && dst[2] == 256 && dst[3] == -256);
}

static void write_file(char *path, const struct file *f)
{
    const int fd = mkstemp(path);
    CHECK(fd >= 0 && write(fd, f->data, f->size) == (ssize_t)f->size);
    close(fd);
}

static void reads_files(void)
{
    stk_err err = STK_OK;
    char path[] = "/tmp/stoker-wav-XXXXXX";
    struct file f;
    stk_wav_info info;
    stk_tensor t;
    stk_buffer *mem;
    stk_diag diag = {0};
    make(&f, (struct format){1, 2, 10, 24}, 60);
    write_file(path, &f);
    CHECK_EQ(stk_wav_read(path, 0.2, 0.5, 0, &info, &t, &mem, &diag), STK_OK);
    CHECK(t.dtype == STK_INT32 && t.ndim == 2 && t.shape[0] == 5 && t.shape[1] == 2);
    CHECK_EQ(((const int32_t *)t.data)[0], 0x0e0d0c00);
    CHECK_EQ(((const int32_t *)t.data)[9], 0x29282700);
    stk_buffer_unref(&mem);
    CHECK_EQ(stk_wav_read(path, 0.9, 0, 0, &info, &t, &mem, &diag), STK_OK);
    CHECK_EQ(t.shape[0], 0);
    CHECK_EQ(stk_wav_probe(path, &info, &diag), STK_OK);
    CHECK_EQ(info.frames, 10);
    stk_buffer_unref(&mem);
    CHECK_EQ(stk_wav_read(path, 0, 1, 79, &info, &t, &mem, &diag), STK_ELIMIT);
    CHECK(!mem && strstr(diag.text, "79") && strstr(diag.text, path));
    CHECK_EQ(stk_wav_read(path, 2, 1, 0, &info, &t, &mem, &diag), STK_EINVAL);
    CHECK(!mem && !strncmp(diag.text, path, sizeof(path) - 1));
    TORTURE (err) {
        err = stk_wav_read(path, 0, INFINITY, 0, &info, &t, &mem, NULL);
        stk_buffer_unref(&mem);
    }
    CHECK_EQ(truncate(path, 50), 0);
    CHECK_EQ(stk_wav_read(path, 0, 1, 0, &info, &t, &mem, &diag), STK_ECORRUPT);
    CHECK_EQ(stk_wav_probe(path, &info, &diag), STK_ECORRUPT);
    CHECK(strstr(diag.text, "data ends"));
    unlink(path);
    CHECK_EQ(stk_wav_read(path, 0, 1, 0, &info, &t, &mem, &diag), STK_ENOTFOUND);
    CHECK_EQ(stk_wav_read("/tmp", 0, 1, 0, &info, &t, &mem, &diag), STK_EINVAL);
}

TESTS(TEST(formats), TEST(other_chunks_and_padding), TEST(sizes_that_were_never_filled_in),
      TEST(rf64), TEST(w64), TEST(what_is_wrong), TEST(truncated), TEST(flipped), TEST(windows),
      TEST(widening), TEST(reads_files))
