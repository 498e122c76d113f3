#include <stoker/source.h>

#include "base/alloc.h"
#include "source/folder.h"
#include "tests/source_reader.h"
#include "tests/tree.h"

static stk_source *make(const struct tree *t, const stk_dir_opts *opts)
{
    stk_diag diag = {0};
    stk_source *s = stk_dir_source(t->path, opts, &diag);
    if (!s) fprintf(stderr, "  %s\n", diag.text);
    CHECK(s);
    return s;
}

/* The samples of one unshuffled epoch are those of `want`, NULL at its end. */
static void check_order(const struct tree *t, const stk_dir_opts *opts, const char *const *want)
{
    stk_source *s = make(t, opts);
    struct reader r;
    CHECK_EQ(reader_open(&r, s), STK_OK);
    int64_t id, count, n = 0;
    for (; want[n]; n++) reader_expect(&r, strlen(t->path) + 1, want[n], true);
    CHECK_EQ(reader_next(&r, &id, true), STK_EEPOCH);
    CHECK_EQ(reader_next(&r, &id, true), STK_EEND);
    CHECK_EQ(stk_source_count(s, &count, NULL), STK_OK);
    CHECK_EQ(count, n);
    reader_close(&r);
    stk_source_unref(&s);
}

#define ORDER(t, opts, ...) check_order(t, opts, (const char *const[]){__VA_ARGS__, NULL})

/* It cannot be read, and the error says `words`. */
static void check_fails(const char *path, const stk_dir_opts *opts, const char *words)
{
    stk_diag diag = {0};
    int64_t count = 0;
    stk_source *s = stk_dir_source(path, opts, &diag);
    if (s) {
        CHECK(stk_source_count(s, &count, &diag) < 0);
        CHECK_EQ(count, 0);
    }
    CHECK(diag.err < 0 && diag.err != STK_EAGAIN);
    if (!strstr(diag.text, words)) fprintf(stderr, "  \"%s\"\n", diag.text);
    CHECK(strstr(diag.text, words));
    stk_source_unref(&s);
}

static void order_is_that_of_the_c_locale(void)
{
    struct tree t = tree_new();
    tree_put(&t,
             "b.jpg a.jpg B.JPG a/2.png a/10.png a/z/1.jpg a/z.jpg a-/1.webp a.d/x.jpeg a/a/q.jpe "
             "no.txt a/no.svg empty/ empty/deep/ \xc3\xa9.jpg zz/only/nested/1.jpg .h.jpg "
             ".hidden/1.jpg");
    ORDER(&t, NULL, ".h.jpg", "B.JPG", "a.jpg", "b.jpg", "\xc3\xa9.jpg", ".hidden/1.jpg",
          "a/10.png", "a/2.png", "a/z.jpg", "a/a/q.jpe", "a/z/1.jpg", "a-/1.webp", "a.d/x.jpeg",
          "zz/only/nested/1.jpg");
    ORDER(&t, &((stk_dir_opts){.flat = true}), ".h.jpg", "B.JPG", "a.jpg", "b.jpg", "\xc3\xa9.jpg");
    ORDER(&t, &((stk_dir_opts){.pattern = "*.txt|*.svg"}), "no.txt", "a/no.svg");
    ORDER(&t, &((stk_dir_opts){.pattern = "[0-9].*"}), ".hidden/1.jpg", "a/2.png", "a/z/1.jpg",
          "a-/1.webp", "zz/only/nested/1.jpg");
    tree_free(&t);
}

static void names_are_bytes(void)
{
    struct tree t = tree_new();
    tree_put(&t, "\xff\xfe/\x80.jpg \xff\xfe/\xe9.jpg \xe4/1.jpg");
    ORDER(&t, &((stk_dir_opts){.labels = STK_LABELS_DIR}), "\xe4/1.jpg", "\xff\xfe/\x80.jpg",
          "\xff\xfe/\xe9.jpg");
    tree_free(&t);
}

static void links_are_followed_but_not_in_circles(void)
{
    struct tree t = tree_new();
    tree_put(&t, "a/1.jpg a/up->.. a/self->. b/to_a->../a b/2.jpg x.jpg->a/1.jpg dead.jpg->nowhere "
                 "dead->nowhere loop.jpg->loop.jpg c->b/to_c d/c->../e e/d->../d");
    tree_put(&t, "e/3.jpg d/4.jpg");
    ORDER(&t, NULL, "dead.jpg", "loop.jpg", "x.jpg", "a/1.jpg", "b/2.jpg", "b/to_a/1.jpg",
          "d/4.jpg", "d/c/3.jpg", "e/3.jpg", "e/d/4.jpg");
    ORDER(&t, &((stk_dir_opts){.no_follow = true}), "a/1.jpg", "b/2.jpg", "d/4.jpg", "e/3.jpg");
    tree_free(&t);
}

