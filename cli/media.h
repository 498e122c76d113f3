/* What FFmpeg knows of a file: its streams, and the packets in them. */
#ifndef STK_CLI_MEDIA_H
#define STK_CLI_MEDIA_H

#include <stoker/av_demux.h>

#include "json.h"

enum { MEDIA_STREAMS = 16 }; /* at most so many are told apart */

typedef struct media_stream {
    stk_stream_info info;
    stk_av_codec_info codec; /* if info.media is one */
    int64_t packets, keys, bytes;
    bool ends_early; /* its last packet is damaged, or more should follow */
} media_stream;

typedef struct media_facts {
    stk_demuxer_info info;
    int32_t num_streams; /* in the file; 0: it could not be opened */
    bool ends_early;     /* a stream is */
    media_stream streams[MEDIA_STREAMS];
} media_facts;

/* Reads all packets, and decodes nothing.  A failure says why it cannot be opened, what is broken,
 * or that the file ends early; STK_EUNSUPPORTED: there is no FFmpeg, or it knows nothing of that
 * kind. */
stk_err media_look(const char *path, media_facts *out, stk_diag *diag);

/* "mov,mp4, 2.000 s, 2 streams": cut to `size`. */
void media_text(const media_facts *m, char *dst, size_t size);

/* "video, h264, 64x48, ..." of one stream. */
void media_stream_text(const media_stream *s, char *dst, size_t size);

/* The same as pieces of an object, with "format". */
void media_json(const media_facts *m, json *j);

#endif /* STK_CLI_MEDIA_H */
