#include "av/frame_list.h"
#include "av/packet_list.h"
#include "base/alloc.h"
#include "tests/video_make.h"

#define SOURCE(name) "buffer@" name "=video_size=4x2:pix_fmt=yuv420p:time_base=1/25"
#define SIDE_BY_SIDE                                   \
    SOURCE("a")                                        \
    "[a];" SOURCE("b") "[b];[a][b]hstack,split[x][y];" \
                       "[x]buffersink@x;[y]buffersink@y"

static stk_frames *make_frames(void)
{
    stk_packets *packets = make_video();
    stk_decoder *d;
    stk_frames *frames;
    CHECK_EQ(mod_decoder_new(packets->codec, NULL, &d, NULL), STK_OK);
    CHECK_EQ(mod_decoder_decode(d, packets, true, &frames, NULL), STK_OK);
    CHECK_EQ(frames->n, VIDEO_FRAMES);
    mod_decoder_free(&d);
    mod_packets_unref(&packets);
    return frames;
}

static size_t count(stk_filter_graph *g, const char *name, size_t max_frames)
{
    stk_frames *frames;
    CHECK_EQ(mod_filter_graph_get(g, name, max_frames, 0, &frames, NULL), STK_OK);
    const size_t n = frames->n;
    mod_frames_unref(&frames);
    return n;
}

static void inputs_and_outputs(void)
{
    stk_frames *frames = make_frames();
    stk_filter_graph *g;
    stk_diag diag;
    CHECK_EQ(mod_filter_graph_new(SIDE_BY_SIDE, &g, &diag), STK_OK);
    CHECK(!strcmp(mod_filter_graph_name(g, false, 1), "buffer@b"));
    CHECK(!mod_filter_graph_name(g, false, 2));
    CHECK_EQ(mod_filter_graph_add(g, "a", frames, &diag), STK_OK);
    CHECK_EQ(count(g, "x", 0), 0);
    CHECK_EQ(mod_filter_graph_add(g, "buffer@b", frames, &diag), STK_OK);
    CHECK_EQ(count(g, "x", 2), 2);
    CHECK_EQ(count(g, "buffersink@y", 0), VIDEO_FRAMES);
    CHECK_EQ(mod_filter_graph_add(g, NULL, frames, &diag), STK_EINVAL);
    CHECK_EQ(mod_filter_graph_add(g, "c", frames, &diag), STK_ENOTFOUND);
    CHECK(strstr(diag.text, "buffer@a, buffer@b"));
    CHECK_EQ(mod_filter_graph_flush(g, &diag), STK_OK);
    CHECK_EQ(count(g, "x", 0) + 2, VIDEO_FRAMES);
    CHECK_EQ(mod_filter_graph_add(g, "a", frames, &diag), STK_EINVAL);
    mod_filter_graph_free(&g);
    CHECK_EQ(mod_filter_graph_new("nosuch", &g, &diag), STK_EINVAL);
    CHECK(!g && strstr(diag.text, "No such filter"));
    mod_frames_unref(&frames);
}

static void no_more_bytes_than_allowed(void)
{
    stk_filter_graph *g;
    stk_frames *frames;
    stk_diag diag;
    CHECK_EQ(mod_filter_graph_new("color=s=64x64,buffersink", &g, &diag), STK_OK);
    CHECK_EQ(mod_filter_graph_get(g, NULL, 0, 1 << 20, &frames, &diag), STK_ELIMIT);
    CHECK(!frames);
    CHECK_EQ(count(g, NULL, 3), 3);
    mod_filter_graph_free(&g);
}

static void every_allocation_fails(void)
{
    stk_frames *frames = make_frames();
    stk_err err;
    TORTURE (err) {
        stk_filter_graph *g;
        stk_frames *made = NULL;
        stk_buffer *text = NULL;
        err = mod_filter_graph_new(SOURCE("a") ",hflip,buffersink", &g, NULL);
        if (!err) err = mod_filter_graph_add(g, NULL, frames, NULL);
        if (!err) err = mod_filter_graph_flush(g, NULL);
        if (!err) err = mod_filter_graph_get(g, NULL, 0, 0, &made, NULL);
        if (!err) err = mod_filter_graph_dump(g, &text, NULL);
        CHECK(!err || err == STK_ENOMEM);
        mod_frames_unref(&made);
        stk_buffer_unref(&text);
        mod_filter_graph_free(&g);
    }
    mod_frames_unref(&frames);
}

TESTS(TEST(inputs_and_outputs), TEST(no_more_bytes_than_allowed), TEST(every_allocation_fails))
