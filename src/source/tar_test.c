#include <stoker/shards.h>

#include "base/alloc.h"
#include "base/failpoint.h"
#include "tests/source_reader.h"
#include "tests/tar_make.h"
#include "tests/tree.h"

#define MAX_SHARDS 40

/* Shards of a test, in a folder of their own. */
struct shards {
    struct tree tree;
    char paths[MAX_SHARDS][100];
    const char *list[MAX_SHARDS];
    size_t num;
};

static struct shards shards_new(void)
{
    return (struct shards){.tree = tree_new()};
}

/* Adds the path of a file in the folder. */
static const char *put_path(struct shards *x, const char *name)
{
    char *path = x->paths[x->num++];
    const size_t size = strlen(x->tree.path);
    memcpy(path, x->tree.path, size);
    memcpy(path + size, name, strlen(name) + 1);
    return path;
}

/* Adds what lies in `ar`, cut to `size` bytes. */
static void put_shard(struct shards *x, size_t size)
{
    char name[40];
    snprintf(name, sizeof(name), "/%02zu.tar", x->num);
    FILE *f = fopen(put_path(x, name), "wb");
    CHECK(f && fwrite(ar.data, 1, size, f) == size && !fclose(f));
}

/* One with `n` samples "<shard>-<i>.jpg". */
static void put_samples(struct shards *x, int n)
{
    ar.size = 0;
    for (int i = 0; i < n; i++) {
        char name[40];
        snprintf(name, sizeof(name), "%zu-%d.jpg", x->num, i);
        put_file(name, name);
    }
    put_end();
    put_shard(x, ar.size);
}

static stk_source *make(struct shards *x, stk_order_opts order, int64_t per_shard)
{
    for (size_t i = 0; i < x->num; i++) x->list[i] = x->paths[i];
    const stk_shards_opts opts = {
        .num_shards = x->num, .paths = x->list, .samples_per_shard = per_shard, .order = order};
    stk_diag diag = {0};
    stk_source *s = stk_tar_source(&opts, &diag);
    if (!s) fprintf(stderr, "  %s\n", diag.text);
    return s;
}

static void samples_come_in_the_order_of_shards(void)
{
    struct shards x = shards_new();
    for (int i = 0; i < MAX_SHARDS; i++) put_samples(&x, i % 3); /* some are empty */
    for (int round = 0; round < 5; round++) {
        stk_source *s = make(&x, (stk_order_opts){0}, 0);
        struct reader r;
        int64_t id, count, n = 0;
        CHECK_EQ(reader_open(&r, s), STK_OK);
        for (int k = 0; k < MAX_SHARDS; k++)
            for (int i = 0; i < k % 3; i++, n++) {
                char want[60];
                snprintf(want, sizeof(want), "%02d.tar/%d-%d.jpg", k, k, i);
                reader_expect(&r, strlen(x.tree.path) + 1, want, true);
            }
        CHECK_EQ(reader_next(&r, &id, true), STK_EEPOCH);
        CHECK_EQ(reader_next(&r, &id, true), STK_EEND);
        CHECK_EQ(stk_source_count(s, &count, NULL), STK_OK);
        CHECK_EQ(count, n);
        CHECK(stk_source_memory(s) > 0);
        reader_close(&r);
        stk_source_unref(&s);
    }
    tree_free(&x.tree);
}

static void pieces_are_where_the_data_is(void)
{
    struct shards x = shards_new();
    put_samples(&x, 5);
    stk_source *s = make(&x, (stk_order_opts){0}, 0);
    int64_t count;
    CHECK_EQ(stk_source_count(s, &count, NULL), STK_OK);
    CHECK_EQ(count, 5);
    for (int64_t id = 0; id < 5; id++) {
        stk_piece piece;
        CHECK_EQ(stk_source_get_class(s)->piece(stk_source_params(s), id, 0, &piece, NULL), STK_OK);
        CHECK(!strcmp(piece.path, x.paths[0]));
        CHECK_EQ(piece.size, 7);
        CHECK(!memcmp(ar.data + piece.offset, "0-", 2));
    }
    stk_source_unref(&s);
    tree_free(&x.tree);
}

