/*
 * Packets as bytes, for other processes, and back without a copy.
 *
 *     "STKPKT" 0 1 | media | window | time base | codec, if any | source | packets
 *     packet: times, flags | size, bytes, 64 zeros | side data
 *
 * Numbers are 64 bits, little-endian; what has a name in FFmpeg is stored by it, as its numbers
 * differ between versions.  The zeros are those that decoders may read behind a packet.
 */
#include <string.h>

#include <libavutil/mem.h>
#include <libavutil/pixdesc.h>

#include "av/module.h"
#include "av/packet_list.h"
#include "base/alloc.h"

static const uint8_t magic[8] = {'S', 'T', 'K', 'P', 'K', 'T', 0, 1};

enum { PADDING = 64, MAX_TEXT = 4096 };
_Static_assert(PADDING >= AV_INPUT_BUFFER_PADDING_SIZE, "what decoders may read");

/* --- writing: once without memory, to count --- */

typedef struct writer {
    uint8_t *dst; /* NULL: only count */
    size_t n;
} writer;

static void put(writer *w, const void *bytes, size_t n)
{
    if (w->dst && n) memcpy(w->dst + w->n, bytes, n);
    w->n += n;
}

static void put_number(writer *w, int64_t value)
{
    uint8_t bytes[8];
    for (int i = 0; i < 8; i++) bytes[i] = (uint8_t)((uint64_t)value >> (8 * i));
    put(w, bytes, sizeof(bytes));
}

static void put_bytes(writer *w, const void *bytes, size_t n)
{
    put_number(w, (int64_t)n);
    put(w, bytes, n);
}

static void put_text(writer *w, const char *text)
{
    put_bytes(w, text ? text : "", text ? strlen(text) : 0);
}

static void put_ratio(writer *w, AVRational q)
{
    put_number(w, q.num);
    put_number(w, q.den);
}

/* The plain numbers of codec parameters that are at least 0, and the others. */
/* clang-format off */
#define COUNTS(X) \
    X(bits_per_coded_sample) X(bits_per_raw_sample) X(width) X(height) X(video_delay) \
    X(sample_rate) X(block_align) X(frame_size) X(initial_padding) X(trailing_padding) \
    X(seek_preroll)
#define NUMBERS(X) \
    X(bit_rate) X(profile) X(level) X(field_order) X(color_range) X(color_primaries) X(color_trc) \
    X(color_space) X(chroma_location)
/* clang-format on */

static const char *format_name(const AVCodecParameters *par)
{
    return par->codec_type == AVMEDIA_TYPE_AUDIO
               ? av_get_sample_fmt_name((enum AVSampleFormat)par->format)
               : av_get_pix_fmt_name((enum AVPixelFormat)par->format);
}

static void put_side_data(writer *w, const AVPacketSideData *list, int n)
{
    put_number(w, n);
    for (int i = 0; i < n; i++) {
        put_number(w, list[i].type);
        put_bytes(w, list[i].data, list[i].size);
    }
}

static void put_codec(writer *w, const stk_av_codec *codec)
{
    const AVCodecParameters *par = codec->par;
    char layout[MAX_TEXT / 4] = "";
    if (par->ch_layout.nb_channels > 0 &&
        av_channel_layout_describe(&par->ch_layout, layout, sizeof(layout)) < 0)
        layout[0] = '\0';
    put_number(w, par->codec_type == AVMEDIA_TYPE_AUDIO);
    put_text(w, avcodec_get_name(par->codec_id));
    put_number(w, par->codec_tag);
    put_text(w, format_name(par));
    put_text(w, layout);
#define X(field) put_number(w, par->field);
    COUNTS(X)
    NUMBERS(X)
#undef X
    put_ratio(w, par->sample_aspect_ratio);
    put_ratio(w, codec->time_base);
    put_ratio(w, codec->frame_rate);
    put_bytes(w, par->extradata, (size_t)par->extradata_size);
#if COMPAT_PAR_SIDE_DATA
    put_side_data(w, par->coded_side_data, par->nb_coded_side_data);
#else
    const AVPacketSideData display = {.data = (uint8_t *)codec->display,
                                      .size = sizeof(codec->display),
                                      .type = AV_PKT_DATA_DISPLAYMATRIX};
    put_side_data(w, &display, codec->has_display);
#endif
}

static void put_packet(writer *w, const AVPacket *p)
{
    static const uint8_t zeros[PADDING];
    put_number(w, p->pts);
    put_number(w, p->dts);
    put_number(w, p->duration);
    put_number(w, p->flags);
    put_number(w, p->pos);
    put_bytes(w, p->data, (size_t)p->size);
    put(w, zeros, PADDING);
    put_side_data(w, p->side_data, p->side_data_elems);
}

