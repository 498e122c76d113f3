/* For tests: packets of a raw video of 4 x 2 pixels, in which every byte of frame i is i. */
#ifndef STK_TESTS_VIDEO_MAKE_H
#define STK_TESTS_VIDEO_MAKE_H

#include <string.h>

#include "av/call.h"
#include "av/module.h"
#include "tests/check.h"

enum { VIDEO_FRAMES = 9, VIDEO_BYTES = 4 * 2 * 3 / 2 };

/* YUV4MPEG2, which every FFmpeg reads. */
static inline stk_demuxer *make_video_demuxer(void)
{
    static const char head[] = "YUV4MPEG2 W4 H2 F25:1 Ip A1:1 C420jpeg\n", frame[] = "FRAME\n";
    static bool started;
    const size_t each = sizeof(frame) - 1 + VIDEO_BYTES;
    stk_buffer *bytes;
    stk_demuxer *demuxer;
    if (!started) stk_av_call_start();
    started = true;
    CHECK_EQ(stk_buffer_new(sizeof(head) - 1 + VIDEO_FRAMES * each, &bytes), STK_OK);
    uint8_t *at = stk_buffer_writable(bytes);
    memcpy(at, head, sizeof(head) - 1);
    at += sizeof(head) - 1;
    for (int i = 0; i < VIDEO_FRAMES; i++, at += each) {
        memcpy(at, frame, sizeof(frame) - 1);
        memset(at + sizeof(frame) - 1, i, VIDEO_BYTES);
    }
    CHECK_EQ(mod_demuxer_open(&(stk_av_input){.bytes = bytes}, NULL, &demuxer, NULL), STK_OK);
    stk_buffer_unref(&bytes);
    return demuxer;
}

static inline stk_packets *make_video(void)
{
    stk_demuxer *demuxer = make_video_demuxer();
    stk_packets *packets;
    CHECK_EQ(mod_demuxer_read(demuxer, STK_MEDIA_VIDEO, NULL, NULL, &packets, NULL), STK_OK);
    mod_demuxer_free(&demuxer);
    return packets;
}

#endif /* STK_TESTS_VIDEO_MAKE_H */
