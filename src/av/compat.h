/*
 * What differs between FFmpeg 5.1, 6, 7, 8 and 9, and nothing else: no other file asks for a
 * version.
 *
 * libavformat 59 is FFmpeg 5, 60 is 6, 61 is 7, 62 is 8, 63 is 9; 5.1 is the oldest, for its
 * channel layouts.
 */
#ifndef STK_AV_COMPAT_H
#define STK_AV_COMPAT_H

#include <libavcodec/avcodec.h>
#include <libavcodec/bsf.h>
#include <libavfilter/avfilter.h>
#include <libavformat/avformat.h>
#include <libavutil/channel_layout.h>
#include <libavutil/opt.h>

#if LIBAVFORMAT_VERSION_INT < AV_VERSION_INT(59, 27, 100)
#error "FFmpeg 5.1 or later is needed"
#endif

/* 6.1: side data of a stream is part of its codec parameters. */
#define COMPAT_PAR_SIDE_DATA (LIBAVCODEC_VERSION_INT >= AV_VERSION_INT(60, 30, 100))
#if COMPAT_PAR_SIDE_DATA
#define compat_side_data_of(stream) ((stream)->codecpar->coded_side_data)
#define compat_num_side_data(stream) ((stream)->codecpar->nb_coded_side_data)
#else
#define compat_side_data_of(stream) ((stream)->side_data)
#define compat_num_side_data(stream) ((stream)->nb_side_data)
#endif

/* 7.0: filters are told the colour space and range of what comes in, which must stay the same. */
#define COMPAT_FILTER_COLOR (LIBAVFILTER_VERSION_INT >= AV_VERSION_INT(10, 1, 100))
#if COMPAT_FILTER_COLOR
#define compat_same_color(a, b) \
    ((a)->colorspace == (b)->colorspace && (a)->color_range == (b)->color_range)
#else
#define compat_same_color(a, b) ((void)(a), (void)(b), true)
#endif

/* 6.0: the duration of a frame has this name. */
#if LIBAVUTIL_VERSION_INT >= AV_VERSION_INT(57, 30, 100)
#define compat_duration(frame) ((frame)->duration)
#else
#define compat_duration(frame) ((frame)->pkt_duration)
#endif

/* 6.1: frames have a flag for it. */
#ifdef AV_FRAME_FLAG_INTERLACED
#define compat_interlaced(frame) (((frame)->flags & AV_FRAME_FLAG_INTERLACED) != 0)
#else
#define compat_interlaced(frame) ((frame)->interlaced_frame != 0)
#endif

/* 7.0: the filter scale looks at where chroma lies, which av_scale does not. */
#define COMPAT_SCALE_ALONE (LIBAVFILTER_VERSION_MAJOR < 10)

/* 7.1: what an encoder takes is asked for.  A list that ends as the field's does; NULL: anything.
 * CONFIG, field: PIX_FORMAT, pix_fmts; SAMPLE_FORMAT, sample_fmts; SAMPLE_RATE,
 * supported_samplerates. */
#if LIBAVCODEC_VERSION_INT >= AV_VERSION_INT(61, 13, 100)
#define compat_takes(codec, CONFIG, field, list)                                                   \
    (avcodec_get_supported_config(NULL, codec, AV_CODEC_CONFIG_##CONFIG, 0, (const void **)(list), \
                                  NULL) >= 0)
#else
#define compat_takes(codec, CONFIG, field, list) (*(list) = (codec)->field, true)
#endif

/* 6.0: frame numbers and the like are 64 bits; nothing here uses them. */

#endif /* STK_AV_COMPAT_H */
