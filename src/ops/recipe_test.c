#include "ops/recipe.h"

#include <stoker/clip.h>

#include "base/alloc.h"
#include "tests/check.h"

static void describe(const stk_op *op, char text[512])
{
    stk_op_get_class(op)->print(stk_op_params(op), text, 512);
}

/* What is made of the recipe prints the same, and has the same recipe. */
static void comes_back(stk_op *op)
{
    char before[512], after[512];
    stk_buffer *first, *second;
    stk_diag diag = {0};
    CHECK(op);
    CHECK_EQ(stk_recipe_write(op, &first, &diag), STK_OK);
    const uint8_t *bytes = stk_buffer_data(first);
    stk_op *again = stk_recipe_make(bytes, stk_buffer_size(first), &diag);
    if (!again) check_fail(__FILE__, __LINE__, diag.text);
    describe(op, before);
    describe(again, after);
    CHECK(!strcmp(before, after));
    CHECK_EQ(stk_recipe_write(again, &second, &diag), STK_OK);
    CHECK_EQ(stk_buffer_size(second), stk_buffer_size(first));
    CHECK(!memcmp(stk_buffer_data(second), bytes, stk_buffer_size(first)));
    for (size_t cut = 0; cut < stk_buffer_size(first); cut++) {
        uint8_t *part = malloc(cut + 1);
        CHECK(part);
        memcpy(part, bytes, cut);
        CHECK(!stk_recipe_make(part, cut, &diag));
        free(part);
    }
    stk_buffer_unref(&first);
    stk_buffer_unref(&second);
    stk_op_unref(&again);
    stk_op_unref(&op);
}

static void pictures(void)
{
    const stk_image_opts o = {.width = 64,
                              .height = 48,
                              .crop = STK_CROP_CENTER,
                              .filter = STK_FILTER_BOX,
                              .flip = 0.25,
                              .gray_parts = 2,
                              .max_side = 1000};
    comes_back(stk_op_decode_image(NULL, NULL));
    comes_back(stk_op_decode_image(&o, NULL));
}

static void sound(void)
{
    comes_back(stk_op_decode_wav(&(stk_audio_opts){.where = STK_WHERE_ALL}, NULL));
    comes_back(stk_op_decode_wav(&(stk_audio_opts){.seconds = 1, .mask = "there"}, NULL));
    comes_back(stk_op_decode_wav(&(stk_audio_opts){.seconds = 1, .mask = ""}, NULL));
    /* Where there is FFmpeg. */
    stk_op *op = stk_op_decode_audio(&(stk_audio_opts){.seconds = 2, .lenient = true}, NULL);
    if (op) comes_back(op);
    op = stk_op_decode_video(&(stk_video_opts){.frames = 4, .stride = 3, .repeat = true}, NULL);
    if (op) comes_back(op);
}

static void others(void)
{
    stk_op *op = stk_op_read(NULL, NULL);
    stk_buffer *bytes;
    stk_diag diag;
    CHECK_EQ(stk_recipe_write(op, &bytes, &diag), STK_EUNSUPPORTED);
    CHECK(!bytes && strstr(diag.text, "read cannot be isolated"));
    stk_op_unref(&op);
    const uint64_t unknown[2] = {77};
    CHECK(!stk_recipe_make(unknown, sizeof(unknown), &diag));
    CHECK_EQ(diag.err, STK_EINVAL);
}

static void no_memory(void)
{
    stk_err err;
    TORTURE (err) {
        stk_op *op = stk_op_decode_wav(&(stk_audio_opts){.seconds = 1}, NULL), *again = NULL;
        stk_buffer *bytes = NULL;
        stk_diag diag = {0};
        err = op ? stk_recipe_write(op, &bytes, &diag) : STK_ENOMEM;
        if (!err) again = stk_recipe_make(stk_buffer_data(bytes), stk_buffer_size(bytes), &diag);
        if (!err && !again) err = diag.err;
        CHECK(!err || err == STK_ENOMEM);
        stk_buffer_unref(&bytes);
        stk_op_unref(&again);
        stk_op_unref(&op);
    }
}

TESTS(TEST(pictures), TEST(sound), TEST(others), TEST(no_memory))
