/* Ops that add parts to their samples: fields of the batch as any other, checked with the plan. */
#include "tests/engine/kit.h"

#include "base/alloc.h"

#define N 12

typedef struct adding {
    const char *names[3]; /* NULL: no more */
    bool known;           /* the arrays' specs are, beforehand */
    bool replaces;        /* the first part, too: then all is made in its slot */
    int64_t fails;        /* the id that does, after it has added; 0: none */
    int64_t forgets;      /* the id that gets none; 0: none */
} adding;

static const stk_spec pair = {.dtype = STK_INT64, .ndim = 1, .shape = {2}};

static const char *adding_adds(const void *params, size_t i, stk_spec *spec)
{
    const adding *a = params;
    const char *name = i < 3 ? a->names[i] : NULL;
    if (name && a->known) *spec = pair;
    return name;
}

static void adding_spec(const void *params, size_t part, stk_spec *out)
{
    const adding *a = params;
    (void)part;
    if (a->known && a->replaces) *out = (stk_spec){.dtype = STK_INT64, .ndim = 1, .shape = {1}};
}

static stk_err add_one(stk_item *item, size_t i)
{
    stk_tensor t;
    const size_t part = stk_item_num_parts(item);
    stk_err err = stk_item_set_num_parts(item, part + 1);
    if (!err) err = stk_item_new_array(item, part, &pair, &t);
    if (err) return err;
    const int64_t values[2] = {stk_item_id(item), (int64_t)i};
    memcpy(t.data, values, sizeof(values));
    stk_item_commit_array(item, part);
    return STK_OK;
}

static stk_err replace_first(stk_item *item)
{
    const int64_t value = *(int64_t *)stk_item_array(item, 0).data + 1;
    stk_tensor t;
    const stk_spec spec = {.dtype = STK_INT64, .ndim = 1, .shape = {1}};
    stk_err err = stk_item_new_array(item, 0, &spec, &t);
    if (err) return err;
    memcpy(t.data, &value, sizeof(value));
    stk_item_commit_array(item, 0);
    return STK_OK;
}

static stk_err adding_run(const void *params, void *state, stk_item *item, stk_diag *diag)
{
    const adding *a = params;
    (void)state;
    stk_err err = a->replaces ? replace_first(item) : STK_OK;
    for (size_t i = 0; i < 3 && a->names[i] && !err; i++)
        if (!a->forgets || stk_item_id(item) != a->forgets) err = add_one(item, i);
    if (!err && a->fails && stk_item_id(item) == a->fails) err = STK_ECORRUPT;
    return err ? stk_diag_set(diag, err, "no luck") : STK_OK;
}

static const stk_op_class adding_class = {
    .name = "adding",
    .flags = STK_OP_ALONE,
    .in = STK_KIND_ARRAY,
    .out = STK_KIND_ARRAY,
    .run = adding_run,
    .spec = adding_spec,
    .adds = adding_adds,
};

static stk_op *op_of(adding *a)
{
    return stk_op_new(&adding_class, a);
}

static kit_source source;

static stk_plan *begun(void)
{
    source = kit_counting(N);
    return kit_plan(&source, kit_value(NULL), NULL);
}

