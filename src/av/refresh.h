/*
 * av_refresh: where pictures of H.264 are complete that begin at a packet with the key flag.
 *
 *     key    P    P    P    ...    P         recovery_frame_cnt pictures that others refer to
 *     ▓░░░  ▓▓░░ ▓▓▓░ ▓▓▓▓   ──►   complete
 *
 * Most such packets are whole pictures.  Of a gradual refresh (x264's intra-refresh) each one holds
 * a part of it, and the key flag is where the first part comes.  FFmpeg may lose the very first
 * part, whose picture refers to others that it has not, so the second refresh is what counts.
 *
 * Threads: one at a time.
 */
#ifndef STK_AV_REFRESH_H
#define STK_AV_REFRESH_H

#include <stdbool.h>
#include <stddef.h>

#include "av/compat.h"

enum { AV_REFRESH_LOOKS = 8 }; /* one after the other */

typedef struct av_refresh {
    bool told; /* by packets of this codec: H.264 */
    bool hevc;
    int lengths; /* bytes of the size before each unit; 0: start codes */
    bool second; /* the first refresh is behind */
    int left;    /* pictures that others refer to, until they are complete */
} av_refresh;

/* `extradata` as codecs have it; may be NULL. */
av_refresh av_refresh_of(enum AVCodecID codec, const uint8_t *extradata, int size);

/* Decoding begins with this packet.  Whether its picture is complete. */
bool av_refresh_begin(av_refresh *r, const AVPacket *key);

/* The packet that is decoded next.  Whether what is shown from it on is complete. */
bool av_refresh_next(av_refresh *r, const AVPacket *packet);

/* Which gradual refreshes are looked at, from the last one back, for one that is complete in time:
 * packets are untrusted, and each look may read all up to that time.  Those that begin with the
 * last few, and then each at least as many packets further back as the look before it read, so that
 * all looks together read a few times the packets there are. */
typedef struct av_refresh_looks {
    int n;
    size_t skipped_to; /* the last that may be looked at, after so many; all zero: none was */
} av_refresh_looks;

/* Whether the one that begins with packet `at` is looked at. */
bool av_refresh_look(const av_refresh_looks *l, size_t at);

/* It was, by reading `seen` packets, and is not complete in time. */
void av_refresh_looked(av_refresh_looks *l, size_t at, size_t seen);

/* Whether a packet of H.264 or HEVC holds a part of a picture at least. */
bool av_has_slice(const av_refresh *r, const AVPacket *packet);

#endif /* STK_AV_REFRESH_H */
