#include "av/filter.h"

#include <inttypes.h>
#include <stdio.h>

#include <libavfilter/buffersink.h>
#include <libavfilter/buffersrc.h>
#include <libavutil/pixdesc.h>

#include "av/module.h"

/* What filters may give for one frame, as fps does where the next one is later: three hours at 25
 * frames a second.  Data says how late. */
#define MAX_GIVEN ((size_t)1 << 18)
#define MAX_BYTES ((size_t)4 << 30) /* as of stk_filter_graph_get */

stk_err av_filter_get_all(av_filter *f, const av_filter_input *input, stk_frames *out,
                          stk_av_call *call)
{
    stk_err err;
    while (!(err = av_filter_get(f, input, out, call))) continue;
    return err == STK_EAGAIN ? STK_OK : err;
}

stk_err av_filter_finish(av_filter *f, const av_filter_input *input, stk_frames *out,
                         stk_av_call *call)
{
    if (!av_filter_open(f)) return STK_OK;
    const stk_err err = av_filter_end(f, input, call);
    return err ? err : av_filter_get_all(f, input, out, call);
}

void av_filter_fini(av_filter *f)
{
    avfilter_graph_free(&f->graph);
    av_frame_free(&f->like);
    av_frame_free(&f->got);
    *f = (av_filter){0};
}

/* What comes in, as FFmpeg's buffer filters want to be told. */
static AVBufferSrcParameters *describe(const av_filter_input *input, const AVFrame *frame)
{
    AVBufferSrcParameters *p = av_buffersrc_parameters_alloc();
    if (!p) return NULL;
    p->format = frame->format;
    p->time_base = input->time_base;
    if (input->audio) {
        p->sample_rate = frame->sample_rate;
        if (av_channel_layout_copy(&p->ch_layout, &frame->ch_layout) < 0) av_freep(&p);
        return p;
    }
    p->width = frame->width;
    p->height = frame->height;
    p->sample_aspect_ratio = frame->sample_aspect_ratio;
    if (input->frame_rate.num > 0) p->frame_rate = input->frame_rate;
#if COMPAT_FILTER_COLOR
    p->color_space = frame->colorspace;
    p->color_range = frame->color_range;
#endif
    return p;
}

static int add_source(av_filter *f, const av_filter_input *input, const AVFrame *frame)
{
    const AVFilter *filter = avfilter_get_by_name(input->audio ? "abuffer" : "buffer");
    f->source = avfilter_graph_alloc_filter(f->graph, filter, "in");
    AVBufferSrcParameters *p = f->source ? describe(input, frame) : NULL;
    if (!p) return AVERROR(ENOMEM);
    int rc = av_buffersrc_parameters_set(f->source, p);
    if (input->audio) av_channel_layout_uninit(&p->ch_layout);
    av_free(p);
    if (rc >= 0) rc = avfilter_init_str(f->source, NULL);
    return rc;
}

/* Of sound it also takes channels of which nobody knows which is which; FFmpegs without the option
 * need not be told. */
static int add_sink(av_filter *f, const av_filter_input *input)
{
    const AVFilter *filter = avfilter_get_by_name(input->audio ? "abuffersink" : "buffersink");
    f->sink = avfilter_graph_alloc_filter(f->graph, filter, "out");
    if (!f->sink) return AVERROR(ENOMEM);
    int rc =
        input->audio ? av_opt_set_int(f->sink, "all_channel_counts", 1, AV_OPT_SEARCH_CHILDREN) : 0;
    if (rc >= 0 || rc == AVERROR_OPTION_NOT_FOUND) rc = avfilter_init_str(f->sink, NULL);
    return rc;
}

static stk_err parse(av_filter *f, const av_filter_input *input, stk_av_call *call)
{
    AVFilterInOut *ins = avfilter_inout_alloc(), *outs = avfilter_inout_alloc();
    int rc = ins && outs ? 0 : AVERROR(ENOMEM);
    if (rc >= 0) { /* seen from the text: its input is the end of the source */
        *outs = (AVFilterInOut){.name = av_strdup("in"), .filter_ctx = f->source};
        *ins = (AVFilterInOut){.name = av_strdup("out"), .filter_ctx = f->sink};
        rc = avfilter_graph_parse_ptr(f->graph, input->text, &ins, &outs, NULL);
    }
    avfilter_inout_free(&ins);
    avfilter_inout_free(&outs);
    if (rc >= 0) rc = avfilter_graph_config(f->graph, NULL);
    return rc < 0 ? stk_av_wrong(call, rc, "filters '%s'", input->text) : STK_OK;
}