/* The text of sample `id`'s flaw. */
static const char *flaw(stk_source *s, int64_t id, stk_diag *diag)
{
    stk_piece piece;
    CHECK(stk_source_get_class(s)->piece(stk_source_params(s), id, 0, &piece, diag));
    return diag->text;
}

static void broken_shards_are_samples(void)
{
    struct shards x = shards_new();
    put_samples(&x, 2);
    put_samples(&x, 2);
    put_shard(&x, ar.size - 1024 - 700); /* the second sample is cut */
    put_shard(&x, 0);                    /* empty: no archive */
    memcpy(ar.data, "\x1f\x8b\x08\x00", 4);
    put_shard(&x, 1024);
    put_path(&x, "/none.tar");
    put_path(&x, "");
    stk_source *s = make(&x, (stk_order_opts){0}, 0);
    int64_t count;
    stk_diag diag;
    CHECK_EQ(stk_source_count(s, &count, NULL), STK_OK);
    CHECK_EQ(count, 4 + 2 + 4 * 2); /* of whole ones, each has two */
    CHECK(strstr(flaw(s, 5, &diag), "02.tar") && strstr(diag.text, "byte"));
    CHECK(strstr(diag.text, "(counts as 1 sample)"));
    CHECK(strstr(flaw(s, 6, &diag), "03.tar") && strstr(flaw(s, 7, &diag), "03.tar"));
    CHECK(strstr(diag.text, "(counts as 2 samples)"));
    CHECK(strstr(flaw(s, 8, &diag), "compressed with gzip"));
    CHECK(strstr(flaw(s, 10, &diag), "none.tar") && strstr(flaw(s, 11, &diag), "none.tar"));
    CHECK_EQ(diag.err, STK_ENOTFOUND);
    CHECK(strstr(flaw(s, 13, &diag), "not a regular file"));
    char key[200];
    CHECK_EQ(stk_source_get_class(s)->key(stk_source_params(s), 11, 0, key, sizeof(key)), STK_OK);
    CHECK(!strcmp(key, x.paths[5]));
    stk_source_unref(&s);
    tree_free(&x.tree);
}

/* As many as told, whatever others have; else as they have. */
static void lost_samples_have_places(void)
{
    struct shards x = shards_new();
    put_path(&x, "/none.tar");
    for (int i = 0; i < MAX_SHARDS - 1; i++) put_samples(&x, 40);
    for (int told = 0; told < 2; told++) {
        const int64_t lost = told ? 7 : 40;
        stk_source *s = make(&x, (stk_order_opts){.rank = 1, .world_size = 2}, told ? 7 : 0);
        struct reader r;
        stk_diag diag;
        CHECK_EQ(reader_open(&r, s), STK_OK);
        for (int64_t want = 1, id; want < lost; want += 2) {
            CHECK_EQ(reader_next(&r, &id, true), STK_OK);
            CHECK_EQ(id, want);
            CHECK(strstr(flaw(s, id, &diag), told ? "as 7 samples" : "as 40 samples"));
        }
        int64_t count;
        CHECK_EQ(stk_source_count(s, &count, NULL), STK_OK);
        CHECK_EQ(count, lost + (MAX_SHARDS - 1) * 40);
        reader_close(&r);
        stk_source_unref(&s);
    }
    tree_free(&x.tree);
}

static void no_samples_is_an_error(void)
{
    struct shards x = shards_new();
    put_samples(&x, 0);
    stk_source *s = make(&x, (stk_order_opts){0}, 0);
    int64_t count;
    stk_diag diag;
    CHECK_EQ(stk_source_count(s, &count, &diag), STK_EINVAL);
    CHECK(strstr(diag.text, "no samples in 1 shard"));
    stk_source_unref(&s);
    tree_free(&x.tree);
}

