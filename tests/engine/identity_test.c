/* Keys, labels and identities that ops give to samples in place of what their source knows. */
#include "tests/engine/kit.h"

#include "base/alloc.h"

#define N 12

typedef struct given {
    const char *key;  /* with one %lld, for the id; NULL: none */
    int64_t label;    /* of sample id: id * label, as int64; 0: none */
    bool words;       /* labels are texts */
    int64_t odd_id;   /* whose label is of another type */
    int64_t no_label; /* has none */
    bool neighbour;   /* each becomes the sample before it */
    int64_t wide;     /* an array of two elements */
    int64_t fails;    /* after it was named */
    bool transposed;  /* arrays of shape (2, 3), stored by columns */
} given;

static void release(void *data, size_t size, void *ctx)
{
    (void)size, (void)ctx;
    free(data);
}

/* [i][j] is id + 10 * i + j */
static stk_err set_transposed(stk_item *item, int64_t id)
{
    int64_t *data = malloc(6 * sizeof(int64_t));
    CHECK(data);
    for (int64_t k = 0; k < 6; k++) data[k] = id + 10 * (k % 2) + k / 2;
    stk_tensor t = {.data = data, .dtype = STK_INT64, .ndim = 2, .shape = {2, 3}};
    t.strides[0] = 8, t.strides[1] = 16;
    stk_buffer *mem;
    stk_err err = stk_buffer_wrap(data, 0, release, NULL, &mem);
    if (err)
        free(data);
    else
        stk_item_set_array(item, 0, &t, &mem);
    return err;
}

static stk_err set_wide(stk_item *item)
{
    stk_tensor t;
    stk_err err =
        stk_item_new_array(item, 0, &(stk_spec){.dtype = STK_INT64, .ndim = 1, .shape = {2}}, &t);
    if (!err) memset(t.data, 0, 16);
    if (!err) stk_item_commit_array(item, 0);
    return err;
}

static stk_err set_label(const given *g, stk_item *item, int64_t id)
{
    const int64_t value = id * g->label;
    char word[32];
    snprintf(word, sizeof(word), "word %lld", (long long)id);
    if (!g->label || id == g->no_label) return STK_OK;
    if (g->words != (id == g->odd_id)) return stk_item_set_label(item, &(stk_spec){0}, word);
    return stk_item_set_label(item, &(stk_spec){.dtype = STK_INT64}, &value);
}

static stk_err give_run(const void *params, void *state, stk_item *item, stk_diag *diag)
{
    (void)state;
    const given *g = params;
    const int64_t id = stk_item_id(item);
    char key[64];
    stk_err err = STK_OK;
    if (g->neighbour) err = stk_item_become(item, stk_item_source(item), id - 1);
    if (g->key) snprintf(key, sizeof(key), g->key, (long long)id);
    if (!err && g->key) err = stk_item_set_key(item, 0, key);
    if (!err) err = set_label(g, item, id);
    if (!err && g->wide == id) err = set_wide(item);
    if (!err && g->transposed) err = set_transposed(item, id);
    if (!err && g->fails == id) err = STK_ECORRUPT;
    return err ? stk_diag_set(diag, err, "no luck") : STK_OK;
}

static stk_plan *begun(given *g, stk_on_error on_error)
{
    static kit_source source;
    static const stk_op_class cls = {
        .name = "give", .in = STK_KIND_ARRAY, .out = STK_KIND_ARRAY, .run = give_run};
    source = kit_counting(N);
    source.first_id = 1;
    stk_plan *p = kit_plan(&source, kit_value(NULL), NULL);
    stk_plan_pipe(p, stk_op_new(&cls, g), &(stk_stage_opts){.on_error = on_error});
    return p;
}

static stk_plan *named(given *g, size_t batch, stk_on_error on_error)
{
    stk_plan *p = begun(g, on_error);
    if (batch) stk_plan_batch(p, batch, NULL);
    stk_plan_sink(p, 2);
    return p;
}

static stk_run *start(stk_plan *p)
{
    stk_run *run;
    stk_diag diag = {0};
    stk_err err = stk_run_start(p, &(stk_run_opts){.num_threads = 2}, &run, &diag);
    if (err) fprintf(stderr, "%s\n", diag.text);
    CHECK_EQ(err, STK_OK);
    stk_plan_free(&p);
    return run;
}

static stk_err next_item(stk_run *run, stk_item **item, stk_diag *diag)
{
    size_t n;
    *item = NULL;
    return stk_run_next_items(run, STK_FOREVER, 1, item, &n, diag);
}

static stk_batch *next_batch(stk_run *run)
{
    stk_item *item;
    stk_diag diag = {0};
    stk_err err = next_item(run, &item, &diag);
    if (err) fprintf(stderr, "%s\n", diag.text);
    CHECK_EQ(err, STK_OK);
    stk_batch *b = stk_batch_ref(stk_item_batch(item));
    stk_item_free(&item);
    return b;
}

