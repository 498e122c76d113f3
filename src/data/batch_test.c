#include "data/batch.h"

#include "base/alloc.h"
#include "tests/check.h"

static stk_slab_pool *pool;

static stk_err make(stk_batch **out)
{
    const stk_batch_params params = {.capacity = 3, .epoch = 4, .index = 5, .pool = pool};
    const stk_spec spec = {.dtype = STK_UINT8, .ndim = 2, .shape = {2, 8}};
    stk_buffer *mem = NULL;
    stk_err err = stk_batch_new(&params, out);
    if (err) return err;
    err = stk_batch_add_sample(*out, NULL, 10, false);
    if (!err) err = stk_batch_add_sample(*out, NULL, 12, true);
    if (!err) err = stk_slab_take(pool, 16, &mem);
    if (!err) memset(stk_buffer_writable(mem), 7, 16);
    if (!err) err = stk_batch_add_array(*out, "image", &spec, &mem, NULL);
    if (!err) err = stk_batch_add_strings(*out, "name", (const char *[]){"a", "b"}, NULL);
    stk_buffer_unref(&mem);
    if (err) stk_batch_unref(out);
    return err;
}

static void fields(void)
{
    stk_batch *b;
    stk_tensor t;
    stk_buffer *mem;
    CHECK_EQ(stk_slab_pool_new(4, &pool), STK_OK);
    CHECK_EQ(make(&b), STK_OK);
    CHECK_EQ(stk_batch_size(b), 2);
    CHECK_EQ(stk_batch_epoch(b), 4);
    CHECK_EQ(stk_batch_index(b), 5);
    CHECK_EQ(stk_batch_num_fields(b), 2);
    CHECK_EQ(stk_batch_find(b, "name"), 1);
    CHECK_EQ(stk_batch_find(b, "none"), -1);
    CHECK(stk_batch_field_is_strings(b, 1) && !stk_batch_field_is_strings(b, 0));
    CHECK(!strcmp(stk_batch_string(b, 1, 1), "b") && !stk_batch_string(b, 1, 2) &&
          !stk_batch_string(b, 0, 0));
    CHECK_EQ(stk_batch_array(b, 1, &t, NULL), STK_EINVAL);
    CHECK_EQ(stk_batch_id(b, 1), 12);
    CHECK(stk_batch_substituted(b, 1) && !stk_batch_substituted(b, 0));
    char key[8];
    CHECK_EQ(stk_batch_key(b, 0, key, sizeof(key)), STK_ENOTFOUND);
    CHECK_EQ(stk_batch_key(b, 2, key, sizeof(key)), STK_EINVAL);

    CHECK_EQ(stk_batch_array(b, 0, &t, &mem), STK_OK);
    stk_batch_unref(&b); /* a field outlives its batch, and the pool */
    stk_slab_pool_unref(&pool);
    CHECK_EQ(t.shape[0], 2);
    CHECK_EQ(((uint8_t *)t.data)[15], 7);
    stk_buffer_unref(&mem);
}

static void arrays_are_replaced(void)
{
    stk_batch *b;
    stk_tensor t;
    stk_buffer *mem;
    const stk_spec spec = {.dtype = STK_FLOAT32, .ndim = 1, .shape = {2}};
    CHECK_EQ(stk_slab_pool_new(4, &pool), STK_OK);
    CHECK_EQ(make(&b), STK_OK);
    CHECK(stk_batch_pool(b) == pool);
    CHECK_EQ(stk_slab_take(stk_batch_pool(b), 8, &mem), STK_OK);
    CHECK_EQ(stk_batch_replace_array(b, 1, &spec, &mem), STK_EINVAL);
    CHECK_EQ(stk_batch_replace_array(b, 0, &spec, &mem), STK_OK);
    CHECK(mem == NULL);
    CHECK_EQ(stk_batch_array(b, 0, &t, NULL), STK_OK);
    CHECK_EQ(t.dtype, STK_FLOAT32);
    stk_batch_unref(&b);
    stk_slab_pool_unref(&pool);
}

static void strings_are_replaced(void)
{
    stk_batch *b;
    char word[] = "word";
    CHECK_EQ(stk_slab_pool_new(4, &pool), STK_OK);
    CHECK_EQ(make(&b), STK_OK);
    CHECK_EQ(stk_batch_replace_strings(b, 0, (const char *[]){"", ""}), STK_EINVAL);
    CHECK_EQ(stk_batch_replace_strings(b, 2, (const char *[]){"", ""}), STK_EINVAL);
    CHECK_EQ(stk_batch_replace_strings(b, 1, (const char *[]){stk_batch_string(b, 1, 1), word}),
             STK_OK);
    memset(word, 0, sizeof(word));
    CHECK(!strcmp(stk_batch_string(b, 1, 0), "b") && !strcmp(stk_batch_string(b, 1, 1), "word"));
    CHECK(stk_batch_num_fields(b) == 2 && !strcmp(stk_batch_field_name(b, 1), "name"));
    stk_batch_unref(&b);
    stk_slab_pool_unref(&pool);
}

