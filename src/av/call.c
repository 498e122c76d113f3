#include "av/call.h"

#include <errno.h>
#include <libavcodec/avcodec.h>
#include <libavutil/error.h>
#include <libavutil/log.h>
#include <link.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/thread.h"

typedef void log_fn(void *ctx, int level, const char *fmt, va_list args);

static _Thread_local stk_av_call *current;
static _Atomic(log_fn *) others; /* what was there before */
static log_fn *const volatile
    *slot; /* libavutil's pointer to its callback; never changes once set */
static atomic_bool loud;

enum {
    MAX_PARENTS = 8,
    MAX_AGE =
        64, /* calls: an error is given as many packets after its words as there are threads */
};

static pthread_mutex_t entering = PTHREAD_MUTEX_INITIALIZER; /* guards these, and what they have */
static unsigned inside;                                      /* calls in progress, and logs */
static stk_av_log *logs;

void stk_av_hide_passwords(char *text, bool cut)
{
    for (char *host = text; (host = strstr(host, "://"));) {
        host += 3;
        size_t n = strcspn(host, "/\n");
        if (cut && !host[n]) n = 0, *host = '\0'; /* the @ may have been cut off */
        size_t from = n;
        while (from && host[from - 1] != '@') from--;
        memmove(host, host + from, strlen(host + from) + 1);
    }
}

/* --- what is logged --- */

typedef struct line {
    const char *from; /* NULL: nobody has a name */
    char text[512];
    bool ends;
} line;

static void format(line *l, void *ctx, const char *fmt, va_list args)
{
    const AVClass *cls = ctx ? *(AVClass **)ctx : NULL;
    l->from = cls && cls->item_name ? cls->item_name(ctx) : NULL;
    const int whole = vsnprintf(l->text, sizeof(l->text), fmt, args);
    stk_av_hide_passwords(l->text, whole >= (int)sizeof(l->text));
    size_t n = strlen(l->text);
    l->ends = n && l->text[n - 1] == '\n';
    while (n && (l->text[n - 1] == '\n' || l->text[n - 1] == '\r')) l->text[--n] = '\0';
}

/* A line that FFmpeg puts together of several calls ends up as one. */
static void keep(char lines[STK_AV_LINES], size_t *used, const line *l)
{
    if (!*l->text || strstr(lines, l->text)) return; /* the same again and again */
    const size_t room = STK_AV_LINES - *used;
    const bool begins = !*used || lines[*used - 1] == '\n';
    const char *end = l->ends ? "\n" : "";
    const int wrote = begins && l->from
                          ? snprintf(lines + *used, room, "[%s] %s%s", l->from, l->text, end)
                          : snprintf(lines + *used, room, "%s%s", l->text, end);
    if (wrote > 0 && (size_t)wrote < room)
        *used += (size_t)wrote;
    else
        lines[*used] = '\0'; /* does not fit: the first ones say most */
}

/* Which codec logs: it, or what it is the parent of. */
static const AVCodecContext *codec_of(const void *ctx)
{
    const AVClass *cls;
    for (int depth = 0; depth < MAX_PARENTS && ctx && (cls = *(AVClass *const *)ctx); depth++) {
        if (cls == avcodec_get_class()) return ctx;
        const int at = cls->parent_log_context_offset;
        ctx = at ? *(void *const *)((const char *)ctx + at) : NULL;
    }
    return NULL;
}

static stk_av_log *log_of_locked(const AVCodecContext *codec)
{
    stk_av_log *log = logs;
    while (log && codec->opaque != log) log = log->next;
    return log;
}

/* On a thread without a call.  False: it is none of ours. */
static bool hear_codec(void *ctx, bool error, const char *fmt, va_list args)
{
    line l;
    const AVCodecContext *codec = codec_of(ctx);
    if (!codec || !codec->opaque) return false;
    if (error) format(&l, ctx, fmt, args);
    pthread_mutex_lock(&entering);
    stk_av_log *log = log_of_locked(codec);
    if (log && error) {
        keep(log->lines, &log->used, &l);
        log->age = 0;
    }
    pthread_mutex_unlock(&entering);
    return log != NULL;
}

static void hear(void *ctx, int level, const char *fmt, va_list args)
{
    stk_av_call *call = current;
    const bool error = level <= AV_LOG_ERROR && level >= 0;
    bool ours = call != NULL;
    va_list again;
    va_copy(again, args);
    if (!call) {
        ours = hear_codec(ctx, error, fmt, again);
    }
    else if (error) {
        line l;
        format(&l, ctx, fmt, again);
        keep(call->lines, &call->used, &l);
    }
    va_end(again);
    log_fn *next = atomic_load_explicit(&others, memory_order_acquire);
    const bool pass = !ours || atomic_load_explicit(&loud, memory_order_relaxed);
    if (pass && next) next(ctx, level, fmt, args);
}

