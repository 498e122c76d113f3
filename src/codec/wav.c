#include <stoker/wav.h>

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "codec/le.h"

#define DEFAULT_MAX_BYTES ((size_t)1 << 30)
#define UNSIZED UINT64_MAX          /* what sizes that were never filled in become */
#define NEVER_FILLED_IN 0x7fff0000u /* sox writes 0x7ffff000 - header, arecord 0x7fffffff & ~1 */

enum { RIFF_HEADER = 12, CHUNK_HEADER = 8, W64_HEADER = 40, W64_CHUNK_HEADER = 24 };
enum { FMT_PCM = 16, FMT_EXTENSIBLE = 40, FMT_MOST = 40, DS64 = 28, DS64_ENTRY = 12 };
enum { TAG_EXTENSIBLE = 0xfffe };

/* Where the bytes are: in memory, or behind fd. */
typedef struct reader {
    const uint8_t *data;
    const char *path;
    int fd;
    uint64_t total;
} reader;

typedef struct chunk {
    uint8_t id[4];
    uint64_t at, size; /* of its bytes; the size may be UNSIZED */
    uint64_t stored;   /* the size as it is in a RIFF file */
} chunk;

/* What is known of the whole. */
typedef struct walk {
    reader *in;
    stk_wav_kind kind;
    uint64_t end;     /* where the whole says that it ends; UNSIZED */
    uint64_t at;      /* of the next chunk */
    uint64_t ds64_at; /* of the bytes of that chunk; 0: there is none */
    uint64_t ds64_size;
} walk;

const char *stk_wav_kind_str(stk_wav_kind kind)
{
    static const char *const names[] = {"RIFF", "RF64", "W64"};
    return (unsigned)kind < 3 ? names[kind] : "unknown";
}

/* Bytes [at, at + n), which must be there. */
static stk_err get(const reader *in, uint64_t at, size_t n, uint8_t *dst, stk_diag *diag)
{
    if (at > in->total || n > in->total - at)
        return stk_diag_set(diag, STK_ECORRUPT,
                            "WAV: the data ends at byte %" PRIu64
                            ", inside a header that begins at byte %" PRIu64,
                            in->total, at);
    if (!in->data) return stk_file_read_at(in->fd, in->path, at, dst, n, diag);
    memcpy(dst, in->data + at, n);
    return STK_OK;
}

/* Sony's identifiers: four letters and one of two tails. */
static const uint8_t W64_RIFF[16] = {'r',  'i',  'f',  'f',  0x2e, 0x91, 0xcf, 0x11,
                                     0xa5, 0xd6, 0x28, 0xdb, 0x04, 0xc1, 0x00, 0x00};
static const uint8_t W64_TAIL[12] = {0xf3, 0xac, 0xd3, 0x11, 0x8c, 0xd1,
                                     0x00, 0xc0, 0x4f, 0x8e, 0xdb, 0x8a};

static bool unsized64(uint64_t size)
{
    return size == UINT64_MAX || size == INT64_MAX;
}

static stk_err begin_w64(walk *w, stk_diag *diag)
{
    uint8_t h[W64_HEADER];
    const stk_err err = get(w->in, 0, sizeof(h), h, diag);
    if (err) return err;
    if (memcmp(h, W64_RIFF, 16) != 0 || memcmp(h + 24, "wave", 4) != 0 ||
        memcmp(h + 28, W64_TAIL, 12) != 0)
        return stk_diag_set(diag, STK_EUNSUPPORTED, "WAV: this is no WAV file");
    const uint64_t size = stk_le64(h + 16);
    w->kind = STK_WAV_W64;
    w->end = size == 0 || unsized64(size) ? UNSIZED : size;
    w->at = W64_HEADER;
    return STK_OK;
}

