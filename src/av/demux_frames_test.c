/* Reading no more of a video than frames that suffice. */
#include <string.h>

#include "av/call.h"
#include "av/module.h"
#include "av/packet_list.h"
#include "base/alloc.h"
#include "tests/check.h"

enum { FRAMES = 60, BYTES = 4 * 2 * 3 / 2, KEPT = 17 /* that are read beyond, to be sure */ };

/* YUV4MPEG2, in which all are key frames. */
static stk_packets *read_some(size_t frames, const stk_window *window, stk_media media)
{
    static const char head[] = "YUV4MPEG2 W4 H2 F25:1 Ip A1:1 C420jpeg\n", frame[] = "FRAME\n";
    const size_t each = sizeof(frame) - 1 + BYTES;
    const stk_demux_opts opts = {.frames = frames};
    stk_buffer *bytes;
    stk_demuxer *demuxer;
    stk_packets *packets;
    CHECK_EQ(stk_buffer_new(sizeof(head) - 1 + FRAMES * each, &bytes), STK_OK);
    uint8_t *at = stk_buffer_writable(bytes);
    memcpy(at, head, sizeof(head) - 1);
    at += sizeof(head) - 1;
    for (int i = 0; i < FRAMES; i++, at += each) {
        memcpy(at, frame, sizeof(frame) - 1);
        memset(at + sizeof(frame) - 1, i, BYTES);
    }
    CHECK_EQ(mod_demuxer_open(&(stk_av_input){.bytes = bytes}, &opts, &demuxer, NULL), STK_OK);
    stk_buffer_unref(&bytes);
    for (int again = 0; again < 2; again++) { /* from the beginning, each time */
        CHECK_EQ(mod_demuxer_read(demuxer, media, window, NULL, &packets, NULL), STK_OK);
        CHECK(window || packets->list[0]->data[0] == 0);
        if (!again) mod_packets_unref(&packets);
    }
    mod_demuxer_free(&demuxer);
    return packets;
}

static void check(size_t frames, const stk_window *window, stk_media media, size_t n)
{
    stk_packets *packets = read_some(frames, window, media);
    CHECK_EQ(packets->n, n);
    mod_packets_unref(&packets);
}

static void frames_that_suffice(void)
{
    stk_av_call_start();
    check(0, NULL, STK_MEDIA_VIDEO, FRAMES);
    check(1, NULL, STK_MEDIA_VIDEO, KEPT);
    check(20, NULL, STK_MEDIA_VIDEO, 19 + KEPT);
    check(FRAMES - KEPT, NULL, STK_MEDIA_VIDEO, FRAMES - 1);
    check(FRAMES, NULL, STK_MEDIA_VIDEO, FRAMES);
    check(SIZE_MAX, NULL, STK_MEDIA_VIDEO, FRAMES);
    check(5, &(stk_window){{0, 1}, {9, 1}}, STK_MEDIA_VIDEO, FRAMES); /* what the window needs */
    check(5, NULL, STK_MEDIA_IMAGE, 1);
}

TESTS(TEST(frames_that_suffice))
