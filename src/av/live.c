#include <stdio.h>
#include <string.h>

#include "av/decoder.h"
#include "av/demuxer.h"
#include "av/live_queue.h"
#include "av/module.h"
#include "base/alloc.h"
#include "base/thread.h"

#define DEFAULT_TIMEOUT (INT64_C(10) * 1000 * 1000 * 1000)
#define CLOSE_TIMEOUT (INT64_C(5) * 1000 * 1000 * 1000)

enum {
    DEFAULT_QUEUE = 8,
    MAX_QUEUE = 1 << 16,
    ARRIVALS = 64, /* packets that may be on their way through a decoder */
};

struct stk_live {
    atomic_size_t refs; /* of its owner and of its thread */
    unsigned generation;
    stk_media media;
    stk_decode_opts codec; /* with texts that are in `texts` */
    char **texts;
    char *decoder, *filter;
    int64_t timeout;
    stk_thread thread; /* as the two above, never changes after _open */

    av_live_queue queue;
    atomic_size_t failed;

    stk_mutex lock;       /* guards what is below */
    stk_demuxer *demuxer; /* the thread's, which lets go of it with the lock; others cancel it */
};

/* --- making --- */

static bool has(const char *const *list, const char *name)
{
    for (; list && *list; list += 2)
        if (!strcmp(*list, name)) return true;
    return false;
}

/* Both lists in one piece of memory, without what of the second is in the first. */
static char **join(const char *const *list, const char *const *defaults)
{
    const char *const *lists[] = {list, defaults};
    size_t n = 1, bytes = 0;
    for (int i = 0; i < 2; i++)
        for (const char *const *t = lists[i]; t && *t; t++, n++) bytes += strlen(*t) + 1;
    char **out = stk_alloc(n * sizeof(*out) + bytes);
    if (!out) return NULL;
    char *at = (char *)(out + n);
    size_t used = 0;
    for (int i = 0; i < 2; i++)
        for (const char *const *t = lists[i]; t && *t; t += 2) {
            if (i && has(list, *t)) continue;
            for (int k = 0; k < 2; k++) {
                const size_t size = strlen(t[k]) + 1;
                out[used++] = memcpy(at, t[k], size);
                at += size;
            }
        }
    out[used] = NULL;
    return out;
}

static stk_err copy_text(const char *text, char **out)
{
    if (!text) return STK_OK;
    const size_t n = strlen(text) + 1;
    if (!(*out = stk_alloc(n))) return STK_ENOMEM;
    memcpy(*out, text, n);
    return STK_OK;
}

static stk_err copy_codec(stk_live *l, const stk_decode_opts *from)
{
    if (from) l->codec = *from;
    stk_err err = copy_text(l->codec.decoder, &l->decoder);
    if (!err) err = copy_text(l->codec.filter, &l->filter);
    if (err) return err;
    if (!(l->texts = join(l->codec.options, NULL))) return STK_ENOMEM;
    l->codec.decoder = l->decoder;
    l->codec.filter = l->filter;
    l->codec.options = (const char *const *)l->texts;
    return STK_OK;
}

/* FFmpeg's "nobuffer" is not among these: it forgets what was looked at, and with that the key
 * frame that the next seconds need. */
static stk_err make_demuxer(stk_live *l, const stk_av_input *input, const stk_demux_opts *from,
                            bool keep_all, stk_diag *diag)
{
    /* UDP that comes faster than it is decoded loses packets, and does not end. */
    const bool udp = input->url && !strncmp(input->url, "udp://", 6);
    const char *const quick[] = {"analyzeduration",
                                 "500000",
                                 "probesize",
                                 "262144",
                                 "fpsprobesize",
                                 "0",
                                 udp ? "overrun_nonfatal" : NULL,
                                 "1",
                                 NULL};
    stk_demux_opts opts = from ? *from : (stk_demux_opts){0};
    char **texts = join(opts.options, keep_all ? NULL : quick);
    if (!texts) {
        if (input->reader && input->reader->close) input->reader->close(input->reader->ctx);
        return stk_diag_set(diag, STK_ENOMEM, "no memory for options");
    }
    l->timeout = opts.timeout = opts.timeout ? opts.timeout : DEFAULT_TIMEOUT;
    opts.options = (const char *const *)texts;
    const stk_err err = stk_demuxer_make(input, &opts, true, &l->demuxer, diag);
    stk_free(texts);
    return err;
}

static void unref(stk_live *l)
{
    if (atomic_fetch_sub_explicit(&l->refs, 1, memory_order_acq_rel) > 1) return;
    mod_demuxer_free(&l->demuxer);
    av_live_queue_fini(&l->queue);
    stk_mutex_fini(&l->lock);
    stk_free(l->texts);
    stk_free(l->decoder);
    stk_free(l->filter);
    stk_free(l);
}

/* --- the thread --- */

/* When packets came, by their times. */
typedef struct arrivals {
    struct {
        int64_t pts, at;
    } list[ARRIVALS];
    size_t n; /* so far */
    AVRational time_base;
} arrivals;

