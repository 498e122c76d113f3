#include "source/shard.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"

/* A piece of a member's name. */
typedef struct span {
    const char *at;
    size_t size;
} span;

/* What the last sample has for a part, or for a column, so far. */
typedef struct stk_shard_field {
    bool found;
    bool by_last; /* by the ending behind its last dot: one by its first takes its place */
    bool several; /* of those */
    stk_shard_flaw flaw;
} stk_shard_field;

void stk_shard_fini(stk_shard *s)
{
    stk_free(s->fields);
    stk_free(s->samples);
    stk_free(s->extents);
    stk_free(s->endings);
    stk_free(s->values);
    stk_free(s->pool);
}

size_t stk_shard_memory(const stk_shard *s, const stk_shard_spec *spec)
{
    const size_t each = sizeof(*s->samples) + spec->num_columns * sizeof(*s->values) +
                        spec->num_parts * (sizeof(*s->extents) + sizeof(*s->endings));
    return sizeof(*s) + s->room * each + s->pool_room;
}

static stk_err resize(void **block, size_t count, size_t size)
{
    if (count == 0) return STK_OK;
    void *bigger = count > SIZE_MAX / size ? NULL : stk_alloc_resize(*block, count * size);
    if (!bigger) return STK_ENOMEM;
    *block = bigger;
    return STK_OK;
}

static stk_err make_room(stk_shard *s, const stk_shard_spec *spec)
{
    if (s->num < s->room) return STK_OK;
    const size_t room = s->room * 2 + 64;
    void *samples = s->samples, *extents = s->extents, *endings = s->endings, *values = s->values;
    stk_err err = resize(&samples, room, sizeof(*s->samples));
    if (!err) err = resize(&extents, room, spec->num_parts * sizeof(*s->extents));
    if (!err) err = resize(&endings, room, spec->num_parts * sizeof(*s->endings));
    if (!err && spec->num_columns)
        err = resize(&values, room, spec->num_columns * sizeof(*s->values));
    s->samples = samples, s->extents = extents, s->endings = endings, s->values = values;
    if (!err) s->room = room;
    return err;
}

/* Adds a string, of which text may not be in the pool itself. */
static stk_err keep(stk_shard *s, span text, size_t *at)
{
    const size_t first = s->pool ? s->pool_size : 1;
    if (first + text.size + 1 > s->pool_room) {
        const size_t room = s->pool_room * 2 + text.size + 256;
        char *pool = stk_alloc_resize(s->pool, room);
        if (!pool) return STK_ENOMEM;
        pool[0] = 0;
        s->pool = pool;
        s->pool_room = room;
    }
    memcpy(s->pool + first, text.at, text.size);
    s->pool[first + text.size] = 0;
    s->pool_size = first + text.size + 1;
    *at = first;
    return STK_OK;
}

static span span_of(const char *text)
{
    return (span){text, strlen(text)};
}

/* The first flaw stays. */
static stk_err blame(stk_shard *s, stk_shard_flaw *flaw, const stk_diag *why)
{
    if (flaw->text) return STK_OK;
    stk_err err = keep(s, span_of(why->text), &flaw->text);
    if (err) return err;
    flaw->err = why->err;
    flaw->os_error = why->os_error;
    return STK_OK;
}

static size_t num_fields(const stk_shard_spec *spec)
{
    return spec->num_parts + spec->num_columns;
}

void stk_shard_name(const stk_shard *s, stk_diag *diag)
{
    if (!strstr(diag->text, s->path)) stk_diag_prefix(diag, "%s", s->path);
}

static stk_err begin(stk_shard *s, const stk_shard_spec *spec, span name)
{
    stk_err err = make_room(s, spec);
    size_t at = 0;
    if (!err && name.size) err = keep(s, name, &at);
    if (!err && !s->fields) {
        s->fields = stk_alloc_zero(num_fields(spec), sizeof(*s->fields));
        if (!s->fields) err = STK_ENOMEM;
    }
    if (err) return err;
    memset(s->fields, 0, num_fields(spec) * sizeof(*s->fields));
    s->samples[s->num] = (stk_shard_sample){.name = at};
    for (size_t p = 0; p < spec->num_parts; p++) {
        s->extents[s->num * spec->num_parts + p].size = STK_SHARD_NONE;
        s->endings[s->num * spec->num_parts + p] = 0;
    }
    for (size_t c = 0; c < spec->num_columns; c++)
        s->values[s->num * spec->num_columns + c] = spec->columns[c].is_text ? 0 : -1;
    s->num++;
    return STK_OK;
}

