#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "ops/av.h"
#include "ops/frame_picks.h"
#include "ops/geometry.h"
#include "ops/media.h"
#include "ops/parts.h"
#include "ops/video_clip.h"

#define DEFAULT_MAX_BYTES ((size_t)1 << 30)
#define MAX_FRAMES 1024 /* of a clip */

/* What the first part of a sample decides for all. */
typedef struct shared {
    int32_t width, height; /* upright; 0: not known yet */
    int64_t start;         /* -1: likewise */
    stk_geometry geometry;
} shared;

/* One part while it is decoded. */
typedef struct clip {
    const stk_video_opts *o;
    stk_media_file file;
    stk_frame_picks picks;
    size_t total;   /* frames of the file, or as many as are needed */
    int64_t *times; /* [total] when they are shown, rising; NULL: not known */
    stk_ratio time_base;
    char filter[512];
    size_t used;     /* of it */
    stk_tensor slot; /* where it goes, */
    size_t bytes;    /* so many */
} clip;

static void clip_fini(clip *c)
{
    stk_media_close(&c->file);
    stk_frame_picks_fini(&c->picks);
    stk_free(c->times);
}

static int32_t orientation_of(const clip *c)
{
    return c->o->picture.ignore_orientation ? 1 : c->file.info.orientation;
}

static stk_err count_frames(clip *c, stk_diag *diag)
{
    int64_t end;
    c->times = stk_alloc_zero(c->file.total, sizeof(*c->times));
    if (!c->times)
        return stk_diag_set(diag, STK_ENOMEM, "no memory for the times of %zu frames",
                            c->file.total);
    c->total = stk_packets_shown(c->file.packets, &c->time_base, &end, c->times, c->file.total);
    if (c->total) return STK_OK;
    stk_free(c->times);
    c->times = NULL;
    c->total = c->file.total;
    return STK_OK;
}

/* --- filters --- */

static void STK_PRINTF(2, 3) put(clip *c, const char *fmt, ...)
{
    const size_t room = sizeof(c->filter) - c->used;
    va_list ap;
    va_start(ap, fmt);
    const int n = vsnprintf(c->filter + c->used, room, fmt, ap);
    va_end(ap);
    assert(n >= 0 && (size_t)n < room);
    c->used += (size_t)n;
}

/* Where two pixels share chroma that is not single bytes, FFmpeg's exact crop at an odd x begins in
 * the middle of it. */
static bool has_wide_chroma(const char *pix_fmt)
{
    const size_t n = strlen(pix_fmt);
    return strncmp(pix_fmt, "nv", 2) == 0 ||
           (n > 2 && (!strcmp(pix_fmt + n - 2, "le") || !strcmp(pix_fmt + n - 2, "be")));
}

static void put_picture(clip *c, const shared *s)
{
    static const char *const scalers[] = {"bilinear", "bicubic", "lanczos", "area", "neighbor"};
    const stk_av_codec_info *is = &c->file.info;
    stk_placement p;
    stk_geometry_place(&s->geometry, orientation_of(c), is->width, is->height, &p);
    if (p.box_width != is->width || p.box_height != is->height)
        put(c, "crop=w=%d:h=%d:x=%d:y=%d:exact=1,", (int)p.box_width, (int)p.box_height,
            (int)(has_wide_chroma(is->pix_fmt) ? p.x - p.x % 2 : p.x), (int)p.y);
    if (c->o->picture.width)
        put(c, "scale=w=%d:h=%d:flags=%s,", (int)p.full_width, (int)p.full_height,
            scalers[c->o->picture.filter]);
    put(c, "format=pix_fmts=%s", c->o->picture.color == STK_COLOR_GRAY ? "gray" : "rgb24");
    if (p.full_width != p.width || p.full_height != p.height)
        put(c, ",crop=w=%d:h=%d:x=%d:y=%d", (int)p.width, (int)p.height, (int)p.left, (int)p.top);
    if (p.mirror) put(c, ",hflip");
    if (p.upside_down) put(c, ",vflip");
    if (p.transposed) put(c, ",transpose=dir=cclock_flip"); /* rows become columns */
}