/* A batch that others read is copied before it is changed. */
static void copies_share_arrays(void)
{
    stk_batch *b, *read;
    stk_tensor t, u;
    char key[8];
    CHECK_EQ(stk_slab_pool_new(4, &pool), STK_OK);
    CHECK_EQ(make(&b), STK_OK);
    CHECK_EQ(stk_batch_set_key(b, 1, "first"), STK_OK);
    CHECK_EQ(stk_batch_set_key(b, 1, "second"), STK_OK);
    CHECK(!stk_batch_own_key(b, 0) && !strcmp(stk_batch_own_key(b, 1), "second"));
    CHECK_EQ(stk_batch_key(b, 1, key, sizeof(key)), STK_OK);
    CHECK(!strcmp(key, "second"));
    CHECK_EQ(stk_batch_key(b, 1, key, 6), STK_ELIMIT);
    char word[] = "word";
    CHECK_EQ(stk_batch_copy_strings(b, "own", (const char *[]){word, word + 2}, NULL), STK_OK);
    memset(word, 0, sizeof(word));

    stk_batch *const same = b;
    CHECK_EQ(stk_batch_own(&b), STK_OK);
    CHECK(b == same);
    read = stk_batch_ref(b);
    CHECK_EQ(stk_batch_own(&b), STK_OK);
    CHECK(b != same && read == same);
    CHECK_EQ(stk_batch_array(b, 0, &t, NULL), STK_OK);
    CHECK_EQ(stk_batch_array(read, 0, &u, NULL), STK_OK);
    CHECK(t.data == u.data && stk_batch_size(b) == 2 && stk_batch_index(b) == 5);
    stk_batch_unref(&read);
    CHECK(stk_batch_id(b, 1) == 12 && stk_batch_substituted(b, 1));
    CHECK(!strcmp(stk_batch_own_key(b, 1), "second"));
    CHECK(!strcmp(stk_batch_string(b, 1, 0), "a"));
    CHECK(!strcmp(stk_batch_string(b, 2, 0), "word") && !strcmp(stk_batch_string(b, 2, 1), "rd"));
    stk_batch_unref(&b);
    stk_slab_pool_unref(&pool);
}

static stk_err made(stk_batch **out)
{
    const stk_batch_sample samples[] = {{.id = 7, .key = "seven"}, {.id = 3, .substituted = true}};
    const stk_spec spec = {.dtype = STK_UINT8, .ndim = 2, .shape = {2, 4}};
    stk_buffer *mem = NULL;
    stk_err err = stk_batch_make(samples, 2, 1, 2, out);
    if (!err) err = stk_buffer_new(8, &mem);
    if (!err) memset(stk_buffer_writable(mem), 5, 8);
    if (!err) err = stk_batch_put_array(*out, "data", &spec, &mem);
    if (!err) err = stk_batch_put_strings(*out, "word", (const char *[]){"a", "bc"});
    stk_buffer_unref(&mem);
    if (err) stk_batch_unref(out);
    return err;
}

/* Only what nobody else refers to can be written to. */
static void writable_arrays(void)
{
    stk_batch *b;
    stk_buffer *mem;
    CHECK_EQ(stk_slab_pool_new(4, &pool), STK_OK);
    CHECK_EQ(stk_batch_new(&(stk_batch_params){.capacity = 1, .pool = pool}, &b), STK_OK);
    const stk_spec spec = {.dtype = STK_UINT8, .ndim = 1, .shape = {3}};
    CHECK_EQ(stk_slab_take(pool, 3, &mem), STK_OK);
    const uint8_t *bytes = stk_buffer_data(mem);
    CHECK_EQ(stk_batch_add_array(b, "x", &spec, &mem, NULL), STK_OK);
    CHECK(stk_batch_writable(b, 0) == bytes && !stk_batch_writable(b, 1));
    stk_tensor t;
    CHECK_EQ(stk_batch_array(b, 0, &t, &mem), STK_OK);
    CHECK(!stk_batch_writable(b, 0));
    stk_buffer_unref(&mem);
    static uint8_t others[3];
    CHECK_EQ(stk_buffer_wrap(others, 3, NULL, NULL, &mem), STK_OK);
    CHECK_EQ(stk_batch_replace_array(b, 0, &spec, &mem), STK_OK);
    CHECK(!stk_batch_writable(b, 0));
    CHECK_EQ(stk_batch_copy_strings(b, "words", (const char *[]){"a"}, NULL), STK_OK);
    CHECK(!stk_batch_writable(b, 1));
    stk_batch_unref(&b);
    stk_slab_pool_unref(&pool);
}