/* Only so far ahead as readers who need no total are served; the rest when somebody wants it. */
static void listing_stays_ahead_and_may_be_left(void)
{
    struct shards x = shards_new();
    for (int i = 0; i < 30; i++) put_samples(&x, 40);
    stk_source *s = make(&x, (stk_order_opts){0}, 0);
    struct reader r;
    int64_t id, count;
    CHECK_EQ(reader_open(&r, s), STK_OK);
    CHECK_EQ(reader_next(&r, &id, true), STK_OK);
    reader_close(&r);
    stk_source_unref(&s); /* in the middle, it may be */

    s = make(&x, (stk_order_opts){.shuffle = true, .seed = 1}, 0);
    CHECK_EQ(reader_open(&r, s), STK_OK);
    bool seen[30 * 40] = {false};
    for (int i = 0; i < 30 * 40; i++) {
        CHECK_EQ(reader_next(&r, &id, true), STK_OK);
        CHECK(!seen[id]);
        seen[id] = true;
    }
    CHECK_EQ(stk_source_count(s, &count, NULL), STK_OK);
    CHECK_EQ(count, 30 * 40);
    reader_close(&r);
    stk_source_unref(&s);
    tree_free(&x.tree);
}

static void bad_options_are_named(void)
{
    const char *paths[] = {"a.tar"}, *empty[] = {""};
    const stk_shard_part twice[] = {{"image", "jpg"}, {"image", "png"}}, bare[] = {{"x", ""}};
    const stk_shard_column id[] = {{"id", "txt", true}};
    const struct {
        stk_shards_opts opts;
        const char *text;
    } cases[] = {
        {{0}, "there are no shards"},
        {{.num_shards = 1, .paths = empty}, "the path of shard 0 is empty"},
        {{.num_shards = 1, .paths = paths, .num_parts = 2, .parts = twice}, "two fields"},
        {{.num_shards = 1, .paths = paths, .num_parts = 1, .parts = bare}, "x has no ending"},
        {{.num_shards = 1, .paths = paths, .num_parts = 99, .parts = twice}, "99 parts"},
        {{.num_shards = 1, .paths = paths, .num_columns = 1, .columns = id}, "called \"id\""},
        {{.num_shards = 1, .paths = paths, .num_columns = 99, .columns = id}, "99 columns"},
        {{.num_shards = 1, .paths = paths, .samples_per_shard = -1}, "samples_per_shard must be 0"},
        {{.num_shards = 1, .paths = paths, .samples_per_shard = INT64_C(1) << 31},
         "not 2147483648"},
        {{.num_shards = 1, .paths = paths, .order = {.world_size = -1}}, "world_size"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        stk_diag diag = {0};
        CHECK(!stk_tar_source(&cases[i].opts, &diag));
        if (!strstr(diag.text, cases[i].text)) fprintf(stderr, "  \"%s\"\n", diag.text);
        CHECK(strstr(diag.text, cases[i].text));
    }
}

static void without_memory(void)
{
    struct shards x = shards_new();
    put_samples(&x, 3);
    put_samples(&x, 3);
    stk_err err = STK_OK;
    TORTURE (err) {
        int64_t count = 0;
        stk_diag diag = {0};
        stk_source *s = make(&x, (stk_order_opts){0}, 0);
        err = s ? stk_source_count(s, &count, &diag) : STK_ENOMEM;
        if (err == STK_ELIMIT) err = STK_ENOMEM;  /* no thread */
        if (!err && count != 6) err = STK_ENOMEM; /* what could not be listed is counted */
        stk_source_unref(&s);
    }
    tree_free(&x.tree);
}

TESTS(TEST(samples_come_in_the_order_of_shards), TEST(pieces_are_where_the_data_is),
      TEST(broken_shards_are_samples), TEST(lost_samples_have_places), TEST(no_samples_is_an_error),
      TEST(listing_stays_ahead_and_may_be_left), TEST(bad_options_are_named), TEST(without_memory))
