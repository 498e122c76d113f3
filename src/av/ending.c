#include "av/ending.h"

#include <string.h>

#include <libavutil/intfloat.h>
#include <libavutil/intreadwrite.h>

#include "base/alloc.h"

enum {
    SLACK = 8, /* bytes that some count too many: the head, or padding that is not there */
    OGG_HEAD = 27,
    OGG_PAGE = OGG_HEAD + 255 + 255 * 255, /* the largest */
    OGG_LAST = 4,                          /* the flag of a stream's last page */
    GIF_EXTENSION = 0x21,
    GIF_IMAGE = 0x2C,
    GIF_TRAILER = 0x3B,
};

#define MAX_SIZE ((int64_t)1 << 60)

/* --- sizes in headers --- */

static size_t head_size(const av_input *in)
{
    return in->known < AV_INPUT_HEAD ? (size_t)in->known : AV_INPUT_HEAD;
}

/* Where the file ends by what is told there; 0: nothing is. */
static int64_t told_by_aiff(const uint8_t *head, size_t n)
{
    const uint32_t says = n >= 8 && !memcmp(head, "FORM", 4) ? AV_RB32(head + 4) : 0;
    return says < 0x7fff0000 ? (int64_t)says + 8 - SLACK : 0;
}

static int64_t told_by_au(const uint8_t *head, size_t n)
{
    if (n < 12 || memcmp(head, ".snd", 4) || AV_RB32(head + 8) == UINT32_MAX) return 0;
    return (int64_t)AV_RB32(head + 4) + AV_RB32(head + 8);
}

static int64_t told_by_flv(const uint8_t *head, size_t n)
{
    static const char name[] = "filesize"; /* with the byte behind it, which says: a number */
    for (size_t i = 0; i + sizeof(name) + 8 <= n; i++) {
        if (memcmp(head + i, name, sizeof(name)) != 0) continue;
        const double says = av_int2double(AV_RB64(head + i + sizeof(name)));
        return says > 0 && says < (double)MAX_SIZE ? (int64_t)says : 0;
    }
    return 0;
}

/* A size as EBML has it, and how many bytes it takes; 0: that cannot be told. */
static size_t ebml_size(const uint8_t *at, size_t n, int64_t *out)
{
    size_t bytes = 1;
    if (!n || !*at) return 0;
    while (!(*at & (0x80 >> (bytes - 1)))) bytes++;
    if (bytes > n) return 0;
    uint64_t value = *at & (0xFF >> bytes);
    bool known = value != (uint64_t)(0xFF >> bytes);
    for (size_t i = 1; i < bytes; i++) {
        value = value << 8 | at[i];
        known |= at[i] != 0xFF;
    }
    *out = (int64_t)value;
    return known && *out < MAX_SIZE ? bytes : 0;
}

static int64_t told_by_matroska(const uint8_t *head, size_t n)
{
    int64_t size;
    if (n < 8 || AV_RB32(head) != 0x1A45DFA3) return 0;
    size_t at = 4 + ebml_size(head + 4, n - 4, &size);
    if (at == 4 || size > (int64_t)(n - at)) return 0;
    at += (size_t)size;
    if (n - at < 5 || AV_RB32(head + at) != 0x18538067) return 0; /* the segment */
    at += 4;
    const size_t bytes = ebml_size(head + at, n - at, &size);
    return bytes ? (int64_t)(at + bytes) + size : 0;
}

/* --- marks --- */

/* A page may lie across the end. */
static bool ogg_ends(AVIOContext *io)
{
    const int64_t size = avio_size(io);
    const int64_t from = size > OGG_PAGE ? size - OGG_PAGE : 0;
    uint8_t *tail = stk_alloc(OGG_PAGE);
    bool ends = true;
    if (tail && size > 0 && avio_seek(io, from, SEEK_SET) >= 0) {
        const int n = avio_read(io, tail, OGG_PAGE);
        int at = n - OGG_HEAD;
        while (at >= 0 && memcmp(tail + at, "OggS", 5) != 0) at--;
        int end = at < 0 ? 0 : at + OGG_HEAD + tail[at + 26];
        for (int i = at + OGG_HEAD; at >= 0 && i < n && i < at + OGG_HEAD + tail[at + 26]; i++)
            end += tail[i];
        if (at >= 0) ends = end <= n && tail[at + 5] & OGG_LAST;
    }
    stk_free(tail);
    return ends;
}

static void skip_gif_blocks(AVIOContext *io)
{
    int n;
    while ((n = avio_r8(io)) > 0 && !avio_feof(io)) avio_skip(io, n);
}

static void skip_gif_colors(AVIOContext *io, int flags)
{
    if (flags & 0x80) avio_skip(io, 3 << ((flags & 7) + 1));
}

static bool gif_ends(AVIOContext *io)
{
    if (avio_seek(io, 10, SEEK_SET) < 0) return true;
    const int flags = avio_r8(io);
    avio_skip(io, 2);
    skip_gif_colors(io, flags);
    while (!avio_feof(io)) {
        const int label = avio_r8(io);
        if (label == GIF_TRAILER) return !avio_feof(io);
        if (label == GIF_IMAGE) {
            avio_skip(io, 8);
            skip_gif_colors(io, avio_r8(io));
        }
        if (label == GIF_EXTENSION || label == GIF_IMAGE) {
            avio_skip(io, 1);
            skip_gif_blocks(io);
        }
    }
    return false;
}

static bool apng_ends(AVIOContext *io)
{
    uint32_t frames = 0, told = 0;
    if (avio_seek(io, 8, SEEK_SET) < 0) return true;
    while (!avio_feof(io)) {
        const uint32_t size = avio_rb32(io), type = avio_rb32(io);
        if (type == AV_RB32("IEND")) return frames >= told;
        frames += type == AV_RB32("fcTL");
        if (type == AV_RB32("acTL") && size >= 4) {
            told = avio_rb32(io);
            avio_skip(io, (int64_t)size); /* the rest, and the checksum */
        }
        else {
            avio_skip(io, (int64_t)size + 4);
        }
    }
    return false;
}

typedef struct kind {
    const char *format;
    int64_t (*told)(const uint8_t *head, size_t n);
    bool (*ends)(AVIOContext *io);
} kind;

static const kind KINDS[] = {
    {"aiff", told_by_aiff, NULL}, {"apng", NULL, apng_ends},
    {"au", told_by_au, NULL},     {"flv", told_by_flv, NULL},
    {"gif", NULL, gif_ends},      {"matroska,webm", told_by_matroska, NULL},
    {"ogg", NULL, ogg_ends},
};

bool av_ending_is_missing(const char *format, const av_input *in, AVIOContext *io)
{
    const kind *k = KINDS, *end = KINDS + sizeof(KINDS) / sizeof(*KINDS);
    while (k < end && strcmp(k->format, format) != 0) k++;
    if (k == end || !in->known) return false;
    if (k->told) {
        const int64_t size = in->size >= 0 ? in->size : in->known;
        return k->told(in->head, head_size(in)) > size;
    }
    if (!io || !(io->seekable & AVIO_SEEKABLE_NORMAL)) return false;
    const int64_t at = avio_tell(io);
    const bool ends = k->ends(io);
    return avio_seek(io, at, SEEK_SET) >= 0 && !ends;
}
