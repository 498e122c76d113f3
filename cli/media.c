#include "media.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include <stoker/av.h>

enum { PART = 1000 }; /* packets that are read at once: an hour of video is not held in memory */

static stk_err check_ends(media_facts *m, stk_diag *diag)
{
    for (int i = 0; i < m->num_streams && i < MEDIA_STREAMS; i++)
        if (m->streams[i].ends_early) {
            m->ends_early = true;
            return stk_diag_set(diag, STK_ECORRUPT,
                                "ends early: the last packet of stream %d is damaged, or more "
                                "should follow it",
                                i);
        }
    return STK_OK;
}

/* Counts all packets of the streams that are audio or video. */
static stk_err count(stk_demuxer *d, media_facts *m, stk_diag *diag)
{
    int numbers[MEDIA_STREAMS];
    stk_packets *part[MEDIA_STREAMS];
    size_t n = 0;
    for (int i = 0; i < m->num_streams && i < MEDIA_STREAMS; i++)
        if (m->streams[i].info.media) numbers[n++] = i;
    stk_err err = n ? STK_OK : STK_EEND;
    while (!err) {
        err = stk_demuxer_next(d, numbers, n, (stk_ratio){0, 0}, PART, part, diag);
        for (size_t i = 0; !err && i < n; i++) {
            stk_packets_info info;
            if (!part[i]) continue;
            stk_packets_get_info(part[i], &info);
            m->streams[numbers[i]].packets += (int64_t)info.total;
            m->streams[numbers[i]].keys += (int64_t)info.keys;
            m->streams[numbers[i]].bytes += (int64_t)info.bytes;
            m->streams[numbers[i]].ends_early = info.ends_early;
            stk_packets_unref(&part[i]);
        }
    }
    return err == STK_EEND ? check_ends(m, diag) : err;
}

static stk_err describe(stk_demuxer *d, int i, media_stream *s, stk_diag *diag)
{
    stk_av_codec *codec;
    stk_err err = stk_demuxer_stream_info(d, i, &s->info, diag);
    if (err || !s->info.media) return err;
    err = stk_demuxer_codec(d, i, STK_MEDIA_NONE, &codec, diag);
    if (err) return err;
    stk_av_codec_get_info(codec, &s->codec);
    stk_av_codec_unref(&codec);
    return STK_OK;
}

/* What it is not, before why. */
static void explain(stk_err err, stk_diag *diag)
{
    stk_av_version versions[STK_AV_VERSIONS];
    if (stk_av_versions(versions, NULL))
        stk_diag_prefix(diag,
                        "it is no image, array, table or archive that Stoker knows, and FFmpeg, "
                        "which would know sound, video and others, does not load");
    else if (err == STK_ECORRUPT)
        stk_diag_prefix(diag,
                        "it is no image, sound, video, array, table or archive that can be opened");
}

stk_err media_look(const char *path, media_facts *out, stk_diag *diag)
{
    stk_demuxer *d;
    *out = (media_facts){0};
    /* By its own name FFmpeg would take words for a picture, if that ends with .jpg. */
    const stk_av_input input = {.url = path, .name = "the file"};
    stk_err err = stk_demuxer_open(&input, NULL, &d, diag);
    if (err) {
        explain(err, diag);
        return err;
    }
    stk_demuxer_get_info(d, &out->info);
    const int n = stk_demuxer_num_streams(d);
    for (int i = 0; i < n && i < MEDIA_STREAMS && !err; i++)
        err = describe(d, i, &out->streams[i], diag);
    out->num_streams = n;
    if (!err) err = count(d, out, diag);
    stk_demuxer_free(&d);
    return err;
}

static double seconds(stk_ratio t)
{
    return t.den > 0 ? (double)t.num / (double)t.den : NAN;
}

