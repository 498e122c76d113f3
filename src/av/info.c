/* What this FFmpeg is and has. */
#include <libavutil/log.h>
#include <libavutil/version.h>
#include <libswresample/swresample.h>
#include <libswscale/swscale.h>

#include "av/call.h"
#include "av/compat.h"
#include "av/module.h"

stk_err mod_av_versions(stk_av_version out[STK_AV_VERSIONS], stk_diag *diag)
{
    static const struct {
        const char *name;
        unsigned (*version)(void);
    } libraries[] = {
        {"libavutil", avutil_version},     {"libavcodec", avcodec_version},
        {"libavformat", avformat_version}, {"libavfilter", avfilter_version},
        {"libswscale", swscale_version},   {"libswresample", swresample_version},
    };
    const size_t n = sizeof(libraries) / sizeof(*libraries);
    (void)diag;
    for (size_t i = 0; i < STK_AV_VERSIONS; i++) out[i] = (stk_av_version){0};
    for (size_t i = 0; i < n; i++) {
        const unsigned v = libraries[i].version();
        out[i] = (stk_av_version){libraries[i].name, (int)AV_VERSION_MAJOR(v),
                                  (int)AV_VERSION_MINOR(v), (int)AV_VERSION_MICRO(v)};
    }
    return STK_OK;
}

stk_err mod_av_filter_next(size_t *at, stk_av_filter *out, stk_diag *diag)
{
    void *opaque = NULL;
    const AVFilter *filter = NULL;
    (void)diag;
    *out = (stk_av_filter){0};
    for (size_t i = 0; i <= *at; i++) /* FFmpeg's cursor is an index, too, but of its own */
        if (!(filter = av_filter_iterate(&opaque))) return STK_EEND;
    ++*at;
    const bool any_in = filter->flags & AVFILTER_FLAG_DYNAMIC_INPUTS;
    const bool any_out = filter->flags & AVFILTER_FLAG_DYNAMIC_OUTPUTS;
    *out = (stk_av_filter){filter->name, filter->description ? filter->description : "",
                           any_in ? -1 : (int)avfilter_filter_pad_count(filter, 0),
                           any_out ? -1 : (int)avfilter_filter_pad_count(filter, 1)};
    return STK_OK;
}

stk_err mod_av_log_level(int *out, stk_diag *diag)
{
    (void)diag;
    *out = av_log_get_level();
    return STK_OK;
}

stk_err mod_av_set_log_level(int level, stk_diag *diag)
{
    (void)diag;
    av_log_set_level(level);
    stk_av_call_loud();
    return STK_OK;
}
