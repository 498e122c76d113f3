/* For tests: reads an indexed source to its end, waiting for its wake-ups. */
#ifndef STK_TESTS_SOURCE_READER_H
#define STK_TESTS_SOURCE_READER_H

#include "base/thread.h"
#include "source/indexed.h"
#include "tests/check.h"

struct reader {
    stk_source *source; /* borrowed */
    void *cursor;
    stk_diag diag;
    stk_mutex lock; /* guards everything below */
    stk_cond woken;
    int wakes;
};

static inline void reader_wake(void *ctx)
{
    struct reader *r = ctx;
    stk_mutex_lock(&r->lock);
    r->wakes++;
    stk_cond_signal(&r->woken);
    stk_mutex_unlock(&r->lock);
}

static inline stk_err reader_open(struct reader *r, stk_source *s)
{
    *r = (struct reader){.source = s};
    stk_err err = stk_mutex_init(&r->lock);
    if (!err) err = stk_cond_init(&r->woken);
    if (err) return err;
    const stk_source_env env = {.wake = reader_wake, .ctx = r};
    return stk_indexed_open(stk_source_params(s), &env, &r->cursor, &r->diag);
}

static inline void reader_close(struct reader *r)
{
    stk_indexed_close(r->cursor);
    stk_cond_fini(&r->woken);
    stk_mutex_fini(&r->lock);
}

/* As next_id; STK_EAGAIN only where `wait` is false. */
static inline stk_err reader_next(struct reader *r, int64_t *id, bool wait)
{
    for (;;) {
        int64_t epoch;
        stk_err err = stk_indexed_next_id(r->cursor, id, &epoch, &r->diag);
        if (err != STK_EAGAIN || !wait) return err;
        stk_mutex_lock(&r->lock);
        while (!r->wakes) (void)stk_cond_wait(&r->woken, &r->lock, STK_NEVER);
        r->wakes = 0;
        stk_mutex_unlock(&r->lock);
    }
}

/* The next sample's path without the first `skip` bytes must be `want`. */
static inline void reader_expect(struct reader *r, size_t skip, const char *want, bool wait)
{
    int64_t id;
    char path[4096];
    const stk_err err = reader_next(r, &id, wait);
    if (err)
        fprintf(stderr, "  before \"%s\": %s\n", want,
                err == STK_EAGAIN ? "not yet" : r->diag.text);
    CHECK_EQ(err, STK_OK);
    void *params = stk_source_params(r->source);
    CHECK_EQ(stk_source_get_class(r->source)->key(params, id, 0, path, sizeof(path)), STK_OK);
    if (strcmp(path + skip, want)) fprintf(stderr, "  \"%s\", not \"%s\"\n", path + skip, want);
    CHECK(!strcmp(path + skip, want));
}

#endif /* STK_TESTS_SOURCE_READER_H */
