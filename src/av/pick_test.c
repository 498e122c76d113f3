#include "av/decoder.h"
#include "base/alloc.h"
#include "tests/video_make.h"

static stk_err pick(const stk_packets *packets, const stk_decode_opts *opts, const size_t *indices,
                    size_t n, stk_frames **out, stk_diag *diag)
{
    stk_decoder *d;
    *out = NULL;
    stk_err err = mod_decoder_new(packets->codec, opts, &d, diag);
    if (err) return err;
    err = mod_decoder_pick(d, packets, indices, n, out, diag);
    mod_decoder_free(&d);
    return err;
}

static void frames_by_number(void)
{
    stk_packets *packets = make_video();
    stk_frames *frames;
    stk_diag diag;
    const size_t some[] = {0, 3, 4, 8};
    CHECK_EQ(packets->n, VIDEO_FRAMES);
    CHECK_EQ(pick(packets, NULL, some, 4, &frames, &diag), STK_OK);
    CHECK_EQ(frames->n, 4);
    for (size_t i = 0; i < 4; i++) {
        CHECK_EQ(frames->list[i]->data[0][0], some[i]);
        CHECK_EQ(frames->list[i]->pts, some[i]);
    }
    mod_frames_unref(&frames);
    for (size_t i = 0; i < packets->n; i++) packets->list[i]->pts = AV_NOPTS_VALUE; /* counted */
    CHECK_EQ(pick(packets, NULL, some, 4, &frames, &diag), STK_OK);
    for (size_t i = 0; i < 4; i++) CHECK_EQ(frames->list[i]->data[0][0], some[i]);
    mod_frames_unref(&frames);
    mod_packets_unref(&packets);
}

static void wrong_numbers(void)
{
    stk_packets *packets = make_video();
    stk_frames *frames;
    stk_diag diag;
    const size_t none[] = {VIDEO_FRAMES}, twice[] = {1, 1}, back[] = {2, 1}, huge[] = {SIZE_MAX};
    CHECK_EQ(pick(packets, NULL, none, 1, &frames, &diag), STK_ENOTFOUND);
    CHECK(strstr(diag.text, "there is no frame 9, of 9"));
    CHECK_EQ(pick(packets, NULL, huge, 1, &frames, &diag), STK_ENOTFOUND);
    CHECK_EQ(pick(packets, NULL, twice, 2, &frames, &diag), STK_EINVAL);
    CHECK_EQ(pick(packets, NULL, back, 2, &frames, &diag), STK_EINVAL);
    CHECK_EQ(pick(packets, NULL, none, 0, &frames, &diag), STK_EINVAL);
    CHECK(!frames);
    mod_packets_unref(&packets);
}

/* The decoder does not say whose turn it is any more. */
static void what_waited_is_dropped(void)
{
    stk_packets *packets = make_video();
    stk_decoder *d;
    stk_frames *frames;
    CHECK_EQ(mod_decoder_new(packets->codec, NULL, &d, NULL), STK_OK);
    CHECK_EQ(mod_decoder_put(d, packets, NULL), STK_OK);
    CHECK_EQ(mod_decoder_pick(d, packets, &(size_t){5}, 1, &frames, NULL), STK_OK);
    CHECK_EQ(frames->list[0]->data[0][0], 5);
    mod_frames_unref(&frames);
    CHECK_EQ(mod_decoder_next(d, 0, 0, &frames, NULL), STK_OK);
    CHECK_EQ(frames->n, 0);
    mod_frames_unref(&frames);
    mod_decoder_free(&d);
    mod_packets_unref(&packets);
}

static void torture(stk_packets *packets, const char *filter)
{
    const size_t some[] = {1, 2, 7};
    stk_err err;
    TORTURE (err) {
        stk_frames *frames;
        err = pick(packets, &(stk_decode_opts){.filter = filter}, some, 3, &frames, NULL);
        CHECK(!err || err == STK_ENOMEM);
        CHECK(err ? !frames : frames->n == 3);
        mod_frames_unref(&frames);
    }
}

static void every_allocation_fails(void)
{
    stk_packets *packets = make_video();
    torture(packets, NULL);
    torture(packets, "hflip");
    packets->list[2]->pts = AV_NOPTS_VALUE;
    torture(packets, NULL);
    mod_packets_unref(&packets);
}

TESTS(TEST(frames_by_number), TEST(wrong_numbers), TEST(what_waited_is_dropped),
      TEST(every_allocation_fails))