static stk_err begin(av_filter *f, const av_filter_input *input, const AVFrame *frame,
                     stk_av_call *call)
{
    av_filter_fini(f);
    f->graph = avfilter_graph_alloc();
    f->like = av_frame_alloc();
    f->got = av_frame_alloc();
    if (!f->graph || !f->like || !f->got || av_frame_ref(f->like, frame) < 0)
        return stk_av_say(call, STK_ENOMEM, "no memory for filters");
    f->graph->nb_threads = 1;
    int rc = add_source(f, input, frame);
    if (rc < 0)
        return stk_av_wrong(call, rc, "filters '%s': these frames cannot be put in", input->text);
    rc = add_sink(f, input);
    if (rc < 0) return stk_av_wrong(call, rc, "filters '%s'", input->text);
    return parse(f, input, call);
}

static bool same(const AVFrame *a, const AVFrame *b, bool audio)
{
    if (a->format != b->format) return false;
    if (audio)
        return a->sample_rate == b->sample_rate &&
               !av_channel_layout_compare(&a->ch_layout, &b->ch_layout);
    return a->width == b->width && a->height == b->height && compat_same_color(a, b);
}

bool av_filter_open(const av_filter *f)
{
    return f->graph && !f->ended;
}

bool av_filter_fits(const av_filter *f, const av_filter_input *input, const AVFrame *frame)
{
    return !f->graph || same(f->like, frame, input->audio);
}

stk_err av_filter_put(av_filter *f, const av_filter_input *input, AVFrame *frame, stk_av_call *call)
{
    if (!f->graph) {
        const stk_err err = begin(f, input, frame, call);
        if (err) {
            av_filter_fini(f);
            return err;
        }
    }
    f->earlier += f->given;
    f->given = f->bytes = 0;
    f->put++;
    f->end = stk_frame_end(frame, input->audio, input->time_base, input->frame_rate);
    const int rc = av_buffersrc_add_frame_flags(f->source, frame, AV_BUFFERSRC_FLAG_KEEP_REF);
    if (rc >= 0 || rc == AVERROR_EOF) return STK_OK; /* filters like trim have had enough */
    return stk_av_fail(call, rc, "filters '%s'", input->text);
}

stk_err av_filter_end(av_filter *f, const av_filter_input *input, stk_av_call *call)
{
    f->ended = true;
    const int rc = av_buffersrc_close(f->source, f->end, 0);
    if (rc >= 0 || rc == AVERROR_EOF) return STK_OK;
    return stk_av_fail(call, rc, "filters '%s'", input->text);
}

/* What the filters gave.  Filters that were made anew may count in another unit. */
static stk_err take(av_filter *f, bool audio, stk_frames *out, stk_av_call *call)
{
    const AVRational tb = av_buffersink_get_time_base(f->sink);
    if (!out->n) {
        out->time_base = tb;
        if (!audio) out->frame_rate = av_buffersink_get_frame_rate(f->sink);
    }
    else if (av_cmp_q(out->time_base, tb) && f->got->pts != AV_NOPTS_VALUE) {
        f->got->pts = av_rescale_q(f->got->pts, tb, out->time_base);
    }
    const size_t before = out->bytes;
    const stk_err err = stk_frames_add(out, f->got);
    av_frame_unref(f->got);
    if (err) return stk_av_say(call, err, "no memory for frames");
    const size_t bytes = out->bytes - before;
    const size_t held =
        f->put > f->earlier ? f->put - f->earlier : 0; /* as reverse does with all */
    f->bytes = out->n > 1 ? f->bytes + bytes : 0;
    if (++f->given <= MAX_GIVEN + held && f->bytes <= MAX_BYTES + held * bytes) return STK_OK;
    return stk_av_say(call, STK_ELIMIT,
                      "the filters gave %zu frames for one: its time is far from that of the next, "
                      "or they never stop",
                      f->given);
}

stk_err av_filter_get(av_filter *f, const av_filter_input *input, stk_frames *out,
                      stk_av_call *call)
{
    if (!f->graph) return STK_EAGAIN;
    const int rc = av_buffersink_get_frame(f->sink, f->got);
    if (rc >= 0) return take(f, input->audio, out, call);
    if (rc != AVERROR(EAGAIN) && rc != AVERROR_EOF)
        return stk_av_fail(call, rc, "filters '%s'", input->text);
    if (f->ended) av_filter_fini(f);
    return STK_EAGAIN;
}
