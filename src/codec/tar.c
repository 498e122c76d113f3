#include <stoker/tar.h>

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "codec/tar_header.h"

#define BLOCK_BYTES                                                                           \
    ((size_t)256 << 10)              /* stays in a cache of the second level until it is read \
                                      */
#define NEAR_BYTES ((size_t)8 << 10) /* read at once where members are far from each other */
#define DEFAULT_MAX_HEADER ((size_t)1 << 20)
#define DEFAULT_MAX_MEMBER ((uint64_t)1 << 30)

enum { TYPE = 156, LINK = 157, MAGIC = 257, PREFIX = 345 };

/*
 *     at ──► HEADER ──┬──► a member: its data are `left` bytes, then `padding` of them
 *            ▲        ├──► of an extension: TEXT, its data go to `text`
 *            └────────┴────┘ all is skipped before the next header
 */
struct stk_tar {
    stk_tar_opts opts;  /* complete */
    stk_stream *stream; /* or */
    stk_tar_read_fn *read;
    void *ctx;
    uint64_t size;  /* what `read` can give; UINT64_MAX: not known */
    uint8_t *block; /* where `buf` is, then; NULL: all is in `buf` */

    const uint8_t *buf; /* `have` bytes from byte `at` of the archive on */
    size_t have;
    uint64_t at;
    bool ended;    /* nothing comes behind `buf` */
    bool begun;    /* there was a header */
    bool done;     /* STK_EEND or a failure */
    bool given;    /* the caller has a member, and what is known of it */
    bool draining; /* it has come to its end, and what is behind that is read */
    bool awaited;  /* there was an extension for a member that was not given yet */

    uint64_t left; /* bytes of the member */
    uint32_t padding;
    uint64_t header_at; /* of the last header */

    char extension;                /* 'x', 'g', 'L', 'K': its text is being collected; 0 */
    size_t headers;                /* bytes of extensions before the member */
    stk_tar_text text, name, link; /* of an extension; GNU's long ones */
    stk_tar_pax local, global;
    char joined[STK_TAR_PREFIX + 1 + STK_TAR_NAME]; /* a block does not stay where it is */
    char target[STK_TAR_NAME];
};

static stk_tar *make(const stk_tar_opts *opts)
{
    stk_tar *t = stk_alloc_zero(1, sizeof(*t));
    if (!t) return NULL;
    if (opts) t->opts = *opts;
    if (!t->opts.max_header) t->opts.max_header = DEFAULT_MAX_HEADER;
    if (!t->opts.max_member) t->opts.max_member = DEFAULT_MAX_MEMBER;
    t->size = UINT64_MAX;
    return t;
}

stk_err stk_tar_over(const void *data, size_t size, const stk_tar_opts *opts, stk_tar **out)
{
    stk_tar *t = *out = make(opts);
    if (!t) return STK_ENOMEM;
    t->buf = data ? data : (const uint8_t *)"";
    t->have = size;
    t->ended = true;
    return STK_OK;
}

stk_err stk_tar_at(stk_tar_read_fn *read, void *ctx, uint64_t size, const stk_tar_opts *opts,
                   stk_tar **out)
{
    stk_tar *t = *out = make(opts);
    if (!t) return STK_ENOMEM;
    t->buf = t->block = stk_alloc(NEAR_BYTES);
    if (!t->block) {
        stk_tar_free(out);
        return STK_ENOMEM;
    }
    t->read = read;
    t->ctx = ctx;
    t->size = size;
    return STK_OK;
}

stk_err stk_tar_from(stk_stream **stream, const stk_tar_opts *opts, stk_tar **out)
{
    stk_tar *t = *out = make(opts);
    if (!t) return STK_ENOMEM;
    t->buf = t->block = stk_alloc(BLOCK_BYTES);
    if (!t->block) {
        stk_tar_free(out);
        return STK_ENOMEM;
    }
    t->stream = *stream;
    *stream = NULL;
    return STK_OK;
}

void stk_tar_free(stk_tar **pt)
{
    stk_tar *t = *pt;
    *pt = NULL;
    if (!t) return;
    stk_tar_text_fini(&t->text);
    stk_tar_text_fini(&t->name);
    stk_tar_text_fini(&t->link);
    stk_tar_pax_fini(&t->local);
    stk_tar_pax_fini(&t->global);
    stk_stream_free(&t->stream);
    stk_free(t->block);
    stk_free(t);
}

/* Bytes that lie behind `buf`. */
static uint64_t beyond(const stk_tar *t)
{
    return t->size - (t->at + t->have);
}