static stk_err begin(walk *w, stk_diag *diag)
{
    uint8_t h[RIFF_HEADER];
    if (w->in->total < sizeof(h))
        return stk_diag_set(diag, STK_ECORRUPT,
                            "WAV: %" PRIu64 " bytes are too few for the header of a WAV file",
                            w->in->total);
    const stk_err err = get(w->in, 0, sizeof(h), h, diag);
    if (err) return err;
    if (!memcmp(h, "riff", 4)) return begin_w64(w, diag);
    if (!memcmp(h, "RIFX", 4))
        return stk_diag_set(diag, STK_EUNSUPPORTED, "WAV: RIFX, big-endian, is not supported");
    const bool is64 = !memcmp(h, "RF64", 4) || !memcmp(h, "BW64", 4);
    if ((!is64 && memcmp(h, "RIFF", 4) != 0) || memcmp(h + 8, "WAVE", 4) != 0)
        return stk_diag_set(diag, STK_EUNSUPPORTED, "WAV: this is no WAV file");
    const uint32_t size = stk_le32(h + 4);
    w->kind = is64 ? STK_WAV_RF64 : STK_WAV_RIFF;
    w->end = size == 0 || size >= NEVER_FILLED_IN ? UNSIZED : (uint64_t)size + 8;
    w->at = RIFF_HEADER;
    return STK_OK;
}

static bool is(const chunk *c, const char *id)
{
    return !memcmp(c->id, id, 4);
}

/* The size that ds64 has for a chunk whose own 32 bits are all ones. */
static stk_err size_of_table(const walk *w, chunk *c, stk_diag *diag)
{
    uint8_t b[DS64];
    stk_err err = get(w->in, w->ds64_at, sizeof(b), b, diag);
    c->size = UNSIZED;
    if (err) return err;
    if (is(c, "data")) {
        const uint64_t size = stk_le64(b + 8);
        c->size = unsized64(size) ? UNSIZED : size;
        return STK_OK;
    }
    const uint64_t room = (w->ds64_size - DS64) / DS64_ENTRY, n = stk_le32(b + 24);
    for (uint64_t i = 0; !err && i < n && i < room; i++) {
        uint8_t e[DS64_ENTRY];
        err = get(w->in, w->ds64_at + DS64 + i * DS64_ENTRY, sizeof(e), e, diag);
        if (err || memcmp(e, c->id, 4) != 0) continue;
        c->size = stk_le64(e + 4);
        break;
    }
    return err;
}

static stk_err next_w64(walk *w, chunk *c, stk_diag *diag)
{
    uint8_t h[W64_CHUNK_HEADER];
    const stk_err err = get(w->in, w->at, sizeof(h), h, diag);
    if (err) return err;
    memcpy(c->id, h, 4);
    if (memcmp(h + 4, W64_TAIL, 12) != 0) memset(c->id, 0, 4); /* somebody's own */
    c->at = w->at + sizeof(h);
    c->stored = stk_le64(h + 16);
    if (unsized64(c->stored))
        c->size = UNSIZED;
    else if (c->stored >= sizeof(h))
        c->size = c->stored - sizeof(h);
    else if (c->stored == 0)
        c->size = 0;
    else
        return stk_diag_set(diag, STK_ECORRUPT,
                            "WAV: a chunk at byte %" PRIu64 " of %" PRIu64
                            " bytes, less than its own header",
                            w->at, c->stored);
    return STK_OK;
}

static stk_err next_chunk(walk *w, chunk *c, stk_diag *diag)
{
    if (w->kind == STK_WAV_W64) return next_w64(w, c, diag);
    uint8_t h[CHUNK_HEADER];
    const stk_err err = get(w->in, w->at, sizeof(h), h, diag);
    if (err) return err;
    memcpy(c->id, h, 4);
    c->at = w->at + sizeof(h);
    c->stored = c->size = stk_le32(h + 4);
    if (c->stored != UINT32_MAX) return STK_OK;
    if (w->ds64_at) return size_of_table(w, c, diag);
    c->size = UNSIZED;
    return STK_OK;
}

static stk_err past_the_end(const chunk *c, uint64_t left, stk_diag *diag)
{
    char id[5] = "";
    for (int i = 0; i < 4; i++) id[i] = (char)(c->id[i] >= ' ' && c->id[i] < 127 ? c->id[i] : '?');
    return stk_diag_set(diag, STK_ECORRUPT,
                        "WAV: chunk '%s' has %" PRIu64 " bytes from byte %" PRIu64
                        " on, but the data ends after %" PRIu64 " of them",
                        id, c->size, c->at, left);
}

