#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <stoker/av_mux.h>

#include <libavutil/avstring.h>
#include <libavutil/mem.h>

#include "av/encoder.h"
#include "av/module.h"
#include "av/packet_list.h"
#include "av/stop.h"
#include "base/alloc.h"
#include "base/thread.h"

typedef enum phase { MAKING, OPEN, CUT_SHORT, CLOSED } phase;

struct stk_muxer {
    char *name;     /* for messages: of an address without its password */
    bool remote;    /* calls wait for others, and `stop` ends that */
    bool stoppable; /* remote, or a pipe */

    stk_mutex lock;
    stk_cond left;
    bool busy;       /* guarded by `lock`; whoever set it has everything below */
    pthread_t owner; /* guarded by `lock`; who that is */

    av_stop stop;
    AVFormatContext *fc;
    AVPacket *packet;
    phase phase;
};

static bool claim_locked(stk_muxer *m) STK_REQUIRES(m->lock)
{
    if (m->busy) return false;
    m->busy = true;
    m->owner = pthread_self();
    return true;
}

/* By a call of this thread's, which asks its `interrupt`. */
static bool is_own_locked(const stk_muxer *m) STK_REQUIRES(m->lock)
{
    return m->busy && pthread_equal(m->owner, pthread_self());
}

static stk_err say_busy(bool own, stk_diag *diag)
{
    return stk_diag_set(diag, STK_EAGAIN, "the muxer is in use by %s thread: one call at a time",
                        own ? "this" : "another");
}

static bool enter(stk_muxer *m, stk_diag *diag)
{
    stk_mutex_lock(&m->lock);
    const bool own = is_own_locked(m), mine = claim_locked(m);
    stk_mutex_unlock(&m->lock);
    if (!mine) say_busy(own, diag);
    return mine;
}

/* What another call waits for ends, and then, if it is another thread's, that call. */
static stk_err enter_to_close(stk_muxer *m, stk_diag *diag)
{
    if (!m->remote) return enter(m, diag) ? STK_OK : STK_EAGAIN;
    bool unwanted = false;
    stk_mutex_lock(&m->lock);
    if (m->busy) av_stop_cancel(&m->stop);
    const bool own = is_own_locked(m);
    while (m->busy && !own && !unwanted) {
        const int64_t next = stk_deadline_ns(m->stop.pause);
        if (stk_cond_wait(&m->left, &m->lock, next) || !m->stop.interrupt.wanted) continue;
        stk_mutex_unlock(&m->lock);
        unwanted = m->stop.interrupt.wanted(m->stop.interrupt.ctx);
        stk_mutex_lock(&m->lock);
    }
    const bool mine = claim_locked(m);
    stk_mutex_unlock(&m->lock);
    if (mine) return STK_OK;
    if (own) return say_busy(own, diag);
    return stk_diag_set(diag, STK_ECANCELLED, "cannot close: %s: cancelled", m->name);
}

static void leave(stk_muxer *m)
{
    stk_mutex_lock(&m->lock);
    m->busy = false;
    stk_cond_broadcast(&m->left);
    stk_mutex_unlock(&m->lock);
}

static stk_err no_memory(stk_av_call *call)
{
    return stk_av_say(call, STK_ENOMEM, "no memory for a muxer");
}

static bool is_answer(int rc)
{
    return rc == AVERROR_HTTP_BAD_REQUEST || rc == AVERROR_HTTP_UNAUTHORIZED ||
           rc == AVERROR_HTTP_FORBIDDEN || rc == AVERROR_HTTP_NOT_FOUND ||
           rc == AVERROR_HTTP_OTHER_4XX || rc == AVERROR_HTTP_SERVER_ERROR;
}

/* What the system or a server says is about the file, and not about data. */
static stk_err fail(stk_muxer *m, stk_av_call *call, int rc, const char *what)
{
    const stk_err stopped = av_stop_say(&m->stop, call, what, m->name);
    if (stopped && m->phase == OPEN) m->phase = CUT_SHORT;
    if (stopped) return stopped;
    if (is_answer(rc)) return stk_av_fail(call, rc, "%s: %s", what, m->name);
    const int os_error = AVUNERROR(rc);
    const bool world = os_error > 0 && os_error < 200 && rc != AVERROR(EINVAL) &&
                       rc != AVERROR(ENOMEM) && rc != AVERROR(ENOSYS) && rc != AVERROR(ERANGE);
    if (world) {
        char words[AV_ERROR_MAX_STRING_SIZE] = "";
        av_strerror(rc, words, sizeof(words));
        const stk_err code = stk_diag_errno(NULL, os_error, "%s", what);
        const stk_err err = stk_av_say(call, code, "%s: %s: %s", what, m->name, words);
        if (call->diag) call->diag->os_error = os_error;
        return err;
    }
    return stk_av_wrong(call, rc, "%s: %s", what, m->name);
}

