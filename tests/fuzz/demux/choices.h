/*
 * What an input of the fuzz target chooses, before the bytes that are demuxed (fuzz.c draws it).
 */
#ifndef STK_TESTS_FUZZ_DEMUX_CHOICES_H
#define STK_TESTS_FUZZ_DEMUX_CHOICES_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libavfilter/avfilter.h>

#include "av/module.h"

enum { MAX_TEXT = 255, MAX_PAIRS = 8 };
enum {
    PIPE = 1 << 2,
    STRICT = 1 << 3,
    STORED = 1 << 7
}; /* of the second byte, whose lowest two
      bits are the media */

typedef enum way { WAY_WHOLE, WAY_PARTS, WAY_SOME, WAY_GRAPH, WAY_CLIPS, WAY_STORE, WAY_DEMUX } way;

typedef struct rest {
    const uint8_t *data;
    size_t size;
} rest;

typedef struct choices {
    const char *format; /* NULL: found out */
    stk_media media;    /* STK_MEDIA_NONE: all streams in parts */
    way way;
    bool pipe, strict, windowed;
    bool stored; /* the input is packets that were written */
    stk_window window;
    char texts[MAX_TEXT + 1];
    const char *bsf, *filter;
    const char *demuxer_options[2 * MAX_PAIRS + 1], *decoder_options[2 * MAX_PAIRS + 1];
    rest input;
} choices;

/* clang-format off */
static const char *const formats[] = {
    NULL, "mov", "matroska", "mpegts", "avi", "flv", "ogg", "wav", "mp3", "aac", "flac", "h264", "hevc", "mpegvideo",
    "m4v", "mjpeg", "gif", "apng", "image2", "image2pipe", "png_pipe", "jpeg_pipe", "bmp_pipe", "webp_pipe", "tiff_pipe",
    "rawvideo", "s16le", "pcm_f32le", "ivf", "concat", "hls", "sdp", "rtsp", "rtp", "nut", "asf", "rm", "mpeg", "dv",
    "webvtt", "srt", "ass", "ac3", "eac3", "dts", "truehd", "aiff", "caf", "au", "w64", "voc", "amr", "yuv4mpegpipe", "tta",
    "wv", "ape", "mxf", "gxf", "vc1", "av1", "obu", "webm_dash_manifest", "ffmetadata", "swf", "smjpeg", "live_flv",
    "mpegtsraw", "loas", "data", "imf", "tedcaptions",
};

/* Filters that open no file and no connection, and end when their input does. */
static const char *const harmless[] = {
    "scale", "format", "aformat", "crop", "pad", "hflip", "vflip", "transpose", "fps", "trim", "atrim", "setpts", "asetpts",
    "select", "aselect", "null", "anull", "aresample", "volume", "split", "asplit", "hstack", "vstack", "overlay", "concat",
    "settb", "asettb", "setsar", "setdar", "reverse", "areverse", "rotate", "amix", "amerge", "asetnsamples", "asetrate",
    "channelmap", "pan", "buffer", "abuffer", "buffersink", "abuffersink", "alphaextract", "negate", "tile", "framestep",
};
/* clang-format on */

static inline bool is_harmless(const char *name)
{
    for (size_t i = 0; i < sizeof(harmless) / sizeof(*harmless); i++)
        if (!strcmp(name, harmless[i])) return true;
    return false;
}

/* Whether each word that names a filter names a harmless one, however it is quoted, and no number
 * is so large that filters take seconds. */
static inline bool may_run(const char *text)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
    if (strpbrk(text, "\\'")) return false;
    for (size_t n; *text; text += n) {
        char word[64];
        n = strspn(text, letters);
        if (n >= sizeof(word) || (n > 3 && strspn(text, "0123456789") > 3)) return false;
        snprintf(word, sizeof(word), "%.*s", (int)n, text);
        if (n && avfilter_get_by_name(word) && !is_harmless(word)) return false;
        if (!n) n = 1;
    }
    return true;
}

/* "name=value&name=value" as the options that the library takes. */
static inline void split(char *text, const char **pairs)
{
    char *after = NULL;
    size_t n = 0;
    for (char *name = strtok_r(text, "&", &after); name && n < 2 * (size_t)MAX_PAIRS;
         name = strtok_r(NULL, "&", &after)) {
        char *value = strchr(name, '=');
        if (!value) continue;
        *value = '\0';
        if (strstr(name, "thread")) continue; /* they cost more than they find */
        pairs[n++] = name;
        pairs[n++] = value + 1;
    }
}

/* The text up to the next line; `*at` goes on behind it. */
static inline char *line(char **at)
{
    char *text = *at, *end = strchr(text, '\n');
    *at = end ? end + 1 : text + strlen(text);
    if (end) *end = '\0';
    return text;
}

/* Of ordinary ones starts and lengths in tenths of a second. */
static inline stk_window window_of(uint8_t byte)
{
    if (byte == 255) return (stk_window){{INT64_MIN, 1}, {INT64_MAX, 1}};
    if (byte == 254) return (stk_window){{INT64_MAX - 1, 3}, {INT64_MAX, 3}};
    if (byte == 253) return (stk_window){{-1, INT64_MAX}, {1, INT64_MAX}};
    return (stk_window){{byte & 15, 10}, {(byte & 15) + (byte >> 4), 10}};
}

/* FFmpeg's demuxer of DASH (5.1) leaks texts that libxml2 made. */
static inline bool leaks(const choices *c)
{
    return c->input.size && memmem(c->input.data, c->input.size, "<MPD", 4);
}

/* False: too short, or what is not run here. */
static inline bool choose(const uint8_t *data, size_t size, choices *c)
{
    *c = (choices){0};
    if (size < 4) return false;
    c->format = formats[data[0] % (sizeof(formats) / sizeof(*formats))];
    c->media = (stk_media)(data[1] & 3);
    c->pipe = data[1] & PIPE;
    c->strict = data[1] & STRICT;
    c->way = (way)(data[1] >> 4 & 7) > WAY_DEMUX ? WAY_WHOLE : (way)(data[1] >> 4 & 7);
    c->stored = data[1] & STORED;
    c->windowed = data[2];
    c->window = window_of(data[2]);
    const size_t n = data[3] < size - 4 ? data[3] : size - 4;
    memcpy(c->texts, data + 4, n);
    char *texts = c->texts;
    split(line(&texts), c->demuxer_options);
    c->bsf = line(&texts);
    c->filter = line(&texts);
    split(line(&texts), c->decoder_options);
    c->input = (rest){data + 4 + n, size - 4 - n};
    return !leaks(c) && may_run(c->filter);
}

#endif /* STK_TESTS_FUZZ_DEMUX_CHOICES_H */