/* The chunk behind `c`; a pad byte may be missing at the end. */
static stk_err skip(walk *w, const chunk *c, stk_diag *diag)
{
    const uint64_t left = w->in->total - c->at;
    if (c->size > left) return past_the_end(c, left, diag);
    const uint64_t pad = w->kind == STK_WAV_W64 ? -c->size & 7 : c->size & 1;
    w->at = c->at + c->size + (pad < left - c->size ? pad : left - c->size);
    return STK_OK;
}

/* How many bytes of samples there are. */
static stk_err measure(const walk *w, const chunk *c, stk_wav_info *out, stk_diag *diag)
{
    const uint64_t left = w->in->total - c->at;
    const bool never = c->size > left && w->kind == STK_WAV_RIFF && c->stored >= NEVER_FILLED_IN;
    const bool empty = c->size == 0 && left && (w->end == UNSIZED || w->end <= c->at);
    out->data_offset = c->at;
    out->unsized = c->size == UNSIZED || never || empty;
    if (!out->unsized && c->size > left) return past_the_end(c, left, diag);
    out->data_size = out->unsized ? left : c->size;
    if (out->unsized && out->block_align) out->data_size -= left % out->block_align;
    if (!out->dtype) return STK_OK;
    if (out->data_size % out->block_align)
        return stk_diag_set(diag, STK_ECORRUPT,
                            "WAV: %" PRIu64 " bytes of samples are no whole number of frames of %u",
                            out->data_size, (unsigned)out->block_align);
    out->frames = out->data_size / out->block_align;
    return STK_OK;
}

/* The code in a GUID of KSDATAFORMAT_SUBTYPE, or of ambisonic B-format; 0: another one. */
static uint16_t of_guid(const uint8_t *guid)
{
    static const uint8_t tails[2][14] = {
        {0, 0, 0, 0, 0x10, 0, 0x80, 0, 0, 0xaa, 0, 0x38, 0x9b, 0x71},
        {0, 0, 0x21, 0x07, 0xd3, 0x11, 0x86, 0x44, 0xc8, 0xc1, 0xca, 0, 0, 0},
    };
    for (int i = 0; i < 2; i++)
        if (!memcmp(guid + 2, tails[i], sizeof(tails[i]))) return stk_le16(guid);
    return 0;
}

static stk_dtype dtype_of(uint16_t format, unsigned bytes)
{
    static const stk_dtype pcm[9] = {
        [1] = STK_UINT8, [2] = STK_INT16, [3] = STK_INT32, [4] = STK_INT32, [8] = STK_INT64};
    if (format == STK_WAV_PCM) return bytes <= 8 ? pcm[bytes] : STK_DTYPE_NONE;
    if (format != STK_WAV_FLOAT) return STK_DTYPE_NONE;
    return bytes == 4 ? STK_FLOAT32 : bytes == 8 ? STK_FLOAT64 : STK_DTYPE_NONE;
}

/* Numbers that follow from each other must agree: else nobody knows which is right. */
static stk_err check_format(stk_wav_info *out, stk_diag *diag)
{
    if (!out->channels || !out->sample_rate)
        return stk_diag_set(diag, STK_ECORRUPT, "WAV: %u channels at %" PRIu32 " Hz",
                            (unsigned)out->channels, out->sample_rate);
    if (out->format != STK_WAV_PCM && out->format != STK_WAV_FLOAT) return STK_OK;
    const unsigned bytes = (out->bits + 7u) / 8;
    if (!bytes || out->block_align != bytes * out->channels)
        return stk_diag_set(
            diag, STK_ECORRUPT, "WAV: %u channels of %u bits, but a block align of %u bytes",
            (unsigned)out->channels, (unsigned)out->bits, (unsigned)out->block_align);
    if (out->byte_rate != (uint64_t)out->sample_rate * out->block_align)
        return stk_diag_set(diag, STK_ECORRUPT,
                            "WAV: a byte rate of %" PRIu32 ", but %" PRIu32 " frames a second of %u"
                            " bytes",
                            out->byte_rate, out->sample_rate, (unsigned)out->block_align);
    out->dtype = dtype_of(out->format, bytes);
    out->widened = out->dtype == STK_INT32 && bytes == 3;
    return STK_OK;
}