static const given plain = {.odd_id = -1, .no_label = -1, .wide = -1, .fails = -1};

static void items_are_known_by_what_was_given(void)
{
    given g = plain;
    g.key = "mine-%lld", g.label = 3;
    stk_run *run = start(named(&g, 0, STK_RAISE));
    for (int64_t id = 1; id <= N; id++) {
        stk_item *item;
        char key[32];
        stk_spec spec;
        int64_t label;
        size_t bytes;
        CHECK_EQ(next_item(run, &item, NULL), STK_OK);
        CHECK_EQ(stk_item_key(item, 0, key, sizeof(key)), STK_OK);
        CHECK(!strncmp(key, "mine-", 5) && atoi(key + 5) == id);
        CHECK_EQ(stk_item_key(item, 0, key, 5), STK_ELIMIT);
        CHECK_EQ(stk_item_set_key(item, 1, key), STK_EINVAL);
        CHECK_EQ(stk_item_column(item, "label", &spec, &label, 8, &bytes), STK_OK);
        CHECK(spec.dtype == STK_INT64 && spec.ndim == 0 && bytes == 8 && label == 3 * id);
        CHECK_EQ(stk_item_column(item, "label", &spec, &label, 4, &bytes), STK_ELIMIT);
        CHECK_EQ(stk_item_column(item, "other", &spec, &label, 8, &bytes), STK_ENOTFOUND);
        stk_item_clear(item);
        CHECK(!stk_item_array(item, 0).data);
        CHECK_EQ(stk_item_key(item, 0, key, sizeof(key)), STK_OK);
        stk_item_free(&item);
    }
    stk_run_free(&run);
}

static void batches_hold_what_was_given(void)
{
    given g = plain;
    g.key = "mine-%lld", g.label = 5;
    for (int k = 0; k < 2; k++) {
        g.words = k;
        stk_run *run = start(named(&g, N, STK_RAISE));
        stk_batch *b = next_batch(run);
        stk_run_free(&run); /* a batch outlives it */
        CHECK_EQ(stk_batch_size(b), N);
        const int field = stk_batch_find(b, "label");
        CHECK(field >= 0);
        for (size_t i = 0; i < N; i++) {
            char key[32], want[32];
            CHECK_EQ(stk_batch_key(b, i, key, sizeof(key)), STK_OK);
            snprintf(want, sizeof(want), "mine-%zu", i + 1);
            CHECK(!strcmp(key, want));
            snprintf(want, sizeof(want), "word %zu", i + 1);
            if (g.words) CHECK(!strcmp(stk_batch_string(b, (size_t)field, i), want));
            if (g.words) continue;
            stk_tensor t;
            CHECK_EQ(stk_batch_array(b, (size_t)field, &t, NULL), STK_OK);
            CHECK(t.dtype == STK_INT64 && t.ndim == 1);
            CHECK_EQ(((int64_t *)t.data)[i], 5 * ((int64_t)i + 1));
        }
        stk_batch_unref(&b);
    }
}

static void arrays_of_any_strides_are_batched(void)
{
    given g = plain;
    g.transposed = true;
    stk_run *run = start(named(&g, 4, STK_RAISE));
    for (int64_t first = 1; first <= N; first += 4) {
        stk_batch *b = next_batch(run);
        stk_tensor t;
        CHECK_EQ(stk_batch_array(b, 0, &t, NULL), STK_OK);
        CHECK(t.ndim == 3 && t.shape[0] == 4 && t.shape[1] == 2 && t.shape[2] == 3);
        CHECK(stk_tensor_contiguous(&t));
        for (int64_t k = 0; k < 24; k++)
            CHECK_EQ(((int64_t *)t.data)[k], first + k / 6 + 10 * (k % 6 / 3) + k % 3);
        stk_batch_unref(&b);
    }
    stk_run_free(&run);
}

static void check_fails(given *g, const char *text)
{
    stk_item *item;
    stk_diag diag = {0};
    stk_run *run = start(named(g, N, STK_RAISE));
    CHECK_EQ(next_item(run, &item, &diag), STK_EINVAL);
    if (!strstr(diag.text, text)) fprintf(stderr, "said: %s\n", diag.text);
    CHECK(strstr(diag.text, text));
    stk_run_free(&run);
}

static void what_does_not_fit_is_named(void)
{
    given g = plain;
    g.label = 2, g.odd_id = 7;
    check_fails(&g, "the label of sample 7 is a string, but the batch holds int64");
    g.words = true;
    check_fails(&g, "the label of sample 7 is int64, but the batch holds a string");
    g = plain;
    g.label = 2, g.no_label = 4;
    check_fails(&g, "sample 4 has no label, but others");
    g = plain;
    g.wide = 5, g.key = "own %lld";
    check_fails(&g, "sample 5, own 5 is int64 2 behind stage 'give', but the batch holds int64 1");
}