/* --- making --- */

static bool names_addresses(const char *protocols)
{
    for (size_t n; *protocols; protocols += n + (protocols[n] == ',')) {
        n = strcspn(protocols, ",");
        if (n != 4 || (memcmp(protocols, "file", n) != 0 && memcmp(protocols, "pipe", n) != 0))
            return true;
    }
    return false;
}

/* What can be waited for, and be left at any moment: neither a file nor a pipe.  Formats that open
 * by themselves what they write to, like playlists, may use whatever is allowed. */
static bool is_remote(const stk_mux_opts *opts, const AVFormatContext *fc)
{
    if (!opts->protocols) return false;
    if ((fc->oformat->flags & AVFMT_NOFILE) && names_addresses(opts->protocols)) return true;
    const char *name = avio_find_protocol_name(fc->url);
    return !name || (strcmp(name, "file") != 0 && strcmp(name, "pipe") != 0);
}

/* A write to it waits in the system, and only a signal of the thread's gets it out. */
static bool is_pipe(const char *url)
{
    struct stat st;
    (void)av_strstart(url, "file:", &url);
    return av_strstart(url, "pipe:", NULL) || (stat(url, &st) == 0 && !S_ISREG(st.st_mode));
}

/* Its thread would ask `stop` while others use it. */
static stk_err say_fifo(const stk_muxer *m, stk_av_call *call)
{
    return stk_av_say(call, STK_EUNSUPPORTED, "%s: leave out FFmpeg's fifo: %s", m->name,
                      "it writes on a thread of its own, which nothing here can end");
}

static stk_err find_format(const stk_muxer *m, const stk_mux_opts *opts, const char *file,
                           const AVOutputFormat **out, stk_av_call *call)
{
    *out = av_guess_format(opts->format, opts->format ? NULL : file, NULL);
    if (!*out && opts->format)
        return stk_av_say(call, STK_EUNSUPPORTED, "this FFmpeg has no muxer '%s'", opts->format);
    if (!*out)
        return stk_av_say(call, STK_EINVAL,
                          "%s: no format goes by that ending: say format=", m->name);
    const bool tee = strcmp((*out)->name, "tee") == 0;
    const bool fifo = tee ? strstr(file, "use_fifo=") || strstr(file, "f=fifo")
                          : strcmp((*out)->name, "fifo") == 0;
    return fifo ? say_fifo(m, call) : STK_OK;
}

static stk_err make(stk_muxer *m, const char *url, const stk_mux_opts *opts, stk_av_call *call)
{
    /* A path that looks like an address is a path. */
    char *file = opts->protocols ? av_strdup(url) : av_asprintf("file:%s", url);
    const AVOutputFormat *format = NULL;
    m->packet = av_packet_alloc();
    m->name = stk_alloc(strlen(url) + 1);
    if (!file || !m->packet || !m->name) {
        av_free(file);
        return no_memory(call);
    }
    memcpy(m->name, url, strlen(url) + 1);
    stk_av_hide_passwords(m->name, false);
    const stk_err err = find_format(m, opts, file, &format, call);
    const int rc = err ? 0 : avformat_alloc_output_context2(&m->fc, format, NULL, file);
    av_free(file);
    if (err) return err;
    if (rc < 0) return stk_av_wrong(call, rc, "%s", m->name);
    m->remote = is_remote(opts, m->fc);
    m->stoppable = m->remote || is_pipe(m->fc->url);
    if (!m->remote) m->stop.timeout = STK_FOREVER;
    /* Only a signal gets a write to a pipe out of the system: each is asked about, at once. */
    if (!m->remote) m->stop.pause = 0;
    if (m->stoppable) m->fc->interrupt_callback = (AVIOInterruptCB){av_stop_wanted, &m->stop};
    m->fc->protocol_whitelist = av_strdup(opts->protocols ? opts->protocols : "file");
    return m->fc->protocol_whitelist ? STK_OK : no_memory(call);
}

