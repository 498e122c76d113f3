/*
 * What the tests of codecs share: decoding with a codec's table, and the checks that every codec
 * has to pass.
 */
#ifndef STK_TESTS_CODEC_CHECK_H
#define STK_TESTS_CODEC_CHECK_H

#include "base/alloc.h"
#include "codec/codec.h"
#include "tests/check.h"

#define CODEC_LIMITS (&(stk_image_limits){.max_pixels = 1 << 24, .max_side = 1 << 14})

/* Rows pushed so far, one after another. */
struct pixels {
    stk_row_window window;
    size_t row_bytes, rows;
    size_t stop_after; /* rows; 0: never */
    uint8_t *data;
};

static inline bool pixels_push(void *ctx, const uint8_t *row)
{
    struct pixels *p = ctx;
    CHECK(p->rows < (size_t)p->window.height);
    memcpy(p->data + p->rows++ * p->row_bytes, row, p->row_bytes);
    return p->rows != p->stop_after;
}

/* begin, window and rows; a rect of width 0 means the whole image.  Free out->data. */
static inline stk_err codec_decode(const stk_codec *codec, void *state, const void *data,
                                   size_t size, stk_window_request req, struct pixels *out,
                                   stk_diag *diag)
{
    stk_image_info info;
    out->data = NULL;
    out->rows = 0;
    stk_err err = codec->begin(state, data, size, CODEC_LIMITS, &info, diag);
    if (err) return err;
    if (!req.rect.width) req.rect = (stk_rect){0, 0, info.width, info.height};
    err = codec->window(state, &req, &out->window, diag);
    if (err) return err;
    out->row_bytes = (size_t)out->window.width * (out->window.pixels == STK_PIXELS_GRAY ? 1 : 3);
    out->data = malloc(out->row_bytes * (size_t)out->window.height);
    err = codec->rows(state, pixels_push, out, diag);
    if (!err && !out->stop_after) CHECK_EQ(out->rows, out->window.height);
    return err;
}

static inline void *codec_state(const stk_codec *codec)
{
    void *state;
    CHECK_EQ(codec->open(&state, NULL), STK_OK);
    return state;
}

/* Decodes `count` rectangles, and each must equal that part of the whole. */
static inline void check_windows(const stk_codec *codec, const void *data, size_t size, bool gray,
                                 int count)
{
    void *state = codec_state(codec);
    struct pixels whole = {0};
    CHECK_EQ(
        codec_decode(codec, state, data, size, (stk_window_request){.gray = gray}, &whole, NULL),
        STK_OK);
    const size_t pixel = whole.row_bytes / (size_t)whole.window.width;
    unsigned x = 12345;
    for (int n = 0; n < count; n++) {
        int32_t v[4];
        for (int i = 0; i < 4; i++) v[i] = (int32_t)((x = x * 1664525u + 1013904223u) >> 8);
        stk_rect r = {.x = v[0] % whole.window.width, .y = v[1] % whole.window.height};
        r.width = 1 + v[2] % (whole.window.width - r.x);
        r.height = 1 + v[3] % (whole.window.height - r.y);
        struct pixels part = {.stop_after = n % 4 ? 0 : 1 + (size_t)r.height / 2};
        stk_window_request req = {.rect = r, .gray = gray};
        CHECK_EQ(codec_decode(codec, state, data, size, req, &part, NULL), STK_OK);
        CHECK(part.window.width == r.width && part.window.height == r.height);
        CHECK(part.window.x0 == 0 && part.window.x1 == r.width);
        CHECK(part.window.y0 == 0 && part.window.y1 == r.height);
        for (size_t row = 0; row < part.rows; row++)
            CHECK(!memcmp(part.data + row * part.row_bytes,
                          whole.data + ((size_t)r.y + row) * whole.row_bytes + (size_t)r.x * pixel,
                          part.row_bytes));
        free(part.data);
    }
    free(whole.data);
    codec->close(state);
}

/* The data cut at every length must be refused, with a reason, without touching a byte beyond. */
static inline void check_truncation(const stk_codec *codec, const void *data, size_t size)
{
    void *state = codec_state(codec);
    for (size_t cut = 0; cut < size; cut++) {
        uint8_t *copy = malloc(cut ? cut : 1); /* so that the sanitizer sees its end */
        memcpy(copy, data, cut);
        struct pixels p = {0};
        stk_diag diag = {0};
        stk_err err = codec_decode(codec, state, copy, cut, (stk_window_request){0}, &p, &diag);
        if (err != STK_ECORRUPT) fprintf(stderr, "cut at %zu of %zu\n", cut, size);
        CHECK_EQ(err, STK_ECORRUPT);
        CHECK(diag.err == err && diag.text[0]);
        free(p.data);
        free(copy);
    }
    codec->close(state);
}

/* Every allocation fails in turn; afterwards the same state decodes. */
static inline void check_out_of_memory(const stk_codec *codec, const void *data, size_t size)
{
    stk_err err;
    TORTURE (err) {
        void *state = NULL;
        struct pixels p = {0};
        stk_diag diag = {0};
        err = codec->open(&state, &diag);
        if (!err) err = codec_decode(codec, state, data, size, (stk_window_request){0}, &p, &diag);
        if (err && err != STK_ENOMEM)
            fprintf(stderr, "allocation %ld: %s\n", torture_at, diag.text);
        CHECK(err == STK_OK || err == STK_ENOMEM);
        free(p.data);
        if (state) {
            stk_fault_arm(-1);
            CHECK_EQ(codec_decode(codec, state, data, size, (stk_window_request){0}, &p, NULL),
                     STK_OK);
            free(p.data);
        }
        codec->close(state);
    }
}

#endif /* STK_TESTS_CODEC_CHECK_H */