static void odd_kinds_stay_samples(void)
{
    struct tree t = tree_new();
    tree_put(&t, "pipe.jpg| pipe| folder.jpg/1.jpg folder.jpg/2.png/3.webp");
    ORDER(&t, NULL, "pipe.jpg", "folder.jpg/1.jpg", "folder.jpg/2.png/3.webp");
    tree_free(&t);
}

static void a_trailing_slash_is_the_same_folder(void)
{
    struct tree t = tree_new(), slash = t;
    tree_put(&t, "1.jpg");
    strncat(slash.path, "//", 3);
    stk_source *s = make(&slash, NULL);
    struct reader r;
    CHECK_EQ(reader_open(&r, s), STK_OK);
    reader_expect(&r, strlen(t.path), "/1.jpg", true);
    reader_close(&r);
    stk_source_unref(&s);
    tree_free(&t);
}

static void labels_are_first_level_folders(void)
{
    struct tree t = tree_new();
    tree_put(&t, "b/deep/er/1.jpg B/1.jpg a/0.jpg a/deep/2.jpg empty/ z/1.jpg 9/no.txt note.txt");
    stk_source *s = make(&t, &((stk_dir_opts){.labels = STK_LABELS_DIR}));
    const stk_source_class *cls = stk_source_get_class(s);
    void *p = stk_source_params(s);
    static const char *const classes[] = {"9", "B", "a", "b", "empty", "z"};
    static const int64_t labels[] = {1, 2, 2, 3, 5};
    size_t n;
    int64_t count, label;
    CHECK_EQ(stk_dir_source_classes(s, &n, NULL), STK_OK);
    CHECK_EQ(n, 6);
    for (size_t i = 0; i < n; i++) CHECK(!strcmp(stk_dir_source_class(s, i), classes[i]));
    CHECK(stk_dir_source_class(s, n) == NULL);
    CHECK_EQ(stk_source_count(s, &count, NULL), STK_OK);
    CHECK_EQ(count, 5);
    const stk_column *c = cls->columns(p, &n);
    CHECK(n == 1 && !strcmp(c->name, "label") && c->spec.dtype == STK_INT64 && c->spec.ndim == 0);
    for (int64_t i = 0; i < count; i++) {
        CHECK_EQ(cls->column(p, 0, i, &label), STK_OK);
        CHECK_EQ(label, labels[i]);
    }
    CHECK_EQ(cls->column(p, 0, count, &label), STK_ENOTFOUND);
    CHECK_EQ(cls->column(p, 1, 0, &label), STK_EINVAL);
    char text[128];
    cls->print(p, text, sizeof(text));
    CHECK(strstr(text, "5 samples, labels from folders)"));
    stk_source_unref(&s);

    s = make(&t, NULL);
    stk_diag diag;
    CHECK_EQ(stk_dir_source_classes(s, &n, &diag), STK_EINVAL);
    CHECK(cls->columns(stk_source_params(s), &n) == NULL && n == 0);
    cls->print(stk_source_params(s), text, sizeof(text));
    CHECK(strstr(text, ", not listed yet)"));
    stk_source_unref(&s);

    tree_put(&t, "stray.jpg");
    check_fails(t.path, &((stk_dir_opts){.labels = STK_LABELS_DIR}), "stray.jpg: labels");
    tree_free(&t);
}

static void faults_are_named(void)
{
    struct tree t = tree_new();
    char path[128];
    check_fails(t.path, NULL, "no files matching \"*.jpg|");
    tree_put(&t, "a/ b/c/ x.txt");
    check_fails(t.path, NULL, t.path);
    check_fails(t.path, &((stk_dir_opts){.labels = STK_LABELS_DIR}), "no files matching");
    check_fails(t.path, &((stk_dir_opts){.flat = true}), "directly in");
    snprintf(path, sizeof(path), "%s/missing", t.path);
    check_fails(path, NULL, "missing: cannot list the folder: No such file");
    snprintf(path, sizeof(path), "%s/x.txt", t.path);
    check_fails(path, NULL, "x.txt: cannot list it");
    check_fails("", NULL, "empty");
    check_fails(NULL, NULL, "empty");
    check_fails(t.path, &((stk_dir_opts){.pattern = "[a"}), "pattern");
    check_fails(t.path, &((stk_dir_opts){.labels = (stk_labels)7}), "labels is 7");
    check_fails(t.path, &((stk_dir_opts){.labels = STK_LABELS_DIR, .flat = true}),
                "only files of the top folder");
    check_fails(t.path, &((stk_dir_opts){.order = {.rank = 2, .world_size = 2}}), "rank is 2");
    tree_free(&t);
}