stk_err mod_muxer_new(const char *url, const stk_mux_opts *opts, stk_muxer **out, stk_diag *diag)
{
    static const stk_mux_opts none;
    stk_muxer *m = *out = stk_alloc_zero(1, sizeof(*m));
    if (!m) return stk_diag_set(diag, STK_ENOMEM, "no memory for a muxer");
    if (!opts) opts = &none;
    stk_err err = stk_mutex_init(&m->lock);
    if (!err) err = stk_cond_init(&m->left);
    if (err) stk_diag_set(diag, err, "no memory for a muxer");
    if (!err) err = av_stop_init(&m->stop, opts->timeout, opts->interrupt, diag);
    if (!err) {
        stk_av_call call;
        stk_av_enter(&call, diag);
        err = make(m, url, opts, &call);
        stk_av_leave(&call);
    }
    if (err) mod_muxer_free(out);
    return err;
}

void mod_muxer_free(stk_muxer **pm)
{
    stk_muxer *m = *pm;
    *pm = NULL;
    if (!m) return;
    stk_av_call call;
    av_stop_cancel(&m->stop); /* nothing waits any more */
    stk_av_enter(&call, NULL);
    if (m->fc && !(m->fc->oformat->flags & AVFMT_NOFILE)) avio_closep(&m->fc->pb);
    avformat_free_context(m->fc);
    av_packet_free(&m->packet);
    stk_free(m->name);
    stk_av_leave(&call);
    stk_cond_fini(&m->left);
    stk_mutex_fini(&m->lock);
    stk_free(m);
}

void mod_muxer_cancel(stk_muxer *m)
{
    av_stop_cancel(&m->stop);
}

const char *mod_muxer_format(const stk_muxer *m)
{
    return m->fc->oformat->name;
}

/* --- streams --- */

static stk_err check_making(const stk_muxer *m, stk_av_call *call)
{
    if (m->phase == MAKING) return STK_OK;
    return stk_av_say(call, STK_EINVAL, "%s: streams are added before the muxer is opened",
                      m->name);
}

/* The number that stands for a codec in the file: kept where it is one of this format's, too. */
static unsigned tag_for(const AVFormatContext *fc, const AVCodecParameters *par)
{
    const struct AVCodecTag *const *tags = fc->oformat->codec_tag;
    unsigned usual;
    if (!tags || av_codec_get_id(tags, par->codec_tag) == par->codec_id ||
        !av_codec_get_tag2(tags, par->codec_id, &usual))
        return par->codec_tag;
    return 0;
}

static stk_err add_stream(stk_muxer *m, const stk_av_codec *codec, stk_av_call *call)
{
    AVStream *st = avformat_new_stream(m->fc, NULL);
    if (!st || avcodec_parameters_copy(st->codecpar, codec->par) < 0) return no_memory(call);
    st->codecpar->codec_tag = tag_for(m->fc, codec->par);
    st->time_base = codec->time_base; /* what is wished for */
    if (codec->par->codec_type == AVMEDIA_TYPE_VIDEO) {
        st->sample_aspect_ratio = codec->par->sample_aspect_ratio;
        if (codec->frame_rate.num > 0) st->avg_frame_rate = codec->frame_rate;
    }
    return STK_OK;
}

static stk_err add_encoder(stk_muxer *m, const stk_encode_opts *opts, stk_encoder **out,
                           stk_av_call *call)
{
    const enum AVMediaType type =
        opts->media == STK_MEDIA_AUDIO ? AVMEDIA_TYPE_AUDIO : AVMEDIA_TYPE_VIDEO;
    stk_err err = check_making(m, call);
    if (err) return err;
    const enum AVCodecID guess = av_guess_codec(m->fc->oformat, NULL, m->name, NULL, type);
    err = stk_encoder_make(opts, m->fc->oformat, guess, out, call);
    if (!err) err = add_stream(m, (*out)->codec, call);
    if (err) mod_encoder_free(out);
    return err;
}

stk_err mod_muxer_add_encoder(stk_muxer *m, const stk_encode_opts *opts, stk_encoder **out,
                              stk_diag *diag)
{
    *out = NULL;
    if (!enter(m, diag)) return STK_EAGAIN;
    stk_av_call call;
    stk_av_enter(&call, diag);
    const stk_err err = add_encoder(m, opts, out, &call);
    stk_av_leave(&call);
    leave(m);
    return err;
}

