#include "ops/video_clip.h"

#include <string.h>

#include "base/alloc.h"

/* One clip while it is decoded. */
typedef struct run {
    const stk_video_clip *is;
    stk_packets *packets;
    stk_decoder *decoder;
    size_t *numbers; /* of picks->num frames among those of the packets, */
    int64_t *times;  /* and when they are shown; NULL: not known */
    uint8_t *dst;
    stk_spec picture;
    size_t each; /* bytes of one */
} run;

static stk_err window_of(const stk_video_clip *c, stk_window *out, stk_diag *diag)
{
    const stk_frame_picks *p = c->picks;
    const int64_t first = c->times[p->index[0]], last = c->times[p->index[p->num - 1]];
    *out = (stk_window){{0, c->time_base.den}, {0, c->time_base.den}};
    if (last == INT64_MAX || __builtin_mul_overflow(first, c->time_base.num, &out->start.num) ||
        __builtin_mul_overflow(last + 1, c->time_base.num, &out->end.num))
        return stk_diag_set(diag, STK_ECORRUPT, "the stream has times beyond all measure");
    return STK_OK;
}

/* Frames are counted from the first of the window, or of the file if that has no times. */
static stk_err number(run *r, stk_diag *diag)
{
    const stk_video_clip *c = r->is;
    const stk_frame_picks *p = c->picks;
    r->numbers = stk_alloc_zero(p->num, sizeof(*r->numbers));
    if (c->times) r->times = stk_alloc_zero(p->num, sizeof(*r->times));
    if (!r->numbers || !r->times != !c->times)
        return stk_diag_set(diag, STK_ENOMEM, "no memory for the times of %zu frames", p->num);
    int64_t first = c->times ? p->index[0] : 0;
    while (first > 0 && c->times[first - 1] == c->times[first]) first--;
    for (size_t i = 0; i < p->num; i++) {
        r->numbers[i] = (size_t)(p->index[i] - first);
        if (c->times) r->times[i] = c->times[p->index[i]];
    }
    return STK_OK;
}

static void run_fini(run *r)
{
    stk_decoder_free(&r->decoder);
    stk_packets_unref(&r->packets);
    stk_free(r->numbers);
    stk_free(r->times);
}

/* --- straight into the array --- */

/* STK_EUNSUPPORTED: that cannot be.  STK_ENOTFOUND, STK_ECORRUPT: frames are others, or do not
 * come.
 */
static stk_err fill(const run *r, stk_diag *diag)
{
    const stk_frame_picks *p = r->is->picks;
    const stk_frames_wanted how = {.numbers = r->numbers,
                                   .times = r->times,
                                   .num = p->num,
                                   .pick = p->pick,
                                   .n = p->n,
                                   .width = (int32_t)r->picture.shape[1],
                                   .height = (int32_t)r->picture.shape[0]};
    return stk_decoder_fill(r->decoder, r->packets, &how, r->dst, p->n * r->each, diag);
}

/* --- by way of frames --- */

static stk_err copy_frame(const run *r, const stk_frames *frames, size_t frame, size_t place,
                          stk_diag *diag)
{
    stk_spec got;
    stk_frames *one;
    stk_err err = stk_frames_pick(frames, &frame, 1, STK_MEDIA_IMAGE, &one, diag);
    if (err) return err;
    const stk_frames *const list = one;
    err = stk_frames_spec(&list, 1, false, &got, diag);
    if (!err && !stk_spec_equal(&got, &r->picture))
        err = stk_diag_set(diag, STK_EUNSUPPORTED,
                           "the frames change their size: give the clip one with size");
    if (!err) err = stk_frames_copy(&list, 1, r->dst + place * r->each, r->each, diag);
    stk_frames_unref(&one);
    return err;
}

static void repeat(const run *r, size_t from, size_t place)
{
    memcpy(r->dst + place * r->each, r->dst + from * r->each, r->each);
}

static stk_err check_times(const run *r, const stk_frames *frames, stk_diag *diag)
{
    const size_t n = r->is->picks->num;
    bool same = true;
    if (!r->times) return STK_OK;
    int64_t *times = stk_alloc_zero(n, sizeof(*times));
    if (!times) return stk_diag_set(diag, STK_ENOMEM, "no memory for times");
    stk_frames_times(frames, times, n);
    for (size_t i = 0; i < n; i++) same &= times[i] == r->times[i];
    stk_free(times);
    return same ? STK_OK : stk_diag_set(diag, STK_ENOTFOUND, "the frames have other times");
}