/* The key goes with the failure; a substitute has its own. */
static void failures_name_the_given_key(void)
{
    given g = plain;
    g.key = "mine-%lld", g.fails = 6;
    stk_run *run = start(named(&g, N, STK_SKIP));
    stk_batch *b = next_batch(run);
    stk_failure *failures;
    size_t n;
    CHECK_EQ(stk_batch_size(b), N - 1);
    CHECK_EQ(stk_run_failures(run, &failures, &n), STK_OK);
    CHECK(n == 1 && !strcmp(failures[0].key, "mine-6"));
    stk_failures_free(&failures, n);
    stk_batch_unref(&b);
    stk_run_free(&run);

    run = start(named(&g, N, STK_SUBSTITUTE));
    b = next_batch(run);
    char key[32];
    CHECK_EQ(stk_batch_key(b, 5, key, sizeof(key)), STK_OK);
    CHECK(!strcmp(key, "mine-7"));
    stk_batch_unref(&b);
    stk_run_free(&run);
}

static void unbatched_samples_keep_it(void)
{
    given g = plain;
    g.key = "mine-%lld", g.label = 5, g.words = true;
    stk_plan *p = begun(&g, STK_RAISE);
    stk_plan_batch(p, 5, NULL);
    stk_plan_unbatch(p, NULL);
    stk_plan_pipe(p, kit_repeat(NULL), NULL);
    stk_plan_sink(p, 4);
    stk_run *run = start(p);
    for (int64_t id = 1; id <= N; id++) /* of sample id there are id % 4 */
        for (int64_t k = 0; k < id % 4; k++) {
            stk_item *item;
            char key[32], want[32];
            const char *label;
            stk_spec spec;
            size_t bytes;
            CHECK_EQ(next_item(run, &item, NULL), STK_OK);
            CHECK_EQ(stk_item_id(item), id);
            CHECK_EQ(stk_item_key(item, 0, key, sizeof(key)), STK_OK);
            snprintf(want, sizeof(want), "mine-%lld", (long long)id);
            CHECK(!strcmp(key, want));
            CHECK_EQ(stk_item_column(item, "label", &spec, &label, sizeof(label), &bytes), STK_OK);
            snprintf(want, sizeof(want), "word %lld", (long long)id);
            CHECK(!strcmp(label, want));
            stk_item_free(&item);
        }
    stk_run_free(&run);
}

static void items_become_other_samples(void)
{
    given g = plain;
    g.neighbour = true;
    stk_run *run = start(named(&g, N, STK_RAISE));
    stk_batch *b = next_batch(run);
    char key[32];
    CHECK_EQ(stk_batch_key(b, 3, key, sizeof(key)), STK_OK);
    CHECK(!strcmp(key, "sample-3"));
    stk_batch_unref(&b);

    kit_source other = kit_counting(1);
    stk_source *stranger = kit_source_new(&other);
    stk_item *item;
    stk_run *second = start(named(&g, 0, STK_RAISE));
    CHECK_EQ(next_item(second, &item, NULL), STK_OK);
    CHECK_EQ(stk_item_become(item, stranger, 0), STK_ENOTFOUND);
    CHECK_EQ(stk_item_become(item, NULL, 0), STK_ENOTFOUND);
    CHECK_EQ(stk_item_id(item), 0);
    stk_item_free(&item);
    stk_source_unref(&stranger);
    stk_run_free(&second);
    stk_run_free(&run);
}

static void survives_every_failure(void)
{
    given g = plain;
    g.key = "mine-%lld", g.label = 5, g.words = true;
    stk_plan *p = named(&g, 4, STK_RAISE);
    stk_err err;
    TORTURE (err) {
        stk_run *run = NULL;
        stk_item *item = NULL;
        err = stk_run_start(p, &(stk_run_opts){.num_threads = 1}, &run, NULL);
        while (!err) {
            err = next_item(run, &item, NULL);
            stk_item_free(&item);
        }
        stk_run_free(&run);
        if (err == STK_EEND) /* it may have coped without */
            err = stk_fault_armed() ? STK_OK : STK_ENOMEM;
        else
            CHECK(err == STK_ENOMEM || err == STK_EAGAIN);
    }
    stk_fault_arm(-1);
    stk_plan_free(&p);
}

TESTS(TEST(items_are_known_by_what_was_given), TEST(batches_hold_what_was_given),
      TEST(arrays_of_any_strides_are_batched), TEST(what_does_not_fit_is_named),
      TEST(failures_name_the_given_key), TEST(unbatched_samples_keep_it),
      TEST(items_become_other_samples), TEST(survives_every_failure))
