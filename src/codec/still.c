#include "codec/still.h"

#include <string.h>

#include "base/alloc.h"
#include "codec/limits.h"
#include "codec/rowbuf.h"

struct state {
    const stk_still_format *format;
    stk_picture_decoder *decoder; /* NULL: none was needed yet */
    stk_still still;
    bool begun;
    stk_window_request request;
    stk_rowbuf joined; /* the pieces */
    stk_rowbuf row;

    /* Of the rows that come. */
    stk_row_fn *push;
    void *ctx;
    int32_t y;
    bool damaged;
};

bool stk_still_add(stk_still *still, const uint8_t *data, size_t size, uint64_t at, uint64_t length)
{
    if (still->num_pieces >= STK_STILL_PIECES || at > size || length > size - at) return false;
    still->pieces[still->num_pieces].data = data + at;
    still->pieces[still->num_pieces++].size = (size_t)length;
    return true;
}

static stk_err parse(const stk_still_format *format, const uint8_t *data, size_t size,
                     stk_still *still, stk_diag *diag)
{
    *still = (stk_still){0};
    const stk_err err = format->parse(data, size, still, diag);
    still->info.format = format->codec->format;
    if (!err && (still->info.width <= 0 || still->info.height <= 0))
        return stk_diag_set(diag, STK_ECORRUPT, "%s: no pixels", format->codec->name);
    return err;
}

stk_err stk_still_probe(const stk_still_format *format, const uint8_t *data, size_t size,
                        stk_image_info *out, stk_diag *diag)
{
    stk_still still;
    const stk_err err = parse(format, data, size, &still, diag);
    *out = err ? (stk_image_info){0} : still.info;
    return err;
}

stk_err stk_still_open(const stk_still_format *format, void **state, stk_diag *diag)
{
    struct state *s = *state = stk_alloc_zero(1, sizeof(*s));
    if (!s) return stk_diag_set(diag, STK_ENOMEM, "%s: out of memory", format->codec->name);
    s->format = format;
    return STK_OK;
}

void stk_still_close(void *state)
{
    struct state *s = state;
    if (!s) return;
    stk_picture_decoder_free(&s->decoder);
    stk_rowbuf_fini(&s->joined);
    stk_rowbuf_fini(&s->row);
    stk_free(s);
}

stk_err stk_still_begin(void *state, const uint8_t *data, size_t size,
                        const stk_image_limits *limits, stk_image_info *info, stk_diag *diag)
{
    struct state *s = state;
    s->begun = false;
    stk_err err = parse(s->format, data, size, &s->still, diag);
    *info = s->still.info;
    if (!err)
        err =
            stk_image_limits_check(limits, s->format->codec->name, info->width, info->height, diag);
    s->begun = !err;
    return err;
}

stk_err stk_still_window(void *state, const stk_window_request *req, stk_row_window *out,
                         stk_diag *diag)
{
    struct state *s = state;
    (void)diag;
    s->request = *req;
    *out = (stk_row_window){
        .pixels = req->gray ? STK_PIXELS_GRAY : STK_PIXELS_RGB,
        .width = req->rect.width,
        .height = req->rect.height,
        .x1 = req->rect.width,
        .y1 = req->rect.height,
    };
    return STK_OK;
}

/* All of the file that FFmpeg needs, in one piece. */
static stk_err join(struct state *s, stk_picture *picture)
{
    const stk_still *still = &s->still;
    if (!still->head && !still->tail && still->num_pieces == 1) {
        picture->data = still->pieces[0].data;
        picture->size = still->pieces[0].size;
        return STK_OK;
    }
    size_t size = still->head + still->tail;
    for (size_t i = 0; i < still->num_pieces; i++)
        if (__builtin_add_overflow(size, still->pieces[i].size, &size)) return STK_ENOMEM;
    const stk_err err = stk_rowbuf_reserve(&s->joined, size);
    if (err) return err;
    picture->data = s->joined.data;
    picture->size = size;
    uint8_t *at = s->joined.data;
    memcpy(at, still->own, still->head);
    at += still->head;
    for (size_t i = 0; i < still->num_pieces; at += still->pieces[i++].size)
        memcpy(at, still->pieces[i].data, still->pieces[i].size);
    memcpy(at, still->own + still->head, still->tail);
    return STK_OK;
}

/* RGBA to RGB.  False: a pixel is missing. */
static bool flatten(const struct state *s, const uint8_t *rgba, uint8_t *rgb)
{
    const stk_rect *drawn = &s->still.drawn, *rect = &s->request.rect;
    const bool here = s->y >= drawn->y && s->y < drawn->y + drawn->height;
    for (int32_t i = 0; i < rect->width; i++, rgba += 4, rgb += 3) {
        const int32_t x = rect->x + i;
        const bool inside = here && x >= drawn->x && x < drawn->x + drawn->width;
        if (inside && !rgba[3]) return false;
        memcpy(rgb, inside ? rgba : s->still.fill, 3);
    }
    return true;
}

static bool take(void *ctx, const uint8_t *row)
{
    struct state *s = ctx;
    uint8_t *own = s->row.data;
    if (s->format->drawn) {
        s->damaged = !flatten(s, row, own);
        if (s->damaged) return false;
        row = own;
    }
    s->y++;
    if (s->request.gray) {
        stk_gray_row(row, s->request.rect.width, own);
        row = own;
    }
    return s->push(s->ctx, row);
}

static stk_err decode(struct state *s, stk_diag *diag)
{
    const stk_still *still = &s->still;
    const stk_rect *rect = &s->request.rect;
    stk_picture picture = {
        .width = still->info.width,
        .height = still->info.height,
        .x = rect->x,
        .y = rect->y,
        .columns = rect->width,
        .rows = rect->height,
        .alpha = s->format->drawn,
        .exact = !s->request.fast,
        .strict = s->format->strict,
        .matrix = still->matrix,
        .range = still->range,
    };
    stk_err err = STK_OK;
    if (!s->decoder) err = stk_picture_decoder_new(s->format->decoder, &s->decoder, diag);
    if (err) return err;
    err = join(s, &picture);
    if (!err) err = stk_rowbuf_reserve(&s->row, (size_t)rect->width * 3);
    if (err) return stk_diag_set(diag, err, "out of memory");
    s->y = rect->y;
    s->damaged = false;
    err = stk_picture_decode(s->decoder, &picture, take, s, diag);
    if (!err && s->damaged) err = stk_diag_set(diag, STK_ECORRUPT, "the image ends early");
    return err;
}

stk_err stk_still_rows(void *state, stk_row_fn *push, void *ctx, stk_diag *diag)
{
    struct state *s = state;
    const char *name = s->format->codec->name;
    if (!s->begun) return stk_diag_set(diag, STK_EINVAL, "%s: no image was begun", name);
    s->begun = false;
    s->push = push;
    s->ctx = ctx;
    const stk_err err = decode(s, diag);
    if (err) stk_diag_prefix(diag, "%s", name);
    stk_rowbuf_trim(&s->joined);
    stk_rowbuf_trim(&s->row);
    return err;
}
