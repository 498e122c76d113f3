#include "ops/frame_picks.h"

#include "base/alloc.h"
#include "tests/check.h"

/* "2 5 8 | 0 1 2": the indices, and which are picked. */
static void check_picks(const stk_video_opts *o, int64_t total, const char *want)
{
    stk_frame_picks p;
    int64_t start = -1;
    char text[256] = "";
    size_t used = 0;
    CHECK_EQ(stk_frame_picks_make(o, NULL, total, &start, &p, NULL), STK_OK);
    for (size_t i = 0; i < p.num; i++)
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%d ", (int)p.index[i]);
    used += (size_t)snprintf(text + used, sizeof(text) - used, "|");
    for (size_t i = 0; i < p.n; i++)
        used += (size_t)snprintf(text + used, sizeof(text) - used, " %d", (int)p.pick[i]);
    if (strcmp(text, want) != 0) fprintf(stderr, "%s, not %s\n", text, want);
    CHECK(!strcmp(text, want));
    stk_frame_picks_fini(&p);
    CHECK(!p.index && !p.pick);
}

static void clips(void)
{
    stk_video_opts o = {.frames = 3, .stride = 3};
    check_picks(&o, 7, "0 3 6 | 0 1 2");
    check_picks(&o, 100, "0 3 6 | 0 1 2");
    o.where = STK_WHERE_MIDDLE;
    check_picks(&o, 11, "2 5 8 | 0 1 2");
    check_picks(&o, 12, "2 5 8 | 0 1 2");
}

static void of_all_frames(void)
{
    stk_video_opts o = {.stride = 3, .where = STK_WHERE_ALL};
    check_picks(&o, 7, "0 3 6 | 0 1 2");
    check_picks(&o, 1, "0 | 0");
    o.stride = 1, o.frames = 4;
    check_picks(&o, 4, "0 1 2 3 | 0 1 2 3");
    check_picks(&o, 40, "5 15 25 35 | 0 1 2 3");
    check_picks(&o, 2, "0 1 | 0 0 1 1");
    check_picks(&o, 1, "0 | 0 0 0 0");
}

static void short_files(void)
{
    stk_video_opts o = {.frames = 3, .stride = 3, .where = STK_WHERE_MIDDLE};
    stk_frame_picks p;
    stk_diag diag = {0};
    int64_t start = -1;
    CHECK_EQ(stk_frame_picks_make(&o, NULL, 6, &start, &p, &diag), STK_EINVAL);
    CHECK(strstr(diag.text, "6 frames, but a clip of 3 at a stride of 3 needs 7 from frame 0 on"));
    CHECK(!p.index);
    o.repeat = true;
    check_picks(&o, 6, "0 3 | 0 1 1");
    check_picks(&o, 1, "0 | 0 0 0");
    start = 1; /* decided by another part */
    CHECK_EQ(stk_frame_picks_make(&o, NULL, 1, &start, &p, &diag), STK_EINVAL);
    CHECK_EQ(stk_frame_picks_make(&o, NULL, INT64_C(1) << 31, &start, &p, &diag), STK_ELIMIT);
}

static void memory_may_run_out(void)
{
    stk_err err;
    TORTURE (err) {
        const stk_video_opts o = {.frames = 3, .stride = 3};
        stk_frame_picks p;
        int64_t start = -1;
        err = stk_frame_picks_make(&o, NULL, 10, &start, &p, NULL);
        stk_frame_picks_fini(&p);
    }
}

TESTS(TEST(clips), TEST(of_all_frames), TEST(short_files), TEST(memory_may_run_out))
