#include "source/listing.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#include "base/alloc.h"
#include "base/failpoint.h"
#include "base/rng.h"
#include "tests/source_reader.h"
#include "tests/tree.h"

static stk_source *make(const struct tree *t, stk_order_opts order)
{
    stk_source *s = stk_dir_source(t->path, &(stk_dir_opts){.order = order}, NULL);
    CHECK(s);
    return s;
}

static struct tree three_folders(void)
{
    struct tree t = tree_new();
    tree_put(&t, "1.jpg 2.jpg a/3.jpg a/4.jpg a/5.jpg b/6.jpg c/7.jpg");
    return t;
}

/* The first samples arrive while the second folder is not listed yet. */
static void delivers_before_the_end(void)
{
    struct tree t = three_folders();
    const size_t skip = strlen(t.path) + 1;
    CHECK(stk_failpoints_set("dir.list=hold@2"));
    stk_source *s = make(&t, (stk_order_opts){.epochs = 2});
    struct reader r;
    int64_t id;
    CHECK_EQ(reader_open(&r, s), STK_OK);
    reader_expect(&r, skip, "1.jpg", true);
    stk_failpoint_await("dir.list");
    reader_expect(&r, skip, "2.jpg", false);
    CHECK_EQ(reader_next(&r, &id, false), STK_EAGAIN);
    CHECK_EQ(reader_next(&r, &id, false), STK_EAGAIN);
    CHECK_EQ(stk_indexed_length(stk_source_params(s)), -1);
    char text[128];
    stk_source_get_class(s)->print(stk_source_params(s), text, sizeof(text));
    CHECK(strstr(text, "2 samples so far"));

    CHECK(stk_failpoints_set(NULL));
    reader_expect(&r, skip, "a/3.jpg", true);
    reader_expect(&r, skip, "a/4.jpg", true);
    reader_expect(&r, skip, "a/5.jpg", true);
    reader_expect(&r, skip, "b/6.jpg", true);
    reader_expect(&r, skip, "c/7.jpg", true);
    CHECK_EQ(reader_next(&r, &id, true), STK_EEPOCH);
    CHECK_EQ(stk_indexed_length(stk_source_params(s)), 7);
    for (int i = 0; i < 7; i++) CHECK_EQ(reader_next(&r, &id, false), STK_OK);
    CHECK_EQ(reader_next(&r, &id, false), STK_EEPOCH);
    CHECK_EQ(reader_next(&r, &id, false), STK_EEND);
    reader_close(&r);
    stk_source_unref(&s);
    tree_free(&t);
}

/* A rank begins at once; only whether its last position is a gap waits for the total. */
static void ranks_begin_before_the_end(void)
{
    struct tree t = three_folders();
    CHECK(stk_failpoints_set("dir.list=hold@3"));
    stk_source *s = make(&t, (stk_order_opts){.rank = 1, .world_size = 2});
    struct reader r;
    int64_t id;
    CHECK_EQ(reader_open(&r, s), STK_OK);
    CHECK_EQ(reader_next(&r, &id, true), STK_OK);
    CHECK_EQ(id, 1);
    CHECK_EQ(reader_next(&r, &id, true), STK_OK);
    CHECK_EQ(id, 3);
    stk_failpoint_await("dir.list");
    CHECK_EQ(reader_next(&r, &id, false), STK_EAGAIN);
    CHECK(stk_failpoints_set(NULL));
    CHECK_EQ(reader_next(&r, &id, true), STK_OK);
    CHECK_EQ(id, 5);
    CHECK_EQ(reader_next(&r, &id, true), STK_ENOTFOUND);
    CHECK_EQ(reader_next(&r, &id, true), STK_EEPOCH);
    reader_close(&r);
    stk_source_unref(&s);
    tree_free(&t);
}

static void a_shuffle_waits_for_the_total(void)
{
    struct tree t = three_folders();
    CHECK(stk_failpoints_set("dir.list=hold@4"));
    stk_source *s = make(&t, (stk_order_opts){.shuffle = true});
    struct reader r;
    int64_t id, sum = 0;
    CHECK_EQ(reader_open(&r, s), STK_OK);
    CHECK_EQ(reader_next(&r, &id, false), STK_EAGAIN);
    stk_failpoint_await("dir.list");
    CHECK_EQ(reader_next(&r, &id, false), STK_EAGAIN);
    CHECK(stk_failpoints_set(NULL));
    for (int i = 0; i < 7; i++) {
        CHECK_EQ(reader_next(&r, &id, true), STK_OK);
        sum += id;
    }
    CHECK_EQ(sum, 21);
    CHECK_EQ(reader_next(&r, &id, true), STK_EEPOCH);
    reader_close(&r);
    stk_source_unref(&s);
    tree_free(&t);
}

