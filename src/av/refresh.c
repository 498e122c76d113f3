#include "av/refresh.h"

#include <string.h>

enum {
    NAL_SLICE = 1,
    NAL_IDR = 5,
    NAL_SEI = 6,
    HEVC_NAL_VCL = 32, /* types below are slices */
    SEI_RECOVERY_POINT = 6,
    MAX_COUNT = 1 << 16, /* of pictures: H.264 numbers no more than that */
};

typedef struct unit {
    const uint8_t *at, *end;
} unit;

av_refresh av_refresh_of(enum AVCodecID codec, const uint8_t *extradata, int size)
{
    av_refresh r = {.told = codec == AV_CODEC_ID_H264, .hevc = codec == AV_CODEC_ID_HEVC};
    const int at = r.hevc ? 21 : 4; /* of avcC and hvcC */
    if (extradata && size > at && extradata[0] == 1) r.lengths = (extradata[at] & 3) + 1;
    return r;
}

/* --- units --- */

static const uint8_t *start_code(const uint8_t *at, const uint8_t *end)
{
    for (; end - at >= 3; at++)
        if (!at[0] && !at[1] && at[2] == 1) return at;
    return end;
}

/* The next one, which has a byte at least, from `*rest` on. */
static bool next_unit(const av_refresh *r, unit *rest, unit *out)
{
    if (!r->lengths) {
        const uint8_t *code = start_code(rest->at, rest->end);
        if (rest->end - code < 4) return false;
        *out = (unit){code + 3, start_code(code + 3, rest->end)};
        rest->at = out->end;
        return out->at < out->end;
    }
    size_t n = 0;
    if (rest->end - rest->at <= r->lengths) return false;
    for (int i = 0; i < r->lengths; i++) n = n << 8 | *rest->at++;
    if (!n || n > (size_t)(rest->end - rest->at)) return false;
    *out = (unit){rest->at, rest->at + n};
    rest->at += n;
    return true;
}

/* --- bits --- */

typedef struct bits {
    unit from;
    int zeros, have;
    uint8_t byte;
} bits;

/* Without the bytes that keep start codes out; -1: no more. */
static int next_byte(bits *b)
{
    if (b->zeros >= 2 && b->from.at < b->from.end && *b->from.at == 3) {
        b->from.at++;
        b->zeros = 0;
    }
    if (b->from.at == b->from.end) return -1;
    b->zeros = *b->from.at ? 0 : b->zeros + 1;
    return *b->from.at++;
}

static int next_bit(bits *b)
{
    if (!b->have) {
        const int byte = next_byte(b);
        if (byte < 0) return -1;
        b->byte = (uint8_t)byte;
        b->have = 8;
    }
    return b->byte >> --b->have & 1;
}

/* A number as Exp-Golomb has it; 0: none that can be. */
static int number(bits *b)
{
    int zeros = 0, bit, value = 1;
    while ((bit = next_bit(b)) == 0) zeros++;
    if (bit < 0 || zeros > 16) return 0;
    for (; zeros; zeros--) {
        if ((bit = next_bit(b)) < 0) return 0;
        value = value << 1 | bit;
    }
    return value - 1 < MAX_COUNT ? value - 1 : 0;
}

/* A type or a size of a message; -1: there is no more. */
static int message_number(bits *b)
{
    int sum = 0, byte;
    while ((byte = next_byte(b)) == 255 && sum < 1 << 24) sum += byte;
    return byte < 0 ? -1 : sum + byte;
}

/* How many pictures it says it takes; 0: it says nothing of that. */
static int recovery_count(unit sei)
{
    bits b = {.from = {sei.at + 1, sei.end}};
    for (;;) {
        const int type = message_number(&b);
        const int size = type < 0 ? -1 : message_number(&b);
        if (size < 0) return 0;
        if (type == SEI_RECOVERY_POINT) return number(&b);
        for (int i = 0; i < size; i++)
            if (next_byte(&b) < 0) return 0;
    }
}

/* --- packets --- */

static unit all_of(const AVPacket *packet)
{
    const bool any = packet->size > 0; /* data may be NULL otherwise */
    return (unit){packet->data, any ? packet->data + packet->size : packet->data};
}

/* How many pictures the refresh takes that begins here; 0: it is none. */
static int count(const av_refresh *r, const AVPacket *key)
{
    unit rest = all_of(key), u;
    int n = 0;
    while (r->told && !n && next_unit(r, &rest, &u)) {
        const int type = *u.at & 31;
        if (type >= NAL_SLICE && type <= NAL_IDR) break;
        if (type == NAL_SEI) n = recovery_count(u);
    }
    return n;
}

bool av_refresh_begin(av_refresh *r, const AVPacket *key)
{
    r->second = false;
    r->left = count(r, key);
    return !r->left;
}

static bool is_referred_to(const av_refresh *r, const AVPacket *packet)
{
    unit rest = all_of(packet), u;
    while (next_unit(r, &rest, &u)) {
        const int type = *u.at & 31;
        if (type >= NAL_SLICE && type <= NAL_IDR) return *u.at & 0x60;
    }
    return false;
}

bool av_refresh_next(av_refresh *r, const AVPacket *packet)
{
    if (!r->left) return true;
    if (r->second) {
        r->left -= is_referred_to(r, packet);
    }
    else if (packet->flags & AV_PKT_FLAG_KEY) {
        r->second = true;
        r->left = count(r, packet);
    }
    return !r->left;
}

bool av_refresh_look(const av_refresh_looks *l, size_t at)
{
    return l->n < AV_REFRESH_LOOKS || at <= l->skipped_to;
}

void av_refresh_looked(av_refresh_looks *l, size_t at, size_t seen)
{
    l->n += l->n < AV_REFRESH_LOOKS;
    l->skipped_to = at > seen ? at - seen : 0;
}

bool av_has_slice(const av_refresh *r, const AVPacket *packet)
{
    unit rest = all_of(packet), u;
    while (next_unit(r, &rest, &u)) {
        const int type = *u.at & 31;
        if (r->hevc ? (*u.at >> 1 & 63) < HEVC_NAL_VCL : type >= NAL_SLICE && type <= NAL_IDR)
            return true;
    }
    return false;
}
