/* Filter graphs with any number of inputs and outputs. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <libavfilter/buffersink.h>
#include <libavfilter/buffersrc.h>
#include <libavutil/pixdesc.h>

#include "av/call.h"
#include "av/frame_list.h"
#include "av/module.h"
#include "base/alloc.h"

#define DEFAULT_MAX_BYTES ((size_t)4 << 30)

struct stk_filter_graph {
    atomic_flag busy; /* guards everything below */
    AVFilterGraph *graph;
    char *description;
    int64_t *ends; /* of the last frames, for each of the graph's filters that is an input */
    bool flushed;
};

/* --- inputs and outputs --- */

static bool is_end(const AVFilterContext *f, bool output)
{
    const char *name = f->filter->name;
    return !strcmp(name, output ? "buffersink" : "buffer") ||
           !strcmp(name, output ? "abuffersink" : "abuffer");
}

static AVFilterContext *end_at(const stk_filter_graph *g, bool output, size_t at)
{
    for (unsigned i = 0; i < g->graph->nb_filters; i++)
        if (is_end(g->graph->filters[i], output) && at-- == 0) return g->graph->filters[i];
    return NULL;
}

const char *mod_filter_graph_name(const stk_filter_graph *g, bool output, size_t i)
{
    const AVFilterContext *f = end_at(g, output, i);
    return f ? f->name : NULL;
}

static const char *label_of(const AVFilterContext *f)
{
    const char *at = strchr(f->name, '@');
    return at ? at + 1 : f->name;
}

