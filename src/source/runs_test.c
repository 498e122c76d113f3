#include "source/runs.h"

#include <pthread.h>

#include "base/alloc.h"
#include "tests/check.h"

enum { MANY = 1000 }; /* folders: chunks of 64, 128, 256, 512 and part of 1024 */

/* Folder i has i % 3 + 1 files. */
static void make(stk_folder *folders, size_t num)
{
    int64_t first = 0;
    for (size_t i = 0; i < num; i++) {
        folders[i] = (stk_folder){.first = first};
        folders[i].files.num = (uint32_t)(i % 3) + 1;
        first += folders[i].files.num;
    }
}

static int64_t end_of(const stk_folder *f)
{
    return f->first + (int64_t)f->files.num;
}

/* The first and the last file of each of `num` folders, and nothing around them. */
static void check_found(const stk_runs *runs, const stk_folder *folders, size_t num)
{
    for (size_t i = 0; i < num; i++) {
        CHECK(stk_runs_find(runs, folders[i].first) == &folders[i]);
        CHECK(stk_runs_find(runs, end_of(&folders[i]) - 1) == &folders[i]);
    }
    CHECK(!stk_runs_find(runs, num ? end_of(&folders[num - 1]) : 0));
    CHECK(!stk_runs_find(runs, -1));
    CHECK(!stk_runs_find(runs, INT64_MIN));
    CHECK(!stk_runs_find(runs, INT64_MAX));
}

static void every_number_is_found(void)
{
    static stk_folder folders[MANY];
    make(folders, MANY);
    stk_runs runs = {0};
    check_found(&runs, folders, 0);
    for (size_t i = 0; i < MANY; i++) {
        CHECK_EQ(stk_runs_add(&runs, &folders[i]), STK_OK);
        CHECK(!stk_runs_find(&runs, end_of(&folders[i])));
        CHECK(stk_runs_find(&runs, folders[i].first) == &folders[i]);
        if (i < 200) check_found(&runs, folders, i + 1);
    }
    check_found(&runs, folders, MANY);
    stk_runs_fini(&runs);
    check_found(&runs, folders, 0);
    stk_runs_fini(&runs);
}

/* Chunk k has 64 << k places, the next is made for the first folder beyond it, and none moves. */
static void chunks_begin_where_they_must(void)
{
    static stk_folder folders[MANY];
    make(folders, MANY);
    stk_runs runs = {0};
    const stk_folder **first = NULL;
    size_t room = 0, chunks = 0;
    CHECK_EQ(stk_runs_memory(&runs), 0);
    for (size_t i = 0; i < MANY; i++) {
        CHECK_EQ(stk_runs_add(&runs, &folders[i]), STK_OK);
        if (i == room) room += (size_t)64 << chunks++;
        if (i == 0) first = runs.chunks[0];
        CHECK_EQ(stk_runs_memory(&runs), room * sizeof(stk_folder *));
        CHECK(!runs.chunks[chunks]);
    }
    CHECK_EQ(chunks, 5);
    CHECK(runs.chunks[0] == first && first[63] == &folders[63]);
    CHECK(runs.chunks[1][0] == &folders[64] && runs.chunks[1][127] == &folders[191]);
    CHECK(runs.chunks[2][0] == &folders[192]);
    stk_runs_fini(&runs);
}

static void there_is_an_end(void)
{
    stk_folder folder = {0};
    stk_runs runs = {0};
    /* Of this many, the last chunk is full. */
    const size_t all = ((size_t)64 << STK_RUN_CHUNKS) - 64;
    atomic_store_explicit(&runs.num, all, memory_order_relaxed);
    CHECK_EQ(stk_runs_add(&runs, &folder), STK_ELIMIT);
    CHECK_EQ(atomic_load_explicit(&runs.num, memory_order_relaxed), all);
    stk_runs_fini(&runs);
}

struct reader {
    const stk_runs *runs;
    const stk_folder *folders;
    atomic_size_t added;
};

static void *search(void *arg)
{
    struct reader *r = arg;
    for (size_t added = 0; added < MANY;) {
        added = atomic_load_explicit(&r->added, memory_order_acquire);
        if (!added) continue;
        const stk_folder *last = &r->folders[added - 1];
        CHECK(stk_runs_find(r->runs, last->first) == last);
        CHECK(stk_runs_find(r->runs, last->first / 2));
    }
    return NULL;
}

/* The search also meets folders that were added since: stk_runs itself orders these. */
static void readers_beside_the_writer(void)
{
    static stk_folder folders[MANY];
    make(folders, MANY);
    stk_runs runs = {0};
    struct reader r = {.runs = &runs, .folders = folders};
    pthread_t thread;
    CHECK(!pthread_create(&thread, NULL, search, &r));
    for (size_t i = 0; i < MANY; i++) {
        CHECK_EQ(stk_runs_add(&runs, &folders[i]), STK_OK);
        atomic_store_explicit(&r.added, i + 1, memory_order_release);
    }
    CHECK(!pthread_join(thread, NULL));
    stk_runs_fini(&runs);
}

static void no_memory(void)
{
    static stk_folder folders[MANY];
    make(folders, MANY);
    stk_err err = STK_OK;
    TORTURE (err) {
        stk_runs runs = {0};
        size_t n = 0;
        for (err = STK_OK; !err && n < MANY; n += !err) err = stk_runs_add(&runs, &folders[n]);
        CHECK(!err || err == STK_ENOMEM);
        check_found(&runs, folders, n); /* what was added before stays */
        if (err) CHECK_EQ(stk_runs_add(&runs, &folders[n]), STK_OK);
        stk_runs_fini(&runs);
    }
}

TESTS(TEST(every_number_is_found), TEST(chunks_begin_where_they_must), TEST(there_is_an_end),
      TEST(readers_beside_the_writer), TEST(no_memory))
