#include "av/video_reader.h"
#include "base/alloc.h"
#include "tests/video_make.h"

typedef struct made {
    stk_demuxer *demuxer;
    stk_video_reader *reader;
    stk_video_plan *plan;
} made;

static void done(made *m)
{
    mod_video_plan_free(&m->plan);
    mod_video_reader_free(&m->reader);
    mod_demuxer_free(&m->demuxer);
}

static made open_video(const stk_decode_opts *opts)
{
    made m = {.demuxer = make_video_demuxer()};
    CHECK_EQ(mod_video_reader_new(m.demuxer, opts, &m.reader, NULL), STK_OK);
    return m;
}

static size_t decoded(const made *m)
{
    stk_video_reader_stats stats;
    mod_video_reader_get_stats(m->reader, &stats);
    return stats.num_decoded;
}

/* The next clip: each byte of frame i is i. */
static void check_clip(made *m, const size_t *frames, size_t n)
{
    stk_spec spec;
    stk_buffer *mem;
    CHECK_EQ(mod_video_plan_next(m->plan, &spec, &mem, NULL), STK_OK);
    CHECK(spec.ndim == 4 && spec.shape[0] == (int64_t)n);
    for (size_t i = 0; i < n * VIDEO_BYTES; i++)
        CHECK_EQ(stk_buffer_data(mem)[i], frames[i / VIDEO_BYTES]);
    stk_buffer_unref(&mem);
}

static void check_end(made *m)
{
    stk_spec spec;
    stk_buffer *mem;
    CHECK_EQ(mod_video_plan_next(m->plan, &spec, &mem, NULL), STK_EEND);
    CHECK(!mem);
}

static void clips_in_any_order(void)
{
    static const size_t frames[] = {7, 8, 2, 2, 0, 5, 1, 2, 3}, lengths[] = {2, 1, 3, 3};
    made m = open_video(NULL);
    CHECK_EQ(mod_video_reader_length(m.reader), VIDEO_FRAMES);
    CHECK_EQ(mod_video_plan_new(m.reader, frames, lengths, 4, 0, &m.plan, NULL), STK_OK);
    check_clip(&m, frames, 2);
    check_clip(&m, frames + 2, 1);
    check_clip(&m, frames + 3, 3);
    check_clip(&m, frames + 6, 3);
    check_end(&m);
    done(&m);
}

static void times_and_keys(void)
{
    int64_t times[VIDEO_FRAMES + 1] = {[VIDEO_FRAMES] = 77};
    bool keys[VIDEO_FRAMES + 1] = {false};
    stk_ratio tb;
    made m = open_video(NULL);
    mod_video_reader_times(m.reader, &tb, times, keys, VIDEO_FRAMES + 1);
    CHECK(tb.num == 1 && tb.den == 25);
    for (int i = 0; i < VIDEO_FRAMES; i++) CHECK(times[i] == i && keys[i]); /* raw pictures */
    CHECK(times[VIDEO_FRAMES] == 77 && !keys[VIDEO_FRAMES]);
    done(&m);
}

/* Every picture is a key frame, so only what is wanted is decoded. */
static void nothing_else_is_decoded(void)
{
    static const size_t frames[] = {6, 2, 3}, lengths[] = {1, 2};
    made m = open_video(NULL);
    CHECK_EQ(mod_video_plan_new(m.reader, frames, lengths, 2, 0, &m.plan, NULL), STK_OK);
    check_clip(&m, frames, 1);
    CHECK_EQ(decoded(&m), 1);
    check_clip(&m, frames + 1, 2);
    CHECK_EQ(decoded(&m), 3);
    done(&m);
}

static void wrong_plans(void)
{
    stk_diag diag;
    made m = open_video(NULL);
    CHECK_EQ(mod_video_plan_new(m.reader, &(size_t){9}, &(size_t){1}, 1, 0, &m.plan, &diag),
             STK_ENOTFOUND);
    CHECK(!m.plan && strstr(diag.text, "there is no frame 9, of 9"));
    CHECK_EQ(mod_video_plan_new(m.reader, NULL, &(size_t){0}, 1, 0, &m.plan, &diag), STK_EINVAL);
    const size_t most[] = {SIZE_MAX, 2};
    CHECK_EQ(mod_video_plan_new(m.reader, NULL, most, 2, 0, &m.plan, &diag), STK_ELIMIT);
    CHECK_EQ(mod_video_plan_new(m.reader, NULL, NULL, 0, 0, &m.plan, &diag), STK_OK);
    check_end(&m);
    done(&m);
}

static void a_second_user_is_told(void)
{
    stk_spec spec;
    stk_buffer *mem;
    stk_diag diag;
    made m = open_video(NULL);
    CHECK_EQ(mod_video_plan_new(m.reader, &(size_t){4}, &(size_t){1}, 1, 0, &m.plan, NULL), STK_OK);
    CHECK(!atomic_flag_test_and_set(&m.reader->busy));
    CHECK_EQ(mod_video_plan_next(m.plan, &spec, &mem, &diag), STK_EAGAIN);
    CHECK(!mem && strstr(diag.text, "one thread at a time"));
    atomic_flag_clear(&m.reader->busy);
    check_clip(&m, &(size_t){4}, 1);
    done(&m);
}

/* What the file had at first is not there any more: loud, whatever is decoded. */
static void a_file_that_changes(void)
{
    stk_spec spec;
    stk_buffer *mem;
    stk_diag diag;
    made m = open_video(NULL);
    m.reader->index.list[0].size--;
    CHECK_EQ(mod_video_plan_new(m.reader, &(size_t){0}, &(size_t){1}, 1, 0, &m.plan, NULL), STK_OK);
    CHECK_EQ(mod_video_plan_next(m.plan, &spec, &mem, &diag), STK_EUNSUPPORTED);
    CHECK(!mem && strstr(diag.text, "not what it was at first"));
    done(&m);
}

static void torture(const char *filter)
{
    static const size_t frames[] = {7, 2, 3, 2}, lengths[] = {1, 2, 1};
    const stk_decode_opts opts = {.filter = filter};
    stk_err err;
    made m = {.demuxer = make_video_demuxer()};
    TORTURE (err) {
        stk_spec spec;
        stk_buffer *mem = NULL;
        err = mod_video_reader_new(m.demuxer, &opts, &m.reader, NULL);
        if (!err) err = mod_video_plan_new(m.reader, frames, lengths, 3, 0, &m.plan, NULL);
        for (int i = 0; i < 3 && !err; i++) {
            err = mod_video_plan_next(m.plan, &spec, &mem, NULL);
            CHECK(!err == !!mem);
            stk_buffer_unref(&mem);
        }
        CHECK(!err || err == STK_ENOMEM);
        mod_video_plan_free(&m.plan);
        mod_video_reader_free(&m.reader);
    }
    done(&m);
}

static void every_allocation_fails(void)
{
    torture(NULL);
    torture("hflip");
}

TESTS(TEST(clips_in_any_order), TEST(times_and_keys), TEST(nothing_else_is_decoded),
      TEST(wrong_plans), TEST(a_second_user_is_told), TEST(a_file_that_changes),
      TEST(every_allocation_fails))
