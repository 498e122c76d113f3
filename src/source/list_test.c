#include <stoker/source.h>

#include "base/alloc.h"
#include "source/indexed.h"
#include "tests/check.h"

#define N 5

static const char *const images[N] = {"a/0.jpg", "a/1.jpg", "2.jpg", "b/\xff.jpg", "4"};
static const char *const masks[N] = {"m0", "m1", "m2", "m3", "m4"};
static const char *const *const paths[] = {images, masks};
static const char *const names[] = {"image", "mask"};
static const int64_t labels[N] = {7, -1, INT64_MAX, 0, 5};
static const float boxes[N][2] = {{0, 1}, {2, 3}, {4, 5}, {6, 7}, {8, 9}};
static const char *const words[N] = {"zero", "", "two", "th\xc3\xa9", "four"};
static const stk_list_column columns[] = {
    {"label", {.dtype = STK_INT64}, labels},
    {"box", {.dtype = STK_FLOAT32, .ndim = 1, .shape = {2}}, boxes},
    {"word", {.dtype = STK_DTYPE_NONE}, words},
};

static stk_list_opts full(void)
{
    return (stk_list_opts){
        .num_samples = N,
        .num_parts = 2,
        .part_names = names,
        .paths = paths,
        .num_columns = 3,
        .columns = columns,
    };
}

static void check_key(stk_source *s, int64_t id, size_t part, const char *want)
{
    char got[64];
    const stk_source_class *cls = stk_source_get_class(s);
    CHECK_EQ(cls->key(stk_source_params(s), id, part, got, sizeof(got)), STK_OK);
    CHECK(!strcmp(got, want));
    CHECK_EQ(cls->key(stk_source_params(s), id, part, got, strlen(want)), STK_ELIMIT);
}

static void keeps_what_it_was_given(void)
{
    const stk_list_opts o = full();
    stk_source *s = stk_list_source(&o, NULL);
    CHECK(s);
    const stk_source_class *cls = stk_source_get_class(s);
    void *p = stk_source_params(s);
    size_t n;
    const char *const *got_parts = cls->parts(p, &n);
    CHECK(n == 2 && !strcmp(got_parts[0], "image") && !strcmp(got_parts[1], "mask"));
    const stk_column *c = cls->columns(p, &n);
    CHECK(n == 3 && !strcmp(c[1].name, "box") && stk_spec_equal(&c[1].spec, &columns[1].spec));
    for (int64_t i = 0; i < N; i++) {
        int64_t label;
        float box[2];
        const char *word;
        check_key(s, i, 0, images[i]);
        check_key(s, i, 1, masks[i]);
        CHECK_EQ(cls->column(p, 0, i, &label), STK_OK);
        CHECK_EQ(cls->column(p, 1, i, box), STK_OK);
        CHECK_EQ(cls->column(p, 2, i, &word), STK_OK);
        CHECK_EQ(label, labels[i]);
        CHECK(!memcmp(box, boxes[i], sizeof(box)));
        CHECK(!strcmp(word, words[i]) && word != words[i]);
    }
    char dst[64];
    CHECK_EQ(cls->column(p, 3, 0, dst), STK_EINVAL);
    CHECK_EQ(cls->column(p, 0, N, dst), STK_ENOTFOUND);
    CHECK_EQ(cls->column(p, 0, -1, dst), STK_ENOTFOUND);
    CHECK_EQ(cls->key(p, 0, 2, dst, sizeof(dst)), STK_ENOTFOUND);
    CHECK_EQ(cls->key(p, N, 0, dst, sizeof(dst)), STK_ENOTFOUND);

    int64_t count;
    CHECK_EQ(stk_source_count(s, &count, NULL), STK_OK);
    CHECK_EQ(count, N);
    CHECK_EQ(cls->length(p), N);
    CHECK(stk_source_memory(s) > sizeof(boxes) && stk_source_memory(s) < 4096);
    cls->print(p, dst, sizeof(dst));
    CHECK(!strcmp(dst, "List(5 samples)"));
    stk_source_unref(&s);
    CHECK(s == NULL);
}