static stk_err read_more(stk_tar *t, void *dst, size_t size, size_t *got, stk_diag *diag)
{
    if (t->stream) return stk_stream_read(t->stream, dst, size, got, diag);
    *got = beyond(t) < size ? (size_t)beyond(t) : size;
    return *got ? t->read(t->ctx, t->at + t->have, dst, *got, diag) : STK_OK;
}

stk_err stk_tar_fill(stk_tar *t, stk_diag *diag)
{
    const size_t room = t->read ? NEAR_BYTES : BLOCK_BYTES;
    if (t->ended) return STK_OK;
    if (t->have) memmove(t->block, t->buf, t->have); /* less than a header, as a rule */
    t->buf = t->block;
    if (t->have == room) return STK_OK;
    size_t got;
    const stk_err err = read_more(t, t->block + t->have, room - t->have, &got, diag);
    if (err) t->done = true;
    if (!err && !got) t->ended = true;
    t->have += got;
    return err;
}

static void advance(stk_tar *t, size_t n)
{
    t->buf += n;
    t->have -= n;
    t->at += n;
}

static stk_err cut(const stk_tar *t, stk_diag *diag)
{
    return stk_diag_set(diag, STK_ECORRUPT,
                        "tar: the archive ends at byte %" PRIu64
                        ", inside the member whose header is at byte %" PRIu64,
                        t->at + t->have, t->header_at);
}

/* Goes past what is left of the last member. */
static stk_err skip(stk_tar *t, stk_diag *diag)
{
    uint64_t total = t->left + t->padding; /* `left` is at most 2^63 - 1 */
    const size_t n = total < t->have ? (size_t)total : t->have;
    const size_t of_data = n < t->left ? n : (size_t)t->left;
    t->left -= of_data;
    t->padding -= (uint32_t)(n - of_data);
    advance(t, n);
    total -= n;
    if (!total) return STK_OK;
    if (t->read && total <= beyond(t)) {
        t->at += total;
        t->left = t->padding = 0;
        return STK_OK;
    }
    return t->ended ? cut(t, diag) : STK_EAGAIN;
}

/* Collects the data of an extension; STK_OK: all of it is there. */
static stk_err collect(stk_tar *t, stk_diag *diag)
{
    const size_t n = t->left < t->have ? (size_t)t->left : t->have;
    const stk_err err = stk_tar_text_append(&t->text, t->buf, n);
    if (err) return stk_diag_set(diag, err, "tar: no memory for a long name");
    advance(t, n);
    t->left -= n;
    if (!t->left) return STK_OK;
    return t->ended ? cut(t, diag) : STK_EAGAIN;
}

static stk_err swallow(stk_tar *t, stk_diag *diag)
{
    stk_err err = collect(t, diag);
    if (err) return err;
    const char type = t->extension, *text = t->text.data ? t->text.data : "";
    t->extension = 0;
    if (type == 'x' || type == 'g')
        return stk_tar_pax_parse(type == 'x' ? &t->local : &t->global, text, t->text.size,
                                 t->header_at, diag);
    stk_tar_text *to = type == 'L' ? &t->name : &t->link;
    to->size = 0;
    err = stk_tar_text_append(to, text, strnlen(text, t->text.size));
    return err ? stk_diag_set(diag, err, "tar: no memory for a long name") : STK_OK;
}

static stk_err no_archive(const stk_tar *t, stk_diag *diag)
{
    static const struct {
        const char *magic, *name;
    } others[] = {{"BZh", "bzip2"},
                  {"\xfd"
                   "7zXZ",
                   "xz"},
                  {"PK\3\4", "zip"},
                  {"\x1f\x8b", "gzip"},
                  {"\x28\xb5\x2f\xfd", "zstd"},
                  {"\4\"M\x18", "lz4"}};
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
        if (!memcmp(t->buf, others[i].magic, strlen(others[i].magic)))
            return stk_diag_set(diag, STK_EUNSUPPORTED,
                                "tar: this is no tar archive, but begins as %s does",
                                others[i].name);
    return stk_diag_set(diag, STK_ECORRUPT,
                        "tar: this is no tar archive: the first header's "
                        "checksum is wrong");
}