static void append(char *dst, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void append(char *dst, size_t size, const char *format, ...)
{
    va_list args;
    const size_t used = strlen(dst);
    va_start(args, format);
    vsnprintf(dst + used, size - used, format, args);
    va_end(args);
}

static const char *plural(int64_t n)
{
    return n == 1 ? "" : "s";
}

void media_text(const media_facts *m, char *dst, size_t size)
{
    snprintf(dst, size, "%s", m->info.format);
    if (m->info.duration.den) append(dst, size, ", %.3f s", seconds(m->info.duration));
    append(dst, size, ", %" PRId32 " stream%s", m->num_streams, plural(m->num_streams));
}

/* As EXIF counts orientations. */
static const char *turned(int orientation)
{
    static const char *const texts[] = {"",
                                        "mirrored",
                                        "rotated 180",
                                        "mirrored and rotated 180",
                                        "mirrored and rotated 270",
                                        "rotated 90",
                                        "mirrored and rotated 90",
                                        "rotated 270"};
    return texts[orientation >= 1 && orientation <= 8 ? orientation - 1 : 0];
}

void media_stream_text(const media_stream *s, char *dst, size_t size)
{
    const stk_av_codec_info *c = &s->codec;
    snprintf(dst, size, "%s, %s", s->info.kind, s->info.codec);
    if (s->info.media == STK_MEDIA_VIDEO) {
        append(dst, size, ", %dx%d", c->width, c->height);
        if (*c->pix_fmt) append(dst, size, ", %s", c->pix_fmt);
        if (*turned(c->orientation)) append(dst, size, ", %s", turned(c->orientation));
        if (c->frame_rate.den) append(dst, size, ", %.6g frames/s", seconds(c->frame_rate));
    }
    if (s->info.media == STK_MEDIA_AUDIO) {
        append(dst, size, ", %d Hz, %d channel%s", c->sample_rate, c->num_channels,
               plural(c->num_channels));
        if (*c->sample_fmt) append(dst, size, ", %s", c->sample_fmt);
    }
    if (*s->info.language) append(dst, size, ", %s", s->info.language);
    if (c->bit_rate > 0) append(dst, size, ", %" PRId64 " bit/s", c->bit_rate);
    if (s->info.duration.den) append(dst, size, ", %.3f s", seconds(s->info.duration));
    if (s->info.media) append(dst, size, ", %" PRId64 " packet%s", s->packets, plural(s->packets));
    if (s->info.media == STK_MEDIA_VIDEO)
        append(dst, size, ", %" PRId64 " key frame%s", s->keys, plural(s->keys));
}

static void json_text(json *j, const char *name, const char *text)
{
    json_string(j, name, *text ? text : NULL);
}

static void stream_json(const media_stream *s, json *j)
{
    const stk_av_codec_info *c = &s->codec;
    json_open(j, NULL, '{');
    json_string(j, "kind", s->info.kind);
    json_string(j, "codec", s->info.codec);
    json_text(j, "language", s->info.language);
    json_number(j, "start", seconds(s->info.start));
    json_number(j, "seconds", seconds(s->info.duration));
    if (s->info.media) {
        json_int(j, "bit_rate", c->bit_rate);
        json_int(j, "packets", s->packets);
        json_int(j, "packet_bytes", s->bytes);
    }
    if (s->info.media == STK_MEDIA_VIDEO) {
        json_int(j, "width", c->width);
        json_int(j, "height", c->height);
        json_int(j, "orientation", c->orientation);
        json_text(j, "pix_fmt", c->pix_fmt);
        json_number(j, "frame_rate", seconds(c->frame_rate));
        json_int(j, "key_frames", s->keys);
    }
    if (s->info.media == STK_MEDIA_AUDIO) {
        json_int(j, "sample_rate", c->sample_rate);
        json_int(j, "channels", c->num_channels);
        json_text(j, "sample_fmt", c->sample_fmt);
    }
    json_close(j, '}');
}

void media_json(const media_facts *m, json *j)
{
    json_string(j, "format", m->info.format);
    json_number(j, "seconds", seconds(m->info.duration));
    json_int(j, "num_streams", m->num_streams);
    json_open(j, "streams", '[');
    for (int i = 0; i < m->num_streams && i < MEDIA_STREAMS; i++) stream_json(&m->streams[i], j);
    json_close(j, ']');
}