static void refuse(const stk_list_opts *o, const char *words_of_it)
{
    stk_diag diag = {0};
    CHECK(stk_list_source(o, &diag) == NULL);
    CHECK_EQ(diag.err, STK_EINVAL);
    if (!strstr(diag.text, words_of_it)) fprintf(stderr, "  \"%s\"\n", diag.text);
    CHECK(strstr(diag.text, words_of_it));
    CHECK(stk_list_source(o, NULL) == NULL);
}

static void bad_samples_are_named(void)
{
    stk_list_opts o = full();
    o.num_samples = 0;
    refuse(&o, "no samples");
    refuse(NULL, "no samples");
    o = full();
    o.paths = NULL;
    refuse(&o, "no paths");
    static const char *const holes[N] = {"a", "b", NULL, "d", "e"};
    static const char *const empty[N] = {"a", "", "c", "d", "e"};
    static const char *const *const with_hole[] = {images, holes}, *const *const with_empty[] = {
                                                                       empty};
    static const char *const *const half[] = {images, NULL};
    o.paths = with_hole;
    refuse(&o, "mask: sample 2 is missing");
    o.paths = half;
    refuse(&o, "mask: there is no data");
    o.paths = with_empty;
    refuse(&o, "sample 1 is an empty path");
    o = full();
    o.order.rank = 3;
    refuse(&o, "rank");
}

static void bad_names_are_named(void)
{
    static const char *const twice[] = {"image", "image"}, *const taken[] = {"image", "id"};
    static const char *const nameless[] = {"image", NULL}, *const label[] = {"image", "label"};
    stk_list_opts o = full();
    o.part_names = NULL;
    refuse(&o, "need names");
    o.part_names = twice;
    refuse(&o, "two parts");
    o.part_names = taken;
    refuse(&o, "\"id\"");
    o.part_names = nameless;
    refuse(&o, "no name");
    o.part_names = label;
    refuse(&o, "both called \"label\"");
    o = full();
    o.num_parts = STK_MAX_PARTS + 1;
    refuse(&o, "parts");
}

static void bad_columns_are_named(void)
{
    static const char *const holes[N] = {"a", "b", "c", "d", NULL};
    static const struct {
        stk_list_column column;
        const char *words;
    } bad[] = {
        {{"x", {.dtype = STK_INT64}, NULL}, "x: there is no data"},
        {{"x", {.dtype = STK_DTYPE_NONE}, NULL}, "x: there is no data"},
        {{"x", {.dtype = STK_DTYPE_NONE}, holes}, "x: sample 4 is missing"},
        {{"x", {.dtype = (stk_dtype)99}, labels}, "type"},
        {{"x", {.dtype = STK_INT8, .ndim = 1, .shape = {-1}}, labels}, "shape"},
        {{"x", {.dtype = STK_INT8, .ndim = 1, .shape = {0}}, labels}, "without elements"},
        {{NULL, {.dtype = STK_INT64}, labels}, "no name"},
        {{"key", {.dtype = STK_INT64}, labels}, "\"key\""},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        stk_list_opts o = full();
        o.num_columns = 1;
        o.columns = &bad[i].column;
        refuse(&o, bad[i].words);
    }
    const stk_list_column same[] = {columns[0], columns[0]};
    stk_list_opts o = full();
    o.num_columns = 2;
    o.columns = same;
    refuse(&o, "two columns");
    o.columns = NULL;
    refuse(&o, "columns is NULL");
    o.num_columns = 62;
    refuse(&o, "62 columns, labels included: a batch has room for 60");
    o.num_parts = 1;
    refuse(&o, "62 columns, labels included: a batch has room for 61");
}

static void no_wake(void *ctx)
{
    (void)ctx;
    check_fail(__FILE__, __LINE__, "a list never has news");
}

