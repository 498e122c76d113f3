#include "codec/tar_header.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"

enum { SIZE = 124, SIZE_BYTES = 12, CHKSUM = 148, CHKSUM_BYTES = 8 };

void stk_tar_text_fini(stk_tar_text *text)
{
    stk_free(text->data);
    *text = (stk_tar_text){0};
}

stk_err stk_tar_text_append(stk_tar_text *text, const void *data, size_t size)
{
    if (size > text->capacity - text->size) {
        const size_t wanted = text->size + size; /* both are under max_header */
        const size_t capacity = wanted < 128 ? 256 : 2 * wanted;
        char *grown = stk_alloc_resize(text->data, capacity);
        if (!grown) return STK_ENOMEM;
        text->data = grown;
        text->capacity = capacity;
    }
    if (size) memcpy(text->data + text->size, data, size);
    text->size += size;
    text->set = true;
    return STK_OK;
}

static void forget(stk_tar_text *text)
{
    text->size = 0;
    text->set = false;
}

void stk_tar_pax_clear(stk_tar_pax *pax)
{
    forget(&pax->path);
    forget(&pax->link);
    pax->has_size = pax->sparse = false;
}

void stk_tar_pax_fini(stk_tar_pax *pax)
{
    stk_tar_text_fini(&pax->path);
    stk_tar_text_fini(&pax->link);
}

/* Decimal digits; false: something else, or over 2^63 - 1. */
static bool decimal(const char *p, size_t n, uint64_t *out)
{
    uint64_t value = 0;
    if (!n) return false;
    for (size_t i = 0; i < n; i++) {
        if (p[i] < '0' || p[i] > '9' || value > (INT64_MAX - 9) / 10) return false;
        value = value * 10 + (uint64_t)(p[i] - '0');
    }
    *out = value;
    return true;
}

static bool is(const char *key, size_t n, const char *name)
{
    return n == strlen(name) && !memcmp(key, name, n);
}

static stk_err set_text(stk_tar_text *text, const char *value, size_t n)
{
    forget(text);
    return n ? stk_tar_text_append(text, value, n) : STK_OK;
}

/* STK_ECORRUPT: the value is no number. */
static stk_err put_record(stk_tar_pax *pax, const char *key, size_t key_size, const char *value,
                          size_t n)
{
    static const char SPARSE[] = "GNU.sparse.";
    if (is(key, key_size, "path")) return set_text(&pax->path, value, n);
    if (is(key, key_size, "linkpath")) return set_text(&pax->link, value, n);
    if (key_size >= sizeof(SPARSE) - 1 && !memcmp(key, SPARSE, sizeof(SPARSE) - 1)) {
        pax->sparse = true;
        if (is(key, key_size, "GNU.sparse.name")) return set_text(&pax->path, value, n);
    }
    if (!is(key, key_size, "size")) return STK_OK;
    pax->has_size = n > 0;
    return !n || decimal(value, n, &pax->size) ? STK_OK : STK_ECORRUPT;
}

/* "LENGTH KEY=VALUE\n", LENGTH counting all of it.  Gives the length, 0 for a broken record. */
static size_t split(const char *p, size_t size, size_t *key, size_t *equals)
{
    uint64_t length;
    const char *space = memchr(p, ' ', size < 20 ? size : 20);
    if (!space || !decimal(p, (size_t)(space - p), &length) || length > size) return 0;
    *key = (size_t)(space - p) + 1;
    if (length < *key + 2 || p[length - 1] != '\n') return 0;
    const char *sign = memchr(space + 1, '=', length - 1 - *key);
    if (!sign || sign == space + 1) return 0;
    *equals = (size_t)(sign - p);
    return (size_t)length;
}

stk_err stk_tar_pax_parse(stk_tar_pax *pax, const char *data, size_t size, uint64_t offset,
                          stk_diag *diag)
{
    for (size_t at = 0, length; at < size; at += length) {
        size_t key, equals;
        const char *p = data + at;
        length = split(p, size - at, &key, &equals);
        if (!length)
            return stk_diag_set(diag, STK_ECORRUPT,
                                "tar: broken record in the pax header at byte %" PRIu64, offset);
        const stk_err err =
            put_record(pax, p + key, equals - key, p + equals + 1, length - equals - 2);
        if (err == STK_ECORRUPT)
            return stk_diag_set(diag, err,
                                "tar: a size that is no number in the pax header at "
                                "byte %" PRIu64,
                                offset);
        if (err) return stk_diag_set(diag, err, "tar: no memory for a pax header");
    }
    return STK_OK;
}

/* Digits between blanks or NULs; false: anything else. */
static bool octal(const uint8_t *p, size_t n, uint64_t *out)
{
    uint64_t value = 0;
    size_t i = 0;
    while (i < n && p[i] == ' ') i++;
    for (; i < n && p[i] >= '0' && p[i] <= '7'; i++) value = value << 3 | (uint64_t)(p[i] - '0');
    *out = value; /* 12 digits have 36 bits */
    while (i < n && p[i] == ' ') i++;
    return i == n || p[i] == 0;
}

bool stk_tar_size(const uint8_t *block, uint64_t *out)
{
    const uint8_t *p = block + SIZE;
    if (!(p[0] & 0x80)) return octal(p, SIZE_BYTES, out);
    uint64_t value = p[0] & 0x7f;
    for (int i = 1; i < SIZE_BYTES; i++) {
        if (value >> 55) return false; /* 0xff: a negative one */
        value = value << 8 | p[i];
    }
    *out = value;
    return true;
}

stk_tar_sum stk_tar_checksum(const uint8_t *block)
{
    uint32_t sum = 0;
    for (int i = 0; i < STK_TAR_BLOCK; i++) sum += block[i];
    if (!sum) return STK_TAR_ZEROS;
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
    return STK_TAR_GOOD; /* else a fuzzer sees nothing but wrong checksums */
#endif
    for (int i = 0; i < CHKSUM_BYTES; i++) sum += ' ' - (uint32_t)block[CHKSUM + i];
    uint64_t wanted;
    if (!octal(block + CHKSUM, CHKSUM_BYTES, &wanted)) return STK_TAR_WRONG;
    if (sum == wanted) return STK_TAR_GOOD;
    /* Old implementations summed up signed characters. */
    for (int i = 0; i < STK_TAR_BLOCK; i++)
        if ((i < CHKSUM || i >= CHKSUM + CHKSUM_BYTES) && block[i] & 0x80) sum -= 256;
    return sum == (uint32_t)wanted ? STK_TAR_GOOD : STK_TAR_WRONG;
}
