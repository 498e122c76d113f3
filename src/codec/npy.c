#include <stoker/npy.h>

#include <limits.h>
#include <string.h>

#include "codec/le.h"

#define MAGIC "\x93NUMPY"
enum { MAGIC_SIZE = 6, SHOWN = 80 /* characters of a text in a message */ };

typedef struct text {
    const char *at, *end;
} text;

static stk_err broken(stk_diag *diag, const char *what)
{
    return stk_diag_set(diag, STK_ECORRUPT, "NPY: broken header: %s", what);
}

static void skip_blanks(text *t)
{
    while (t->at < t->end && memchr(" \t\r\n", *t->at, 4)) t->at++;
}

/* Takes `c` and the blanks around it, if it comes next. */
static bool take(text *t, char c)
{
    skip_blanks(t);
    if (t->at == t->end || *t->at != c) return false;
    t->at++;
    skip_blanks(t);
    return true;
}

static bool take_word(text *t, const char *word)
{
    const size_t n = strlen(word);
    if ((size_t)(t->end - t->at) < n || memcmp(t->at, word, n)) return false;
    t->at += n;
    return true;
}

/* A string between quotes, without escapes, which no name of a dtype has. */
static bool take_string(text *t, text *out)
{
    if (t->at == t->end || (*t->at != '\'' && *t->at != '"')) return false;
    const char quote = *t->at++;
    out->at = t->at;
    while (t->at < t->end && *t->at != quote && *t->at != '\\') t->at++;
    if (t->at == t->end || *t->at == '\\') return false;
    out->end = t->at++;
    return true;
}

/* Decimal digits; false: none, or more than 63 bits of them. */
static bool take_number(text *t, int64_t *out)
{
    const char *from = t->at;
    int64_t n = 0;
    for (; t->at < t->end && *t->at >= '0' && *t->at <= '9'; t->at++)
        if (__builtin_mul_overflow(n, 10, &n) || __builtin_add_overflow(n, *t->at - '0', &n))
            return false;
    *out = n;
    return t->at > from;
}

static bool is(const text *t, const char *word)
{
    return (size_t)(t->end - t->at) == strlen(word) && !memcmp(t->at, word, strlen(word));
}

/* What stands behind M8 and m8, if anything: "[ns]", "[25s]". */
static bool take_unit(text *t)
{
    static const char *const units[] = {"Y",  "M",  "W",  "D",  "h",  "m",  "s",
                                        "ms", "us", "ns", "ps", "fs", "as", "generic"};
    int64_t count;
    if (t->at == t->end) return true;
    if (!take_word(t, "[") || t->end[-1] != ']') return false;
    if (*t->at >= '0' && *t->at <= '9' && (!take_number(t, &count) || count < 1 || count > INT_MAX))
        return false;
    const text name = {t->at, t->end - 1};
    for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++)
        if (is(&name, units[i])) return true;
    return false;
}

/* `n`: the number behind the kind.  False: there is no such element. */
static bool size_of(char kind, int64_t n, size_t *out)
{
    const int64_t bytes = kind == 'U' ? 4 : 1; /* UCS-4 */
    *out = 0;
    if (n > INT_MAX / bytes) return false; /* NumPy's own limit */
    *out = (size_t)(n * bytes);
    switch (kind) {
    case 'b': return n == 1;
    case 'i':
    case 'u': return n == 1 || n == 2 || n == 4 || n == 8;
    case 'f': return n == 2 || n == 4 || n == 8 || n == 16;
    case 'c': return n == 8 || n == 16 || n == 32;
    case 'M':
    case 'm': return n == 8;
    default: return true; /* S U V: of any length */
    }
}

