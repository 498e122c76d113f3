/* The archive in memory and the same one read piece by piece say the same. */
#include <string.h>

#include <stoker/zip.h>

#include "tests/check.h"
#include "tests/fuzz/fuzz.h"

#define MOST_BYTES ((uint64_t)1 << 20) /* that one input may inflate */

struct input {
    const uint8_t *data;
    size_t size;
};

static stk_err read_part(void *ctx, uint64_t offset, void *dst, size_t size, stk_diag *diag)
{
    const struct input *in = ctx;
    (void)diag;
    CHECK(size && offset <= in->size && size <= in->size - offset);
    memcpy(dst, in->data + offset, size);
    return STK_OK;
}

static void read_entry(const stk_zip *a, const stk_zip *b, size_t i, uint64_t *left)
{
    const stk_zip_entry *e = stk_zip_get(a, i);
    uint64_t at;
    const stk_err err = stk_zip_locate(a, i, &at, NULL);
    CHECK(err == STK_OK || err == STK_ECORRUPT || err == STK_EUNSUPPORTED);
    if (err || e->size > *left) return;
    *left -= e->size;
    uint8_t *x = malloc(e->size ? e->size : 1), *y = malloc(e->size ? e->size : 1);
    CHECK(x && y);
    const stk_err one = stk_zip_read(a, i, x, NULL), other = stk_zip_read(b, i, y, NULL);
    CHECK(one == other);
    CHECK(one || !memcmp(x, y, e->size));
    free(x);
    free(y);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = {data, size};
    stk_zip *a, *b;
    const stk_zip_input memory = {.data = data, .size = size};
    const stk_zip_input pieces = {.size = size, .read = read_part, .ctx = &in};
    const stk_err one = stk_zip_new(&memory, NULL, &a, NULL);
    const stk_err other = stk_zip_new(&pieces, NULL, &b, NULL);
    CHECK(one == other);
    uint64_t left = MOST_BYTES;
    for (size_t i = 0; !one && i < stk_zip_count(a); i++) read_entry(a, b, i, &left);
    stk_zip_free(&a);
    stk_zip_free(&b);
    return 0;
}