static void note_arrival(arrivals *a, const stk_packets *packets)
{
    a->list[a->n % ARRIVALS].pts = packets->n ? packets->list[0]->pts : AV_NOPTS_VALUE;
    a->list[a->n % ARRIVALS].at = stk_clock_ns();
    a->n++;
}

/* Of the packet that has the frame's time, or where none has, of the last one. */
static int64_t arrival_of(const arrivals *a, const stk_frames *frames)
{
    const int64_t pts = frames->list[0]->pts;
    for (size_t i = a->n; pts != AV_NOPTS_VALUE && i > 0 && a->n - i < ARRIVALS; i--) {
        const size_t k = (i - 1) % ARRIVALS;
        if (a->list[k].pts != AV_NOPTS_VALUE &&
            av_rescale_q(a->list[k].pts, a->time_base, frames->time_base) == pts)
            return a->list[k].at;
    }
    return a->n ? a->list[(a->n - 1) % ARRIVALS].at : stk_clock_ns();
}

typedef struct reading {
    stk_live *live;
    stk_demuxer *demuxer;
    stk_decoder *decoder;
    int stream;
    arrivals arrivals;
    int64_t quiet_since;
    stk_diag *diag;
} reading;

/* All frames that what was put in gives. */
static stk_err drain(reading *r)
{
    for (;;) {
        stk_frames *frames;
        stk_err err = mod_decoder_next(r->decoder, 1, 0, &frames, r->diag);
        if (err) return err;
        if (!frames->n) {
            mod_frames_unref(&frames);
            return STK_OK;
        }
        if (frames->media == STK_MEDIA_VIDEO) frames->media = STK_MEDIA_IMAGE; /* one picture */
        err = av_live_queue_put(&r->live->queue, &frames, arrival_of(&r->arrivals, frames));
        if (err) return err;
        r->quiet_since = stk_clock_ns();
    }
}

static stk_err check_silence(const reading *r)
{
    const int64_t timeout = r->live->timeout;
    if (timeout == STK_FOREVER || stk_clock_ns() - r->quiet_since <= timeout) return STK_OK;
    const char *why = r->decoder->why.text;
    return stk_diag_set(r->diag, STK_ETIMEOUT,
                        "%s: packets came, but no frame could be decoded for %g s, the timeout%s%s",
                        r->demuxer->input.name, (double)timeout / 1e9, *why ? ": " : "", why);
}

/* `packets` NULL: there are no more. */
static stk_err decode(reading *r, stk_packets *packets)
{
    stk_err err = mod_decoder_put(r->decoder, packets, r->diag);
    if (!err) err = drain(r);
    atomic_store_explicit(&r->live->failed, mod_decoder_failed(r->decoder), memory_order_relaxed);
    return err;
}

static stk_err read_one(reading *r)
{
    stk_packets *packets;
    stk_err err =
        mod_demuxer_next(r->demuxer, &r->stream, 1, (stk_ratio){0, 0}, 1, &packets, r->diag);
    if (err == STK_EEND) { /* what the decoder holds back comes first */
        err = decode(r, NULL);
        return err ? err : STK_EEND;
    }
    if (err) return err;
    note_arrival(&r->arrivals, packets);
    err = decode(r, packets);
    mod_packets_unref(&packets);
    return err ? err : check_silence(r);
}

/* Decoders of MPEG-1, 2 and 4 take "low_delay" for a promise that there are no B pictures, and
 * would give those in the wrong order. */
static bool keeps_order(const stk_av_codec *codec)
{
    const enum AVCodecID id = codec->par->codec_id;
    return id == AV_CODEC_ID_H264 || id == AV_CODEC_ID_HEVC || id == AV_CODEC_ID_AV1;
}

static stk_err open_decoder(reading *r, const stk_av_codec *codec)
{
    static const char *const quick[] = {"flags", "low_delay", NULL};
    const stk_live *l = r->live;
    stk_decode_opts opts = l->codec;
    const bool hurry = !l->queue.keep && keeps_order(codec);
    char **texts = join(opts.options, hurry ? quick : NULL);
    if (!texts) return stk_diag_set(r->diag, STK_ENOMEM, "no memory for options");
    opts.options = (const char *const *)texts;
    const stk_err err = mod_decoder_new(codec, &opts, &r->decoder, r->diag);
    stk_free(texts);
    return err;
}

static stk_err open_stream(reading *r)
{
    const stk_live *l = r->live;
    stk_av_codec *codec;
    stk_err err = stk_demuxer_start(r->demuxer, r->diag);
    if (err) return err;
    r->stream = mod_demuxer_best(r->demuxer, l->media);
    if (r->stream < 0)
        return stk_diag_set(r->diag, STK_ENOTFOUND, "%s: there is no %s stream, of %d",
                            r->demuxer->input.name, l->media == STK_MEDIA_AUDIO ? "audio" : "video",
                            mod_demuxer_num_streams(r->demuxer));
    err = mod_demuxer_codec(r->demuxer, r->stream, l->media, &codec, r->diag);
    if (err) return err;
    r->arrivals.time_base = codec->time_base;
    err = open_decoder(r, codec);
    mod_av_codec_unref(&codec);
    r->quiet_since = stk_clock_ns();
    return err;
}