/* A folder that cannot be listed fails in its place, whatever else was listed before. */
static void a_bad_folder_ends_the_run(void)
{
    struct tree t = three_folders();
    const size_t skip = strlen(t.path) + 1;
    for (int round = 0; round < 20; round++) {
        CHECK(stk_failpoints_set("dir.list=EACCES@3"));
        stk_source *s = make(&t, (stk_order_opts){0});
        for (int run = 0; run < 2; run++) { /* it stays so for later runs */
            struct reader r;
            int64_t id;
            CHECK_EQ(reader_open(&r, s), STK_OK);
            reader_expect(&r, skip, "1.jpg", true);
            for (int i = 1; i < 5; i++) CHECK_EQ(reader_next(&r, &id, true), STK_OK);
            for (int again = 0; again < 2; again++) {
                CHECK_EQ(reader_next(&r, &id, true), STK_EIO);
                CHECK(strstr(r.diag.text, "/b: cannot list the folder: Permission denied"));
                CHECK(!strncmp(r.diag.text, t.path, skip - 1));
            }
            reader_close(&r);
        }
        int64_t count;
        CHECK_EQ(stk_source_count(s, &count, NULL), STK_EIO);
        stk_source_unref(&s);
    }
    CHECK(stk_failpoints_set(NULL));
    tree_free(&t);
}

/* ENOENT is no gap between the samples. */
static void a_folder_that_disappears_ends_the_run(void)
{
    struct tree t = three_folders();
    CHECK(stk_failpoints_set("dir.list=ENOENT@1"));
    stk_source *s = make(&t, (stk_order_opts){0});
    struct reader r;
    int64_t id;
    CHECK_EQ(reader_open(&r, s), STK_OK);
    CHECK_EQ(reader_next(&r, &id, true), STK_EIO);
    CHECK(strstr(r.diag.text, "No such file"));
    reader_close(&r);
    stk_source_unref(&s);
    CHECK(stk_failpoints_set(NULL));
    tree_free(&t);
}

/* Fewer names than this make no thread busy for long: many folders, some deep. */
static struct tree random_tree(uint64_t seed, int files)
{
    struct tree t = tree_new();
    for (int i = 0; i < files; i++) {
        char name[128];
        size_t len = 0;
        const uint64_t r = stk_mix64(seed * 1000 + (uint64_t)i);
        for (uint64_t d = 0; d < r % 5; d++)
            len += (size_t)snprintf(name + len, sizeof(name) - len, "%c%d/",
                                    (char)('A' + (r >> 8 >> d) % 50), (int)(r >> (12 + 4 * d) & 3));
        snprintf(name + len, sizeof(name) - len, "%d.jpg", (int)(r >> 40));
        tree_put(&t, name);
    }
    return t;
}

