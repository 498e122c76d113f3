#include "av/input.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <libavutil/intreadwrite.h>
#include <libavutil/mem.h>

#include "base/alloc.h"
#include "base/failpoint.h"
#include "base/thread.h"

enum { DEFAULT_BUFFER = 8096, MAX_BUFFER = 1 << 28 };

void av_input_begin(av_input *in)
{
    av_stop_begin(&in->stop);
    in->os_error = 0;
}

void av_input_cancel(av_input *in)
{
    av_stop_cancel(&in->stop);
    /* Full means that it is readable already. */
    if (in->wake_fd >= 0) (void)!write(in->wake_fd, &(uint64_t){1}, sizeof(uint64_t));
}

int av_input_interrupted(void *opaque)
{
    av_input *in = opaque;
    return av_stop_wanted(&in->stop);
}

int av_input_refuse(AVFormatContext *fc, AVIOContext **io, const char *url, int flags,
                    AVDictionary **options)
{
    av_input *in = fc->interrupt_callback.opaque;
    (void)flags;
    (void)options;
    *io = NULL;
    if (in->refused[0]) return AVERROR(EPERM);
    const int whole = snprintf(in->refused, sizeof(in->refused), "%s", url ? url : "");
    stk_av_hide_passwords(in->refused, whole >= (int)sizeof(in->refused));
    return AVERROR(EPERM);
}

/* Waits until a pipe or the like can be read. */
static int wait_readable(av_input *in)
{
    for (;;) {
        if (av_input_interrupted(in)) return AVERROR_EXIT;
        struct pollfd fds[2] = {{.fd = in->fd, .events = POLLIN},
                                {.fd = in->wake_fd, .events = POLLIN}};
        const int64_t end = in->stop.deadline;
        int64_t ms = end == STK_NEVER ? -1 : (end - stk_clock_ns()) / 1000000 + 1;
        if (ms > INT_MAX) ms = INT_MAX;
        const int64_t pause = in->stop.pause / 1000000;
        if (in->stop.interrupt.wanted && (ms < 0 || ms > pause)) ms = pause;
        const int n = poll(fds, 2, (int)ms);
        if (n < 0 && errno != EINTR) return AVERROR(errno);
        if (n > 0 && !fds[1].revents) return 0;
    }
}

static int read_fd(av_input *in, uint8_t *dst, int n)
{
    for (;;) {
        const int waited = in->regular ? 0 : wait_readable(in);
        if (waited) return waited;
        ssize_t got = -1;
        if (!stk_failpoint("av.read"))
            got =
                in->regular ? pread(in->fd, dst, (size_t)n, in->at) : read(in->fd, dst, (size_t)n);
        if (got >= 0) return (int)got;
        if (errno == EINTR || (errno == EAGAIN && !in->regular)) continue;
        in->os_error = errno;
        return AVERROR(errno);
    }
}

static int read_bytes(const av_input *in, uint8_t *dst, int n)
{
    const int64_t left = in->size - in->at;
    const size_t take = left <= 0 ? 0 : left < n ? (size_t)left : (size_t)n;
    if (take) memcpy(dst, stk_buffer_data(in->bytes) + in->at, take);
    return (int)take;
}

static int read_any(void *opaque, uint8_t *dst, int n)
{
    av_input *in = opaque;
    if (n <= 0) return AVERROR(EINVAL);
    if (av_input_interrupted(in)) return AVERROR_EXIT;
    int64_t got;
    if (in->bytes)
        got = read_bytes(in, dst, n);
    else if (in->reader.read)
        got = in->reader.read(in->reader.ctx, dst, (size_t)n);
    else
        got = read_fd(in, dst, n);
    if (got == 0) return AVERROR_EOF;
    if (got < 0) return in->reader.read ? AVERROR(EIO) : (int)got;
    if (got > n) return AVERROR(EIO); /* more than there is room for: nobody knows where */
    for (int64_t i = in->at; i < AV_INPUT_HEAD && i < in->at + got; i++)
        in->head[i] = dst[i - in->at];
    in->at += got;
    if (in->known < in->at) in->known = in->at;
    return (int)got;
}

enum { RIFF_HEAD = 8 }; /* bytes: of what is behind them, the last four say the size */

