#include <stoker/tar.h>

#include "tests/check.h"
#include "tests/fuzz/fuzz.h"

struct pieces {
    const uint8_t *data;
    size_t left, piece;
};

static stk_err read_piece(void *ctx, void *dst, size_t size, size_t *got, stk_diag *diag)
{
    struct pieces *p = ctx;
    (void)diag;
    *got = p->left < p->piece ? p->left : p->piece;
    if (*got > size) *got = size;
    if (*got) memcpy(dst, p->data, *got);
    p->data += *got, p->left -= *got;
    return STK_OK;
}

/* All members of the archive in memory, told again by the stream over the same bytes. */
static void compare(const uint8_t *data, size_t size, size_t piece, const stk_tar_opts *opts)
{
    struct pieces pieces = {data, size, piece};
    stk_tar *a, *b;
    stk_stream *s;
    CHECK_EQ(stk_tar_over(data, size, opts, &a), STK_OK);
    const stk_stream_opts as_is = {.as_is = true};
    CHECK_EQ(stk_stream_from(read_piece, &pieces, &as_is, &s), STK_OK);
    CHECK_EQ(stk_tar_from(&s, opts, &b), STK_OK);
    for (stk_err err = STK_OK; !err;) {
        stk_tar_member m, n;
        err = stk_tar_next(a, &m, NULL);
        stk_err other;
        while ((other = stk_tar_next(b, &n, NULL)) == STK_EAGAIN)
            CHECK_EQ(stk_tar_fill(b, NULL), STK_OK);
        if (!err) {
            CHECK((const uint8_t *)m.data + m.size <= data + size);
            if (other) break; /* over a limit that only streams have */
            CHECK(m.name_size == n.name_size && !memcmp(m.name, n.name, m.name_size));
            CHECK(m.size == n.size && m.offset == n.offset && m.type == n.type);
            uint8_t *copy = malloc(n.size ? n.size : 1);
            CHECK(copy);
            CHECK_EQ(stk_tar_read(b, copy, n.size / 2, NULL), STK_OK);
            CHECK(!memcmp(copy, m.data, n.size / 2));
            free(copy);
        }
        else if (err == STK_EEND)
            CHECK_EQ(other, STK_EEND); /* of data that ends too early the stream hears later */
    }
    stk_tar_free(&a);
    stk_tar_free(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    compare(data, size, 1 << 20, &(stk_tar_opts){.max_header = 4096});
    compare(data, size, 1 + size % 700, &(stk_tar_opts){.all = true, .open_end = true});
    return 0;
}