static void put_all(writer *w, const stk_packets *p)
{
    put(w, magic, sizeof(magic));
    put_number(w, p->media);
    put_number(w, p->windowed);
    put_number(w, p->window.start.num);
    put_number(w, p->window.start.den);
    put_number(w, p->window.end.num);
    put_number(w, p->window.end.den);
    put_ratio(w, p->time_base);
    put_number(w, p->codec != NULL);
    if (p->codec) put_codec(w, p->codec);
    put_text(w, p->source);
    put_number(w, (int64_t)p->n);
    for (size_t i = 0; i < p->n; i++) put_packet(w, p->list[i]);
}

stk_err mod_packets_write(const stk_packets *packets, stk_buffer **out, stk_diag *diag)
{
    writer w = {0};
    *out = NULL;
    put_all(&w, packets);
    const stk_err err = stk_buffer_new(w.n, out);
    if (err) return stk_diag_set(diag, err, "no memory for %zu bytes of packets", w.n);
    w = (writer){.dst = stk_buffer_writable(*out)};
    put_all(&w, packets);
    return STK_OK;
}

/* --- reading: after the first thing that cannot be, all that follows is zero --- */

typedef struct cursor {
    const uint8_t *at;
    size_t left;
    bool bad;
    bool no_memory;
    stk_buffer *bytes;
} cursor;

static const uint8_t *get(cursor *c, size_t n)
{
    if (c->bad || n > c->left) {
        c->bad = true;
        return NULL;
    }
    const uint8_t *here = c->at;
    c->at += n;
    c->left -= n;
    return here;
}

static int64_t get_number(cursor *c)
{
    const uint8_t *bytes = get(c, 8);
    uint64_t value = 0;
    for (int i = 0; bytes && i < 8; i++) value |= (uint64_t)bytes[i] << (8 * i);
    return (int64_t)value;
}

static int get_int(cursor *c, int64_t low)
{
    const int64_t value = get_number(c);
    if (value < low || value > INT32_MAX) c->bad = true;
    return c->bad ? 0 : (int)value;
}

static const uint8_t *get_bytes(cursor *c, size_t *n)
{
    const int64_t size = get_number(c);
    if (size < 0 || size > INT32_MAX - PADDING) c->bad = true;
    *n = c->bad ? 0 : (size_t)size;
    return get(c, *n);
}

static void get_text(cursor *c, char dst[MAX_TEXT])
{
    size_t n;
    const uint8_t *bytes = get_bytes(c, &n);
    if (n >= MAX_TEXT || (bytes && memchr(bytes, 0, n))) c->bad = true;
    if (c->bad) n = 0;
    if (n) memcpy(dst, bytes, n);
    dst[n] = '\0';
}

static AVRational get_ratio(cursor *c)
{
    AVRational q = {get_int(c, INT32_MIN), 0};
    q.den = get_int(c, 0);
    return q;
}

static void check(cursor *c, bool good)
{
    if (!good) c->bad = true;
}

static void get_format(cursor *c, AVCodecParameters *par, bool audio)
{
    char text[MAX_TEXT];
    get_text(c, text);
    if (audio)
        par->format = *text ? av_get_sample_fmt(text) : AV_SAMPLE_FMT_NONE;
    else
        par->format = *text ? av_get_pix_fmt(text) : AV_PIX_FMT_NONE;
    check(c, !*text || par->format >= 0);
    get_text(c, text);
    if (*text) check(c, av_channel_layout_from_string(&par->ch_layout, text) >= 0);
}

static void get_extradata(cursor *c, AVCodecParameters *par)
{
    size_t n;
    const uint8_t *bytes = get_bytes(c, &n);
    if (c->bad || !n) return;
    par->extradata = av_mallocz(n + PADDING);
    if (!par->extradata) {
        c->bad = c->no_memory = true;
        return;
    }
    memcpy(par->extradata, bytes, n);
    par->extradata_size = (int)n;
}

/* Of the stream; FFmpeg before 6.1 has no place for it but the display matrix. */
static void get_par_side_data(cursor *c, AVCodecParameters *par, AVPacketSideData *display)
{
    for (int i = get_int(c, 0); i > 0 && !c->bad; i--) {
        const int type = get_int(c, 0);
        size_t n;
        const uint8_t *bytes = get_bytes(c, &n);
        if (c->bad) return;
        if (type == AV_PKT_DATA_DISPLAYMATRIX)
            *display = (AVPacketSideData){.data = (uint8_t *)bytes, .size = n, .type = type};
#if COMPAT_PAR_SIDE_DATA
        AVPacketSideData *side = av_packet_side_data_new(
            &par->coded_side_data, &par->nb_coded_side_data, (enum AVPacketSideDataType)type, n, 0);
        if (side && n) memcpy(side->data, bytes, n);
        if (!side) c->bad = c->no_memory = true;
#else
        (void)par;
#endif
    }
}

static void get_par(cursor *c, AVCodecParameters *par)
{
    char name[MAX_TEXT];
    const bool audio = get_int(c, 0);
    par->codec_type = audio ? AVMEDIA_TYPE_AUDIO : AVMEDIA_TYPE_VIDEO;
    get_text(c, name);
    const AVCodecDescriptor *known = avcodec_descriptor_get_by_name(name);
    check(c, known && known->type == par->codec_type);
    if (!c->bad) par->codec_id = known->id;
    par->codec_tag = (uint32_t)get_number(c);
    get_format(c, par, audio);
#define X(field) par->field = get_int(c, 0);
    COUNTS(X)
#undef X
#define X(field) par->field = (__typeof__(par->field))get_number(c);
    NUMBERS(X)
#undef X
    par->sample_aspect_ratio = get_ratio(c);
}

