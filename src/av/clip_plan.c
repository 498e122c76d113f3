/*
 * What is wanted of a video, and what of it waits for its turn.
 *
 *     uses   (frame 3, clip 0) (frame 3, clip 7) (frame 4, clip 0)...    sorted
 *     clips  [0: given] [1: current, its memory is filled] [2] [7: kept, filled in part]...
 *
 * A clip has memory from its first picture on.  Where there is no room for more, the clip whose
 * turn comes last gives way: what it had is decoded again.
 */
#include <stdlib.h>
#include <string.h>

#include "av/module.h"
#include "av/result.h"
#include "av/video_reader.h"
#include "base/alloc.h"

#define DEFAULT_MAX_BYTES ((size_t)256 << 20)

typedef struct use {
    size_t frame, clip, place;
    bool filled;
} use;

typedef struct clip {
    size_t first, n;  /* its uses: order[first], ... */
    stk_buffer *mem;  /* NULL: nothing came yet */
    stk_spec picture; /* of each */
    size_t each;      /* bytes */
} clip;

struct stk_video_plan {
    stk_video_reader *reader;
    size_t max_bytes;
    use *uses;
    size_t num_uses;
    size_t *order; /* uses by clip, and within by frame */
    clip *clips;
    size_t n;
    size_t current, kept; /* bytes of clips after the current one */
    size_t each;          /* bytes of the last picture */
};

/* --- making --- */

static int by_frame(const void *a, const void *b)
{
    const use *x = a, *y = b;
    if (x->frame != y->frame) return (x->frame > y->frame) - (x->frame < y->frame);
    if (x->clip != y->clip) return (x->clip > y->clip) - (x->clip < y->clip);
    return (x->place > y->place) - (x->place < y->place);
}

static stk_err list_uses(stk_video_plan *p, const size_t *frames, const size_t *lengths,
                         stk_diag *diag)
{
    const size_t num_frames = p->reader->index.num_shown;
    size_t at = 0;
    for (size_t c = 0; c < p->n; c++) {
        p->clips[c].first = at;
        for (size_t i = 0; i < lengths[c]; i++, at++) {
            if (frames[at] >= num_frames)
                return stk_diag_set(diag, STK_ENOTFOUND, "there is no frame %zu, of %zu",
                                    frames[at], num_frames);
            p->uses[at] = (use){frames[at], c, i, false};
        }
    }
    qsort(p->uses, p->num_uses, sizeof(*p->uses), by_frame);
    for (size_t i = 0; i < p->num_uses; i++) {
        clip *c = &p->clips[p->uses[i].clip];
        p->order[c->first + c->n++] = i;
    }
    return STK_OK;
}

stk_err mod_video_plan_new(stk_video_reader *reader, const size_t *frames, const size_t *lengths,
                           size_t n, size_t max_bytes, stk_video_plan **out, stk_diag *diag)
{
    size_t total = 0;
    *out = NULL;
    for (size_t c = 0; c < n; c++) {
        if (!lengths[c]) return stk_diag_set(diag, STK_EINVAL, "clip %zu has no frames", c);
        if (__builtin_add_overflow(total, lengths[c], &total))
            return stk_diag_set(diag, STK_ELIMIT, "clips of that many frames are too large");
    }
    stk_video_plan *p = *out = stk_alloc_zero(1, sizeof(*p));
    if (!p) return stk_diag_set(diag, STK_ENOMEM, "no memory for a plan");
    *p = (stk_video_plan){.reader = reader,
                          .max_bytes = max_bytes ? max_bytes : DEFAULT_MAX_BYTES,
                          .uses = stk_alloc_zero(total ? total : 1, sizeof(*p->uses)),
                          .num_uses = total,
                          .order = stk_alloc_zero(total ? total : 1, sizeof(*p->order)),
                          .clips = stk_alloc_zero(n ? n : 1, sizeof(*p->clips)),
                          .n = n};
    stk_err err = STK_OK;
    if (!p->uses || !p->order || !p->clips)
        err = stk_diag_set(diag, STK_ENOMEM, "no memory for a plan");
    if (!err) err = list_uses(p, frames, lengths, diag);
    if (err) mod_video_plan_free(out);
    return err;
}

/* --- what waits --- */

static void set_kept(stk_video_plan *p, size_t kept)
{
    const size_t change = kept - p->kept; /* modulo: it may be less */
    p->kept = kept;
    atomic_fetch_add_explicit(&p->reader->kept, change, memory_order_relaxed);
}