bool av_input_has_riff(const av_input *in)
{
    return in->known >= RIFF_HEAD && !memcmp(in->head, "RIFF", 4);
}

/* Not a size, but what those write who do not know it: about the largest of 31 or 32 bits. */
static bool is_placeholder(int64_t says)
{
    return (says >= 0x7fff0000 && says <= 0x80000100) || says >= 0xfffff000;
}

bool av_input_is_cut(const av_input *in, int64_t slack)
{
    const int64_t size = in->size >= 0 ? in->size : in->known;
    const int64_t says = AV_RL32(in->head + 4);
    return av_input_has_riff(in) && !is_placeholder(says) && says + RIFF_HEAD > size + slack;
}

static int64_t seek_any(void *opaque, int64_t offset, int whence)
{
    av_input *in = opaque;
    whence &= ~AVSEEK_FORCE;
    if (whence == AVSEEK_SIZE) return in->size >= 0 ? in->size : AVERROR(ENOSYS);
    int64_t base = whence == SEEK_CUR ? in->at : whence == SEEK_END ? in->size : 0;
    if (whence != SEEK_SET && whence != SEEK_CUR && whence != SEEK_END) return AVERROR(EINVAL);
    if (base < 0 || offset < -base || offset > INT64_MAX - base) return AVERROR(EINVAL);
    const int64_t to = base + offset;
    if (in->reader.read && in->reader.seek(in->reader.ctx, to) < 0) return AVERROR(EIO);
    in->at = to;
    return to;
}

static stk_err open_path(av_input *in, const char *path, stk_diag *diag)
{
    struct stat st;
    in->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (in->fd < 0 && errno == ENOENT && strstr(path, "://"))
        return stk_diag_set(diag, STK_ENOTFOUND,
                            "%s: there is no such file; an address is opened if the demuxer's "
                            "option protocols names its protocols",
                            in->name);
    if (in->fd < 0) return stk_diag_errno(diag, errno, "open %s", in->name);
    if (fstat(in->fd, &st) < 0) return stk_diag_errno(diag, errno, "stat %s", in->name);
    if (S_ISDIR(st.st_mode))
        return stk_diag_set(diag, STK_EINVAL, "%s: not a file but a directory", in->name);
    in->regular = S_ISREG(st.st_mode);
    in->size = in->regular ? st.st_size : -1;
    return STK_OK;
}

static stk_err open_fd(av_input *in, int fd, stk_diag *diag)
{
    struct stat st;
    in->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (in->fd < 0 || fstat(in->fd, &st) < 0) return stk_diag_errno(diag, errno, "%s", in->name);
    in->regular = S_ISREG(st.st_mode);
    in->size = in->regular ? st.st_size : -1;
    return STK_OK;
}

static const char *name_of(const stk_av_input *from)
{
    if (from->name) return from->name;
    if (from->url) return from->url;
    if (from->fd) return "a descriptor";
    return from->bytes ? "bytes" : "a reader";
}

/* Schemes of addresses, and what FFmpeg opens for them. */
static const struct scheme {
    const char *name, *protocols;
} schemes[] = {
    {"udp", "udp"},
    {"tcp", "tcp"},
    {"tls", "tls,tcp"},
    {"unix", "unix"},
    {"rtp", "rtp,udp"},
    {"srt", "srt"},
    {"rist", "rist"},
    {"rtsp", "rtp,udp,tcp"},
    {"rtsps", "rtp,udp,tcp,tls"},
    {"rtmp", "rtmp,tcp"},
    {"rtmps", "rtmps,tls,tcp"},
    {"http", "http,tcp,https,tls,httpproxy"}, /* servers redirect from one to the other */
    {"https", "http,tcp,https,tls,httpproxy"},
};