/* Every epoch: each sample once, then STK_EEPOCH; after the last STK_EEND, again and again. */
static void epochs_end(void)
{
    stk_list_opts o = full();
    o.order = (stk_order_opts){.shuffle = true, .seed = 3, .epochs = 3};
    stk_source *s = stk_list_source(&o, NULL);
    const stk_source_env env = {.wake = no_wake};
    void *cursor;
    CHECK_EQ(stk_indexed_open(stk_source_params(s), &env, &cursor, NULL), STK_OK);
    int64_t id, epoch, other, orders[3] = {0};
    for (int64_t e = 0; e < 3; e++) {
        int seen = 0;
        for (int i = 0; i < N; i++) {
            CHECK_EQ(stk_indexed_next_id(cursor, &id, &epoch, NULL), STK_OK);
            CHECK_EQ(epoch, e);
            seen |= 1 << id;
            orders[e] = orders[e] * N + id;
            CHECK_EQ(stk_indexed_substitute_id(cursor, id, epoch, 0, &other), STK_OK);
            CHECK(other != id && other >= 0 && other < N);
        }
        CHECK_EQ(seen, (1 << N) - 1);
        CHECK_EQ(stk_indexed_next_id(cursor, &id, &epoch, NULL), STK_EEPOCH);
    }
    CHECK(orders[0] != orders[1] || orders[1] != orders[2]);
    CHECK_EQ(stk_indexed_next_id(cursor, &id, &epoch, NULL), STK_EEND);
    CHECK_EQ(stk_indexed_next_id(cursor, &id, &epoch, NULL), STK_EEND);
    stk_indexed_close(cursor);
    stk_source_unref(&s);
}

/* Batches of all ranks have the same numbers. */
static void batches_of_ranks_have_seeds_of_their_own(void)
{
    uint64_t seeds[4];
    for (int64_t rank = 0; rank < 4; rank++) {
        stk_list_opts o = full();
        o.order = (stk_order_opts){.seed = 3, .rank = rank, .world_size = 4};
        stk_source *s = stk_list_source(&o, NULL);
        const stk_source_class *cls = stk_source_get_class(s);
        CHECK_EQ(cls->seed(stk_source_params(s)), 3);
        seeds[rank] = cls->batch_seed(stk_source_params(s));
        for (int64_t k = 0; k < rank; k++) CHECK(seeds[k] != seeds[rank]);
        stk_source_unref(&s);
    }
    CHECK_EQ(seeds[0], 3);
}

static void short_ranks_have_gaps(void)
{
    stk_list_opts o = full();
    o.order = (stk_order_opts){.rank = 1, .world_size = 4, .epochs = -1};
    stk_source *s = stk_list_source(&o, NULL);
    CHECK_EQ(stk_indexed_length(stk_source_params(s)), 2);
    CHECK_EQ(stk_indexed_epochs(stk_source_params(s)), -1);
    const stk_source_env env = {.wake = no_wake};
    void *cursor;
    CHECK_EQ(stk_indexed_open(stk_source_params(s), &env, &cursor, NULL), STK_OK);
    int64_t id, epoch;
    for (int e = 0; e < 20; e++) {
        CHECK_EQ(stk_indexed_next_id(cursor, &id, &epoch, NULL), STK_OK);
        CHECK_EQ(id, 1);
        CHECK_EQ(stk_indexed_next_id(cursor, &id, &epoch, NULL), STK_ENOTFOUND);
        CHECK_EQ(stk_indexed_next_id(cursor, &id, &epoch, NULL), STK_EEPOCH);
    }
    CHECK_EQ(stk_indexed_substitute_id(cursor, 1, 0, 0, &id), STK_EEND); /* it has only one */
    stk_indexed_close(cursor);
    char text[64];
    stk_source_get_class(s)->print(stk_source_params(s), text, sizeof(text));
    CHECK(!strcmp(text, "List(5 samples, rank 1 of 4, endless)"));
    stk_source_unref(&s);
}

static void survives_every_failure(void)
{
    stk_err err;
    TORTURE (err) {
        const stk_list_opts o = full();
        stk_diag diag = {0};
        stk_source *s = stk_list_source(&o, &diag);
        const stk_source_env env = {.wake = no_wake};
        void *cursor = NULL;
        err = s ? stk_indexed_open(stk_source_params(s), &env, &cursor, &diag) : STK_ENOMEM;
        CHECK_EQ(diag.err, err);
        stk_indexed_close(cursor);
        stk_source_unref(&s);
    }
    stk_fault_arm(-1);
}

TESTS(TEST(keeps_what_it_was_given), TEST(bad_samples_are_named), TEST(bad_names_are_named),
      TEST(bad_columns_are_named), TEST(epochs_end), TEST(batches_of_ranks_have_seeds_of_their_own),
      TEST(short_ranks_have_gaps), TEST(survives_every_failure))