/* "buffer@a, buffer@b"; cut where there is no more room. */
static void list_names(const stk_filter_graph *g, bool output, char *text, size_t size)
{
    const AVFilterContext *f;
    size_t used = 0;
    snprintf(text, size, "none");
    for (size_t i = 0; (f = end_at(g, output, i)) && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s", i ? ", " : "", f->name);
}

static stk_err find(const stk_filter_graph *g, bool output, const char *name, AVFilterContext **out,
                    stk_diag *diag)
{
    const char *what = output ? "output" : "input";
    char names[512];
    AVFilterContext *f;
    size_t found = 0;
    *out = NULL;
    for (size_t i = 0; (f = end_at(g, output, i)); i++) {
        if (name && strcmp(name, f->name) != 0 && strcmp(name, label_of(f)) != 0) continue;
        *out = f;
        found++;
        if (name && !strcmp(name, f->name)) return STK_OK;
    }
    if (found == 1) return STK_OK;
    list_names(g, output, names, sizeof(names));
    if (found)
        return stk_diag_set(diag, STK_EINVAL, "which %s is meant? The graph has %s", what, names);
    return stk_diag_set(diag, STK_ENOTFOUND, "the graph has no %s%s%s; its %ss: %s", what,
                        name ? " " : "", name ? name : "", what, names);
}

/* --- making --- */

static stk_err make(stk_filter_graph *g, const char *description, stk_av_call *call)
{
    const size_t size = strlen(description) + 1;
    g->description = stk_alloc(size);
    g->graph = stk_fault() ? NULL : avfilter_graph_alloc();
    if (!g->description || !g->graph)
        return stk_av_say(call, STK_ENOMEM, "no memory for a filter graph");
    memcpy(g->description, description, size);
    g->graph->nb_threads = 1;
    AVFilterInOut *ins = NULL, *outs = NULL;
    int rc = avfilter_graph_parse2(g->graph, description, &ins, &outs);
    avfilter_inout_free(&ins); /* open ends are told of below, by their filters */
    avfilter_inout_free(&outs);
    if (rc >= 0) rc = avfilter_graph_config(g->graph, NULL);
    if (rc < 0) return stk_av_wrong(call, rc, "filters '%s'", description);
    if (!end_at(g, true, 0))
        return stk_av_say(call, STK_EINVAL,
                          "filters '%s': no output: buffersink or abuffersink is one", description);
    g->ends = stk_alloc(g->graph->nb_filters * sizeof(*g->ends));
    if (!g->ends) return stk_av_say(call, STK_ENOMEM, "no memory for a filter graph");
    for (unsigned i = 0; i < g->graph->nb_filters; i++) g->ends[i] = AV_NOPTS_VALUE;
    return STK_OK;
}

stk_err mod_filter_graph_new(const char *description, stk_filter_graph **out, stk_diag *diag)
{
    stk_filter_graph *g = *out = stk_alloc_zero(1, sizeof(*g));
    if (!g) return stk_diag_set(diag, STK_ENOMEM, "no memory for a filter graph");
    atomic_flag_clear(&g->busy);
    stk_av_call call;
    stk_av_enter(&call, diag);
    const stk_err err = make(g, description, &call);
    stk_av_leave(&call);
    if (err) mod_filter_graph_free(out);
    return err;
}

void mod_filter_graph_free(stk_filter_graph **pg)
{
    stk_filter_graph *g = *pg;
    *pg = NULL;
    if (!g) return;
    stk_av_call call;
    stk_av_enter(&call, NULL);
    avfilter_graph_free(&g->graph);
    stk_av_leave(&call);
    stk_free(g->description);
    stk_free(g->ends);
    stk_free(g);
}

/* --- using --- */

static stk_err enter(stk_filter_graph *g, stk_av_call *call, stk_diag *diag)
{
    if (atomic_flag_test_and_set_explicit(&g->busy, memory_order_acquire))
        return stk_diag_set(diag, STK_EAGAIN,
                            "the filter graph is in use by another thread: one thread at a time "
                            "may use it");
    stk_av_enter(call, diag);
    return STK_OK;
}

static void leave(stk_filter_graph *g, stk_av_call *call)
{
    stk_av_leave(call);
    atomic_flag_clear_explicit(&g->busy, memory_order_release);
}

static void describe_picture(char *text, size_t size, int format, int width, int height)
{
    const char *name = av_get_pix_fmt_name((enum AVPixelFormat)format);
    snprintf(text, size, "%s, %dx%d", name ? name : "an unknown format", width, height);
}

static void describe_samples(char *text, size_t size, int format, int rate,
                             const AVChannelLayout *layout)
{
    const char *name = av_get_sample_fmt_name((enum AVSampleFormat)format);
    char channels[64] = "";
    if (av_channel_layout_describe(layout, channels, sizeof(channels)) < 0) channels[0] = '\0';
    snprintf(text, size, "%s, %d Hz, %s", name ? name : "an unknown format", rate, channels);
}

/* Filters are made for what their input was described with; some crash on something else. */
static stk_err check(const AVFilterContext *f, const AVFrame *frame, stk_diag *diag)
{
    const AVFilterLink *link = f->outputs[0];
    char is[128], wanted[128];
    if (link->type == AVMEDIA_TYPE_AUDIO) {
        if (frame->format == link->format && frame->sample_rate == link->sample_rate &&
            !av_channel_layout_compare(&frame->ch_layout, &link->ch_layout))
            return STK_OK;
        describe_samples(is, sizeof(is), frame->format, frame->sample_rate, &frame->ch_layout);
        describe_samples(wanted, sizeof(wanted), link->format, link->sample_rate, &link->ch_layout);
    }
    else {
        if (frame->format == link->format && frame->width == link->w && frame->height == link->h)
            return STK_OK;
        describe_picture(is, sizeof(is), frame->format, frame->width, frame->height);
        describe_picture(wanted, sizeof(wanted), link->format, link->w, link->h);
    }
    return stk_diag_set(diag, STK_EINVAL,
                        "the frames are in %s, and the input %s was described as %s", is, f->name,
                        wanted);
}

static stk_err check_all(const stk_filter_graph *g, const AVFilterContext *f,
                         const stk_frames *frames, stk_diag *diag)
{
    const bool audio = f->outputs[0]->type == AVMEDIA_TYPE_AUDIO;
    stk_err err = STK_OK;
    if (g->flushed)
        return stk_diag_set(diag, STK_EINVAL, "the graph was flushed: no more frames can come in");
    if (audio != (frames->media == STK_MEDIA_AUDIO))
        return stk_diag_set(diag, STK_EINVAL, "the input %s takes %s", f->name,
                            audio ? "audio" : "pictures");
    for (size_t i = 0; i < frames->n && !err; i++) err = check(f, frames->list[i], diag);
    return err;
}

static int64_t *end_of(const stk_filter_graph *g, const AVFilterContext *f)
{
    unsigned i = 0;
    while (g->graph->filters[i] != f) i++;
    return &g->ends[i];
}

static int add_one(stk_filter_graph *g, AVFilterContext *f, const stk_frames *frames, size_t i)
{
    const AVFilterLink *link = f->outputs[0];
    const bool audio = link->type == AVMEDIA_TYPE_AUDIO;
    const AVRational from = frames->time_base, to = link->time_base;
    AVFrame *own = stk_fault() ? NULL : av_frame_clone(frames->list[i]);
    if (!own) return AVERROR(ENOMEM);
    if (from.num > 0 && av_cmp_q(from, to)) {
        if (own->pts != AV_NOPTS_VALUE) own->pts = av_rescale_q(own->pts, from, to);
        compat_duration(own) = av_rescale_q(compat_duration(own), from, to);
    }
    *end_of(g, f) = stk_frame_end(own, audio, to, frames->frame_rate);
    const int rc = av_buffersrc_add_frame_flags(f, own, 0);
    av_frame_free(&own);
    return rc == AVERROR_EOF ? 0 : rc; /* filters like trim have had enough */
}

stk_err mod_filter_graph_add(stk_filter_graph *g, const char *name, const stk_frames *frames,
                             stk_diag *diag)
{
    stk_av_call call;
    AVFilterContext *f;
    stk_err err = enter(g, &call, diag);
    if (err) return err;
    err = find(g, false, name, &f, diag);
    if (!err) err = check_all(g, f, frames, diag);
    for (size_t i = 0; i < frames->n && !err; i++) {
        const int rc = add_one(g, f, frames, i);
        if (rc < 0) err = stk_av_fail(&call, rc, "filters '%s'", g->description);
    }
    leave(g, &call);
    return err;
}

static stk_err get(stk_filter_graph *g, AVFilterContext *f, size_t max_frames, size_t max_bytes,
                   stk_frames *out, stk_av_call *call)
{
    AVFrame *frame = stk_fault() ? NULL : av_frame_alloc();
    if (!frame) return stk_av_say(call, STK_ENOMEM, "no memory for frames");
    stk_err err = STK_OK;
    int rc = 0;
    while (!err && out->n < max_frames && (rc = av_buffersink_get_frame(f, frame)) >= 0) {
        if (stk_frames_add(out, frame)) err = stk_av_say(call, STK_ENOMEM, "no memory for frames");
        av_frame_unref(frame);
        if (out->bytes > max_bytes)
            err = stk_av_say(call, STK_ELIMIT,
                             "%s gives more than %zu bytes of frames at once: ask for a number of "
                             "frames",
                             f->name, max_bytes);
    }
    av_frame_free(&frame);
    if (!err && rc < 0 && rc != AVERROR(EAGAIN) && rc != AVERROR_EOF)
        err = stk_av_fail(call, rc, "filters '%s'", g->description);
    return err;
}

stk_err mod_filter_graph_get(stk_filter_graph *g, const char *name, size_t max_frames,
                             size_t max_bytes, stk_frames **out, stk_diag *diag)
{
    stk_av_call call;
    AVFilterContext *f;
    *out = NULL;
    stk_err err = enter(g, &call, diag);
    if (err) return err;
    err = find(g, true, name, &f, diag);
    if (!err) {
        const bool audio = av_buffersink_get_type(f) == AVMEDIA_TYPE_AUDIO;
        err = stk_frames_make(audio ? STK_MEDIA_AUDIO : STK_MEDIA_VIDEO, out);
        if (err) stk_diag_set(diag, err, "no memory for frames");
    }
    if (!err) {
        (*out)->time_base = av_buffersink_get_time_base(f);
        if ((*out)->media == STK_MEDIA_VIDEO) (*out)->frame_rate = av_buffersink_get_frame_rate(f);
        err = get(g, f, max_frames ? max_frames : SIZE_MAX,
                  max_bytes ? max_bytes : DEFAULT_MAX_BYTES, *out, &call);
    }
    if (err) mod_frames_unref(out);
    leave(g, &call);
    return err;
}

stk_err mod_filter_graph_flush(stk_filter_graph *g, stk_diag *diag)
{
    stk_av_call call;
    AVFilterContext *f;
    stk_err err = enter(g, &call, diag);
    if (err) return err;
    for (size_t i = 0; !g->flushed && !err && (f = end_at(g, false, i)); i++) {
        const int rc = av_buffersrc_close(f, *end_of(g, f), 0);
        if (rc < 0 && rc != AVERROR_EOF)
            err = stk_av_fail(&call, rc, "filters '%s'", g->description);
    }
    g->flushed = true;
    leave(g, &call);
    return err;
}

stk_err mod_filter_graph_dump(stk_filter_graph *g, stk_buffer **out, stk_diag *diag)
{
    stk_av_call call;
    *out = NULL;
    stk_err err = enter(g, &call, diag);
    if (err) return err;
    char *text = avfilter_graph_dump(g->graph, NULL);
    const size_t n = text ? strlen(text) : 0;
    err = text ? stk_buffer_new(n, out) : STK_ENOMEM;
    if (!err) memcpy(stk_buffer_writable(*out), text, n);
    av_free(text);
    leave(g, &call);
    return err ? stk_diag_set(diag, err, "no memory for the text of a graph") : STK_OK;
}
