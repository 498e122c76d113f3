#include <stoker/shards.h>

#include "base/alloc.h"
#include "tests/tree.h"
#include "tests/zip_make.h"

static struct zip_file file; /* large: not on the stack */

/* Two samples, the second one encrypted, with a number each. */
static void put_archive(const char *path)
{
    char text[4000];
    memset(text, 'x', sizeof(text));
    memset(&file, 0, sizeof(file));
    zip_add(&file, "d/", STK_ZIP_STORED, "", 0);
    zip_add(&file, "d/1.jpg", STK_ZIP_DEFLATED, text, sizeof(text));
    zip_add(&file, "d/1.cls", STK_ZIP_DEFLATED, "12", 2);
    zip_add(&file, "d/2.jpg", STK_ZIP_STORED, text, 7)->flags = 1;
    zip_add(&file, "d/2.cls", STK_ZIP_STORED, "-3", 2);
    zip_finish(&file);
    FILE *f = fopen(path, "wb");
    CHECK(f && fwrite(file.data, 1, file.size, f) == file.size && !fclose(f));
}

/* Samples 1 to 3: all pictures, then all numbers, the other way round. */
static void put_scattered(const char *path)
{
    static const char *const names[] = {"d/1.jpg", "d/2.jpg", "README",  "d/3.jpg",
                                        "d/3.cls", "d/2.cls", "d/1.cls", "d.cls"};
    memset(&file, 0, sizeof(file));
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        zip_add(&file, names[i], STK_ZIP_STORED, names[i] + strlen(names[i]) - 5, 1);
    zip_finish(&file);
    FILE *f = fopen(path, "wb");
    CHECK(f && fwrite(file.data, 1, file.size, f) == file.size && !fclose(f));
}

static stk_source *make(const char *path)
{
    const stk_shard_column label = {"label", "cls", false};
    const stk_shards_opts opts = {
        .num_shards = 1, .paths = &path, .num_columns = 1, .columns = &label};
    return stk_zip_source(&opts, NULL);
}

static void entries_are_pieces(void)
{
    struct tree t = tree_new();
    char path[100];
    snprintf(path, sizeof(path), "%.64s/a.zip", t.path);
    put_archive(path);
    stk_source *s = make(path);
    const stk_source_class *cls = stk_source_get_class(s);
    void *params = stk_source_params(s);
    int64_t n, label;
    stk_piece piece;
    stk_diag diag;
    CHECK_EQ(stk_source_count(s, &n, NULL), STK_OK);
    CHECK_EQ(n, 2);
    CHECK_EQ(cls->piece(params, 0, 0, &piece, NULL), STK_OK);
    CHECK_EQ(piece.form, STK_PIECE_DEFLATED);
    CHECK_EQ(piece.unpacked, 4000);
    CHECK(piece.size < 100 && piece.crc);
    CHECK_EQ(cls->piece(params, 1, 0, &piece, &diag), STK_EUNSUPPORTED);
    CHECK(strstr(diag.text, "d/2.jpg") && strstr(diag.text, "encrypted"));
    CHECK_EQ(cls->column(params, 0, 0, &label), STK_OK);
    CHECK_EQ(label, 12);
    CHECK_EQ(cls->column(params, 0, 1, &label), STK_OK);
    CHECK_EQ(label, -3);
    stk_source_unref(&s);
    tree_free(&t);
}

static void entries_of_a_sample_may_be_anywhere(void)
{
    struct tree t = tree_new();
    char path[100];
    snprintf(path, sizeof(path), "%.64s/a.zip", t.path);
    put_scattered(path);
    stk_source *s = make(path);
    const stk_source_class *cls = stk_source_get_class(s);
    int64_t n, label;
    CHECK_EQ(stk_source_count(s, &n, NULL), STK_OK);
    CHECK_EQ(n, 4);
    for (int64_t i = 0; i < n; i++) {
        stk_piece piece;
        stk_diag diag;
        const stk_err err = cls->piece(stk_source_params(s), i, 0, &piece, &diag);
        CHECK_EQ(cls->column(stk_source_params(s), 0, i, &label), STK_OK);
        CHECK_EQ(err, i < 3 ? STK_OK : STK_ECORRUPT); /* "d" has no picture */
        if (!err) CHECK_EQ(label, i + 1);
    }
    stk_source_unref(&s);
    tree_free(&t);
}

static void survive(void (*put)(const char *path), int64_t want)
{
    struct tree t = tree_new();
    char path[100];
    snprintf(path, sizeof(path), "%.64s/a.zip", t.path);
    put(path);
    stk_err err = STK_OK;
    TORTURE (err) {
        int64_t n = 0;
        stk_diag diag = {0};
        stk_source *s = make(path);
        err = s ? stk_source_count(s, &n, &diag) : STK_ENOMEM;
        if (err == STK_ELIMIT) err = STK_ENOMEM; /* no thread */
        if (!err) CHECK_EQ(n, want);
        stk_source_unref(&s);
    }
    tree_free(&t);
}

static void without_memory(void)
{
    survive(put_archive, 2);
    survive(put_scattered, 4);
}

TESTS(TEST(entries_are_pieces), TEST(entries_of_a_sample_may_be_anywhere), TEST(without_memory))
