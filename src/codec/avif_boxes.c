/* ISO/IEC 14496-12: boxes, meta, iinf, iloc, pitm; ISO/IEC 23008-12: ipco, ipma, ispe, irot, imir;
 * AOM's "AV1 Codec ISO Media File Format Binding": av1C. */
#include "codec/avif_boxes.h"

#include <string.h>

/* A part of the file that is read from its front; reading past its end gives 0, and is noted. */
typedef struct part {
    const uint8_t *data;
    size_t size;
    bool bad;
} part;

typedef struct box {
    char type[4];
    part body;
} box;

typedef struct reader {
    part whole;
    part info, places, container, uses, idat; /* iinf, iloc, ipco, ipma */
    uint32_t main;                            /* the item's number */
    stk_avif *out;
} reader;

static const uint8_t *take(part *p, size_t n)
{
    static const uint8_t nothing[8];
    if (n > p->size) {
        p->bad = true;
        p->size = 0;
        return nothing;
    }
    const uint8_t *at = p->data;
    p->data += n;
    p->size -= n;
    return at;
}

/* A number of 0 to 8 bytes. */
static uint64_t get(part *p, size_t bytes)
{
    const uint8_t *at = take(p, bytes);
    uint64_t value = 0;
    for (size_t i = 0; i < bytes; i++) value = value << 8 | at[i];
    return value;
}

/* The next box.  False: there is none, or it is bad, and so is `p`. */
static bool next_box(part *p, box *out)
{
    if (!p->size) return false;
    uint64_t size = get(p, 4);
    memcpy(out->type, take(p, 4), 4);
    size_t header = 8;
    if (size == 1) {
        size = get(p, 8);
        header = 16;
    }
    else if (size == 0) { /* to the end */
        size = header + p->size;
    }
    if (p->bad || size < header || size - header > p->size) {
        p->bad = true;
        return false;
    }
    out->body = (part){take(p, (size_t)(size - header)), (size_t)(size - header), false};
    return true;
}

static bool is(const box *b, const char type[4])
{
    return memcmp(b->type, type, 4) == 0;
}

/* The version of a box that has one. */
static unsigned version(part *p, uint32_t *flags)
{
    const uint32_t both = (uint32_t)get(p, 4);
    if (flags) *flags = both & 0xFFFFFF;
    return both >> 24;
}

static bool read_properties(reader *r, part body)
{
    box b;
    while (next_box(&body, &b)) {
        if (is(&b, "ipco")) r->container = b.body;
        if (is(&b, "ipma")) r->uses = b.body;
    }
    return !body.bad;
}

static bool read_meta(reader *r, part body)
{
    box b;
    (void)version(&body, NULL);
    while (next_box(&body, &b)) {
        if (is(&b, "pitm"))
            r->main = (uint32_t)(version(&b.body, NULL) ? get(&b.body, 4) : get(&b.body, 2));
        if (is(&b, "pitm") && b.body.bad) return false;
        if (is(&b, "iinf")) r->info = b.body;
        if (is(&b, "iloc")) r->places = b.body;
        if (is(&b, "idat")) r->idat = b.body;
        if (is(&b, "iprp") && !read_properties(r, b.body)) return false;
    }
    return !body.bad;
}

/* The type of the main item. */
static bool read_type(reader *r)
{
    part p = r->info;
    box b;
    (void)get(&p, version(&p, NULL) ? 4 : 2); /* how many there are */
    while (next_box(&p, &b)) {
        if (!is(&b, "infe")) continue;
        const unsigned v = version(&b.body, NULL);
        if (v < 2) continue; /* of before there were types */
        const uint32_t number = (uint32_t)get(&b.body, v == 2 ? 2 : 4);
        (void)get(&b.body, 2); /* protection */
        const uint8_t *type = take(&b.body, 4);
        if (b.body.bad) return false;
        if (number == r->main) memcpy(r->out->type, type, 4);
    }
    return !p.bad;
}

typedef struct sizes {
    size_t offset, length, base, index; /* in bytes */
} sizes;

/* The pieces of the main item. */
static bool read_extents(reader *r, part *p, const sizes *s, unsigned method)
{
    const uint64_t base = get(p, s->base);
    const unsigned count = (unsigned)get(p, 2);
    if (count > 1 && !(s->offset + s->length)) return false; /* all of them the same */
    for (unsigned i = 0; i < count && !p->bad; i++) {
        (void)get(p, s->index);
        uint64_t at, size;
        const bool fits = !__builtin_add_overflow(base, get(p, s->offset), &at);
        size = get(p, s->length);
        if (method == 1) { /* in idat */
            if (!fits || at > r->idat.size || size > r->idat.size - at) return false;
            if (!size) size = r->idat.size - at;
            at += (uint64_t)(r->idat.data - r->whole.data);
        }
        if (!fits || method > 1 || at > r->whole.size || size > r->whole.size - at) return false;
        if (i < STK_AVIF_EXTENTS) {
            r->out->extents[i].at = at;
            r->out->extents[i].size = size;
        }
        r->out->num_extents = i + 1;
    }
    return !p->bad;
}