static void of_the_callers(void)
{
    stk_batch *b;
    stk_tensor t;
    char key[8];
    CHECK_EQ(made(&b), STK_OK);
    CHECK(stk_batch_size(b) == 2 && stk_batch_epoch(b) == 1 && stk_batch_index(b) == 2);
    CHECK(stk_batch_id(b, 0) == 7 && stk_batch_id(b, 1) == 3 && stk_batch_substituted(b, 1));
    CHECK_EQ(stk_batch_key(b, 0, key, sizeof(key)), STK_OK);
    CHECK(!strcmp(key, "seven"));
    CHECK_EQ(stk_batch_key(b, 1, key, sizeof(key)), STK_ENOTFOUND);
    CHECK_EQ(stk_batch_array(b, 0, &t, NULL), STK_OK);
    CHECK(((uint8_t *)t.data)[7] == 5 && !strcmp(stk_batch_string(b, 1, 1), "bc"));

    stk_spec spec = stk_tensor_spec(&t);
    stk_buffer *mem;
    CHECK_EQ(stk_buffer_new(8, &mem), STK_OK);
    CHECK_EQ(stk_batch_put_array(b, "data", &spec, &mem), STK_EINVAL); /* there is one */
    spec.shape[1] = 5;
    CHECK_EQ(stk_batch_put_array(b, "other", &spec, &mem), STK_EINVAL); /* too few bytes */
    spec.shape[0] = 1;
    CHECK_EQ(stk_batch_put_array(b, "other", &spec, &mem), STK_EINVAL);
    CHECK_EQ(stk_batch_put_strings(b, "word", (const char *[]){"", ""}), STK_EINVAL);
    stk_buffer_unref(&mem);
    CHECK_EQ(stk_slab_take(stk_batch_pool(b), 16, &mem), STK_OK); /* for ops that add to it */
    stk_batch_unref(&b);
    stk_buffer_unref(&mem);
    stk_err err;
    TORTURE (err) {
        err = made(&b);
        CHECK(!err == !!b);
        stk_batch_unref(&b);
    }
}

static void survives_every_failure(void)
{
    stk_err err;
    TORTURE (err) {
        stk_batch *b = NULL;
        err = stk_slab_pool_new(4, &pool);
        if (!err) err = make(&b);
        CHECK(!err == !!b);
        stk_batch *read = b ? stk_batch_ref(b) : NULL;
        if (!err) err = stk_batch_set_key(b, 0, "key");
        if (!err) err = stk_batch_copy_strings(b, "own", (const char *[]){"c", "d"}, NULL);
        if (!err) err = stk_batch_replace_strings(b, 2, (const char *[]){"e", "f"});
        if (!err) err = stk_batch_own(&b);
        CHECK(err || b != read);
        stk_batch_unref(&read);
        stk_batch_unref(&b);
        stk_slab_pool_unref(&pool);
    }
    stk_fault_arm(-1);
}

static void a_field_too_many_is_named(void)
{
    stk_batch *b;
    stk_diag diag = {0};
    CHECK_EQ(stk_slab_pool_new(1, &pool), STK_OK);
    const stk_batch_params params = {.capacity = 1, .pool = pool};
    CHECK_EQ(stk_batch_new(&params, &b), STK_OK);
    for (int i = 0; i < STK_MAX_FIELDS; i++)
        CHECK_EQ(stk_batch_add_strings(b, "x", NULL, &diag), STK_OK);
    CHECK_EQ(stk_batch_add_strings(b, "last", NULL, &diag), STK_ELIMIT);
    CHECK(!strcmp(diag.text, "field \"last\": a batch has 64 fields at most"));
    CHECK_EQ(stk_batch_num_fields(b), STK_MAX_FIELDS);
    stk_batch_unref(&b);
    stk_slab_pool_unref(&pool);
}

TESTS(TEST(fields), TEST(arrays_are_replaced), TEST(strings_are_replaced),
      TEST(copies_share_arrays), TEST(writable_arrays), TEST(of_the_callers),
      TEST(survives_every_failure), TEST(a_field_too_many_is_named))