static stk_err end(stk_tar *t, stk_diag *diag)
{
    if (t->have)
        return stk_diag_set(diag, STK_ECORRUPT,
                            "tar: the archive ends at byte %" PRIu64
                            ", inside the header at byte %" PRIu64,
                            t->at + t->have, t->at);
    if (t->awaited)
        return stk_diag_set(diag, STK_ECORRUPT,
                            "tar: the archive ends at byte %" PRIu64
                            ", behind the header of a member that is missing",
                            t->at);
    if (t->opts.open_end) return STK_EEND;
    return stk_diag_set(diag, STK_ECORRUPT,
                        "tar: the archive ends at byte %" PRIu64
                        " without the blocks of zeros that end one: it may have been cut",
                        t->at);
}

/* The size of what follows the header, and of the zeros behind it. */
static stk_err measure(stk_tar *t, const uint8_t *h, char type, stk_diag *diag)
{
    uint64_t size;
    const bool extends = t->extension != 0;
    if (!stk_tar_size(h, &size))
        return stk_diag_set(diag, STK_ECORRUPT,
                            "tar: the size in the header at byte %" PRIu64 " is no number",
                            t->header_at);
    if (!extends && t->global.has_size) size = t->global.size;
    if (!extends && t->local.has_size) size = t->local.size;
    if (type >= '1' && type <= '6') size = 0; /* links, devices, folders: it is not that of data */
    t->left = size;
    t->padding = (uint32_t)(-size & (STK_TAR_BLOCK - 1));
    return STK_OK;
}

static void name_of(stk_tar *t, const uint8_t *h, stk_tar_member *out)
{
    const char *name = (const char *)h, *prefix = name + PREFIX;
    const bool posix = !memcmp(h + MAGIC, "ustar", 6);
    const size_t n = posix ? strnlen(prefix, STK_TAR_PREFIX) : 0;
    out->name = name;
    out->name_size = strnlen(name, STK_TAR_NAME);
    if (!n && !t->block) return;
    char *to = t->joined;
    memcpy(to, prefix, n);
    if (n) to[n] = '/';
    to += n ? n + 1 : 0;
    memcpy(to, name, out->name_size);
    out->name = t->joined;
    out->name_size += (size_t)(to - t->joined);
}

static void link_of(stk_tar *t, const uint8_t *h, stk_tar_member *out)
{
    out->link = (const char *)h + LINK;
    out->link_size = strnlen(out->link, STK_TAR_NAME);
    if (t->block) out->link = memcpy(t->target, out->link, out->link_size);
}

/* pax before GNU before the header itself; local before global. */
static void describe(stk_tar *t, const uint8_t *h, stk_tar_member *out)
{
    name_of(t, h, out);
    link_of(t, h, out);
    const stk_tar_text *names[] = {&t->global.path, &t->name, &t->local.path};
    const stk_tar_text *links[] = {&t->global.link, &t->link, &t->local.link};
    for (int i = 0; i < 3; i++) {
        if (names[i]->set) out->name = names[i]->data, out->name_size = names[i]->size;
        if (links[i]->set) out->link = links[i]->data, out->link_size = links[i]->size;
    }
    const bool folder = out->name_size && out->name[out->name_size - 1] == '/';
    out->type = h[TYPE] && h[TYPE] != '7' ? (char)h[TYPE] : '0';
    if (!h[TYPE] && folder) out->type = '5'; /* V7's way */
}

/* Begins an extension. */
static stk_err begin_text(stk_tar *t, stk_diag *diag)
{
    t->text.size = 0;
    if (t->left > t->opts.max_header - t->headers)
        return stk_diag_set(diag, STK_ELIMIT,
                            "tar: a header of %" PRIu64 " bytes at byte %" PRIu64
                            ": the limit for one member is %zu",
                            t->left, t->header_at, t->opts.max_header);
    if (t->extension == 'g') return STK_OK;
    t->headers += (size_t)t->left;
    t->awaited = true;
    return STK_OK;
}

/* What was said for one member alone. */
static void forget(stk_tar *t)
{
    t->name.set = t->link.set = t->awaited = t->given = false;
    t->headers = 0;
    stk_tar_pax_clear(&t->local);
}

static stk_err check_member(stk_tar *t, const stk_tar_member *m, bool sparse, stk_diag *diag)
{
    const int shown = (int)(m->name_size < 1000 ? m->name_size : 1000);
    if (sparse)
        return stk_diag_set(diag, STK_EUNSUPPORTED,
                            "tar: %.*s, at byte %" PRIu64
                            ", is a sparse file, which is not supported",
                            shown, m->name, t->header_at);
    if (!t->stream) {
        const uint64_t end = t->read ? t->size : t->at + t->have;
        if (m->size > end - t->at)
            return stk_diag_set(diag, STK_ECORRUPT,
                                "tar: %.*s has %" PRIu64 " bytes from byte %" PRIu64
                                " on, but the archive ends at byte %" PRIu64,
                                shown, m->name, m->size, t->at, end);
    }
    else if (m->size > t->opts.max_member && m->type == '0')
        return stk_diag_set(diag, STK_ELIMIT,
                            "tar: %.*s has %" PRIu64 " bytes, the limit of one member is %" PRIu64,
                            shown, m->name, m->size, t->opts.max_member);
    return STK_OK;
}