static stk_dtype dtype_of(const stk_npy *npy)
{
    static const struct {
        char kind;
        uint8_t size;
        stk_dtype dtype;
    } ours[] = {
        {'b', 1, STK_BOOL},  {'u', 1, STK_UINT8},   {'i', 1, STK_INT8},    {'u', 2, STK_UINT16},
        {'i', 2, STK_INT16}, {'u', 4, STK_UINT32},  {'i', 4, STK_INT32},   {'u', 8, STK_UINT64},
        {'i', 8, STK_INT64}, {'f', 2, STK_FLOAT16}, {'f', 4, STK_FLOAT32}, {'f', 8, STK_FLOAT64},
    };
    for (size_t i = 0; i < sizeof(ours) / sizeof(*ours) && !npy->big_endian; i++)
        if (ours[i].kind == npy->kind && ours[i].size == npy->item_size) return ours[i].dtype;
    return STK_DTYPE_NONE;
}

static stk_err parse_descr(text t, stk_npy *out, stk_diag *diag)
{
    const size_t n = (size_t)(t.end - t.at);
    const int shown = n < SHOWN ? (int)n : SHOWN;
    const text whole = t;
    char order = '=';
    if (t.at < t.end && memchr("<>|=", *t.at, 4)) order = *t.at++;
    if (t.at < t.end && *t.at == 'O')
        return stk_diag_set(diag, STK_EUNSUPPORTED,
                            "NPY: an array of objects (dtype '%.*s') is not read: it would have to "
                            "be unpickled",
                            shown, whole.at);
    int64_t number = 0;
    out->kind = '\0';
    if (t.at < t.end && memchr("biufcSUMmV", *t.at, 10)) out->kind = *t.at++;
    bool known = out->kind && n < sizeof(out->descr) && take_number(&t, &number) &&
                 size_of(out->kind, number, &out->item_size);
    if (known && (out->kind == 'M' || out->kind == 'm'))
        known = take_unit(&t);
    else if (t.at != t.end)
        known = false;
    if (!known)
        return stk_diag_set(diag, STK_EUNSUPPORTED, "NPY: unknown dtype '%.*s'", shown, whole.at);
    memcpy(out->descr, whole.at, n);
    out->descr[n] = '\0';
    out->big_endian = order == '>' && out->item_size > 1 && !memchr("SV", out->kind, 2);
    out->dtype = dtype_of(out);
    return STK_OK;
}

/* "(2, 3)", "(2,)", "()"; Python 2 wrote "(2L, 3L)". */
static stk_err parse_shape(text *t, stk_npy *out, stk_diag *diag)
{
    bool more = take(t, '('), comma = true;
    if (!more) return broken(diag, "the shape is no tuple");
    for (out->ndim = 0; !take(t, ')'); out->ndim++) {
        if (out->ndim == STK_NPY_MAX_NDIM)
            return stk_diag_set(diag, STK_EUNSUPPORTED, "NPY: more than %d dimensions",
                                STK_NPY_MAX_NDIM);
        if (!comma || !take_number(t, &out->shape[out->ndim]))
            return broken(diag, "the shape has an extent that is no number from 0 to 2^63 - 1");
        (void)take_word(t, "L");
        comma = take(t, ',');
    }
    if (out->ndim == 1 && !comma) return broken(diag, "the shape is no tuple");
    return STK_OK;
}

enum { DESCR = 1, FORTRAN = 2, SHAPE = 4, ALL = 7 };

/* One key with its value; *seen: which there were. */
static stk_err parse_pair(text *t, int *seen, stk_npy *out, stk_diag *diag)
{
    text key, value;
    if (!take_string(t, &key) || !take(t, ':')) return broken(diag, "no dict of names");
    const int which = is(&key, "descr")           ? DESCR
                      : is(&key, "fortran_order") ? FORTRAN
                      : is(&key, "shape")         ? SHAPE
                                                  : 0;
    if (!which) return broken(diag, "a key that is none of descr, fortran_order and shape");
    if (*seen & which) return broken(diag, "a key comes twice");
    *seen |= which;
    if (which == SHAPE) return parse_shape(t, out, diag);
    if (which == FORTRAN) {
        out->fortran = take_word(t, "True");
        if (!out->fortran && !take_word(t, "False"))
            return broken(diag, "fortran_order is neither True nor False");
        return STK_OK;
    }
    if (t->at < t->end && (*t->at == '[' || *t->at == '('))
        return stk_diag_set(diag, STK_EUNSUPPORTED, "NPY: a structured dtype is not read: %.*s",
                            (int)(t->end - t->at < SHOWN ? t->end - t->at : SHOWN), t->at);
    if (!take_string(t, &value)) return broken(diag, "descr is no string");
    return parse_descr(value, out, diag);
}