/* STK_ENOTFOUND, STK_ECORRUPT: likewise. */
static stk_err pick(const run *r, stk_diag *diag)
{
    const stk_frame_picks *p = r->is->picks;
    stk_frames *frames;
    stk_err err = stk_decoder_pick(r->decoder, r->packets, r->numbers, p->num, &frames, diag);
    if (err) return err;
    err = check_times(r, frames, diag);
    for (size_t i = 0; i < p->n && !err; i++) {
        if (i && p->pick[i] == p->pick[i - 1])
            repeat(r, i - 1, i);
        else
            err = copy_frame(r, frames, p->pick[i], i, diag);
    }
    stk_frames_unref(&frames);
    return err;
}

/* --- by their times --- */

typedef struct track {
    int64_t *times; /* of the frames of a part */
    size_t place;   /* the first picture that is not settled */
    size_t made;    /* pictures: all up to it, and the next if it has */
    int64_t number; /* of the next frame */
} track;

/* When a picture is shown; its number where there are no times. */
static int64_t due(const run *r, size_t place)
{
    const stk_frame_picks *p = r->is->picks;
    const size_t i = p->pick[place];
    return r->times ? r->times[i] : p->index[i];
}

/* A picture is the last frame that is not shown after it, so each frame replaces the one before. */
static stk_err place_frame(const run *r, const stk_frames *part, size_t frame, track *t,
                           stk_diag *diag)
{
    const size_t n = r->is->picks->n;
    const int64_t at = r->times ? t->times[frame] : t->number;
    for (; t->place < n && due(r, t->place) < at && t->made; t->place++)
        if (t->made == t->place) repeat(r, t->place - 1, t->made++);
    if (t->place >= n) return STK_OK;
    t->number++;
    t->made = t->place + 1;
    return copy_frame(r, part, frame, t->place, diag);
}

static stk_err place_part(const run *r, const stk_frames *part, size_t n, track *t, stk_diag *diag)
{
    t->times = stk_alloc_zero(n, sizeof(*t->times));
    if (!t->times) return stk_diag_set(diag, STK_ENOMEM, "no memory for times");
    stk_frames_times(part, t->times, n);
    stk_err err = STK_OK;
    for (size_t i = 0; i < n && !err; i++) err = place_frame(r, part, i, t, diag);
    stk_free(t->times);
    return err;
}

static stk_err decode_all(const run *r, stk_diag *diag)
{
    const size_t n = r->is->picks->n;
    stk_frames_info info = {.num_frames = 1};
    track t = {0};
    stk_err err = stk_decoder_put(r->decoder, r->packets, diag);
    if (!err) err = stk_decoder_put(r->decoder, NULL, diag);
    while (!err && info.num_frames && t.place < n) {
        stk_frames *part;
        if ((err = stk_decoder_next(r->decoder, 0, 0, &part, diag))) break;
        stk_frames_get_info(part, &info);
        if (info.num_frames) err = place_part(r, part, info.num_frames, &t, diag);
        stk_frames_unref(&part);
    }
    if (!err && !t.made)
        err = stk_diag_set(diag, STK_ECORRUPT, "none of the clip's frames was decoded");
    for (; t.made < n && !err; t.made++) repeat(r, t.made - 1, t.made);
    return err;
}

stk_err stk_video_clip_decode(const stk_video_clip *c, const stk_tensor *to, stk_diag *diag)
{
    stk_window window;
    run r = {.is = c, .dst = to->data, .picture = stk_tensor_spec(to)};
    const stk_media_opts opts = {.window = c->times ? &window : NULL,
                                 .filter = c->filter,
                                 .strict = true,
                                 .max_pixels = c->max_pixels,
                                 .max_bytes = c->max_bytes};
    r.picture.ndim = 3;
    memmove(r.picture.shape, r.picture.shape + 1, 3 * sizeof(*r.picture.shape));
    r.picture.shape[3] = 0;
    stk_err err = stk_spec_bytes(&r.picture, &r.each);
    if (!err) err = number(&r, diag);
    if (!err && c->times) err = window_of(c, &window, diag);
    if (!err) err = stk_media_begin(c->file, &opts, &r.packets, &r.decoder, diag);
    if (!err) err = fill(&r, diag);
    if (err == STK_EUNSUPPORTED && r.decoder) err = pick(&r, diag);
    /* Not all came, or others: or a packet is corrupt, which is so again. */
    if ((err == STK_ENOTFOUND || err == STK_ECORRUPT) && r.decoder) err = decode_all(&r, diag);
    run_fini(&r);
    return err;
}