/* As if nothing of the clip had come. */
static void forget(stk_video_plan *p, size_t i)
{
    clip *c = &p->clips[i];
    if (!c->mem) return;
    if (i > p->current) set_kept(p, p->kept - c->n * c->each);
    stk_buffer_unref(&c->mem);
    for (size_t k = 0; k < c->n; k++) p->uses[p->order[c->first + k]].filled = false;
}

void mod_video_plan_free(stk_video_plan **pp)
{
    stk_video_plan *p = *pp;
    *pp = NULL;
    if (!p) return;
    for (size_t i = 0; p->clips && i < p->n; i++) stk_buffer_unref(&p->clips[i].mem);
    set_kept(p, 0);
    stk_free(p->uses);
    stk_free(p->order);
    stk_free(p->clips);
    stk_free(p);
}

/* The first use of a frame that is not before `frame`. */
static size_t first_use(const stk_video_plan *p, size_t frame)
{
    size_t low = 0, high = p->num_uses;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (p->uses[middle].frame < frame)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool waits(const stk_video_plan *p, const use *u)
{
    return u->clip >= p->current && !u->filled;
}

bool av_plan_wants(const stk_video_plan *p, size_t frame)
{
    for (size_t i = first_use(p, frame); i < p->num_uses && p->uses[i].frame == frame; i++)
        if (waits(p, &p->uses[i])) return true;
    return false;
}

/* The clip after the current one that has memory and whose turn comes last; 0: there is none. */
static size_t last_kept(const stk_video_plan *p)
{
    size_t i = p->kept ? p->n - 1 : 0;
    while (i > p->current && !p->clips[i].mem) i--;
    return i > p->current ? i : 0;
}

static bool fits(const stk_video_plan *p, size_t bytes)
{
    return bytes <= p->max_bytes && p->kept <= p->max_bytes - bytes;
}

static bool can_keep(const stk_video_plan *p, size_t i)
{
    const clip *c = &p->clips[i];
    size_t bytes;
    if (i == p->current || c->mem) return true;
    if (__builtin_mul_overflow(c->n, p->each, &bytes) || bytes > p->max_bytes) return false;
    return fits(p, bytes) || last_kept(p) > i;
}

size_t av_plan_ahead(const stk_video_plan *p, size_t frame, size_t last, bool kept)
{
    for (size_t i = first_use(p, frame); i < p->num_uses && p->uses[i].frame <= last; i++) {
        const use *u = &p->uses[i];
        if (waits(p, u) && (!kept || can_keep(p, u->clip))) return u->frame;
    }
    return AV_NO_FRAME;
}

/* --- pictures --- */

static stk_err array_spec(const clip *c, stk_spec *out, size_t *bytes)
{
    *out = c->picture;
    memmove(out->shape + 1, out->shape, (size_t)out->ndim * sizeof(*out->shape));
    out->shape[0] = (int64_t)c->n;
    out->ndim++;
    return stk_spec_bytes(out, bytes);
}

/* Memory for clip `i`, if there is room. */
static stk_err make_room(stk_video_plan *p, size_t i, const av_result *result, stk_av_call *call)
{
    clip *c = &p->clips[i];
    stk_spec spec;
    size_t bytes;
    c->picture = result->spec;
    c->each = result->bytes;
    if (array_spec(c, &spec, &bytes))
        return stk_av_say(call, STK_ELIMIT, "a clip of %zu frames is too large", c->n);
    if (i > p->current) {
        if (bytes > p->max_bytes) return STK_OK;
        for (size_t k; !fits(p, bytes); forget(p, k))
            if ((k = last_kept(p)) <= i) return STK_OK;
    }
    if (stk_buffer_new(bytes, &c->mem)) return stk_av_say(call, STK_ENOMEM, "no memory for frames");
    if (i > p->current) set_kept(p, p->kept + bytes);
    return STK_OK;
}

/* Where the picture goes; NULL: there is no room.  Pictures lie without gaps in memory that is
 * aligned: those that are scaled have sizes of whole AV_SCALE_ALIGN, so that their places are
 * aligned, too; others are copied.  The picture behind it may be there already: a clip may be
 * [5, 4]. */
static stk_err place_for(stk_video_plan *p, const use *u, const av_result *result, uint8_t **out,
                         stk_av_call *call)
{
    clip *c = &p->clips[u->clip];
    *out = NULL;
    if (c->mem && !stk_spec_equal(&c->picture, &result->spec)) {
        if (u->clip == p->current)
            return stk_av_say(call, STK_EINVAL, "the frames of a clip differ in size or format");
        forget(p, u->clip); /* its turn will say so */
        return STK_OK;
    }
    const stk_err err = c->mem ? STK_OK : make_room(p, u->clip, result, call);
    if (!err && c->mem) *out = stk_buffer_writable(c->mem) + u->place * c->each;
    return err;
}

stk_err av_plan_put(stk_video_plan *p, size_t frame, AVFrame *picture, stk_av_call *call)
{
    stk_video_reader *r = p->reader;
    av_result result = {0};
    uint8_t *made = NULL, *place;
    stk_err err = STK_OK;
    for (size_t i = first_use(p, frame); i < p->num_uses && p->uses[i].frame == frame; i++) {
        use *u = &p->uses[i];
        if (!waits(p, u)) continue;
        if (!result.frame) err = av_result_init(&result, r->decoder, picture, call);
        if (err) break;
        p->each = result.bytes;
        if ((err = place_for(p, u, &result, &place, call))) break;
        if (!place) continue;
        if (made)
            memcpy(place, made, result.bytes);
        else if ((err = av_result_write(&result, r->decoder, place, call)))
            break;
        if (!made) atomic_fetch_add_explicit(&r->converted, 1, memory_order_relaxed);
        made = place;
        u->filled = true;
    }
    av_result_fini(&result);
    return err;
}

/* --- clips --- */

static stk_err collect(av_run *run)
{
    stk_video_plan *p = run->plan;
    const clip *c = &p->clips[p->current];
    const size_t *order = p->order + c->first;
    stk_err err = STK_OK;
    run->last = p->uses[order[c->n - 1]].frame;
    for (size_t i = 0; i < c->n && !err && !run->bad; i++) {
        const use *u = &p->uses[order[i]];
        if (u->filled) continue;
        err = av_run_to(run, u->frame);
        if (err || run->bad || u->filled) continue;
        if (run->r->whole)
            err = av_run_missing(run, u->frame);
        else
            run->bad = true;
    }
    return err;
}

/* Everything from the first packet on: what by its times was not there, or if strict, was damaged,
 * may have needed what comes before its key frame. */
static stk_err collect_whole(av_run *run)
{
    stk_video_plan *p = run->plan;
    stk_video_reader *r = run->r;
    for (size_t i = p->current; i < p->n; i++) forget(p, i);
    run->bad = false;
    av_reader_set_whole(r, true);
    const stk_err err = collect(run);
    r->counted = !err && !r->decoder->failed;
    if (!r->counted) av_reader_set_whole(r, false);
    return err;
}

static stk_err fill(stk_video_plan *p, stk_av_call *call)
{
    stk_video_reader *r = p->reader;
    av_run run = {.r = r, .plan = p, .call = call, .several = p->n > 1};
    const size_t failed = mod_decoder_failed(r->decoder);
    const stk_err err = collect(&run);
    if (err || r->whole) return err;
    if (!run.bad && !(r->strict && mod_decoder_failed(r->decoder) > failed)) return STK_OK;
    return collect_whole(&run);
}

static stk_err next_clip(stk_video_plan *p, stk_spec *spec, stk_buffer **out, stk_diag *diag)
{
    if (p->current == p->n) return STK_EEND;
    clip *c = &p->clips[p->current];
    size_t bytes;
    stk_av_call call;
    if (c->mem) set_kept(p, p->kept - c->n * c->each); /* it waits no more */
    stk_av_enter(&call, diag);
    stk_av_call_hears(&call, &p->reader->decoder->log);
    stk_err err = fill(p, &call);
    stk_av_leave(&call);
    if (!err) err = array_spec(c, spec, &bytes);
    if (!err) {
        *out = c->mem;
        c->mem = NULL;
    }
    stk_buffer_unref(&c->mem);
    p->current++;
    return err;
}

stk_err mod_video_plan_next(stk_video_plan *p, stk_spec *spec, stk_buffer **out, stk_diag *diag)
{
    *out = NULL;
    stk_video_reader *r = p->reader;
    if (atomic_flag_test_and_set_explicit(&r->busy, memory_order_acquire))
        return stk_diag_set(diag, STK_EAGAIN,
                            "the reader is in use by another thread: one thread at a time may use "
                            "it");
    const stk_err err = next_clip(p, spec, out, diag);
    atomic_flag_clear_explicit(&r->busy, memory_order_release);
    return err;
}
