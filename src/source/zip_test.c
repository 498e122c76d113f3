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

static void without_memory(void)
{
    struct tree t = tree_new();
    char path[100];
    snprintf(path, sizeof(path), "%.64s/a.zip", t.path);
    put_archive(path);
    stk_err err = STK_OK;
    TORTURE (err) {
        int64_t n = 0;
        stk_diag diag = {0};
        stk_source *s = make(path);
        err = s ? stk_source_count(s, &n, &diag) : STK_ENOMEM;
        if (err == STK_ELIMIT) err = STK_ENOMEM; /* no thread */
        if (!err) CHECK_EQ(n, 2);
        stk_source_unref(&s);
    }
    tree_free(&t);
}

TESTS(TEST(entries_are_pieces), TEST(without_memory))