/* A path that the system would not open ends the run, and loses nothing silently. */
static void too_deep_is_an_error(void)
{
    struct tree t = tree_new();
    int dir = open(t.path, O_RDONLY | O_DIRECTORY);
    for (int i = 0; i < 20; i++) {
        char name[201];
        memset(name, 'd', 200);
        name[200] = 0;
        CHECK_EQ(mkdirat(dir, name, 0777), 0);
        const int next = openat(dir, name, O_RDONLY | O_DIRECTORY);
        close(dir);
        dir = next;
        CHECK(dir >= 0);
    }
    close(openat(dir, "1.jpg", O_CREAT | O_WRONLY, 0666));
    stk_source *s = make(&t, NULL);
    int64_t count;
    CHECK_EQ(stk_source_count(s, &count, NULL), STK_OK);
    CHECK_EQ(count, 1);
    char path[STK_MAX_PATH];
    CHECK_EQ(stk_source_get_class(s)->key(stk_source_params(s), 0, 0, path, sizeof(path)), STK_OK);
    CHECK(strlen(path) > 4000 && access(path, F_OK) == 0);
    CHECK_EQ(stk_source_get_class(s)->key(stk_source_params(s), 0, 0, path, 4000), STK_ELIMIT);
    stk_source_unref(&s);

    CHECK_EQ(
        mkdirat(dir,
                "a_folder_whose_name_is_long_enough_to_be_one_too_many_for_the_system_to_open_it",
                0777),
        0);
    check_fails(t.path, NULL, "longer than 4095 bytes");
    close(dir);
    tree_free(&t);
}

static void substitutes_wait_for_the_total(void)
{
    struct tree t = tree_new();
    tree_put(&t, "1.jpg 2.jpg a/3.jpg a/4.jpg b/5.jpg");
    stk_source *s = make(&t, &((stk_dir_opts){.order = {.rank = 1, .world_size = 2}}));
    struct reader r;
    CHECK_EQ(reader_open(&r, s), STK_OK);
    int64_t id, other;
    CHECK_EQ(reader_next(&r, &id, true), STK_OK);
    CHECK_EQ(id, 1);
    CHECK_EQ(stk_indexed_substitute_id(r.cursor, 1, 0, 0, &other), STK_OK);
    CHECK_EQ(other, 3);
    CHECK_EQ(stk_indexed_substitute_id(r.cursor, 1, 0, 1, &other), STK_EEND);
    CHECK_EQ(stk_indexed_length(stk_source_params(s)), 3);
    reader_close(&r);
    stk_source_unref(&s);
    tree_free(&t);
}

/* The promise of the headers: under 64 bytes a sample, names included. */
static void names_are_kept_compactly(void)
{
    struct tree t = tree_new();
    char name[64];
    for (int folder = 0; folder < 3; folder++)
        for (int i = 0; i < 1300; i++) {
            snprintf(name, sizeof(name), "n0144076%d/n0144076%d_%d.JPEG", folder, folder,
                     10000 + i);
            tree_put(&t, name);
        }
    stk_source *s = make(&t, &((stk_dir_opts){.labels = STK_LABELS_DIR}));
    int64_t count;
    CHECK_EQ(stk_source_count(s, &count, NULL), STK_OK);
    CHECK_EQ(count, 3900);
    const double each = (double)stk_source_memory(s) / (double)count;
    fprintf(stderr, "  %.1f bytes a sample\n", each);
    CHECK(each < 28);
    stk_source_unref(&s);
    tree_free(&t);
}

TESTS(TEST(order_is_that_of_the_c_locale), TEST(names_are_bytes),
      TEST(links_are_followed_but_not_in_circles), TEST(odd_kinds_stay_samples),
      TEST(a_trailing_slash_is_the_same_folder), TEST(labels_are_first_level_folders),
      TEST(faults_are_named), TEST(too_deep_is_an_error), TEST(substitutes_wait_for_the_total),
      TEST(names_are_kept_compactly))