static stk_err parse_dict(text t, stk_npy *out, stk_diag *diag)
{
    int seen = 0;
    if (!take(&t, '{')) return broken(diag, "no dict");
    for (bool comma = true; !take(&t, '}'); comma = take(&t, ',')) {
        if (!comma) return broken(diag, "no comma between two keys");
        stk_err err = parse_pair(&t, &seen, out, diag);
        if (err) return err;
    }
    if (t.at != t.end) return broken(diag, "something follows the dict");
    if (seen != ALL) return broken(diag, "descr, fortran_order or shape is missing");
    return STK_OK;
}

/* Bytes of all elements; like NumPy, an array without any must not have extents beyond all memory
 * either. */
static stk_err count_bytes(stk_npy *out, stk_diag *diag)
{
    size_t bytes = out->item_size, most = bytes ? bytes : 1;
    for (int32_t i = 0; i < out->ndim; i++) {
        const size_t n = (size_t)out->shape[i];
        bytes *= n; /* wraps only where `most` overflows */
        if (__builtin_mul_overflow(most, n ? n : 1, &most) || most > PTRDIFF_MAX)
            return stk_diag_set(diag, STK_ECORRUPT, "NPY: the shape is beyond all memory");
    }
    out->data_size = bytes;
    return STK_OK;
}

/* Where the dict is. */
static stk_err find_dict(const uint8_t *data, size_t size, text *out, stk_diag *diag)
{
    const size_t shown = size < MAGIC_SIZE ? size : MAGIC_SIZE;
    if (!size || memcmp(data, MAGIC, shown))
        return stk_diag_set(diag, STK_ECORRUPT, "NPY: not a NumPy file");
    const uint8_t major = size > MAGIC_SIZE ? data[MAGIC_SIZE] : 1;
    const uint8_t minor = size > MAGIC_SIZE + 1 ? data[MAGIC_SIZE + 1] : 0;
    if (major < 1 || major > 3 || minor > 0)
        return stk_diag_set(diag, STK_EUNSUPPORTED, "NPY: version %u.%u: 1.0, 2.0 and 3.0 are read",
                            major, minor);
    const size_t at = MAGIC_SIZE + 2 + (major == 1 ? 2 : 4);
    if (size < at) return stk_diag_set(diag, STK_ECORRUPT, "NPY: the data ends inside the header");
    const size_t n = major == 1 ? stk_le16(data + 8) : stk_le32(data + 8);
    if (n > size - at)
        return stk_diag_set(diag, STK_ECORRUPT, "NPY: the data ends inside the header");
    *out = (text){(const char *)data + at, (const char *)data + at + n};
    return STK_OK;
}

stk_err stk_npy_parse(const void *data, size_t size, stk_npy *out, stk_diag *diag)
{
    *out = (stk_npy){0};
    text dict = {0};
    stk_err err = find_dict(data, size, &dict, diag);
    if (!err) err = parse_dict(dict, out, diag);
    if (!err) err = count_bytes(out, diag);
    if (err) return err;
    out->data_offset = (size_t)(dict.end - (const char *)data);
    if (out->data_size > size - out->data_offset)
        return stk_diag_set(diag, STK_ECORRUPT, "NPY: the data ends after %zu of %zu bytes",
                            size - out->data_offset, out->data_size);
    return STK_OK;
}