/* --- the op --- */

static stk_spec spec_of(const stk_video_opts *o, size_t frames, int32_t width, int32_t height)
{
    const int64_t channels = o->picture.color == STK_COLOR_GRAY ? 1 : 3;
    return (stk_spec){
        .dtype = STK_UINT8, .ndim = 4, .shape = {(int64_t)frames, height, width, channels}};
}

static void draw_of_item(void *ctx, uint32_t n, uint32_t out[4])
{
    stk_item_random(ctx, n, out);
}

static stk_err decide(const clip *c, stk_item *item, shared *s, stk_diag *diag)
{
    const bool turned = orientation_of(c) >= 5;
    const int32_t width = turned ? c->file.info.height : c->file.info.width;
    const int32_t height = turned ? c->file.info.width : c->file.info.height;
    if (width <= 0 || height <= 0)
        return stk_diag_set(diag, STK_ECORRUPT, "the stream does not say how large its frames are");
    if (s->width && (width != s->width || height != s->height))
        return stk_diag_set(diag, STK_EINVAL,
                            "%d x %d pixels, but the sample's first part has %d x %d", (int)width,
                            (int)height, (int)s->width, (int)s->height);
    if ((int64_t)width * height > c->o->picture.max_pixels)
        return stk_diag_set(diag, STK_ELIMIT, "%d x %d pixels: the limit is %" PRId64, (int)width,
                            (int)height, c->o->picture.max_pixels);
    if (!s->width)
        stk_geometry_draw(&c->o->picture, width, height, draw_of_item, item, &s->geometry);
    s->width = width;
    s->height = height;
    return STK_OK;
}

static stk_err find_place(clip *c, const shared *s, stk_item *item, size_t part, stk_diag *diag)
{
    const stk_spec spec = spec_of(c->o, c->picks.n, s->geometry.width, s->geometry.height);
    stk_err err = stk_spec_bytes(&spec, &c->bytes);
    if (!err && c->bytes > c->o->max_bytes) err = STK_ELIMIT;
    if (err)
        return stk_diag_set(diag, err, "%zu frames of %d x %d: the limit is %zu bytes, max_bytes",
                            c->picks.n, (int)s->geometry.width, (int)s->geometry.height,
                            c->o->max_bytes);
    err = stk_item_new_array(item, part, &spec, &c->slot);
    return err ? stk_diag_set(diag, err, "no place for the frames: %s", stk_err_str(err)) : err;
}

static stk_err decode_into(clip *c, const shared *s, stk_diag *diag)
{
    put_picture(c, s);
    const stk_video_clip wanted = {.file = &c->file,
                                   .picks = &c->picks,
                                   .times = c->times,
                                   .time_base = c->time_base,
                                   .filter = c->filter,
                                   .max_pixels = c->o->picture.max_pixels,
                                   .max_bytes = c->o->max_bytes};
    return stk_video_clip_decode(&wanted, &c->slot, diag);
}

/* From the first to the last of the clip, where it is known which that is; 0: all. */
static size_t frames_of(const stk_video_opts *o, int64_t start)
{
    if (o->where == STK_WHERE_START) start = 0;
    if (o->where == STK_WHERE_ALL || start < 0) return 0;
    return (size_t)start + (size_t)(o->frames - 1) * (size_t)o->stride + 1;
}

static stk_err decode_part(const void *params, void *ctx, stk_item *item, size_t part,
                           stk_diag *diag)
{
    const stk_video_opts *o = params;
    shared *s = ctx;
    clip c = {.o = o};
    stk_err err =
        stk_media_open(item, part, STK_MEDIA_VIDEO, frames_of(o, s->start), &c.file, diag);
    if (!err) err = count_frames(&c, diag);
    if (!err) err = decide(&c, item, s, diag);
    if (!err) err = stk_frame_picks_make(o, item, (int64_t)c.total, &s->start, &c.picks, diag);
    if (!err) err = find_place(&c, s, item, part, diag);
    if (!err) err = decode_into(&c, s, diag);
    if (!err) stk_item_commit_array(item, part);
    clip_fini(&c);
    return err;
}

