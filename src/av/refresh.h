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

#include "av/compat.h"

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

/* Whether a packet of H.264 or HEVC holds a part of a picture at least. */
bool av_has_slice(const av_refresh *r, const AVPacket *packet);

#endif /* STK_AV_REFRESH_H */