static stk_err add_codec(stk_muxer *m, const stk_av_codec *codec, stk_av_call *call)
{
    const stk_err err = check_making(m, call);
    if (err) return err;
    if (avformat_query_codec(m->fc->oformat, codec->par->codec_id, FF_COMPLIANCE_EXPERIMENTAL) == 0)
        return stk_av_say(call, STK_EUNSUPPORTED, "the format '%s' cannot hold %s",
                          m->fc->oformat->name, avcodec_get_name(codec->par->codec_id));
    return add_stream(m, codec, call);
}

stk_err mod_muxer_add_codec(stk_muxer *m, const stk_av_codec *codec, stk_diag *diag)
{
    if (!enter(m, diag)) return STK_EAGAIN;
    stk_av_call call;
    stk_av_enter(&call, diag);
    const stk_err err = add_codec(m, codec, &call);
    stk_av_leave(&call);
    leave(m);
    return err;
}

/* --- writing --- */

/* A signal that nobody wants to stop for gets nobody out of opening a pipe (PEP 475). */
static int open_output(stk_muxer *m, AVDictionary **options)
{
    for (;;) {
        AVDictionary *rest = NULL; /* FFmpeg takes out of it what it knows, also if that fails */
        int rc = av_dict_copy(&rest, *options, 0);
        if (rc >= 0) rc = m->fc->io_open(m->fc, &m->fc->pb, m->fc->url, AVIO_FLAG_WRITE, &rest);
        if (rc != AVERROR(EINTR) || av_stop_wanted(&m->stop)) {
            av_dict_free(options);
            *options = rest;
            return rc;
        }
        av_dict_free(&rest);
    }
}

static stk_err write_header(stk_muxer *m, const char *const *texts, stk_av_call *call)
{
    AVDictionary *options = NULL;
    int rc = stk_av_options(texts, &options);
    const bool fifo = av_dict_get(options, "use_fifo", NULL, 0); /* of tee */
    stk_err err = fifo ? say_fifo(m, call) : STK_OK;
    av_stop_begin(&m->stop);
    if (!fifo && rc >= 0 && !(m->fc->oformat->flags & AVFMT_NOFILE)) rc = open_output(m, &options);
    if (!fifo && rc >= 0) rc = avformat_write_header(m->fc, &options);
    const AVDictionaryEntry *unknown = av_dict_get(options, "", NULL, AV_DICT_IGNORE_SUFFIX);
    if (rc < 0)
        err = fail(m, call, rc, "Failed to open the output");
    else if (unknown && !fifo)
        err = stk_av_say(call, STK_EINVAL, "%s: the muxer '%s' has no option '%s'", m->name,
                         m->fc->oformat->name, unknown->key);
    av_dict_free(&options);
    return err;
}

static stk_err open_file(stk_muxer *m, const char *const *options, stk_av_call *call)
{
    if (m->phase != MAKING)
        return stk_av_say(call, STK_EINVAL, "%s: the muxer was opened before", m->name);
    if (av_stop_is_cancelled(&m->stop))
        return stk_av_say(call, STK_ECANCELLED, "%s: cancelled", m->name);
    if (!m->fc->nb_streams)
        return stk_av_say(call, STK_EINVAL, "%s: add a stream before the muxer is opened", m->name);
    const stk_err err = write_header(m, options, call);
    m->phase = err ? CLOSED : OPEN;
    if (err && !(m->fc->oformat->flags & AVFMT_NOFILE)) avio_closep(&m->fc->pb);
    return err;
}

stk_err mod_muxer_open(stk_muxer *m, const char *const *options, stk_diag *diag)
{
    if (!enter(m, diag)) return STK_EAGAIN;
    stk_av_call call;
    stk_av_enter(&call, diag);
    const stk_err err = open_file(m, options, &call);
    stk_av_leave(&call);
    leave(m);
    return err;
}

static stk_err check_open(stk_muxer *m, stk_av_call *call)
{
    const bool cut = m->phase == CUT_SHORT, cancelled = av_stop_is_cancelled(&m->stop);
    if (cancelled && m->stoppable && m->phase == OPEN) m->phase = CUT_SHORT; /* it is said here */
    if (cut || cancelled)
        return stk_av_say(call, STK_ECANCELLED, "%s: %s", m->name,
                          cut ? "nothing can follow what was cut short" : "cancelled");
    const char *why = m->phase == CLOSED ? "was closed" : "was not opened";
    return m->phase == OPEN ? STK_OK
                            : stk_av_say(call, STK_EINVAL, "%s: the muxer %s", m->name, why);
}