static const char *name_of(const stk_shard_spec *spec, size_t f)
{
    return f < spec->num_parts ? spec->parts[f].name : spec->columns[f - spec->num_parts].name;
}

static const char *endings_of(const stk_shard_spec *spec, size_t f)
{
    return f < spec->num_parts ? spec->parts[f].endings
                               : spec->columns[f - spec->num_parts].endings;
}

/* The last sample gets no more members.  What it has and is wrong goes before what it lacks. */
static stk_err finish(stk_shard *s, const stk_shard_spec *spec)
{
    if (!s->num || !s->fields) return STK_OK;
    const size_t n = num_fields(spec);
    stk_shard_sample *last = &s->samples[s->num - 1];
    for (size_t f = 0; f < n && !last->flaw.text; f++)
        if (!s->fields[f].several) last->flaw = s->fields[f].flaw;
    for (size_t f = 0; f < n && !last->flaw.text; f++) {
        const stk_shard_field *field = &s->fields[f];
        if (field->found && !field->several) continue;
        stk_diag why;
        stk_diag_set(&why, STK_ECORRUPT,
                     field->found ? "%s/%s: several members could be %s (.%s), and none has just "
                                    "that ending"
                                  : "%s/%s: there is no member for %s (.%s)",
                     s->path, s->pool + last->name, name_of(spec, f), endings_of(spec, f));
        return blame(s, &last->flaw, &why);
    }
    return STK_OK;
}

static bool has(const char *endings, span ending)
{
    for (const char *at = endings;; at++) {
        const size_t size = strcspn(at, "|");
        if (size == ending.size && size > 0 && !strncasecmp(at, ending.at, size)) return true;
        at += size;
        if (!*at) return false;
    }
}

static stk_err twice(stk_shard *s, const stk_shard_spec *spec, size_t f, span ending)
{
    stk_diag why;
    stk_diag_set(&why, STK_ECORRUPT, "%s/%s: .%.*s is a second member for %s", s->path,
                 s->pool + s->samples[s->num - 1].name, (int)ending.size, ending.at,
                 name_of(spec, f));
    return blame(s, &s->fields[f].flaw, &why);
}

static stk_err add_part(stk_shard *s, const stk_shard_spec *spec, size_t p, span ending,
                        const stk_shard_member *m)
{
    const size_t i = (s->num - 1) * spec->num_parts + p;
    s->extents[i] = m->at;
    stk_err err = keep(s, ending, &s->endings[i]);
    return !err && m->flaw ? blame(s, &s->fields[p].flaw, m->flaw) : err;
}

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* A whole number with white space around it. */
static bool number_of(const char *text, size_t size, int64_t *out)
{
    const char *at = text, *end = text + size;
    while (at < end && is_space(*at)) at++;
    while (end > at && is_space(end[-1])) end--;
    const bool negative = at < end && *at == '-';
    int64_t value = 0;
    at += at < end && (*at == '-' || *at == '+');
    if (at == end) return false;
    for (; at < end; at++) {
        if (*at < '0' || *at > '9') return false;
        const int digit = negative ? '0' - *at : *at - '0';
        if (__builtin_mul_overflow(value, 10, &value)) return false;
        if (__builtin_add_overflow(value, digit, &value)) return false;
    }
    *out = value;
    return true;
}

static stk_err take_value(stk_shard *s, const stk_shard_spec *spec, size_t c, char *text,
                          size_t size)
{
    int64_t *value = &s->values[(s->num - 1) * spec->num_columns + c];
    stk_shard_flaw *flaw = &s->fields[spec->num_parts + c].flaw;
    stk_diag why;
    if (!spec->columns[c].is_text) {
        if (number_of(text, size, value)) return STK_OK;
        stk_diag_set(&why, STK_ECORRUPT, "%s/%s: %s is no whole number: \"%.40s\"", s->path,
                     s->pool + s->samples[s->num - 1].name, spec->columns[c].name, text);
        return blame(s, flaw, &why);
    }
    if (strlen(text) == size) {
        size_t at = 0;
        stk_err err = keep(s, (span){text, size}, &at);
        s->values[(s->num - 1) * spec->num_columns + c] = (int64_t)at;
        return err;
    }
    stk_diag_set(&why, STK_ECORRUPT, "%s/%s: %s is no text: it has a NUL", s->path,
                 s->pool + s->samples[s->num - 1].name, spec->columns[c].name);
    return blame(s, flaw, &why);
}

typedef struct reader {
    stk_shard_read_fn *read;
    void *ctx;
} reader;

