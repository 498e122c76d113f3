#include "av/scale.h"

#include <assert.h>
#include <string.h>

#include <libavutil/imgutils.h>
#include <libavutil/pixdesc.h>
#include <libswscale/swscale.h>

#include "av/module.h"

#define ROW_ALIGN 64          /* of frames: whoever gets one may rely on it */
#define BLOCK 16              /* pixels that libswscale writes at once, or fewer */
#define MPEG2_CHROMA 128      /* between two rows, as the filter scale has it for yuv420p */
#define ROOM_LIMIT (1 << 30)  /* bytes that are promised to one call */
#define MOST_PIXELS (1 << 14) /* of a side */
#define WASTE 4               /* a block so many times too large is not used */

/* --- the text --- */

/* "name=" and a number before `end`; false: something else. */
static bool number(const char **text, const char *name, char end, int *out)
{
    const size_t n = strlen(name);
    int value = 0;
    if (strncmp(*text, name, n) != 0) return false;
    const char *first = *text + n, *at = first;
    for (; *at >= '0' && *at <= '9' && value <= MOST_PIXELS; at++) value = 10 * value + (*at - '0');
    if (at == first || *at != end || value > MOST_PIXELS) return false;
    *text = at + 1;
    *out = value;
    return true;
}

static bool skip(const char **text, const char *word)
{
    const size_t n = strlen(word);
    if (strncmp(*text, word, n) != 0) return false;
    *text += n;
    return true;
}

static bool read_crop(av_scale *s, const char **text)
{
    return number(text, "crop=w=", ':', &s->box_width) && s->box_width &&
           number(text, "h=", ':', &s->box_height) && s->box_height &&
           number(text, "x=", ':', &s->x) && number(text, "y=", ':', &s->y) &&
           skip(text, "exact=1,");
}

static bool read_scale(av_scale *s, const char **text)
{
    const size_t most = sizeof(s->flags) - 1;
    if (!number(text, "scale=w=", ':', &s->width) || !s->width ||
        !number(text, "h=", ':', &s->height) || !s->height || !skip(text, "flags="))
        return false;
    const size_t n = strspn(*text, "abcdefghijklmnopqrstuvwxyz_");
    if (n > most || (*text)[n] != ',') return false;
    memcpy(s->flags, *text, n);
    *text += n + 1;
    return true;
}

static bool in_one_plane(enum AVPixelFormat format)
{
    return format == AV_PIX_FMT_RGB24 || format == AV_PIX_FMT_BGR24 || format == AV_PIX_FMT_RGBA ||
           format == AV_PIX_FMT_BGRA;
}

/* A name, and whether what comes is mirrored. */
static enum AVPixelFormat read_format(av_scale *s, const char *text)
{
    char name[32];
    const size_t n = strcspn(text, ",");
    if (n >= sizeof(name)) return AV_PIX_FMT_NONE;
    memcpy(name, text, n);
    name[n] = '\0';
    s->mirror = !strcmp(text + n, ",hflip");
    return s->mirror || !text[n] ? av_get_pix_fmt(name) : AV_PIX_FMT_NONE;
}

void av_scale_init(av_scale *s, const char *text)
{
    *s = (av_scale){.format = AV_PIX_FMT_NONE};
    if (!COMPAT_SCALE_ALONE || !text) return;
    if (strncmp(text, "crop=", 5) == 0 && !read_crop(s, &text)) return;
    if (strncmp(text, "scale=", 6) == 0 && !read_scale(s, &text)) return;
    if (!skip(&text, "format=pix_fmts=")) return;
    const enum AVPixelFormat found = read_format(s, text);
    if (in_one_plane(found)) s->format = found;
}

void av_scale_fini(av_scale *s)
{
    av_buffer_unref(&s->block);
    av_buffer_pool_uninit(&s->blocks); /* its memory lives as long as pictures do */
    av_frame_free(&s->like);
    av_frame_free(&s->made);
    sws_freeContext(s->sws);
    *s = (av_scale){.format = AV_PIX_FMT_NONE};
}

/* --- the conversion --- */

static int bytes_of_pixel(const av_scale *s)
{
    return s->format == AV_PIX_FMT_RGB24 || s->format == AV_PIX_FMT_BGR24 ? 3 : 4;
}

static int box_width_of(const av_scale *s, const AVFrame *f)
{
    return s->box_width ? s->box_width : f->width;
}

static int box_height_of(const av_scale *s, const AVFrame *f)
{
    return s->box_height ? s->box_height : f->height;
}

static int width_of(const av_scale *s, const AVFrame *f)
{
    return s->width ? s->width : box_width_of(s, f);
}

static int height_of(const av_scale *s, const AVFrame *f)
{
    return s->height ? s->height : box_height_of(s, f);
}

/* Whether the box is in the picture, and begins with a whole element in each plane, where the
 * filter crop looks for it. */