/* At once: a piece need not have any bytes here, and there may be many. */
static void skip_extents(part *p, const sizes *s)
{
    (void)get(p, s->base);
    const size_t count = (size_t)get(p, 2);
    (void)take(p, count * (s->index + s->offset + s->length));
}

/* Until the main item's: there is one entry an item. */
static bool read_places(reader *r)
{
    part p = r->places;
    const unsigned v = version(&p, NULL), a = (unsigned)get(&p, 1), b = (unsigned)get(&p, 1);
    const sizes s = {a >> 4, a & 15, b >> 4, v ? b & 15 : 0};
    if (v > 2 || s.offset > 8 || s.length > 8 || s.base > 8 || s.index > 8) return false;
    const uint32_t count = (uint32_t)get(&p, v < 2 ? 2 : 4);
    for (uint32_t i = 0; i < count && !p.bad; i++) {
        const uint32_t number = (uint32_t)get(&p, v < 2 ? 2 : 4);
        const unsigned method = v ? (unsigned)get(&p, 2) & 15 : 0;
        (void)get(&p, 2); /* this file, or another one */
        if (number == r->main) return read_extents(r, &p, &s, method);
        skip_extents(&p, &s);
    }
    return !p.bad;
}

static void read_colors(stk_avif *out, part p)
{
    if (memcmp(take(&p, 4), "nclx", 4) != 0) return;
    (void)get(&p, 4); /* primaries, transfer */
    const int matrix = (int)get(&p, 2);
    const int range = get(&p, 1) & 0x80 ? 2 : 1;
    if (p.bad) return;
    out->range = range;
    if (matrix != 2) out->matrix = matrix; /* 2: not said */
}

static bool read_property(stk_avif *out, box *b)
{
    part *p = &b->body;
    if (is(b, "ispe")) {
        (void)version(p, NULL);
        out->width = (uint32_t)get(p, 4);
        out->height = (uint32_t)get(p, 4);
    }
    else if (is(b, "av1C")) {
        (void)get(p, 2);
        const unsigned bits = (unsigned)get(p, 1);
        out->bits = bits & 0x40 ? (bits & 0x20 ? 12 : 10) : 8;
        out->monochrome = bits & 0x10;
        out->subsampled = !!(bits & 8) + !!(bits & 4);
    }
    else if (is(b, "irot")) {
        out->turns = (int)get(p, 1) & 3;
    }
    else if (is(b, "imir")) {
        out->mirror = 1 + (int)(get(p, 1) & 1);
    }
    else if (is(b, "colr")) {
        read_colors(out, *p);
    }
    return !p->bad;
}

/* The property of that number, from 1 on. */
static bool use_property(reader *r, unsigned number)
{
    part p = r->container;
    box b;
    for (unsigned i = 1; next_box(&p, &b); i++)
        if (i == number) return read_property(r->out, &b);
    return !p.bad;
}

/* Until the main item's: there is one entry an item, and each use walks through the properties. */
static bool read_uses(reader *r)
{
    part p = r->uses;
    uint32_t flags;
    const unsigned v = version(&p, &flags);
    const uint32_t count = (uint32_t)get(&p, 4);
    for (uint32_t i = 0; i < count && !p.bad; i++) {
        const uint32_t item = (uint32_t)get(&p, v ? 4 : 2);
        const unsigned n = (unsigned)get(&p, 1);
        for (unsigned k = 0; k < n && !p.bad; k++) {
            const unsigned use = (unsigned)get(&p, flags & 1 ? 2 : 1);
            const unsigned number = use & (flags & 1 ? 0x7FFF : 0x7F);
            if (item == r->main && !use_property(r, number)) return false;
        }
        if (item == r->main) break;
    }
    return !p.bad;
}

/* Whether some item is the alpha of another. */
static bool has_alpha(part container)
{
    static const char urn[] = "urn:mpeg:mpegB:cicp:systems:auxiliary:alpha";
    box b;
    while (next_box(&container, &b))
        if (is(&b, "auxC") && b.body.size >= 4 + sizeof(urn) &&
            !memcmp(b.body.data + 4, urn, sizeof(urn)))
            return true;
    return false;
}

bool stk_avif_read(const uint8_t *data, size_t size, stk_avif *out)
{
    reader r = {.whole = {data, size, false}, .out = out};
    part p = r.whole;
    box b;
    *out = (stk_avif){0};
    while (!out->has_meta && next_box(&p, &b)) {
        out->has_movie |= is(&b, "moov");
        if (!is(&b, "meta")) continue;
        out->has_meta = true;
        if (!read_meta(&r, b.body)) return false;
    }
    if (!out->has_meta) return !p.bad;
    out->alpha = has_alpha(r.container);
    return read_type(&r) && read_places(&r) && read_uses(&r);
}