static void *run(void *arg)
{
    stk_live *l = arg;
    stk_diag diag = {0};
    reading r = {.live = l, .demuxer = l->demuxer, .diag = &diag};
    stk_err err = open_stream(&r);
    while (!err) err = read_one(&r);
    mod_decoder_free(&r.decoder);
    stk_mutex_lock(&l->lock);
    l->demuxer = NULL;
    stk_mutex_unlock(&l->lock);
    mod_demuxer_free(&r.demuxer);
    av_live_queue_end(&l->queue, err, &diag);
    unref(l);
    return NULL;
}

/* --- the functions --- */

static stk_err make(stk_live *l, const stk_av_input *input, const stk_live_opts *opts,
                    stk_diag *diag)
{
    const size_t queue = opts->queue ? opts->queue : DEFAULT_QUEUE;
    stk_err err = make_demuxer(l, input, opts->demux, opts->keep_all, diag);
    if (err) return err;
    err = copy_codec(l, opts->codec);
    if (!err) err = av_live_queue_init(&l->queue, queue, opts->keep_all);
    if (!err) err = stk_mutex_init(&l->lock);
    if (err) return stk_diag_set(diag, err, "no memory for a queue of frames");
    atomic_store_explicit(&l->refs, 2, memory_order_relaxed);
    err = stk_thread_start(&l->thread, "stoker-live", run, l);
    if (!err) return STK_OK;
    atomic_store_explicit(&l->refs, 1, memory_order_relaxed);
    return stk_diag_set(diag, err, "the system has no thread for a live input");
}

static stk_err check(const stk_live_opts *opts, stk_diag *diag)
{
    if (opts->media != STK_MEDIA_NONE && opts->media != STK_MEDIA_AUDIO &&
        opts->media != STK_MEDIA_VIDEO)
        return stk_diag_set(diag, STK_EINVAL, "what is read live is audio or video");
    if (opts->queue > MAX_QUEUE)
        return stk_diag_set(diag, STK_EINVAL, "a queue has at most %d places, not %zu", MAX_QUEUE,
                            opts->queue);
    return STK_OK;
}

stk_err mod_live_open(const stk_av_input *input, const stk_live_opts *opts, stk_live **out,
                      stk_diag *diag)
{
    static const stk_live_opts none;
    if (!opts) opts = &none;
    *out = NULL;
    stk_err err = check(opts, diag);
    stk_live *l = err ? NULL : stk_alloc_zero(1, sizeof(*l));
    if (!l) {
        if (input->reader && input->reader->close) input->reader->close(input->reader->ctx);
        return err ? err : stk_diag_set(diag, STK_ENOMEM, "no memory for a live input");
    }
    atomic_init(&l->refs, 1);
    atomic_init(&l->failed, 0);
    l->generation = stk_fork_generation();
    l->media = opts->media ? opts->media : STK_MEDIA_VIDEO;
    err = make(l, input, opts, diag);
    if (err)
        unref(l);
    else
        *out = l;
    return err;
}

void mod_live_cancel(stk_live *l)
{
    if (l->generation != stk_fork_generation()) return; /* the thread is the parent's */
    av_live_queue_close(&l->queue);
    stk_mutex_lock(&l->lock);
    if (l->demuxer) mod_demuxer_cancel(l->demuxer);
    stk_mutex_unlock(&l->lock);
}

void mod_live_close(stk_live *l)
{
    if (l->generation != stk_fork_generation()) return;
    mod_live_cancel(l);
    (void)av_live_queue_wait_end(&l->queue, CLOSE_TIMEOUT);
}

void mod_live_free(stk_live **pl)
{
    stk_live *l = *pl;
    *pl = NULL;
    if (!l || l->generation != stk_fork_generation()) return;
    mod_live_close(l);
    if (av_live_queue_wait_end(&l->queue, 0))
        stk_thread_join(&l->thread);
    else
        stk_thread_detach(&l->thread);
    unref(l);
}

stk_err mod_live_next(stk_live *l, int64_t timeout, stk_frames **out, stk_diag *diag)
{
    *out = NULL;
    if (l->generation != stk_fork_generation())
        return stk_diag_set(diag, STK_EFORK, "the live input was opened before the fork");
    return av_live_queue_take(&l->queue, timeout, out, diag);
}

void mod_live_get_stats(stk_live *l, stk_live_stats *out)
{
    *out = (stk_live_stats){0};
    if (l->generation != stk_fork_generation()) return;
    av_live_queue_stats(&l->queue, out);
    out->failed = atomic_load_explicit(&l->failed, memory_order_relaxed);
}