static bool has_box(const av_scale *s, const AVFrame *f)
{
    const AVPixFmtDescriptor *d = av_pix_fmt_desc_get((enum AVPixelFormat)f->format);
    if (!s->box_width) return true;
    if (!d || d->flags & (AV_PIX_FMT_FLAG_BITSTREAM | AV_PIX_FMT_FLAG_PAL | AV_PIX_FMT_FLAG_BAYER))
        return false;
    const bool even = s->x % (1 << d->log2_chroma_w) == 0;
    const bool planes = av_pix_fmt_count_planes((enum AVPixelFormat)f->format) == d->nb_components;
    if (d->log2_chroma_w && !(planes && (even || d->comp[1].step == 1))) return false;
    return s->x <= f->width - s->box_width && s->y <= f->height - s->box_height;
}

static bool can(const av_scale *s, const AVFrame *f)
{
    return s->format != AV_PIX_FMT_NONE && f->format != s->format && !f->hw_frames_ctx &&
           f->width > 0 && f->height > 0 && has_box(s, f) &&
           sws_isSupportedInput((enum AVPixelFormat)f->format);
}

bool av_scale_fits(const av_scale *s, const AVFrame *f)
{
    return can(s, f) && width_of(s, f) * bytes_of_pixel(s) % ROW_ALIGN == 0;
}

bool av_scale_fits_array(const av_scale *s, const AVFrame *f)
{
    return can(s, f) && width_of(s, f) % BLOCK == 0;
}

static bool alike(const AVFrame *a, const AVFrame *b)
{
    return a->format == b->format && a->width == b->width && a->height == b->height &&
           a->colorspace == b->colorspace && a->color_range == b->color_range;
}

/* The matrix that the filter scale takes: what the picture says, else BT.601. */
static const int *matrix_of(const AVFrame *f)
{
    const bool known = f->colorspace >= AVCOL_SPC_BT709 && f->colorspace <= AVCOL_SPC_BT2020_CL &&
                       f->colorspace != AVCOL_SPC_YCGCO;
    return sws_getCoefficients(known ? (int)f->colorspace : AVCOL_SPC_BT470BG);
}

void av_scale_set_colors(struct SwsContext *sws, const AVFrame *f)
{
    int *in, *out, full, out_full, brightness, contrast, saturation;
    int rc = sws_getColorspaceDetails(sws, &in, &full, &out, &out_full, &brightness, &contrast,
                                      &saturation);
    if (rc < 0) return; /* it converts no colours */
    if (f->color_range != AVCOL_RANGE_UNSPECIFIED) full = f->color_range == AVCOL_RANGE_JPEG;
    const int *matrix = matrix_of(f);
    (void)sws_setColorspaceDetails(sws, matrix, full, matrix, out_full, brightness, contrast,
                                   saturation);
}

static int set_up(av_scale *s, const AVFrame *f)
{
    const struct {
        const char *name;
        int value;
    } opts[] = {{"srcw", box_width_of(s, f)},   {"srch", box_height_of(s, f)},
                {"src_format", f->format},      {"dstw", width_of(s, f)},
                {"dsth", height_of(s, f)},      {"dst_format", s->format},
                {"src_v_chr_pos", MPEG2_CHROMA}};
    const size_t n = sizeof(opts) / sizeof(*opts) - (f->format != AV_PIX_FMT_YUV420P);
    int rc = 0;
    if (!(s->sws = sws_alloc_context())) return AVERROR(ENOMEM);
    if (*s->flags) rc = av_opt_set(s->sws, "sws_flags", s->flags, 0);
    for (size_t i = 0; i < n && rc >= 0; i++)
        rc = av_opt_set_int(s->sws, opts[i].name, opts[i].value, 0);
    if (rc >= 0) rc = sws_init_context(s->sws, NULL, NULL);
    if (rc >= 0) av_scale_set_colors(s->sws, f);
    return rc;
}

static int prepare(av_scale *s, const AVFrame *f)
{
    if (s->sws && alike(s->like, f)) return 0;
    sws_freeContext(s->sws);
    s->sws = NULL;
    if (!s->made) s->made = av_frame_alloc();
    if (!s->like) s->like = av_frame_alloc();
    if (!s->made || !s->like) return AVERROR(ENOMEM);
    const int rc = set_up(s, f);
    if (rc < 0) {
        sws_freeContext(s->sws);
        s->sws = NULL;
        return rc;
    }
    s->like->format = f->format;
    s->like->width = f->width;
    s->like->height = f->height;
    s->like->colorspace = f->colorspace;
    s->like->color_range = f->color_range;
    return 0;
}

/* --- memory --- */

static void free_block(void *buffer, uint8_t *data)
{
    stk_buffer *owned = buffer;
    (void)data;
    stk_buffer_unref(&owned);
}

static AVBufferRef *new_block(size_t size)
{
    stk_buffer *mem;
    if (stk_buffer_new(size, &mem)) return NULL;
    AVBufferRef *ref = av_buffer_create(stk_buffer_writable(mem), size, free_block, mem, 0);
    if (!ref) stk_buffer_unref(&mem);
    return ref;
}