static stk_err read_format(const walk *w, const chunk *c, stk_wav_info *out, stk_diag *diag)
{
    uint8_t f[FMT_MOST] = {0};
    if (c->size < FMT_PCM)
        return stk_diag_set(diag, STK_ECORRUPT, "WAV: a format chunk of %" PRIu64 " bytes",
                            c->size);
    const size_t size = c->size < FMT_MOST ? (size_t)c->size : FMT_MOST;
    const stk_err err = get(w->in, c->at, size, f, diag);
    if (err) return err;
    out->format = stk_le16(f);
    out->channels = stk_le16(f + 2);
    out->sample_rate = stk_le32(f + 4);
    out->byte_rate = stk_le32(f + 8);
    out->block_align = stk_le16(f + 12);
    out->bits = out->valid_bits = stk_le16(f + 14);
    if (out->format == TAG_EXTENSIBLE) {
        if (size < FMT_EXTENSIBLE)
            return stk_diag_set(diag, STK_ECORRUPT,
                                "WAV: an extensible format chunk of %zu bytes, which needs %d",
                                size, FMT_EXTENSIBLE);
        out->extensible = true;
        out->valid_bits = stk_le16(f + 18);
        out->channel_mask = stk_le32(f + 20);
        const uint16_t code = of_guid(f + 24);
        if (code) out->format = code;
        if (out->valid_bits > out->bits)
            return stk_diag_set(diag, STK_ECORRUPT, "WAV: %u valid bits in samples of %u",
                                (unsigned)out->valid_bits, (unsigned)out->bits);
    }
    return check_format(out, diag);
}

static stk_err parse(reader *in, stk_wav_info *out, stk_diag *diag)
{
    walk w = {.in = in};
    bool format = false;
    *out = (stk_wav_info){0};
    stk_err err = begin(&w, diag);
    out->kind = w.kind;
    while (!err) {
        chunk c;
        if (w.at == in->total)
            return stk_diag_set(diag, STK_ECORRUPT, "WAV: there is no chunk '%s'",
                                format ? "data" : "fmt ");
        err = next_chunk(&w, &c, diag);
        if (err) break;
        if (is(&c, "data") && !format)
            return stk_diag_set(diag, STK_ECORRUPT, "WAV: the data comes before its format");
        if (is(&c, "data")) return measure(&w, &c, out, diag);
        if (is(&c, "fmt ") && !format) err = read_format(&w, &c, out, diag), format = true;
        if (!err && w.kind == STK_WAV_RF64 && is(&c, "ds64") && c.size >= DS64)
            w.ds64_at = c.at, w.ds64_size = c.size;
        if (!err) err = skip(&w, &c, diag);
    }
    return err;
}

stk_err stk_wav_parse(const void *data, size_t size, stk_wav_info *out, stk_diag *diag)
{
    reader in = {.data = data ? data : (const uint8_t *)"", .fd = -1, .total = size};
    return parse(&in, out, diag);
}

static stk_err unsupported(const stk_wav_info *info, stk_diag *diag)
{
    static const struct {
        uint16_t code;
        const char *name;
    } names[] = {
        {1, "PCM"},         {2, "Microsoft ADPCM"}, {3, "float"},
        {6, "A-law"},       {7, "mu-law"},          {0x11, "IMA ADPCM"},
        {0x31, "GSM 6.10"}, {0x55, "MP3"},          {0xfffe, "a format of somebody's own"}};
    const char *name = "unknown";
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (names[i].code == info->format) name = names[i].name;
    return stk_diag_set(diag, STK_EUNSUPPORTED,
                        "WAV: format %u (%s) of %u bits is not supported: PCM of 8, 16, 24, 32 and "
                        "64 bits and float of 32 and 64 are",
                        (unsigned)info->format, name, (unsigned)info->bits);
}