stk_err av_input_protocols(const stk_av_input *from, const char **out, stk_diag *diag)
{
    *out = NULL;
    const char *rest = strstr(from->url, "://");
    const size_t n = rest ? (size_t)(rest - from->url) : 0;
    if (!n || strspn(from->url, "abcdefghijklmnopqrstuvwxyz0123456789+-.") < n) return STK_OK;
    for (size_t i = 0; i < sizeof(schemes) / sizeof(*schemes) && !*out; i++)
        if (strlen(schemes[i].name) == n && !strncmp(schemes[i].name, from->url, n))
            *out = schemes[i].protocols;
    if (*out) return STK_OK;
    char name[512];
    const int whole = snprintf(name, sizeof(name), "%s", name_of(from));
    stk_av_hide_passwords(name, whole >= (int)sizeof(name));
    return stk_diag_set(diag, STK_EUNSUPPORTED,
                        "%s: which protocols such an address needs is not known: name them with "
                        "protocols=[...]",
                        name);
}

static stk_err make_io(av_input *in, size_t size, stk_diag *diag)
{
    const bool seeks = in->bytes || in->regular || in->reader.seek;
    uint8_t *buffer = av_malloc(size);
    if (buffer)
        in->io =
            avio_alloc_context(buffer, (int)size, 0, in, read_any, NULL, seeks ? seek_any : NULL);
    if (!in->io) {
        av_free(buffer);
        return stk_diag_set(diag, STK_ENOMEM, "no memory for %zu bytes to read into", size);
    }
    return STK_OK;
}

static stk_err check(const stk_av_input *from, const stk_demux_opts *opts, stk_diag *diag)
{
    if (!!from->url + !!from->bytes + !!from->reader + !!from->fd != 1)
        return stk_diag_set(diag, STK_EINVAL, "an input is one of url, bytes, reader and fd");
    if (opts->buffer_size > MAX_BUFFER)
        return stk_diag_set(diag, STK_EINVAL, "buffer_size is at most %d, not %zu", MAX_BUFFER,
                            opts->buffer_size);
    return STK_OK;
}

static char *copy_text(const char *text)
{
    const size_t n = strlen(text) + 1;
    char *copy = stk_alloc(n);
    return copy ? memcpy(copy, text, n) : NULL;
}

/* Where bytes come from, of which there is one. */
static stk_err open_one(av_input *in, const stk_av_input *from, const stk_demux_opts *opts,
                        const char *by, stk_diag *diag)
{
    if (from->bytes) {
        in->bytes = stk_buffer_ref(from->bytes);
        in->size = (int64_t)stk_buffer_size(from->bytes);
        return STK_OK;
    }
    if (from->reader) {
        in->size = in->reader.size ? in->reader.size(in->reader.ctx) : -1;
        return STK_OK;
    }
    if (from->fd) return open_fd(in, *from->fd, diag);
    if (!opts->protocols && !by) return open_path(in, from->url, diag);
    in->url = copy_text(from->url);
    return in->url ? STK_OK : stk_diag_set(diag, STK_ENOMEM, "no memory for an address");
}

stk_err av_input_init(av_input *in, const stk_av_input *from, const stk_demux_opts *opts,
                      const char *by, stk_diag *diag)
{
    in->fd = in->wake_fd = -1;
    in->size = -1;
    if (from->reader) in->reader = *from->reader; /* to be closed, whatever happens */
    stk_err err = check(from, opts, diag);
    if (!err) err = av_stop_init(&in->stop, opts->timeout, opts->interrupt, diag);
    if (err) return err;

    in->name = copy_text(name_of(from));
    if (!in->name) return stk_diag_set(diag, STK_ENOMEM, "no memory for an input");
    stk_av_hide_passwords(in->name, false);
    in->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (in->wake_fd < 0) return stk_diag_errno(diag, errno, "eventfd");
    err = open_one(in, from, opts, by, diag);
    if (!err && !in->url)
        err = make_io(in, opts->buffer_size ? opts->buffer_size : DEFAULT_BUFFER, diag);
    return err;
}

void av_input_fini(av_input *in)
{
    if (in->io) av_freep(&in->io->buffer);
    avio_context_free(&in->io);
    avio_closep(&in->address);
    stk_buffer_unref(&in->bytes);
    if (in->reader.close) in->reader.close(in->reader.ctx);
    in->reader.close = NULL;
    if (in->name) { /* it was begun: descriptors have values of their own */
        if (in->fd >= 0) close(in->fd);
        if (in->wake_fd >= 0) close(in->wake_fd);
    }
    stk_free(in->url);
    stk_free(in->name);
    in->url = in->name = NULL;
}
