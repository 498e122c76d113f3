#include "source/glob.h"

#include <string.h>

#include "base/alloc.h"

#define IMAGES "*.jpg|*.jpeg|*.jpe|*.png|*.webp|*.avif|*.bmp|*.gif|*.tif|*.tiff"

struct pattern {
    const char *text;
    size_t len;
    bool ending; /* "*" and plain bytes: the common kind, compared without a search */
};

struct stk_glob {
    bool any_case;
    size_t num;
    struct pattern *patterns;
    char *text;   /* as given */
    char *pieces; /* the same, with a NUL for each '|' */
};

/* The end of the set that starts at text[at] == '[', or 0.  A ']' that comes first is a member. */
static size_t set_end(const char *text, size_t len, size_t at)
{
    size_t i = at + 1;
    if (i < len && (text[i] == '!' || text[i] == '^')) i++;
    for (size_t first = i; i < len; i++)
        if (text[i] == ']' && i > first) return i;
    return 0;
}

static bool is_complete(const struct pattern *p)
{
    for (size_t i = 0; i < p->len; i++) {
        if (p->text[i] == '\\') {
            if (++i == p->len) return false;
        }
        else if (p->text[i] == '[') {
            i = set_end(p->text, p->len, i);
            if (!i) return false;
        }
    }
    return p->len > 0;
}

static stk_err add(stk_glob *g, char *piece, stk_diag *diag)
{
    struct pattern p = {.text = piece, .len = strlen(piece)};
    if (!is_complete(&p))
        return stk_diag_set(diag, STK_EINVAL, "pattern \"%s\": \"%s\" is %s", g->text, piece,
                            p.len ? "not complete: a '[' or '\\' has no end" : "empty");
    p.ending = piece[0] == '*' && !strpbrk(piece + 1, "*?[\\");
    g->patterns[g->num++] = p;
    return STK_OK;
}

stk_err stk_glob_new(const char *text, stk_glob **out, stk_diag *diag)
{
    stk_glob *g = *out = stk_alloc_zero(1, sizeof(*g));
    if (!g) return stk_diag_set(diag, STK_ENOMEM, "no memory for a pattern");
    g->any_case = !text;
    if (!text) text = IMAGES;

    const size_t size = strlen(text) + 1;
    size_t most = 1;
    for (const char *p = text; *p; p++) most += *p == '|';
    g->text = stk_alloc(size);
    g->pieces = stk_alloc(size);
    g->patterns = stk_alloc_zero(most, sizeof(*g->patterns));
    stk_err err = STK_OK;
    if (!g->text || !g->pieces || !g->patterns)
        err = stk_diag_set(diag, STK_ENOMEM, "no memory for a pattern");
    else {
        memcpy(g->text, text, size);
        memcpy(g->pieces, text, size);
        for (char *piece = g->pieces, *end; piece && !err; piece = end) {
            end = strchr(piece, '|');
            if (end) *end++ = 0;
            err = add(g, piece, diag);
        }
    }
    if (err) stk_glob_free(out);
    return err;
}

void stk_glob_free(stk_glob **pg)
{
    stk_glob *g = *pg;
    *pg = NULL;
    if (!g) return;
    stk_free(g->patterns);
    stk_free(g->pieces);
    stk_free(g->text);
    stk_free(g);
}

static unsigned char lower(char c)
{
    return (unsigned char)(c >= 'A' && c <= 'Z' ? c + 32 : c);
}

static bool equal(const char *a, const char *b, size_t len, bool any_case)
{
    if (!any_case) return !memcmp(a, b, len);
    for (size_t i = 0; i < len; i++)
        if (lower(a[i]) != lower(b[i])) return false;
    return true;
}

/* Is `c` of the set that reaches from text[at] == '[' to text[end] == ']'? */
static bool in_set(const char *text, size_t at, size_t end, unsigned char c)
{
    size_t i = at + 1;
    const bool negated = text[i] == '!' || text[i] == '^';
    if (negated) i++;
    bool found = false;
    while (i < end) {
        const unsigned char from = (unsigned char)text[i];
        const bool range = i + 2 < end && text[i + 1] == '-';
        const unsigned char to = range ? (unsigned char)text[i + 2] : from;
        found |= from <= c && c <= to;
        i += range ? 3 : 1;
    }
    return found != negated;
}

/* Matches one byte at *at, which is not a '*', and moves on. */
static bool match_one(const struct pattern *p, size_t *at, char c)
{
    const char *text = p->text;
    if (*at == p->len) return false;
    if (text[*at] == '?') return ++*at;
    if (text[*at] == '[') {
        const size_t from = *at, end = set_end(text, p->len, from);
        *at = end + 1;
        return in_set(text, from, end, (unsigned char)c);
    }
    if (text[*at] == '\\') ++*at;
    return text[(*at)++] == c;
}

/* Only the last '*' is ever tried again, so that no pattern takes more than len * len steps. */
static bool match(const struct pattern *p, const char *name, size_t len)
{
    size_t at = 0, i = 0, star = SIZE_MAX, tried = 0;
    for (;;) {
        if (at < p->len && p->text[at] == '*') {
            star = ++at;
            tried = i;
            continue;
        }
        if (i == len && at == p->len) return true;
        if (i < len && match_one(p, &at, name[i])) {
            i++;
            continue;
        }
        if (star == SIZE_MAX || tried == len) return false;
        at = star;
        i = ++tried;
    }
}

bool stk_glob_match(const stk_glob *g, const char *name, size_t len)
{
    for (size_t k = 0; k < g->num; k++) {
        const struct pattern *p = &g->patterns[k];
        const size_t ending = p->len - 1;
        if (!p->ending) {
            if (match(p, name, len)) return true;
        }
        else if (len >= ending && equal(name + len - ending, p->text + 1, ending, g->any_case))
            return true;
    }
    return false;
}

const char *stk_glob_text(const stk_glob *g)
{
    return g->text;
}