/* Goes past all that is there. */
static stk_err drain(stk_tar *t)
{
    advance(t, t->have);
    return t->ended ? STK_EEND : STK_EAGAIN;
}

/* One header; STK_OK with out->name: a member. */
static stk_err read_header(stk_tar *t, stk_tar_member *out, stk_diag *diag)
{
    if (t->have < STK_TAR_BLOCK) return t->ended ? end(t, diag) : STK_EAGAIN;
    const uint8_t *h = t->buf;
    const stk_tar_sum sum = stk_tar_checksum(h);
    if (sum == STK_TAR_ZEROS && !t->awaited) {
        t->draining = t->stream && (t->opts.drain || stk_stream_packing(t->stream));
        return t->draining ? drain(t) : STK_EEND;
    }
    if (sum != STK_TAR_GOOD)
        return t->begun
                   ? stk_diag_set(diag, STK_ECORRUPT,
                                  "tar: the checksum of the header at byte %" PRIu64 " is wrong",
                                  t->at)
                   : no_archive(t, diag);
    t->begun = true;
    t->header_at = t->at;
    const char type = (char)h[TYPE];
    t->extension = type && strchr("xgLK", type) ? type : type == 'X' ? 'x' : 0; /* X: Solaris */
    stk_err err = measure(t, h, type, diag);
    if (err) return err;
    advance(t, STK_TAR_BLOCK); /* `h` stays where it is until the next fill */
    if (t->extension) return begin_text(t, diag);
    describe(t, h, out);
    out->size = t->left;
    out->offset = t->at;
    err = check_member(t, out, type == 'S' || t->local.sparse || t->global.sparse, diag);
    out->data = t->block ? NULL : t->buf;
    if (!err && (t->opts.all || out->type == '0')) return STK_OK;
    out->name = NULL;
    forget(t);
    return err;
}

/* Its first touch would wait for memory: most archives in memory are larger than any cache. */
static void look_ahead(const stk_tar *t)
{
    const uint64_t to = t->left + t->padding;
    if (t->block || to > t->have || t->have - to < STK_TAR_BLOCK) return;
    for (int i = 0; i < STK_TAR_BLOCK; i += 64) __builtin_prefetch(t->buf + to + i);
}

stk_err stk_tar_next(stk_tar *t, stk_tar_member *out, stk_diag *diag)
{
    stk_err err = t->done ? STK_EEND : t->draining ? drain(t) : STK_OK;
    *out = (stk_tar_member){0};
    if (t->given) forget(t);
    while (!err && !out->name) {
        if (t->extension) err = swallow(t, diag);
        if (!err) err = skip(t, diag);
        if (!err) err = read_header(t, out, diag);
    }
    if (err && err != STK_EAGAIN) t->done = true;
    t->given = !err;
    if (!err) look_ahead(t);
    return err;
}

size_t stk_tar_buffered(const stk_tar *t)
{
    return t->left < t->have ? (size_t)t->left : t->have;
}

/* What is buffered of the member, at most `size` bytes. */
static size_t take(stk_tar *t, uint8_t *dst, size_t size)
{
    const size_t n = size < t->have ? size : t->have;
    if (n) memcpy(dst, t->buf, n);
    advance(t, n);
    t->left -= n;
    return n;
}

stk_err stk_tar_read(stk_tar *t, void *dst, size_t size, stk_diag *diag)
{
    if (size > t->left || !t->given) return stk_diag_set(diag, STK_EINVAL, "tar: nothing to read");
    uint8_t *to = dst;
    size_t n = take(t, to, size);
    while (n < size) {
        stk_err err = STK_OK;
        size_t got = 0;
        if (size - n < (t->read ? NEAR_BYTES : BLOCK_BYTES) / 2) { /* with what comes behind it */
            err = stk_tar_fill(t, diag);
            if (!err) got = take(t, to + n, size - n);
        }
        else {
            err = read_more(t, to + n, size - n, &got, diag);
            t->at += got;
            t->left -= got;
        }
        if (!err && !got) err = cut(t, diag);
        if (err) {
            t->done = true;
            return err;
        }
        n += got;
    }
    return STK_OK;
}
