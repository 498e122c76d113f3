/*
 * What the fuzz targets of codecs share: probe, decode a window, look at every byte of each row.
 * The window depends on the data, so that the corpus is plain image files.
 */
#ifndef STK_TESTS_FUZZ_CODEC_H
#define STK_TESTS_FUZZ_CODEC_H

#include "base/rng.h"
#include "codec/codec.h"
#include "tests/check.h"
#include "tests/fuzz/fuzz.h"

/* Small: what a fuzzer finds does not take megapixels, but time does. */
#define FUZZ_LIMITS (&(stk_image_limits){.max_pixels = 1 << 15, .max_side = 1 << 12})

struct fuzz_rows {
    size_t row_bytes;
    int32_t rows, stop_after;
    uint64_t sum;
};

static inline bool fuzz_push(void *ctx, const uint8_t *row)
{
    struct fuzz_rows *r = ctx;
    for (size_t i = 0; i < r->row_bytes; i++) r->sum += row[i];
    return ++r->rows != r->stop_after;
}

/* A number below `end`, from the next bits of *seed. */
static inline int32_t fuzz_below(uint64_t *seed, int32_t end)
{
    *seed = stk_mix64(*seed);
    return (int32_t)(*seed % (uint64_t)end);
}

static inline stk_window_request fuzz_request(const stk_image_info *info, uint64_t *seed)
{
    stk_window_request req = {.rect = {0, 0, info->width, info->height}};
    if (fuzz_below(seed, 2)) {
        req.rect.x = fuzz_below(seed, info->width);
        req.rect.y = fuzz_below(seed, info->height);
        req.rect.width = 1 + fuzz_below(seed, info->width - req.rect.x);
        req.rect.height = 1 + fuzz_below(seed, info->height - req.rect.y);
    }
    req.gray = fuzz_below(seed, 4) == 0;
    req.fast = fuzz_below(seed, 2);
    if (fuzz_below(seed, 2)) {
        req.min_width = 1 + fuzz_below(seed, req.rect.width);
        req.min_height = 1 + fuzz_below(seed, req.rect.height);
    }
    return req;
}

static inline void fuzz_check_window(const stk_window_request *req, const stk_row_window *win)
{
    CHECK(win->width > 0 && win->height > 0);
    CHECK(win->x0 >= 0 && win->x0 < win->x1 && win->x1 <= win->width);
    CHECK(win->y0 >= 0 && win->y0 < win->y1 && win->y1 <= win->height);
    CHECK(win->x1 - win->x0 <= req->rect.width && win->y1 - win->y0 <= req->rect.height);
    CHECK(win->x1 - win->x0 >= req->min_width && win->y1 - win->y0 >= req->min_height);
}

/* `*state` is made at first use, and kept, as a worker keeps its own. */
static inline void fuzz_codec(const stk_codec *codec, void **state, const uint8_t *data,
                              size_t size)
{
    uint64_t seed = size;
    for (size_t i = 0; i < size; i += 7) seed = seed * 31 + data[i];
    stk_image_info info, probed;
    stk_diag diag = {0};
    stk_row_window win;
    struct fuzz_rows rows = {0};
    if (!*state) CHECK_EQ(codec->open(state, NULL), STK_OK);

    const stk_err probe_err = codec->probe(data, size, &probed, NULL);
    stk_err err = codec->begin(*state, data, size, FUZZ_LIMITS, &info, &diag);
    CHECK(!err == !diag.text[0]);
    if (err) return;
    CHECK(!probe_err && probed.width == info.width && probed.height == info.height);
    CHECK(info.orientation >= 1 && info.orientation <= 8);

    const stk_window_request req = fuzz_request(&info, &seed);
    if (codec->window(*state, &req, &win, &diag)) return;
    fuzz_check_window(&req, &win);
    rows.row_bytes = (size_t)win.width * (win.pixels == STK_PIXELS_GRAY ? 1 : 3);
    if (fuzz_below(&seed, 4) == 0) rows.stop_after = 1 + fuzz_below(&seed, win.height);
    err = codec->rows(*state, fuzz_push, &rows, &diag);
    CHECK(rows.rows <= win.height);
    CHECK(err || rows.rows == (rows.stop_after ? rows.stop_after : win.height));
}

#endif /* STK_TESTS_FUZZ_CODEC_H */