static int by_byte(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The same listing by the plainest means. */
static void expect_below(struct reader *r, const char *root, const char *sub, int64_t *n)
{
    char path[512], *names[1024], *folders[1024];
    size_t num = 0, num_folders = 0;
    snprintf(path, sizeof(path), "%s/%s", root, sub);
    DIR *d = opendir(path);
    CHECK(d);
    for (const struct dirent *e; (e = readdir(d));) {
        if (e->d_name[0] == '.') continue;
        CHECK(num < 1024 && num_folders < 1024);
        char *copy = strdup(e->d_name);
        if (e->d_type == DT_DIR)
            folders[num_folders++] = copy;
        else
            names[num++] = copy;
    }
    closedir(d);
    qsort(names, num, sizeof(*names), by_byte);
    qsort(folders, num_folders, sizeof(*folders), by_byte);
    for (size_t i = 0; i < num; i++, free(names[i - 1])) {
        snprintf(path, sizeof(path), "%s%s", sub, names[i]);
        reader_expect(r, strlen(root) + 1, path, true);
        ++*n;
    }
    for (size_t i = 0; i < num_folders; i++, free(folders[i - 1])) {
        snprintf(path, sizeof(path), "%s%s/", sub, folders[i]);
        expect_below(r, root, path, n);
    }
}

static void order_is_the_same_each_time(void)
{
    for (uint64_t seed = 0; seed < 6; seed++) {
        struct tree t = random_tree(seed, 200);
        for (int round = 0; round < 4; round++) {
            stk_source *s = make(&t, (stk_order_opts){0});
            struct reader r;
            int64_t id, n = 0, count;
            CHECK_EQ(reader_open(&r, s), STK_OK);
            expect_below(&r, t.path, "", &n);
            CHECK_EQ(reader_next(&r, &id, true), STK_EEPOCH);
            CHECK_EQ(stk_source_count(s, &count, NULL), STK_OK);
            CHECK_EQ(count, n);
            reader_close(&r);
            stk_source_unref(&s);
        }
        tree_free(&t);
    }
}

#define FOLDERS 24
#define FILES 600 /* of these folders 8 threads find 4,800 names more than they need, at most */

static void add_file(const struct tree *t, int folder, int file)
{
    char name[64];
    snprintf(name, sizeof(name), "%02d/%05d.jpg", folder, file);
    tree_put(t, name);
}

static struct tree large_tree(void)
{
    struct tree t = tree_new();
    for (int i = 0; i < FOLDERS * FILES; i++) add_file(&t, i / FILES, i % FILES);
    return t;
}

/* A file that comes while the first samples are read is in the last folder in time. */
static void names_are_found_when_they_are_needed(void)
{
    struct tree t = large_tree();
    stk_source *s = make(&t, (stk_order_opts){0});
    struct reader r;
    stk_look found = {0};
    stk_indexed *x = stk_source_params(s);
    int64_t id;
    CHECK_EQ(reader_open(&r, s), STK_OK);
    CHECK_EQ(reader_next(&r, &id, true), STK_OK);
    while (found.available < 1024) CHECK_EQ(x->ops->look(x, 0, NULL, &found, NULL), STK_OK);
    add_file(&t, FOLDERS - 1, FILES);
    for (int64_t i = 1; i < FOLDERS * FILES + 1; i++) {
        CHECK_EQ(reader_next(&r, &id, true), STK_OK);
        CHECK_EQ(id, i);
    }
    CHECK_EQ(reader_next(&r, &id, true), STK_EEPOCH);
    reader_close(&r);
    stk_source_unref(&s);
    tree_free(&t);
}

/* Who asks for the total gets it, although nobody reads. */
static void the_total_is_found_when_it_is_asked_for(void)
{
    struct tree t = large_tree();
    for (int waits = 0; waits < 2; waits++) {
        stk_source *s = make(&t, (stk_order_opts){0});
        struct reader r;
        int64_t id, count = -1;
        CHECK_EQ(reader_open(&r, s), STK_OK);
        CHECK_EQ(reader_next(&r, &id, true), STK_OK);
        if (waits)
            CHECK_EQ(stk_source_count(s, &count, NULL), STK_OK);
        else
            while (count < 0) count = stk_indexed_length(stk_source_params(s));
        CHECK_EQ(count, FOLDERS * FILES);
        reader_close(&r);
        stk_source_unref(&s);
    }
    tree_free(&t);
}

/* Dropped at any moment: before, within and after the listing, with and without a reader. */
static void can_be_dropped_at_any_moment(void)
{
    struct tree t = random_tree(77, 300);
    for (int round = 0; round < 200; round++) {
        stk_source *s = make(&t, (stk_order_opts){.shuffle = round % 2});
        struct reader r;
        int64_t id;
        CHECK_EQ(reader_open(&r, s), STK_OK);
        for (int i = 0; i < round % 50; i++) {
            const stk_err err = reader_next(&r, &id, round % 3 == 0);
            CHECK(!err || err == STK_EAGAIN);
        }
        reader_close(&r);
        stk_source_unref(&s);
    }
    tree_free(&t);
}

static void *read_all(void *arg)
{
    stk_source *s = arg;
    struct reader r;
    int64_t id, sum = 0, n = 0;
    CHECK_EQ(reader_open(&r, s), STK_OK);
    for (stk_err err; !(err = reader_next(&r, &id, true)); n++) {
        char path[256];
        void *params = stk_source_params(s);
        CHECK_EQ(stk_source_get_class(s)->key(params, id, 0, path, sizeof(path)), STK_OK);
        sum += id;
    }
    CHECK_EQ(sum, n * (n - 1) / 2);
    reader_close(&r);
    return (void *)(intptr_t)n;
}

static void many_runs_share_one_listing(void)
{
    struct tree t = random_tree(5, 300);
    for (int round = 0; round < 20; round++) {
        stk_source *s = make(&t, (stk_order_opts){.shuffle = round % 2});
        pthread_t threads[4];
        void *n[4];
        for (int i = 0; i < 4; i++) CHECK_EQ(pthread_create(&threads[i], NULL, read_all, s), 0);
        for (int i = 0; i < 4; i++) pthread_join(threads[i], &n[i]);
        for (int i = 1; i < 4; i++) CHECK(n[i] == n[0]);
        stk_source_unref(&s);
    }
    tree_free(&t);
}

/* Ends by a signal, so that no sanitizer looks for the threads that the parent has. */
static void end_child(bool good)
{
    kill(getpid(), good ? SIGTERM : SIGKILL);
}

static void check_child(pid_t child)
{
    int status;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
}

/* In a child of fork: a listing that is complete serves, one that is not says so. */
static void a_child_does_not_hang(void)
{
    struct tree t = three_folders();
    CHECK(stk_failpoints_set("dir.list=hold@2"));
    stk_source *s = make(&t, (stk_order_opts){0});
    struct reader r;
    int64_t count;
    CHECK_EQ(reader_open(&r, s), STK_OK);
    stk_failpoint_await("dir.list");
    pid_t child = fork();
    CHECK(child >= 0);
    if (!child) {
        stk_diag diag = {0};
        const bool refused = stk_source_count(s, &count, &diag) == STK_EFORK &&
                             strstr(diag.text, "fork") &&
                             stk_indexed_length(stk_source_params(s)) == -1;
        reader_close(&r);
        stk_source_unref(&s);
        end_child(refused && !s);
    }
    check_child(child);

    CHECK(stk_failpoints_set(NULL));
    CHECK_EQ(stk_source_count(s, &count, NULL), STK_OK);
    child = fork();
    CHECK(child >= 0);
    if (!child) {
        const bool served = stk_source_count(s, &count, NULL) == STK_OK && count == 7 &&
                            stk_indexed_length(stk_source_params(s)) == 7;
        reader_close(&r);
        stk_source_unref(&s);
        end_child(served && !s);
    }
    check_child(child);
    reader_close(&r);
    stk_source_unref(&s);
    tree_free(&t);
}

/* Every allocation, lock and thread refused in turn, those of the listing threads, too. */
static void survives_every_failure(void)
{
    struct tree t = tree_new();
    tree_put(&t, "a/1.jpg a/2.jpg b/c/3.jpg b/x->../a d/");
    stk_err err;
    TORTURE (err) {
        const stk_dir_opts opts = {.labels = STK_LABELS_DIR, .pattern = "*.jpg"};
        stk_diag diag = {0};
        struct reader r = {0};
        int64_t id, n = 0;
        stk_source *s = stk_dir_source(t.path, &opts, &diag);
        err = s ? reader_open(&r, s) : diag.err;
        while (!err && !(err = reader_next(&r, &id, true))) n++;
        if (err == STK_EEPOCH) {
            CHECK_EQ(n, 5);
            err = STK_OK;
        }
        CHECK(err == STK_OK || err == STK_ENOMEM || err == STK_ELIMIT);
        CHECK(!err || diag.err == err || r.diag.err == err || !r.woken.made);
        reader_close(&r);
        stk_source_unref(&s);
    }
    stk_fault_arm(-1);
    tree_free(&t);
}

TESTS(TEST(delivers_before_the_end), TEST(ranks_begin_before_the_end),
      TEST(a_shuffle_waits_for_the_total), TEST(a_bad_folder_ends_the_run),
      TEST(a_folder_that_disappears_ends_the_run), TEST(order_is_the_same_each_time),
      TEST(names_are_found_when_they_are_needed), TEST(the_total_is_found_when_it_is_asked_for),
      TEST(can_be_dropped_at_any_moment), TEST(many_runs_share_one_listing),
      TEST(a_child_does_not_hang), TEST(survives_every_failure))
