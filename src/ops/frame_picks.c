#include "ops/frame_picks.h"

#include <inttypes.h>

#include "base/alloc.h"

enum { BLOCK = 16 }; /* of random words: those before it are the crop's */

void stk_frame_picks_fini(stk_frame_picks *p)
{
    stk_free(p->index);
    stk_free(p->pick);
    *p = (stk_frame_picks){0};
}

static stk_err alloc(stk_frame_picks *p, size_t num, size_t n, stk_diag *diag)
{
    *p = (stk_frame_picks){.num = num, .n = n};
    p->index = stk_alloc_zero(num, sizeof(*p->index));
    p->pick = stk_alloc_zero(n, sizeof(*p->pick));
    if (p->index && p->pick) return STK_OK;
    stk_frame_picks_fini(p);
    return stk_diag_set(diag, STK_ENOMEM, "no memory for the times of %zu frames", n);
}

/* From `start` on, every `step`th frame; the last one again where there are no more. */
static stk_err even(int64_t total, int64_t start, int64_t step, int64_t n, stk_frame_picks *out,
                    stk_diag *diag)
{
    const int64_t there = (total - 1 - start) / step + 1;
    const int64_t num = there < n ? there : n;
    const stk_err err = alloc(out, (size_t)num, (size_t)n, diag);
    if (err) return err;
    for (int64_t i = 0; i < num; i++) out->index[i] = start + i * step;
    for (int64_t i = 0; i < n; i++) out->pick[i] = (size_t)(i < num ? i : num - 1);
    out->step = step;
    return STK_OK;
}

/* The middles of `n` pieces of one length; n is at most 2^31, total at most 2^31. */
static stk_err spread(int64_t total, int64_t n, stk_frame_picks *out, stk_diag *diag)
{
    const stk_err err = alloc(out, (size_t)n, (size_t)n, diag);
    if (err) return err;
    size_t num = 0;
    for (int64_t i = 0; i < n; i++) {
        const int64_t at = (2 * i + 1) * total / (2 * n);
        if (num == 0 || out->index[num - 1] != at) out->index[num++] = at;
        out->pick[i] = num - 1;
    }
    out->num = num;
    return STK_OK;
}

static int64_t decide(const stk_video_opts *o, const stk_item *item, int64_t spare)
{
    uint32_t word[4];
    if (spare <= 0) return 0;
    if (o->where == STK_WHERE_MIDDLE) return spare / 2;
    if (o->where != STK_WHERE_RANDOM) return 0;
    stk_item_random(item, BLOCK, word);
    return (int64_t)(((uint64_t)word[0] * (uint64_t)(spare + 1)) >> 32);
}

stk_err stk_frame_picks_make(const stk_video_opts *o, const stk_item *item, int64_t total,
                             int64_t *start, stk_frame_picks *out, stk_diag *diag)
{
    *out = (stk_frame_picks){0};
    if (total > INT32_MAX)
        return stk_diag_set(diag, STK_ELIMIT, "%" PRId64 " frames: the limit is %d", total,
                            INT32_MAX);
    if (o->where == STK_WHERE_ALL && o->frames) return spread(total, o->frames, out, diag);
    if (o->where == STK_WHERE_ALL)
        return even(total, 0, o->stride, (total - 1) / o->stride + 1, out, diag);
    const int64_t span = (int64_t)(o->frames - 1) * o->stride + 1;
    if (*start < 0) *start = decide(o, item, total - span);
    if (*start >= total || (*start + span > total && !o->repeat))
        return stk_diag_set(diag, STK_EINVAL,
                            "%" PRId64 " frames, but a clip of %d at a stride of %d needs %" PRId64
                            " from frame %" PRId64 " on",
                            total, (int)o->frames, (int)o->stride, span, *start);
    return even(total, *start, o->stride, o->frames, out, diag);
}