static stk_err add_column(stk_shard *s, const stk_shard_spec *spec, size_t c,
                          const stk_shard_member *m, const reader *r)
{
    stk_shard_flaw *flaw = &s->fields[spec->num_parts + c].flaw;
    if (m->flaw) return blame(s, flaw, m->flaw);
    const uint64_t bytes = m->at.form == STK_PIECE_DEFLATED ? m->at.unpacked : m->at.size;
    if (bytes > STK_SHARD_MAX_VALUE) {
        stk_diag why;
        stk_diag_set(&why, STK_ELIMIT, "%s/%s: %s has %llu bytes, the limit is %zu", s->path,
                     s->pool + s->samples[s->num - 1].name, spec->columns[c].name,
                     (unsigned long long)bytes, STK_SHARD_MAX_VALUE);
        return blame(s, flaw, &why);
    }
    const size_t size = (size_t)bytes;
    char *text = stk_alloc(size + 1);
    if (!text) return STK_ENOMEM;
    stk_diag why = {0};
    stk_err err = size ? r->read(r->ctx, m, text, &why) : STK_OK;
    text[size] = 0;
    if (!err) {
        err = take_value(s, spec, c, text, size);
    }
    else if (err != STK_ENOMEM && err != STK_ECANCELLED) {
        why.err = err;
        stk_shard_name(s, &why);
        err = blame(s, flaw, &why);
    }
    stk_free(text);
    return err;
}

/* Up to the first dot behind its folder. */
size_t stk_shard_stem(const char *name, size_t size)
{
    const char *end = name + size, *base = end;
    while (base > name && base[-1] != '/') base--;
    const char *dot = base < end ? memchr(base, '.', (size_t)(end - base)) : NULL;
    return !dot || dot == base || memchr(name, 0, size) ? 0 : (size_t)(dot - name);
}

/* The name of the sample, and the endings behind the first dot and the last. */
static bool split(const stk_shard_member *m, span *stem, span *first, span *last)
{
    *stem = (span){m->name, stk_shard_stem(m->name, m->name_size)};
    if (!stem->size) return false;
    const char *end = m->name + m->name_size, *behind = m->name + stem->size + 1;
    const char *latest = memrchr(behind - 1, '.', (size_t)(end - behind + 1));
    *first = (span){behind, (size_t)(end - behind)};
    *last = (span){latest + 1, (size_t)(end - latest - 1)};
    return true;
}

static bool goes_on(const stk_shard *s, span stem)
{
    if (!s->num) return false;
    const char *name = s->pool + s->samples[s->num - 1].name;
    return strlen(name) == stem.size && !memcmp(name, stem.at, stem.size);
}

/* Part `f` < num_parts, or column f - num_parts; their sum: none. */
static size_t field_of(const stk_shard_spec *spec, span ending)
{
    size_t f = 0;
    while (f < num_fields(spec) && !has(endings_of(spec, f), ending)) f++;
    return f;
}

/* Whether the last sample takes another member for a field: one by its name's last ending only
 * where there is none. */
static bool takes(stk_shard_field *f, bool by_last)
{
    if (f->found && by_last) {
        f->several = f->by_last;
        return false;
    }
    *f = (stk_shard_field){.found = true, .by_last = by_last};
    return true;
}

stk_err stk_shard_add(stk_shard *s, const stk_shard_spec *spec, const stk_shard_member *m,
                      stk_shard_read_fn *read, void *ctx)
{
    span stem, first, last;
    if (!split(m, &stem, &first, &last)) return STK_OK;
    size_t f = field_of(spec, first);
    const bool by_last = f == num_fields(spec);
    if (by_last) f = field_of(spec, last);
    if (f == num_fields(spec)) return STK_OK;
    stk_err err = STK_OK;
    if (!goes_on(s, stem)) {
        err = finish(s, spec);
        if (!err) err = begin(s, spec, stem);
    }
    if (err) return err;
    stk_shard_field *field = &s->fields[f];
    if (field->found && !field->by_last && !by_last) return twice(s, spec, f, first);
    if (!takes(field, by_last)) return STK_OK;
    if (f < spec->num_parts) return add_part(s, spec, f, first, m);
    const reader r = {read, ctx};
    return add_column(s, spec, f - spec->num_parts, m, &r);
}

stk_err stk_shard_end(stk_shard *s, const stk_shard_spec *spec, const stk_diag *why)
{
    stk_err err = finish(s, spec);
    if (!err && why) {
        s->broken = true;
        err = begin(s, spec, (span){"", 0});
        if (!err) err = blame(s, &s->samples[s->num - 1].flaw, why);
    }
    stk_free(s->fields);
    s->fields = NULL;
    return err;
}