static stk_err decode_run(const void *params, void *state, stk_item *item, stk_diag *diag)
{
    const stk_video_opts *o = params;
    shared s = {.start = -1};
    (void)state;
    return stk_parts_decode(o->picture.parts, item, decode_part, params, &s, diag);
}

static void decode_spec(const void *params, size_t part, stk_spec *out)
{
    const stk_video_opts *o = params;
    (void)part;
    if (o->frames && o->picture.width)
        *out = spec_of(o, (size_t)o->frames, o->picture.width, o->picture.height);
}

static void decode_print(const void *params, char *dst, size_t size)
{
    static const char *const places[] = {"start", "middle", "random", "all"};
    static const char *const crops[] = {"none", "center", "random_resized"};
    const stk_video_opts *o = params;
    char frames[24] = "all frames", extent[32] = "as stored";
    if (o->frames) snprintf(frames, sizeof(frames), "%d frames", (int)o->frames);
    if (o->picture.width)
        snprintf(extent, sizeof(extent), "%dx%d", (int)o->picture.width, (int)o->picture.height);
    snprintf(dst, size, "decode_video(%s, stride=%d, where=%s, %s, crop=%s, flip=%g)", frames,
             (int)o->stride, places[o->where], extent, crops[o->picture.crop], o->picture.flip);
}

static uint32_t decode_takes(const void *params)
{
    return ((const stk_video_opts *)params)->picture.parts;
}

static stk_err check_opts(stk_video_opts *o, stk_diag *diag)
{
    if (o->where < STK_WHERE_START || o->where > STK_WHERE_ALL)
        return stk_diag_set(diag, STK_EINVAL, "decode_video: unknown place %d", (int)o->where);
    if (o->frames < 0 || o->frames > MAX_FRAMES)
        return stk_diag_set(diag, STK_EINVAL, "decode_video: %d frames: it must be from 1 to %d",
                            (int)o->frames, MAX_FRAMES);
    if (!o->frames && o->where != STK_WHERE_ALL)
        return stk_diag_set(
            diag, STK_EINVAL,
            "decode_video: a clip needs its frames: only all of a file goes without");
    if (o->stride < 0 || (o->stride > 1 && o->frames && o->where == STK_WHERE_ALL))
        return stk_diag_set(
            diag, STK_EINVAL,
            "decode_video: a stride of %d: it is at least 1, and not for frames that "
            "are spread over the file",
            (int)o->stride);
    if (!o->stride) o->stride = 1;
    if (!o->max_bytes) o->max_bytes = DEFAULT_MAX_BYTES;
    const stk_image_opts given = o->picture;
    return stk_image_opts_check(&given, &o->picture, diag);
}

stk_op *stk_op_decode_video(const stk_video_opts *opts, stk_diag *diag)
{
    static const stk_op_class cls = {
        .name = "decode_video",
        .flags = STK_OP_ALONE,
        .in = STK_KIND_BYTES,
        .out = STK_KIND_ARRAY,
        .run = decode_run,
        .takes = decode_takes,
        .spec = decode_spec,
        .fini = stk_free,
        .print = decode_print,
    };
    stk_video_opts checked = opts ? *opts : (stk_video_opts){.where = STK_WHERE_ALL};
    if (!stk_av_get(diag) || check_opts(&checked, diag)) return NULL;
    stk_video_opts *params = stk_alloc(sizeof(*params));
    if (params) *params = checked;
    stk_op *op = params ? stk_op_new(&cls, params) : NULL;
    if (!op) stk_diag_set(diag, STK_ENOMEM, "decode_video: no memory");
    return op;
}
