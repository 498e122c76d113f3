/* Ops that decode some of a sample's parts: the plan sees that each is decoded once, before what
 * takes arrays; and each is made in its slot of the batch. */
#include "tests/engine/kit.h"

#include "data/batch.h"
#include "ops/parts.h"

#define N 12
#define PARTS 3

static const stk_spec one = {.dtype = STK_INT64, .ndim = 1, .shape = {1}};

/* --- a source of samples of three parts, whose bytes are a number --- */

static kit_source counting;
static const stk_source_class *plain;

static const char *const *parts_of(void *params, size_t *n)
{
    static const char *const names[PARTS] = {"image", "feat", "sound"};
    (void)params;
    *n = PARTS;
    return names;
}

static stk_err next(void *cursor, stk_item *item, stk_diag *diag)
{
    const stk_err err = plain->next(cursor, item, diag);
    return err ? err : stk_item_set_num_parts(item, PARTS);
}

static stk_err substitute(void *cursor, stk_item *item, int64_t id, int64_t epoch, int attempt)
{
    const stk_err err = plain->substitute(cursor, item, id, epoch, attempt);
    return err ? err : stk_item_set_num_parts(item, PARTS);
}

static stk_err read_run(const void *params, void *state, stk_item *item, stk_diag *diag)
{
    (void)params, (void)state, (void)diag;
    for (size_t i = 0; i < PARTS; i++) {
        stk_buffer *bytes;
        const int64_t value = stk_item_id(item) * 10 + (int64_t)i;
        const stk_err err = stk_buffer_new(sizeof(value), &bytes);
        if (err) return err;
        memcpy(stk_buffer_writable(bytes), &value, sizeof(value));
        stk_item_set_bytes(item, i, &bytes);
    }
    return STK_OK;
}

static const stk_op_class read_class = {.name = "read",
                                        .flags = STK_OP_ALONE,
                                        .in = STK_KIND_KEY,
                                        .out = STK_KIND_BYTES,
                                        .run = read_run};

static stk_plan *begun(void)
{
    static stk_source_class cls;
    counting = kit_counting(N);
    stk_source *source = kit_source_new(&counting);
    CHECK(source);
    plain = stk_source_get_class(source);
    cls = *plain;
    cls.next = next;
    cls.substitute = substitute;
    cls.parts = parts_of;
    stk_source_unref(&source);
    stk_plan *p;
    CHECK_EQ(stk_plan_new(&p), STK_OK);
    stk_plan_source(p, stk_source_new(&cls, &counting));
    stk_plan_pipe(p, stk_op_new(&read_class, NULL), NULL);
    return p;
}

/* --- an op that decodes some of them --- */

typedef struct taking {
    uint32_t parts;
    bool known;    /* the specs are, beforehand */
    int64_t fails; /* the id that does; 0: none */
} taking;

/* Where arrays were made.  A sample that is also another's substitute is made twice at once. */
static _Atomic(const void *) made[N][PARTS];

static uint32_t taking_takes(const void *params)
{
    return ((const taking *)params)->parts;
}

static void taking_spec(const void *params, size_t part, stk_spec *out)
{
    const taking *t = params;
    CHECK(!t->parts || t->parts >> part & 1); /* nobody asks for those of others */
    if (t->known) *out = one;
}

static stk_err take_part(const void *params, void *ctx, stk_item *item, size_t part, stk_diag *diag)
{
    const taking *t = params;
    stk_tensor a;
    (void)ctx;
    if (t->fails && stk_item_id(item) == t->fails)
        return stk_diag_set(diag, STK_ECORRUPT, "no luck");
    const stk_err err = stk_item_new_array(item, part, &one, &a);
    if (err) return err;
    memcpy(a.data, stk_buffer_data(stk_item_bytes(item, part)), sizeof(int64_t));
    atomic_store_explicit(&made[stk_item_id(item)][part], a.data, memory_order_relaxed);
    stk_item_commit_array(item, part);
    return STK_OK;
}

static stk_err taking_run(const void *params, void *state, stk_item *item, stk_diag *diag)
{
    (void)state;
    return stk_parts_decode(((const taking *)params)->parts, item, take_part, params, NULL, diag);
}

static const stk_op_class taking_class = {
    .name = "taking",
    .flags = STK_OP_ALONE,
    .in = STK_KIND_BYTES,
    .out = STK_KIND_ARRAY,
    .run = taking_run,
    .takes = taking_takes,
    .spec = taking_spec,
};

static void take(stk_plan *p, taking *t, const stk_stage_opts *opts)
{
    stk_plan_pipe(p, stk_op_new(&taking_class, t), opts);
}

static stk_plan *ended(stk_plan *p)
{
    stk_plan_batch(p, 4, &(stk_batch_opts){.keep_empty = true});
    stk_plan_sink(p, 2);
    return p;
}

static stk_run *start(stk_plan *p)
{
    stk_run *run;
    stk_diag diag = {0};
    const stk_err err = stk_run_start(p, &(stk_run_opts){.num_threads = 2}, &run, &diag);
    if (err) fprintf(stderr, "%s\n", diag.text);
    CHECK_EQ(err, STK_OK);
    stk_plan_free(&p);
    return run;
}