/* Frames in that many seconds; at least `most` is `most`. */
static uint64_t frames_in(double seconds, uint32_t rate, uint64_t most)
{
    const double frames = floor(seconds * rate);
    return frames < (double)most ? (uint64_t)frames : most;
}

stk_err stk_wav_window(const stk_wav_info *info, double offset, double duration, uint64_t *first,
                       uint64_t *frames, stk_diag *diag)
{
    *first = *frames = 0;
    if (!info->dtype) return unsupported(info, diag);
    if (!isfinite(offset) || offset < 0 || isnan(duration) || duration < 0)
        return stk_diag_set(diag, STK_EINVAL,
                            "WAV: a window of %g seconds from %g: both must be finite and at least "
                            "0",
                            duration, offset);
    const double at = offset * info->sample_rate;
    if (at > 0 && at >= (double)info->frames)
        return stk_diag_set(diag, STK_EINVAL,
                            "WAV: a window from %g seconds on: the samples end at %g", offset,
                            (double)info->frames / info->sample_rate);
    *first = frames_in(offset, info->sample_rate, info->frames);
    *frames = frames_in(duration, info->sample_rate, info->frames - *first);
    return STK_OK;
}

void stk_wav_widen(const void *src, size_t samples, int32_t *dst)
{
    const uint8_t *p = src;
    for (size_t i = 0; i < samples; i++, p += 3)
        dst[i] = (int32_t)((uint32_t)p[0] << 8 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 24);
}

/* The samples of frames [first, first + frames) from the file into *mem. */
static stk_err read_frames(const reader *in, const stk_wav_info *info, uint64_t first,
                           uint64_t frames, size_t max_bytes, stk_tensor *out, stk_buffer **mem,
                           stk_diag *diag)
{
    const stk_spec spec = {info->dtype, 2, {(int64_t)frames, info->channels}};
    size_t bytes;
    stk_err err = stk_spec_bytes(&spec, &bytes);
    if (!err && bytes > max_bytes) err = STK_ELIMIT;
    if (err)
        return stk_diag_set(diag, err,
                            "%s: %" PRIu64 " frames of %u channels: the limit is %zu "
                            "bytes",
                            in->path, frames, (unsigned)info->channels, max_bytes);
    err = stk_buffer_new(bytes, mem);
    if (err) return stk_diag_set(diag, err, "%s: no memory for %zu bytes", in->path, bytes);
    uint8_t *to = stk_buffer_writable(*mem);
    const uint64_t packed = frames * info->block_align;
    uint8_t *at = to + (bytes - packed); /* widened in place, from behind: never overtakes itself */
    err = stk_file_read_at(in->fd, in->path, info->data_offset + first * info->block_align, at,
                           packed, diag);
    if (err) return err;
    if (info->widened) stk_wav_widen(at, (size_t)(frames * info->channels), (int32_t *)(void *)to);
    *out = stk_tensor_over(to, &spec);
    return STK_OK;
}

stk_err stk_wav_probe(const char *path, stk_wav_info *out, stk_diag *diag)
{
    reader in = {.path = path, .fd = -1};
    stk_err err = stk_file_open(path, &in.fd, &in.total, diag);
    if (err) return err;
    err = parse(&in, out, diag);
    if (err) stk_diag_prefix(diag, "%s", path);
    close(in.fd);
    return err;
}

stk_err stk_wav_read(const char *path, double offset, double duration, size_t max_bytes,
                     stk_wav_info *info, stk_tensor *out, stk_buffer **mem, stk_diag *diag)
{
    reader in = {.path = path, .fd = -1};
    uint64_t first, frames;
    *out = (stk_tensor){0};
    *mem = NULL;
    stk_err err = stk_file_open(path, &in.fd, &in.total, diag);
    if (err) return err;
    err = parse(&in, info, diag);
    if (!err) err = stk_wav_window(info, offset, duration, &first, &frames, diag);
    if (err) stk_diag_prefix(diag, "%s", path);
    if (!err)
        err = read_frames(&in, info, first, frames, max_bytes ? max_bytes : DEFAULT_MAX_BYTES, out,
                          mem, diag);
    close(in.fd);
    if (err) stk_buffer_unref(mem);
    return err;
}