static bool begin_block(av_scale *s, size_t picture, const av_room *room)
{
    const size_t limit = room->bytes < ROOM_LIMIT ? room->bytes : ROOM_LIMIT;
    size_t most = (limit + picture - 1) / picture;
    if (most > room->pictures) most = room->pictures;
    const size_t size = picture * (most ? most : 1) + ROW_ALIGN;
    if (!s->blocks || s->block_size < size || s->block_size / WASTE > size) {
        av_buffer_pool_uninit(&s->blocks);
        if (!(s->blocks = av_buffer_pool_init(size, new_block))) return false;
        s->block_size = size;
    }
    av_buffer_unref(&s->block);
    s->used = 0;
    s->block = av_buffer_pool_get(s->blocks);
    return s->block != NULL;
}

void av_scale_end(av_scale *s)
{
    av_buffer_unref(&s->block);
}

/* An empty picture in s->made, which holds on to the block. */
static bool place(av_scale *s, const AVFrame *f, const av_room *room)
{
    const int width = width_of(s, f), height = height_of(s, f), row = width * bytes_of_pixel(s);
    const size_t picture = (size_t)row * (size_t)height;
    if (s->block && s->block_size - s->used < picture + ROW_ALIGN) av_buffer_unref(&s->block);
    if (!s->block && !begin_block(s, picture, room)) return false;
    AVFrame *to = s->made;
    if (!(to->buf[0] = av_buffer_ref(s->block)) || av_frame_copy_props(to, f) < 0) return false;
    to->format = s->format;
    to->width = width;
    to->height = height;
    to->linesize[0] = row;
    to->data[0] = s->block->data + s->used;
    s->used += picture;
    const AVRational shape = f->sample_aspect_ratio;
    AVRational by; /* reduced first, so that no product is too large */
    (void)av_reduce(&by.num, &by.den, (int64_t)height * box_width_of(s, f),
                    (int64_t)width * box_height_of(s, f), INT32_MAX);
    (void)av_reduce(&to->sample_aspect_ratio.num, &to->sample_aspect_ratio.den,
                    (int64_t)shape.num * by.num, (int64_t)shape.den * by.den, INT32_MAX);
    return true;
}

void av_scale_spec(const av_scale *s, const AVFrame *f, stk_spec *out)
{
    *out = (stk_spec){.dtype = STK_UINT8,
                      .ndim = 3,
                      .shape = {height_of(s, f), width_of(s, f), bytes_of_pixel(s)}};
}

/* Where the box begins in each plane. */
static void find_box(const av_scale *s, const AVFrame *f, const uint8_t *out[4])
{
    const AVPixFmtDescriptor *d = av_pix_fmt_desc_get((enum AVPixelFormat)f->format);
    int steps[4];
    av_image_fill_max_pixsteps(steps, NULL, d);
    for (int i = 0; i < 4; i++) {
        const bool chroma = i == 1 || i == 2;
        const ptrdiff_t x = s->x >> (chroma ? d->log2_chroma_w : 0);
        const ptrdiff_t y = s->y >> (chroma ? d->log2_chroma_h : 0);
        out[i] = f->data[i] ? f->data[i] + y * f->linesize[i] + x * steps[i] : NULL;
    }
}

static void mirror(uint8_t *row, ptrdiff_t size, int height, int pixel)
{
    for (int y = 0; y < height; y++, row += size)
        for (uint8_t *a = row, *b = row + size - pixel; a < b; a += pixel, b -= pixel)
            for (int i = 0; i < pixel; i++) {
                const uint8_t byte = a[i];
                a[i] = b[i];
                b[i] = byte;
            }
}

static int convert(av_scale *s, const AVFrame *f, uint8_t *dst)
{
    const uint8_t *box[4];
    const int pixel = bytes_of_pixel(s), row = width_of(s, f) * pixel;
    find_box(s, f, box);
    const int rc = sws_scale(s->sws, box, f->linesize, 0, box_height_of(s, f),
                             (uint8_t *const[4]){dst}, (const int[4]){row});
    if (rc >= 0 && s->mirror) mirror(dst, row, height_of(s, f), pixel);
    return rc;
}

static stk_err failed(int rc, const AVFrame *f, stk_av_call *call)
{
    return stk_av_fail(call, rc, "a picture of %dx%d cannot be converted", f->width, f->height);
}

stk_err av_scale_into(av_scale *s, const AVFrame *f, uint8_t *dst, stk_av_call *call)
{
    assert((uintptr_t)dst % AV_SCALE_ALIGN == 0);
    int rc = prepare(s, f);
    if (rc >= 0) rc = convert(s, f, dst);
    return rc < 0 ? failed(rc, f, call) : STK_OK;
}

stk_err av_scale_push(av_scale *s, const AVFrame *f, const av_room *room, stk_frames *out,
                      stk_av_call *call)
{
    int rc = prepare(s, f);
    if (rc >= 0 && !place(s, f, room)) rc = AVERROR(ENOMEM);
    if (rc >= 0) rc = convert(s, f, s->made->data[0]);
    stk_err err = STK_OK;
    if (rc < 0)
        err = failed(rc, f, call);
    else if (stk_frames_add(out, s->made))
        err = stk_av_say(call, STK_ENOMEM, "no memory for frames");
    if (s->made) av_frame_unref(s->made);
    return err;
}