static stk_err write_all(stk_muxer *m, size_t stream, const stk_packets *packets, stk_av_call *call)
{
    stk_err err = check_open(m, call);
    if (err) return err;
    if (stream >= m->fc->nb_streams)
        return stk_av_say(call, STK_EINVAL, "%s: there is no stream %zu, of %u", m->name, stream,
                          m->fc->nb_streams);
    const AVStream *st = m->fc->streams[stream];
    const bool audio = st->codecpar->codec_type == AVMEDIA_TYPE_AUDIO;
    if (audio != (packets->media == STK_MEDIA_AUDIO))
        return stk_av_say(call, STK_EINVAL, "%s: stream %zu is %s, and these packets are not",
                          m->name, stream, audio ? "audio" : "video");
    for (size_t i = 0; i < packets->n; i++) {
        if ((err = check_open(m, call))) return err; /* it may have been cancelled meanwhile */
        if (av_packet_ref(m->packet, packets->list[i]) < 0) return no_memory(call);
        av_stop_begin(&m->stop);
        m->packet->stream_index = (int)stream;
        m->packet->pos = -1;
        av_packet_rescale_ts(m->packet, packets->time_base, st->time_base);
        const int rc = av_interleaved_write_frame(m->fc, m->packet);
        av_packet_unref(m->packet);
        if (rc < 0) return fail(m, call, rc, "cannot write");
    }
    return STK_OK;
}

stk_err mod_muxer_write(stk_muxer *m, size_t stream, const stk_packets *packets, stk_diag *diag)
{
    if (!enter(m, diag)) return STK_EAGAIN;
    stk_av_call call;
    stk_av_enter(&call, diag);
    const stk_err err = write_all(m, stream, packets, &call);
    stk_av_leave(&call);
    leave(m);
    return err;
}

static stk_err flush(stk_muxer *m, stk_av_call *call)
{
    const stk_err err = check_open(m, call);
    if (err) return err;
    av_stop_begin(&m->stop);
    int rc = av_interleaved_write_frame(m->fc, NULL);
    if (rc >= 0) rc = av_write_frame(m->fc, NULL); /* what the format itself holds back */
    if (rc >= 0 && m->fc->pb) {
        avio_flush(m->fc->pb);
        rc = m->fc->pb->error;
    }
    return rc < 0 ? fail(m, call, rc, "cannot write") : STK_OK;
}

stk_err mod_muxer_flush(stk_muxer *m, stk_diag *diag)
{
    if (!enter(m, diag)) return STK_EAGAIN;
    stk_av_call call;
    stk_av_enter(&call, diag);
    const stk_err err = flush(m, &call);
    stk_av_leave(&call);
    leave(m);
    return err;
}

/* `cancelled`: by the user, who was told that nothing is completed. */
static stk_err close_file(stk_muxer *m, bool cancelled, stk_av_call *call)
{
    const phase was = m->phase == OPEN && m->stoppable && cancelled ? CUT_SHORT : m->phase;
    m->phase = CLOSED;
    if (was != OPEN && was != CUT_SHORT) return STK_OK;
    if (was == OPEN) av_stop_begin(&m->stop); /* else it gives up at once */
    int rc = av_write_trailer(m->fc);
    if (!(m->fc->oformat->flags & AVFMT_NOFILE)) {
        const int error = m->fc->pb ? m->fc->pb->error : 0;
        const int closed = avio_closep(&m->fc->pb);
        if (rc >= 0) rc = error < 0 ? error : closed;
    }
    /* That it was cut short was said. */
    return rc < 0 && was == OPEN ? fail(m, call, rc, "cannot complete the file") : STK_OK;
}

stk_err mod_muxer_close(stk_muxer *m, stk_diag *diag)
{
    const bool cancelled = av_stop_is_cancelled(&m->stop); /* not by this call */
    stk_err err = enter_to_close(m, diag);
    if (err) return err;
    stk_av_call call;
    stk_av_enter(&call, diag);
    err = close_file(m, cancelled, &call);
    stk_av_leave(&call);
    leave(m);
    return err;
}