/* --- finding the callback that is there --- */

typedef struct segment {
    const uintptr_t *from;
    size_t words;
} segment;

/* The largest writable segment of the library that `arg->from` lies in.  */
static int find_segment(struct dl_phdr_info *info, size_t size, void *arg)
{
    segment *s = arg;
    (void)size;
    const uintptr_t inside_of = (uintptr_t)s->from;
    const ElfW(Phdr) *data = NULL;
    bool here = false;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        const uintptr_t at = info->dlpi_addr + p->p_vaddr;
        if (p->p_type != PT_LOAD) continue;
        here |= inside_of >= at && inside_of - at < p->p_memsz;
        if ((p->p_flags & PF_W) && (!data || p->p_memsz > data->p_memsz)) data = p;
    }
    if (!here) return 0;
    const uintptr_t at = data ? info->dlpi_addr + data->p_vaddr : 0;
    const uintptr_t first = (at + sizeof(uintptr_t) - 1) / sizeof(uintptr_t) * sizeof(uintptr_t);
    s->from = (const uintptr_t *)first;
    s->words = data ? (at + data->p_memsz - first) / sizeof(uintptr_t) : 0;
    return 1;
}

#if defined(__SANITIZE_ADDRESS__) || defined(__clang__)
__attribute__((no_sanitize("address"))) /* reads all that another library has */
#endif
static void
find_slot(const segment *s, uintptr_t *before)
{
    const volatile uintptr_t *words = s->from;
    for (size_t i = 0; i < s->words; i++) before[i] = words[i];
    av_log_set_callback(hear);
    for (size_t i = 0; i < s->words && !slot; i++)
        if (words[i] != before[i] && words[i] == (uintptr_t)hear) {
            atomic_store_explicit(&others, (log_fn *)before[i], memory_order_release);
            slot = (log_fn *const volatile *)(words + i);
        }
}

/* Other threads, one of which may have had the lock, did not come along. */
static void begin_in_child(void)
{
    pthread_mutex_init(&entering, NULL);
    inside = 0;
    for (const stk_av_call *call = current; call; call = call->outer) inside++;
    for (const stk_av_log *log = logs; log; log = log->next) inside++;
}

void stk_av_call_start(void)
{
    (void)pthread_atfork(NULL, NULL, begin_in_child); /* no memory: as it was without */
    segment s = {(const uintptr_t *)(uintptr_t)av_log_set_callback, 0};
    atomic_store_explicit(&others, av_log_default_callback, memory_order_release);
    const bool found = dl_iterate_phdr(find_segment, &s) && s.words;
    uintptr_t *before = found ? stk_alloc(s.words * sizeof(*before)) : NULL;
    if (before)
        find_slot(&s, before);
    else
        av_log_set_callback(hear);
    stk_free(before);
    if (slot) av_log_set_callback(atomic_load_explicit(&others, memory_order_relaxed));
}

static void begin_locked(void)
{
    inside++;
    log_fn *there = slot ? *slot : hear;
    if (there == hear) return;
    /* The first call, or somebody has put theirs in meanwhile. */
    atomic_store_explicit(&others, there, memory_order_release);
    av_log_set_callback(hear);
}

static void end_locked(void)
{
    if (--inside == 0 && slot && *slot == hear)
        av_log_set_callback(atomic_load_explicit(&others, memory_order_acquire));
}

static void forget_locked(stk_av_log *log)
{
    log->lines[log->used = 0] = '\0';
}

void stk_av_enter(stk_av_call *call, stk_diag *diag)
{
    call->outer = current;
    call->diag = diag;
    call->log = NULL;
    call->used = 0;
    call->lines[0] = '\0';
    current = call;
    pthread_mutex_lock(&entering);
    begin_locked();
    pthread_mutex_unlock(&entering);
}

void stk_av_leave(stk_av_call *call)
{
    current = call->outer;
    pthread_mutex_lock(&entering);
    if (call->log && ++call->log->age > MAX_AGE) forget_locked(call->log);
    end_locked();
    pthread_mutex_unlock(&entering);
}

void stk_av_log_start(stk_av_log *log, AVCodecContext *codec)
{
    codec->opaque = log;
    log->on = true;
    pthread_mutex_lock(&entering);
    log->next = logs;
    logs = log;
    begin_locked();
    pthread_mutex_unlock(&entering);
}

