#include "source/names.h"

#include <assert.h>
#include <endian.h>
#include <string.h>

#include "base/alloc.h"

#define PADDING 8 /* so that a word may be loaded from any byte of the last name */
#define FEW 12    /* names that are sorted by insertion */
#define LIMIT ((size_t)UINT32_MAX - 1024)

void stk_names_fini(stk_names *names)
{
    stk_free(names->bytes);
    stk_free(names->at);
    *names = (stk_names){0};
}

static stk_err resize(stk_names *names, size_t capacity, uint32_t room)
{
    if (capacity != names->capacity) {
        char *bytes = stk_alloc_resize(names->bytes, capacity);
        if (!bytes) return STK_ENOMEM;
        names->bytes = bytes;
        names->capacity = capacity;
    }
    if (room != names->room) {
        uint32_t *at = stk_alloc_resize(names->at, room * sizeof(*at));
        if (!at) return STK_ENOMEM;
        names->at = at;
        names->room = room;
    }
    return STK_OK;
}

stk_err stk_names_add(stk_names *names, const char *name, size_t len)
{
    const size_t need = names->size + len + 1 + PADDING;
    if (need > LIMIT || names->num == UINT32_MAX / 2) return STK_ELIMIT;
    size_t capacity = names->capacity;
    if (need > capacity) capacity = need > capacity * 2 ? need + 512 : capacity * 2;
    const uint32_t room = names->num < names->room ? names->room : names->room * 2 + 16;
    stk_err err = resize(names, capacity, room);
    if (err) return err;

    names->at[names->num++] = (uint32_t)names->size;
    memcpy(names->bytes + names->size, name, len);
    names->size += len;
    names->bytes[names->size++] = 0;
    return STK_OK;
}

/* Eight bytes from `depth` on, in an order-keeping number; zeros after the end of the name. */
static uint64_t word_at(const char *bytes, uint32_t at, uint32_t depth)
{
    uint64_t word;
    memcpy(&word, bytes + at + depth, sizeof(word));
    word = le64toh(word);
    /* The lowest zero byte: the exact test of "Bit Twiddling Hacks" (S. E. Anderson). */
    const uint64_t zero =
        (word - UINT64_C(0x0101010101010101)) & ~word & UINT64_C(0x8080808080808080);
    if (zero) word &= ((zero & -zero) >> 7) - 1;
    return __builtin_bswap64(word);
}

static void insertion_sort(const char *bytes, uint32_t *at, size_t n, uint32_t depth)
{
    for (size_t i = 1; i < n; i++) {
        const uint32_t moving = at[i];
        size_t k = i;
        while (k && strcmp(bytes + at[k - 1] + depth, bytes + moving + depth) > 0) {
            at[k] = at[k - 1];
            k--;
        }
        at[k] = moving;
    }
}

static void swap(uint32_t *a, uint32_t *b)
{
    const uint32_t t = *a;
    *a = *b;
    *b = t;
}

static uint64_t median(uint64_t a, uint64_t b, uint64_t c)
{
    const uint64_t low = a < b ? a : b, high = a < b ? b : a;
    return c < low ? low : c > high ? high : c;
}

struct part {
    uint32_t *at;
    size_t n;
    uint32_t depth;
};

/* Splits by the eight bytes at part->depth: out[0] below a pivot, out[1] equal, out[2] above. */
static void split(const char *bytes, const struct part *part, struct part out[3])
{
    uint32_t *at = part->at;
    const uint32_t depth = part->depth;
    const size_t n = part->n;
    const uint64_t pivot =
        median(word_at(bytes, at[n / 8], depth), word_at(bytes, at[n / 2], depth),
               word_at(bytes, at[n - 1 - n / 8], depth));
    size_t below = 0, i = 0, above = n;
    while (i < above) {
        const uint64_t word = word_at(bytes, at[i], depth);
        if (word < pivot)
            swap(&at[below++], &at[i++]);
        else if (word > pivot)
            swap(&at[i], &at[--above]);
        else
            i++;
    }
    out[0] = (struct part){at, below, depth};
    out[1] = (struct part){at + below, above - below, depth + (uint32_t)sizeof(pivot)};
    out[2] = (struct part){at + above, n - above, depth};
    if (!(pivot & 0xFF)) out[1].n = 0; /* equal to the end: the same name several times */
}

/* Multikey quicksort (Bentley and Sedgewick: "Fast algorithms for sorting and searching
 * strings", SODA 1997), eight bytes at a time.  Of three parts the largest is never stacked, so
 * that each stacked one is at most half of what it came from: 2 * 32 are enough. */
static void sort(const char *bytes, uint32_t *at, size_t n)
{
    struct part stack[80], parts[3];
    size_t depth = 0;
    struct part part = {at, n, 0};
    for (;;) {
        while (part.n > FEW) {
            split(bytes, &part, parts);
            size_t largest = parts[1].n > parts[0].n ? 1 : 0;
            if (parts[2].n > parts[largest].n) largest = 2;
            for (size_t k = 0; k < 3; k++)
                if (k != largest && parts[k].n > 1) {
                    assert(depth < sizeof(stack) / sizeof(stack[0]));
                    stack[depth++] = parts[k];
                }
            part = parts[largest];
        }
        insertion_sort(bytes, part.at, part.n, part.depth);
        if (!depth) return;
        part = stack[--depth];
    }
}

stk_err stk_names_pack(stk_names *names)
{
    if (!names->num) {
        stk_names_fini(names);
        return STK_OK;
    }
    memset(names->bytes + names->size, 0, PADDING);
    sort(names->bytes, names->at, names->num);
    return resize(names, names->size + PADDING, names->num);
}

const char *stk_names_get(const stk_names *names, size_t i)
{
    assert(i < names->num);
    return names->bytes + names->at[i];
}

size_t stk_names_memory(const stk_names *names)
{
    return names->capacity + names->room * sizeof(*names->at);
}