static void get_codec(cursor *c, stk_media media, stk_av_codec **out)
{
    AVCodecParameters *par = avcodec_parameters_alloc();
    if (!par) {
        c->bad = c->no_memory = true;
        return;
    }
    get_par(c, par);
    const AVRational time_base = get_ratio(c), rate = get_ratio(c);
    get_extradata(c, par);
    AVPacketSideData display = {0};
    get_par_side_data(c, par, &display);
    check(c, (par->codec_type == AVMEDIA_TYPE_AUDIO) == (media == STK_MEDIA_AUDIO));
    check(c, time_base.num > 0 && time_base.den > 0);
    if (!c->bad && stk_av_codec_make(media, par, time_base, rate, out))
        c->bad = c->no_memory = true;
    if (!c->bad && display.data) stk_av_codec_note(*out, &display);
    avcodec_parameters_free(&par);
}

static void release(void *opaque, uint8_t *data)
{
    stk_buffer *bytes = opaque;
    (void)data;
    stk_buffer_unref(&bytes);
}

/* A view of the bytes. */
static void get_data(cursor *c, AVPacket *p)
{
    size_t n;
    const uint8_t *bytes = get_bytes(c, &n);
    if (!get(c, PADDING)) return;
    p->buf =
        av_buffer_create((uint8_t *)bytes, n + PADDING, release, c->bytes, AV_BUFFER_FLAG_READONLY);
    if (!p->buf) {
        c->bad = c->no_memory = true;
        return;
    }
    stk_buffer_ref(c->bytes);
    p->data = p->buf->data;
    p->size = (int)n;
}

static void get_packet(cursor *c, AVPacket *p)
{
    p->pts = get_number(c);
    p->dts = get_number(c);
    p->duration = get_number(c);
    p->flags = get_int(c, 0);
    p->pos = get_number(c);
    get_data(c, p);
    for (int i = get_int(c, 0); i > 0 && !c->bad; i--) {
        const int type = get_int(c, 0);
        size_t n;
        const uint8_t *bytes = get_bytes(c, &n);
        if (c->bad) return;
        uint8_t *side = av_packet_new_side_data(p, (enum AVPacketSideDataType)type, n);
        if (side && n) memcpy(side, bytes, n);
        if (!side) c->bad = c->no_memory = true;
    }
}

static void get_list(cursor *c, stk_packets *packets)
{
    AVPacket *p = av_packet_alloc();
    if (!p) c->bad = c->no_memory = true;
    for (int64_t n = get_number(c); n > 0 && !c->bad; n--) {
        get_packet(c, p);
        if (!c->bad && stk_packets_add(packets, p)) c->bad = c->no_memory = true;
        av_packet_unref(p);
    }
    check(c, c->left == 0);
    av_packet_free(&p);
}

static void get_all(cursor *c, stk_packets **out)
{
    char source[MAX_TEXT];
    stk_av_codec *codec = NULL;
    const uint8_t *head = get(c, sizeof(magic));
    check(c, head && !memcmp(head, magic, sizeof(magic)));
    const int media = get_int(c, STK_MEDIA_AUDIO);
    check(c, media <= STK_MEDIA_IMAGE);
    const bool windowed = get_int(c, 0);
    stk_window window;
    window.start.num = get_number(c);
    window.start.den = get_number(c);
    window.end.num = get_number(c);
    window.end.den = get_number(c);
    check(c, !windowed || !stk_window_check(&window, NULL));
    const AVRational time_base = get_ratio(c);
    check(c, time_base.num > 0 && time_base.den > 0);
    if (get_int(c, 0) && !c->bad) get_codec(c, (stk_media)media, &codec);
    get_text(c, source);
    if (!c->bad && stk_packets_make((stk_media)media, codec, time_base, windowed ? &window : NULL,
                                    source, out))
        c->bad = c->no_memory = true;
    mod_av_codec_unref(&codec);
    if (!c->bad) get_list(c, *out);
}

stk_err mod_packets_read(stk_buffer *bytes, stk_packets **out, stk_diag *diag)
{
    cursor c = {.at = stk_buffer_data(bytes), .left = stk_buffer_size(bytes), .bytes = bytes};
    *out = NULL;
    get_all(&c, out);
    if (!c.bad) return STK_OK;
    mod_packets_unref(out);
    if (c.no_memory) return stk_diag_set(diag, STK_ENOMEM, "no memory for packets");
    return stk_diag_set(diag, STK_ECORRUPT,
                        "these %zu bytes are no packets, or not whole: at byte %zu",
                        stk_buffer_size(bytes), stk_buffer_size(bytes) - c.left);
}