static stk_plan *ended(stk_plan *p, size_t batch)
{
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

static stk_batch *next_batch(stk_run *run)
{
    stk_batch *b = NULL;
    CHECK_EQ(stk_run_next(run, STK_FOREVER, &b, NULL), STK_OK);
    return b;
}

static stk_tensor field(const stk_batch *b, const char *name)
{
    stk_tensor t;
    const int i = stk_batch_find(b, name);
    CHECK(i >= 0);
    CHECK_EQ(stk_batch_array(b, (size_t)i, &t, NULL), STK_OK);
    return t;
}

static void check_added(const stk_batch *b, const char *name, int64_t number)
{
    const stk_tensor t = field(b, name), ids = field(b, "id");
    CHECK_EQ(t.ndim, 2);
    CHECK_EQ(t.shape[0], stk_batch_size(b));
    CHECK_EQ(t.shape[1], 2);
    for (int64_t i = 0; i < t.shape[0]; i++) {
        CHECK_EQ(((int64_t *)t.data)[2 * i], ((int64_t *)ids.data)[i]);
        CHECK_EQ(((int64_t *)t.data)[2 * i + 1], number);
    }
}

static void they_are_fields(void)
{
    for (int k = 0; k < 4; k++) {
        adding a = {.names = {"mask", "length"}, .known = k & 1, .replaces = k & 2};
        adding b = {.names = {"more"}, .known = k & 1};
        stk_plan *p = begun();
        stk_plan_pipe(p, op_of(&a), NULL);
        stk_plan_pipe(p, op_of(&b), NULL);
        stk_run *run = start(ended(p, 4));
        for (int i = 0; i < N / 4; i++) {
            stk_batch *batch = next_batch(run);
            const stk_tensor image = field(batch, "image");
            CHECK_EQ(((int64_t *)image.data)[1], 10 * (4 * i + 1) + (a.replaces ? 1 : 0));
            check_added(batch, "mask", 0);
            check_added(batch, "length", 1);
            check_added(batch, "more", 0);
            stk_batch_unref(&batch);
        }
        stk_run_free(&run);
    }
}

static void samples_keep_them_behind_a_batch(void)
{
    adding a = {.names = {"mask"}, .known = true}, b = {.names = {"more"}};
    stk_plan *p = begun();
    stk_plan_pipe(p, op_of(&a), NULL);
    stk_plan_batch(p, 3, NULL);
    stk_plan_unbatch(p, NULL);
    stk_plan_pipe(p, op_of(&b), NULL);
    stk_run *run = start(ended(p, 4));
    stk_batch *batch = next_batch(run);
    CHECK_EQ(stk_batch_size(batch), 4);
    check_added(batch, "mask", 0);
    check_added(batch, "more", 0);
    stk_batch_unref(&batch);
    stk_run_free(&run);
}

static void failures_are_left_out(void)
{
    for (int k = 0; k < 2; k++) {
        adding a = {.names = {"mask"}, .known = true, .replaces = true, .fails = 2};
        stk_plan *p = begun();
        stk_plan_pipe(p, op_of(&a), &(stk_stage_opts){.on_error = k ? STK_SUBSTITUTE : STK_SKIP});
        stk_run *run = start(ended(p, 4));
        stk_batch *batch = next_batch(run);
        CHECK_EQ(stk_batch_size(batch), k ? 4 : 3);
        check_added(batch, "mask", 0);
        stk_batch_unref(&batch);
        stk_run_free(&run);
    }
}

static void an_empty_batch_has_them(void)
{
    adding a = {.names = {"mask"}, .known = true, .fails = 1};
    source = kit_counting(1);
    source.first_id = 1;
    stk_plan *p = kit_plan(&source, kit_value(NULL), NULL);
    stk_plan_pipe(p, op_of(&a), &(stk_stage_opts){.on_error = STK_SKIP});
    stk_plan_batch(p, 1, &(stk_batch_opts){.keep_empty = true});
    stk_plan_sink(p, 1);
    stk_run *run = start(p);
    stk_batch *batch = next_batch(run);
    CHECK_EQ(stk_batch_size(batch), 0);
    const stk_tensor t = field(batch, "mask");
    CHECK_EQ(t.ndim, 2);
    CHECK_EQ(t.shape[0], 0);
    CHECK_EQ(t.shape[1], 2);
    stk_batch_unref(&batch);
    stk_run_free(&run);
}

static void all_samples_must_have_them(void)
{
    adding a = {.names = {"mask"}, .forgets = 2};
    stk_plan *p = begun();
    stk_plan_pipe(p, op_of(&a), NULL);
    stk_run *run = start(ended(p, 4));
    stk_batch *b = NULL;
    stk_diag diag = {0};
    CHECK_EQ(stk_run_next(run, STK_FOREVER, &b, &diag), STK_EINVAL);
    CHECK(strstr(diag.text, "sample 2 has 1 parts, but sample 0 has 2"));
    stk_run_free(&run);
}

static void check_says(stk_plan *p, const char *text)
{
    stk_diag diag = {0};
    CHECK_EQ(stk_plan_check(p, &diag), STK_EINVAL);
    if (!strstr(diag.text, text)) fprintf(stderr, "said: %s\n", diag.text);
    CHECK(strstr(diag.text, text));
    stk_plan_free(&p);
}

static int first(const stk_item *item, void *ctx)
{
    (void)item, (void)ctx;
    return 0;
}

static void plans_are_checked(void)
{
    static const char *const taken[] = {"image", "id", "size", "label", "twice"};
    for (size_t i = 0; i < 5; i++) {
        adding a = {.names = {taken[i], i == 4 ? "twice" : NULL}};
        stk_plan *p = begun();
        stk_plan_pipe(p, op_of(&a), NULL);
        check_says(ended(p, 4), "samples have something of that name already");
    }
    adding a = {.names = {"a", "b", "c"}}, b = {.names = {"d", "e", "f"}},
           c = {.names = {"g", "h"}};
    stk_plan *p = begun();
    stk_plan_pipe(p, op_of(&a), NULL);
    stk_plan_pipe(p, op_of(&b), NULL);
    stk_plan_pipe(p, op_of(&c), NULL);
    check_says(ended(p, 4), "stage 'adding' adds a part 'h': more than 8 parts");
    p = begun();
    stk_plan_pipe(p, op_of(&a), NULL);
    stk_plan_pipe(p, kit_repeat(NULL), NULL);
    check_says(ended(p, 4), "stage 'repeat' makes new samples, which would lose the part 'a'");

    stk_plan *paths[2];
    for (size_t i = 0; i < 2; i++) {
        CHECK_EQ(stk_plan_new(&paths[i]), STK_OK);
        stk_plan_pipe(paths[i], i ? kit_add(NULL) : op_of(&a), NULL);
    }
    p = begun();
    stk_plan_route(p, first, NULL, 2, paths, NULL);
    check_says(ended(p, 4), "stage 'route': path 1 adds other parts than path 0");

    stk_plan *inputs[2] = {begun(), begun()};
    stk_plan_pipe(inputs[1], op_of(&a), NULL);
    CHECK_EQ(stk_plan_new(&p), STK_OK);
    stk_plan_merge(p, 2, inputs, NULL, 0);
    check_says(ended(p, 4), "input 1 of the merge adds other parts than input 0");
}

static void plans_print_them(void)
{
    adding a = {.names = {"mask", "length"}};
    char *text;
    stk_plan *p = begun();
    stk_plan_pipe(p, op_of(&a), NULL);
    CHECK_EQ(stk_plan_print(ended(p, 4), &text), STK_OK);
    CHECK(strstr(text, "on error raise, adds mask length\n"));
    stk_text_free(&text);
    stk_plan_free(&p);
}

static void they_come_through_routes_and_merges(void)
{
    adding a = {.names = {"mask"}, .known = true};
    static kit_source two[2];
    stk_plan *inputs[2], *p;
    for (size_t k = 0; k < 2; k++) {
        stk_plan *paths[2];
        two[k] = kit_counting(4);
        inputs[k] = kit_plan(&two[k], kit_value(NULL), NULL);
        for (size_t i = 0; i < 2; i++) {
            CHECK_EQ(stk_plan_new(&paths[i]), STK_OK);
            stk_plan_pipe(paths[i], op_of(&a), NULL);
        }
        stk_plan_route(inputs[k], first, NULL, 2, paths, NULL);
    }
    CHECK_EQ(stk_plan_new(&p), STK_OK);
    stk_plan_merge(p, 2, inputs, NULL, 0);
    stk_run *run = start(ended(p, 8));
    stk_batch *batch = next_batch(run);
    check_added(batch, "mask", 0);
    stk_batch_unref(&batch);
    stk_run_free(&run);
}

static void memory_may_run_out(void)
{
    stk_err err;
    TORTURE (err) {
        adding a = {.names = {"mask"}, .known = true, .replaces = true};
        stk_run *run = NULL;
        stk_batch *b = NULL;
        stk_plan *p = NULL;
        source = kit_counting(4);
        err = stk_plan_new(&p);
        if (!err) {
            stk_plan_source(p, kit_source_new(&source));
            stk_plan_pipe(p, kit_value(NULL), NULL);
            stk_plan_pipe(p, op_of(&a), NULL);
            err = stk_run_start(ended(p, 4), &(stk_run_opts){.num_threads = 1}, &run, NULL);
        }
        if (!err) err = stk_run_next(run, STK_FOREVER, &b, NULL);
        if (!err) check_added(b, "mask", 0);
        stk_batch_unref(&b);
        stk_run_free(&run);
        stk_plan_free(&p);
        if (!err && !stk_fault_armed()) err = STK_ENOMEM; /* it coped */
    }
}

TESTS(TEST(they_are_fields), TEST(samples_keep_them_behind_a_batch), TEST(failures_are_left_out),
      TEST(an_empty_batch_has_them), TEST(all_samples_must_have_them), TEST(plans_are_checked),
      TEST(plans_print_them), TEST(they_come_through_routes_and_merges), TEST(memory_may_run_out))