void stk_av_log_stop(stk_av_log *log)
{
    for (stk_av_call *call = current; call; call = call->outer)
        if (call->log == log) call->log = NULL; /* which may be freed before the call is left */
    if (!log->on) return;
    log->on = false;
    pthread_mutex_lock(&entering);
    stk_av_log **at = &logs;
    while (*at != log) at = &(*at)->next;
    *at = log->next;
    end_locked();
    pthread_mutex_unlock(&entering);
}

void stk_av_call_hears(stk_av_call *call, stk_av_log *log)
{
    call->log = log;
}

/* The call has the lines of its codec's threads. */
static void take_log(stk_av_call *call)
{
    line l = {.ends = true};
    stk_av_log *log = call->log;
    pthread_mutex_lock(&entering);
    for (const char *at = log->lines; *at;) {
        const size_t n = strcspn(at, "\n");
        snprintf(l.text, sizeof(l.text), "%.*s", (int)n, at);
        keep(call->lines, &call->used, &l);
        at += n + (at[n] == '\n');
    }
    forget_locked(log);
    pthread_mutex_unlock(&entering);
}

void stk_av_call_loud(void)
{
    atomic_store_explicit(&loud, true, memory_order_relaxed);
}

static stk_err code_of(int rc)
{
    switch (rc) {
    case AVERROR(ENOMEM): return STK_ENOMEM;
    case AVERROR(ENOENT):
    case AVERROR_HTTP_NOT_FOUND: return STK_ENOTFOUND;
    case AVERROR_OPTION_NOT_FOUND: return STK_EINVAL;
    case AVERROR(EIO):
    case AVERROR(EACCES):
    case AVERROR(ECONNREFUSED):
    case AVERROR(ECONNRESET):
    case AVERROR(EHOSTUNREACH):
    case AVERROR(ENETUNREACH):
    case AVERROR(EADDRINUSE):
    case AVERROR(ETIMEDOUT):
    case AVERROR_HTTP_BAD_REQUEST:
    case AVERROR_HTTP_UNAUTHORIZED:
    case AVERROR_HTTP_FORBIDDEN:
    case AVERROR_HTTP_OTHER_4XX:
    case AVERROR_HTTP_SERVER_ERROR:
    case AVERROR(EPIPE): return STK_EIO;
    case AVERROR_EXIT: return STK_ECANCELLED;
    case AVERROR_PATCHWELCOME:
    case AVERROR_DECODER_NOT_FOUND:
    case AVERROR_DEMUXER_NOT_FOUND:
    case AVERROR_FILTER_NOT_FOUND:
    case AVERROR_BSF_NOT_FOUND:
    case AVERROR_PROTOCOL_NOT_FOUND:
    case AVERROR(ENOSYS): return STK_EUNSUPPORTED;
    default: return STK_ECORRUPT;
    }
}

/* Behind the text: FFmpeg's words and what it logged, on one line. */
static void add(stk_av_call *call, const char *words)
{
    if (!call->diag) return;
    if (call->log) take_log(call);
    char *text = call->diag->text;
    const size_t room = sizeof(call->diag->text);
    size_t n = strlen(text);
    if (*words) n += (size_t)snprintf(text + n, room - n, ": %s", words);
    while (call->used && call->lines[call->used - 1] == '\n') call->lines[--call->used] = '\0';
    for (char *c = call->lines; *c; c++)
        if (*c == '\n') *c = ';';
    if (call->used && n < room) snprintf(text + n, room - n, " (%s)", call->lines);
}

static stk_err say(stk_av_call *call, stk_err err, const char *words, const char *fmt, va_list args)
{
    char text[1024];
    vsnprintf(text, sizeof(text), fmt, args);
    stk_diag_set(call->diag, err, "%s", text);
    add(call, words);
    return err;
}

stk_err stk_av_fail(stk_av_call *call, int rc, const char *fmt, ...)
{
    char words[AV_ERROR_MAX_STRING_SIZE] = "";
    av_strerror(rc, words, sizeof(words));
    va_list args;
    va_start(args, fmt);
    const stk_err err = say(call, code_of(rc), words, fmt, args);
    va_end(args);
    return err;
}

stk_err stk_av_wrong(stk_av_call *call, int rc, const char *fmt, ...)
{
    char words[AV_ERROR_MAX_STRING_SIZE] = "";
    av_strerror(rc, words, sizeof(words));
    va_list args;
    va_start(args, fmt);
    const stk_err err =
        say(call, rc == AVERROR(ENOMEM) ? STK_ENOMEM : STK_EINVAL, words, fmt, args);
    va_end(args);
    return err;
}

stk_err stk_av_say(stk_av_call *call, stk_err err, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    say(call, err, "", fmt, args);
    va_end(args);
    return err;
}
