#include <stoker/stream.h>

#include <zlib.h>
#include <zstd.h>

#include "base/alloc.h"
#include "tests/check.h"

struct bytes {
    uint8_t data[1 << 17];
    size_t size;
};

/* Something that compresses, but not to nothing. */
static void fill(struct bytes *b, size_t size)
{
    uint32_t x = 1;
    for (b->size = 0; b->size < size; b->size++) {
        if (b->size % 5 == 0) x = x * 1664525 + 1013904223;
        b->data[b->size] = (uint8_t)(x >> 24);
    }
}

static void gzip(struct bytes *out, const struct bytes *in)
{
    z_stream z = {.next_in = (uint8_t *)in->data, .avail_in = (unsigned)in->size};
    CHECK_EQ(deflateInit2(&z, 6, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_out = out->data + out->size;
    z.avail_out = (unsigned)(sizeof(out->data) - out->size);
    CHECK_EQ(deflate(&z, Z_FINISH), Z_STREAM_END);
    out->size = sizeof(out->data) - z.avail_out;
    deflateEnd(&z);
}

static void zstd(struct bytes *out, const struct bytes *in)
{
    ZSTD_CCtx *c = ZSTD_createCCtx();
    CHECK(c);
    ZSTD_CCtx_setParameter(c, ZSTD_c_checksumFlag, 1);
    const size_t n =
        ZSTD_compress2(c, out->data + out->size, sizeof(out->data) - out->size, in->data, in->size);
    CHECK(!ZSTD_isError(n));
    out->size += n;
    ZSTD_freeCCtx(c);
}

static void (*const packers[])(struct bytes *, const struct bytes *) = {gzip, zstd};

struct pieces {
    const struct bytes *from;
    size_t at, piece;
    bool broken; /* fails at the end */
};

static stk_err read_piece(void *ctx, void *dst, size_t size, size_t *got, stk_diag *diag)
{
    struct pieces *p = ctx;
    *got = p->from->size - p->at;
    if (!*got && p->broken) return stk_diag_set(diag, STK_EIO, "the disk is gone");
    if (*got > p->piece) *got = p->piece;
    if (*got > size) *got = size;
    memcpy(dst, p->from->data + p->at, *got);
    p->at += *got;
    return STK_OK;
}

static struct bytes plain, packed, got;

/* All of the stream, `step` bytes at a time, to `got`. */
static stk_err drain(stk_stream *s, size_t step, stk_diag *diag)
{
    stk_err err;
    size_t n;
    *diag = (stk_diag){0};
    got.size = 0;
    do {
        const size_t room = sizeof(got.data) - got.size;
        err = stk_stream_read(s, got.data + got.size, step < room ? step : room, &n, diag);
        got.size += n;
        CHECK(!err || !n);
    } while (!err && n && got.size < sizeof(got.data));
    CHECK(err == diag->err);
    return err;
}

static stk_err drain_memory(const void *data, size_t size, const stk_stream_opts *opts,
                            stk_diag *diag)
{
    stk_stream *s;
    uint8_t *copy = malloc(size ? size : 1); /* no byte more: the sanitizer watches its end */
    memcpy(copy, data, size);
    CHECK_EQ(stk_stream_over(copy, size, opts, &s), STK_OK);
    const stk_err err = drain(s, 1000, diag);
    stk_stream_free(&s);
    free(copy);
    return err;
}

static bool same(const struct bytes *a, const struct bytes *b)
{
    return a->size == b->size && !memcmp(a->data, b->data, a->size);
}

static void unpacks(void)
{
    static const size_t sizes[] = {0, 1, 100, 100000};
    stk_diag diag;
    for (int kind = 0; kind < 2; kind++) {
        for (size_t i = 0; i < 4; i++) {
            fill(&plain, sizes[i]);
            packed.size = 0;
            packers[kind](&packed, &plain);
            CHECK_EQ(drain_memory(packed.data, packed.size, NULL, &diag), STK_OK);
            CHECK(same(&got, &plain));
            for (size_t piece = 1; piece < 100000; piece = piece * 5 + 1) {
                stk_stream *s;
                struct pieces p = {&packed, 0, piece, false};
                CHECK_EQ(stk_stream_from(read_piece, &p, NULL, &s), STK_OK);
                CHECK_EQ(drain(s, piece, &diag), STK_OK);
                CHECK(same(&got, &plain));
                CHECK_EQ(stk_stream_packing(s), STK_PACKING_GZIP + kind);
                stk_stream_free(&s);
            }
        }
    }
}

static void several_are_one(void)
{
    stk_diag diag;
    for (int kind = 0; kind < 2; kind++) {
        packed.size = 0;
        fill(&plain, 1000);
        packers[kind](&packed, &plain);
        fill(&plain, 0);
        packers[kind](&packed, &plain);
        fill(&plain, 2000);
        packers[kind](&packed, &plain);
        CHECK_EQ(drain_memory(packed.data, packed.size, NULL, &diag), STK_OK);
        CHECK_EQ(got.size, 3000);
        CHECK(!memcmp(got.data + 1000, plain.data, 2000));
        if (kind == 0) {
            memset(packed.data + packed.size, 0, 700); /* padding */
            CHECK_EQ(drain_memory(packed.data, packed.size + 700, NULL, &diag), STK_OK);
            CHECK_EQ(got.size, 3000);
        }
        memcpy(packed.data + packed.size, "behind", 6);
        CHECK_EQ(drain_memory(packed.data, packed.size + 6, NULL, &diag), STK_ECORRUPT);
    }
    packed.size = 0; /* a frame to be skipped, as pzstd writes */
    memcpy(packed.data, "\x50\x2a\x4d\x18\4\0\0\0abcd", 12);
    packed.size = 12;
    fill(&plain, 500);
    zstd(&packed, &plain);
    CHECK_EQ(drain_memory(packed.data, packed.size, NULL, &diag), STK_OK);
    CHECK(same(&got, &plain));
}

static void others_stay_as_they_are(void)
{
    stk_diag diag;
    stk_stream *s;
    fill(&plain, 90000);
    plain.data[0] = 'x';
    for (size_t size = 0; size <= 5; size++) {
        CHECK_EQ(drain_memory(plain.data, size, NULL, &diag), STK_OK);
        CHECK_EQ(got.size, size);
    }
    for (size_t piece = 1; piece < 100000; piece = piece * 9 + 1) {
        struct pieces p = {&plain, 0, piece, false};
        CHECK_EQ(stk_stream_from(read_piece, &p, NULL, &s), STK_OK);
        CHECK_EQ(drain(s, 3333, &diag), STK_OK);
        CHECK(same(&got, &plain) && stk_stream_packing(s) == STK_PACKING_NONE);
        stk_stream_free(&s);
    }
    packed.size = 0;
    gzip(&packed, &plain);
    CHECK_EQ(drain_memory(packed.data, packed.size, &(stk_stream_opts){.as_is = true}, &diag),
             STK_OK);
    CHECK(same(&got, &packed));
    CHECK(!strcmp(stk_packing_str(stk_packing_of(packed.data, packed.size)), "gzip"));
}

static void truncated_and_flipped(void)
{
    stk_diag diag;
    for (int kind = 0; kind < 2; kind++) {
        fill(&plain, 300);
        packed.size = 0;
        packers[kind](&packed, &plain);
        for (size_t size = 4; size < packed.size; size++) {
            CHECK_EQ(drain_memory(packed.data, size, NULL, &diag), STK_ECORRUPT);
            CHECK(strstr(diag.text, "too early"));
        }
        for (size_t i = 4 * 8; i < packed.size * 8; i++) {
            packed.data[i / 8] ^= (uint8_t)(1 << i % 8);
            const stk_err err = drain_memory(packed.data, packed.size, NULL, &diag);
            CHECK(err || same(&got, &plain)); /* the checksum sees all that matters */
            packed.data[i / 8] ^= (uint8_t)(1 << i % 8);
        }
    }
}

static void limits(void)
{
    stk_diag diag;
    for (int kind = 0; kind < 2; kind++) {
        fill(&plain, 50000);
        packed.size = 0;
        packers[kind](&packed, &plain);
        const stk_stream_opts exact = {.max_bytes = 50000}, less = {.max_bytes = 49999};
        CHECK_EQ(drain_memory(packed.data, packed.size, &exact, &diag), STK_OK);
        CHECK_EQ(drain_memory(packed.data, packed.size, &less, &diag), STK_ELIMIT);
        CHECK(strstr(diag.text, "max_uncompressed_bytes"));
    }
    plain.size = sizeof(plain.data);
    memset(plain.data, 0, plain.size);
    packed.size = 0;
    for (int i = 0; i < 900; i++) zstd(&packed, &plain); /* 112 MiB of zeros */
    stk_stream *s;
    CHECK_EQ(stk_stream_over(packed.data, packed.size, NULL, &s), STK_OK);
    stk_err err = STK_OK;
    uint64_t total = 0;
    for (size_t n = 1; !err && n; total += n)
        err = stk_stream_read(s, got.data, sizeof(got.data), &n, &diag);
    CHECK(err == STK_ELIMIT && strstr(diag.text, "max_ratio") && total <= (65 << 20));
    stk_stream_free(&s);
    static const uint8_t wide[] = {0x28, 0xb5, 0x2f, 0xfd, 0, 0xa0, 0, 0, 0, 0, 0}; /* 1 GiB */
    CHECK_EQ(drain_memory(wide, sizeof(wide), NULL, &diag), STK_ELIMIT);
}

static void what_the_reader_says(void)
{
    stk_diag diag;
    stk_stream *s;
    for (int kind = 0; kind < 3; kind++) {
        fill(&plain, 3000);
        plain.data[0] = 'x';
        packed.size = 0;
        if (kind < 2) packers[kind](&packed, &plain);
        struct pieces p = {kind < 2 ? &packed : &plain, 0, 1000, true};
        if (kind < 2) packed.size -= 5;
        CHECK_EQ(stk_stream_from(read_piece, &p, NULL, &s), STK_OK);
        CHECK_EQ(drain(s, 1 << 16, &diag), STK_EIO);
        CHECK(!strcmp(diag.text, "the disk is gone"));
        stk_stream_free(&s);
    }
    stk_stream_free(&(stk_stream *){NULL});
}

static void without_memory(void)
{
    stk_err err = STK_OK;
    fill(&plain, 5000);
    for (int kind = 0; kind < 2; kind++) {
        packed.size = 0;
        packers[kind](&packed, &plain);
        TORTURE (err) {
            stk_stream *s;
            stk_diag diag;
            struct pieces p = {&packed, 0, 700, false};
            err = stk_stream_from(read_piece, &p, NULL, &s);
            if (!err) err = drain(s, 800, &diag);
            CHECK(!err || err == STK_ENOMEM);
            if (!err) CHECK(same(&got, &plain));
            stk_stream_free(&s);
        }
        TORTURE (err) {
            stk_stream *s;
            err = stk_stream_over(packed.data, packed.size, NULL, &s);
            stk_stream_free(&s);
        }
    }
}

TESTS(TEST(unpacks), TEST(several_are_one), TEST(others_stay_as_they_are),
      TEST(truncated_and_flipped), TEST(limits), TEST(what_the_reader_says), TEST(without_memory))
