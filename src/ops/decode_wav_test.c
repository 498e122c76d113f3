#include <stoker/clip.h>
#include <stoker/run.h>

#include "base/alloc.h"
#include "tests/tree.h"

enum { FRAMES = 3000, RATE = 8000 };

static void put(FILE *f, uint64_t v, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) CHECK(fputc((int)(v >> (8 * i) & 0xff), f) != EOF);
}

static int16_t value(unsigned file, unsigned frame, unsigned channel)
{
    return (int16_t)(7 * frame + 1000 * channel + 31 * file);
}

/* Sixteen bits. */
static void write_wav(const char *path, unsigned file, unsigned channels, unsigned frames)
{
    const uint32_t bytes = frames * channels * 2;
    FILE *f = fopen(path, "wb");
    CHECK(f);
    CHECK(fwrite("RIFF", 1, 4, f) == 4);
    put(f, 36 + bytes, 4);
    CHECK(fwrite("WAVEfmt ", 1, 8, f) == 8);
    put(f, 16, 4), put(f, 1, 2), put(f, channels, 2), put(f, RATE, 4);
    put(f, RATE * channels * 2, 4), put(f, channels * 2, 2), put(f, 16, 2);
    CHECK(fwrite("data", 1, 4, f) == 4);
    put(f, bytes, 4);
    for (unsigned i = 0; i < frames; i++)
        for (unsigned c = 0; c < channels; c++) put(f, (uint16_t)value(file, i, c), 2);
    CHECK(!fclose(f));
}

struct set {
    struct tree tree;
    char paths[2][128];
};

static struct set make(unsigned channels, unsigned first, unsigned second)
{
    struct set s = {.tree = tree_new()};
    for (unsigned i = 0; i < 2; i++) {
        snprintf(s.paths[i], sizeof(s.paths[i]), "%s/%u.wav", s.tree.path, i);
        write_wav(s.paths[i], i, channels, i ? second : first);
    }
    return s;
}

static stk_err decode(const struct set *s, const stk_audio_opts *opts, stk_batch **out,
                      stk_diag *diag)
{
    static const char *const parts[] = {"audio"};
    const char *const paths[] = {s->paths[0], s->paths[1]};
    const char *const *const all[] = {paths};
    stk_plan *plan;
    stk_run *run = NULL;
    *out = NULL;
    stk_err err = stk_plan_new(&plan);
    if (err) return err;
    stk_plan_source(
        plan,
        stk_list_source(
            &(stk_list_opts){.num_samples = 2, .num_parts = 1, .part_names = parts, .paths = all},
            diag));
    stk_plan_pipe(plan, stk_op_read(NULL, diag), NULL);
    stk_plan_pipe(plan, stk_op_decode_wav(opts, diag), NULL);
    stk_plan_batch(plan, 2, NULL);
    stk_plan_sink(plan, 1);
    err = stk_run_start(plan, &(stk_run_opts){.num_threads = 1}, &run, diag);
    if (!err) err = stk_run_next(run, STK_FOREVER, out, diag);
    stk_run_free(&run);
    stk_plan_free(&plan);
    return err;
}

static stk_tensor field(const stk_batch *b, const char *name)
{
    stk_tensor t;
    CHECK(stk_batch_find(b, name) >= 0);
    CHECK_EQ(stk_batch_array(b, (size_t)stk_batch_find(b, name), &t, NULL), STK_OK);
    return t;
}

static void check_sound(const stk_batch *b, unsigned channels, int64_t time, const int64_t there[2])
{
    const stk_tensor t = field(b, "audio"), mask = field(b, "mask");
    const float *p = t.data;
    CHECK(t.dtype == STK_FLOAT32 && t.ndim == 3 && mask.dtype == STK_BOOL && mask.ndim == 2);
    CHECK(t.shape[0] == 2 && t.shape[1] == channels && t.shape[2] == time);
    CHECK(mask.shape[0] == 2 && mask.shape[1] == time);
    for (unsigned i = 0; i < 2; i++) {
        for (unsigned c = 0; c < channels; c++)
            for (int64_t k = 0; k < time; k++, p++)
                CHECK(*p == (k < there[i] ? (float)value(i, (unsigned)k, c) / 32768 : 0));
        for (int64_t k = 0; k < time; k++)
            CHECK_EQ(((uint8_t *)mask.data)[(int64_t)i * time + k], k < there[i]);
    }
}

/* Known beforehand or not, in slots or copied: the same. */
static void clips_and_masks(void)
{
    struct set s = make(2, FRAMES, 100);
    for (int known = 0; known < 2; known++) {
        const stk_audio_opts o = {
            .seconds = 0.25, .sample_rate = known ? RATE : 0, .channels = known ? 2 : 0};
        stk_batch *b;
        stk_diag diag = {0};
        CHECK_EQ(decode(&s, &o, &b, &diag), STK_OK);
        check_sound(b, 2, RATE / 4, (const int64_t[]){RATE / 4, 100});
        stk_batch_unref(&b);
    }
    tree_free(&s.tree);
}

static void options_are_checked(void)
{
    static const stk_audio_opts bad[] = {
        {.seconds = 0},
        {.seconds = -1},
        {.seconds = 1e7},
        {.seconds = 1, .where = (stk_where)7},
        {.seconds = 1, .sample_rate = -1},
        {.seconds = 1e-5, .sample_rate = 8000},
        {.seconds = 1, .channels = 65},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        stk_diag diag = {0};
        CHECK(!stk_op_decode_wav(&bad[i], &diag));
        CHECK_EQ(diag.err, STK_EINVAL);
    }
}

static void memory_may_run_out(void)
{
    struct set s = make(2, 500, 40);
    stk_err err;
    TORTURE (err) {
        const stk_audio_opts o = {.seconds = 0.05, .sample_rate = RATE, .channels = 2};
        stk_batch *b;
        stk_diag diag = {0};
        err = decode(&s, &o, &b, &diag);
        /* A constructor that failed inside of the plan is its bad argument. */
        CHECK(!err || err == STK_ENOMEM || err == STK_EINVAL || err == STK_EAGAIN);
        if (!err) check_sound(b, 2, RATE / 20, (const int64_t[]){RATE / 20, 40});
        stk_batch_unref(&b);
        if (!err && !stk_fault_armed()) err = STK_ENOMEM; /* it coped */
    }
    tree_free(&s.tree);
}

TESTS(TEST(clips_and_masks), TEST(options_are_checked), TEST(memory_may_run_out))