static const int64_t *field(const stk_batch *b, size_t part)
{
    size_t n;
    stk_tensor t;
    const int i = stk_batch_find(b, parts_of(NULL, &n)[part]);
    CHECK(i >= 0);
    CHECK_EQ(stk_batch_array(b, (size_t)i, &t, NULL), STK_OK);
    CHECK_EQ(t.shape[0], stk_batch_size(b));
    return t.data;
}

static void check_batch(const stk_batch *b, uint32_t in_slots)
{
    for (size_t part = 0; part < PARTS; part++)
        for (size_t i = 0; i < stk_batch_size(b); i++) {
            const int64_t id = stk_batch_id(b, i);
            CHECK_EQ(field(b, part)[i], id * 10 + (int64_t)part);
            if (in_slots >> part & 1) CHECK(made[id][part] == &field(b, part)[i]);
        }
}

static void each_is_made_in_its_slot(void)
{
    taking t[2][3] = {{{.parts = 2, .known = true}, {.parts = 5, .known = true}, {0}},
                      {{.parts = 4, .known = true}, {.parts = 2}, {.parts = 1, .known = true}}};
    for (int k = 0; k < 4; k++) {
        /* In one hop, and in several. */
        const stk_stage_opts apart = {.concurrency = k & 1 ? 2 : 0};
        stk_plan *p = begun();
        for (size_t i = 0; i < 3 && t[k / 2][i].parts; i++)
            take(p, &t[k / 2][i], i == 1 ? &apart : NULL);
        stk_run *run = start(ended(p));
        for (int i = 0; i < N / 4; i++) {
            stk_batch *b;
            CHECK_EQ(stk_run_next(run, STK_FOREVER, &b, NULL), STK_OK);
            CHECK_EQ(stk_batch_size(b), 4);
            check_batch(b, k / 2 ? 5 : 7);
            stk_batch_unref(&b);
        }
        stk_run_free(&run);
    }
}

static void failures_leave_no_trace(void)
{
    for (int k = 0; k < 2; k++) {
        taking a = {.parts = 1, .known = true, .fails = 5}, b = {.parts = 6, .fails = 2};
        const stk_stage_opts opts = {.on_error = k ? STK_SUBSTITUTE : STK_SKIP};
        stk_plan *p = begun();
        take(p, &a, &opts);
        take(p, &b, &opts);
        stk_run *run = start(ended(p));
        size_t samples = 0;
        stk_batch *batch;
        while (stk_run_next(run, STK_FOREVER, &batch, NULL) == STK_OK) {
            check_batch(batch, 0);
            samples += stk_batch_size(batch);
            stk_batch_unref(&batch);
        }
        CHECK_EQ(samples, k ? N : N - 2);
        stk_run_free(&run);
    }
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
    taking some = {.parts = 1}, rest = {.parts = 6}, all = {0}, none = {.parts = 8};
    stk_plan *p = begun();
    take(p, &some, NULL);
    check_says(ended(p), "stage 'batch' gets samples whose part 'feat' still holds bytes");
    p = begun();
    take(p, &some, NULL);
    stk_plan_pipe(p, kit_add(NULL), NULL);
    check_says(ended(p), "stage 'add' gets samples whose part 'feat' still holds bytes");
    p = begun();
    take(p, &rest, NULL);
    take(p, &all, NULL);
    check_says(ended(p), "takes the part 'feat', which a stage before it has decoded");
    p = begun();
    take(p, &none, NULL);
    check_says(ended(p), "stage 'taking' takes part 3, but samples have 3");
    p = begun();
    take(p, &all, NULL);
    take(p, &some, NULL);
    check_says(ended(p), "takes bytes but gets arrays");

    stk_plan *paths[2];
    for (size_t i = 0; i < 2; i++) {
        CHECK_EQ(stk_plan_new(&paths[i]), STK_OK);
        take(paths[i], i ? &rest : &some, NULL);
    }
    p = begun();
    stk_plan_route(p, first, NULL, 2, paths, NULL);
    check_says(ended(p), "path 1 ends in bytes, path 0 in bytes of other parts");
    stk_plan *inputs[2] = {begun(), begun()};
    take(inputs[0], &some, NULL);
    CHECK_EQ(stk_plan_new(&p), STK_OK);
    stk_plan_merge(p, 2, inputs, NULL, 0);
    take(p, &rest, NULL);
    check_says(ended(p), "input 1 of the merge gives bytes, input 0 bytes of other parts");
}

static void plans_print_them(void)
{
    taking some = {.parts = 5}, rest = {.parts = 2};
    char *text;
    stk_plan *p = begun();
    take(p, &some, NULL);
    take(p, &rest, NULL);
    CHECK_EQ(stk_plan_print(ended(p), &text), STK_OK);
    CHECK(strstr(text, "on error raise, takes image sound\n"));
    CHECK(strstr(text, "on error raise, takes feat\n"));
    CHECK(!strstr(text, "cannot run"));
    stk_text_free(&text);
    stk_plan_free(&p);
}

TESTS(TEST(each_is_made_in_its_slot), TEST(failures_leave_no_trace), TEST(plans_are_checked),
      TEST(plans_print_them))
