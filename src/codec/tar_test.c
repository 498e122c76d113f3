#include <stoker/tar.h>

#include "base/alloc.h"
#include "tests/check.h"
#include "tests/tar_make.h"

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
    memcpy(dst, p->data, *got);
    p->data += *got, p->left -= *got;
    return STK_OK;
}

/* What comes out, as "name=data;", or "name*type>link;" for what is no file. */
static char listing[1 << 14];

static stk_err list_with(stk_tar *t, stk_diag *diag)
{
    stk_err err;
    size_t n = 0;
    *diag = (stk_diag){0};
    listing[0] = 0;
    do {
        stk_tar_member m;
        char data[300] = "";
        err = stk_tar_next(t, &m, diag);
        if (err == STK_EAGAIN) {
            err = stk_tar_fill(t, diag);
            continue;
        }
        if (!err) err = stk_tar_read(t, data, m.size < 299 ? m.size : 299, diag);
        if (err) break;
        n += (size_t)snprintf(listing + n, sizeof(listing) - n, "%.*s", (int)m.name_size, m.name);
        if (m.type == '0')
            n += (size_t)snprintf(listing + n, sizeof(listing) - n, "=%s;", data);
        else
            n += (size_t)snprintf(listing + n, sizeof(listing) - n, "*%c>%.*s;", m.type,
                                  (int)m.link_size, m.link);
        CHECK(n < sizeof(listing));
    } while (!err);
    if (err != STK_EEND) CHECK(err == diag->err);
    stk_tar_member m;
    CHECK_EQ(stk_tar_next(t, &m, diag), STK_EEND); /* the end is the end */
    return err == STK_EEND ? STK_OK : err;
}

static stk_err list(const stk_tar_opts *opts, stk_diag *diag)
{
    stk_tar *t;
    uint8_t *copy = malloc(ar.size ? ar.size : 1); /* no byte more: the sanitizer watches its end */
    memcpy(copy, ar.data, ar.size);
    CHECK_EQ(stk_tar_over(copy, ar.size, opts, &t), STK_OK);
    const stk_err err = list_with(t, diag);
    stk_tar_free(&t);
    free(copy);
    return err;
}

static stk_err list_stream(size_t piece, const stk_tar_opts *opts, stk_diag *diag)
{
    stk_tar *t;
    stk_stream *s;
    struct pieces p = {ar.data, ar.size, piece};
    CHECK_EQ(stk_stream_from(read_piece, &p, NULL, &s), STK_OK);
    CHECK_EQ(stk_tar_from(&s, opts, &t), STK_OK);
    CHECK(!s);
    const stk_err err = list_with(t, diag);
    stk_tar_free(&t);
    return err;
}

static stk_err read_place(void *ctx, uint64_t offset, void *dst, size_t size, stk_diag *diag)
{
    (void)diag;
    size_t *total = ctx;
    CHECK(offset + size <= ar.size);
    memcpy(dst, ar.data + offset, size);
    *total += size;
    return STK_OK;
}

/* Gives how much was read. */
static size_t list_at(const stk_tar_opts *opts, stk_err want)
{
    stk_tar *t;
    size_t total = 0;
    stk_diag diag;
    CHECK_EQ(stk_tar_at(read_place, &total, ar.size, opts, &t), STK_OK);
    CHECK_EQ(list_with(t, &diag), want);
    stk_tar_free(&t);
    return total;
}

/* From memory, from streams and from places alike. */
static void lists(const stk_tar_opts *opts, const char *want)
{
    stk_diag diag;
    CHECK_EQ(list(opts, &diag), STK_OK);
    if (strcmp(listing, want) != 0) fprintf(stderr, "%s\n%s\n", listing, want);
    CHECK(!strcmp(listing, want));
    list_at(opts, STK_OK);
    CHECK(!strcmp(listing, want));
    for (size_t piece = 1; piece < 5000; piece = piece * 3 + 1) {
        CHECK_EQ(list_stream(piece, opts, &diag), STK_OK);
        CHECK(!strcmp(listing, want));
    }
}

static void fails(const stk_tar_opts *opts, stk_err want, const char *text)
{
    stk_diag diag;
    CHECK_EQ(list(opts, &diag), want);
    if (!strstr(diag.text, text)) fprintf(stderr, "%s\n", diag.text);
    CHECK(strstr(diag.text, text));
    CHECK_EQ(list_stream(700, opts, &diag), want);
    list_at(opts, want);
}

static const stk_tar_opts ALL = {.all = true};

static void files_and_others(void)
{
    ar.size = 0;
    put_file("a.txt", "one");
    put_header("folder/", '5', 77); /* the size of a folder is not that of data */
    uint8_t *h = put_header("folder/link", '2', 0);
    memcpy(h + 157, "../../etc/passwd", 16);
    sign(h);
    put_file("folder/b.txt", "");
    h = put_header("hard", '1', 3);
    memcpy(h + 157, "a.txt", 5);
    sign(h);
    put_header("old", 0, 4); /* V7: no type */
    put_data("four", 4);
    put_header("old folder/", 0, 0);
    put_header("contiguous", '7', 1);
    put_data("c", 1);
    put_header("volume", 'V', 512); /* of GNU tar: its data is skipped */
    put_data("abc", 3);
    put_file("a.txt", "again");
    put_end();
    put_file("behind the end", "x");
    lists(NULL, "a.txt=one;folder/b.txt=;old=four;contiguous=c;a.txt=again;");
    lists(&ALL, "a.txt=one;folder/*5>;folder/link*2>../../etc/passwd;folder/b.txt=;hard*1>a.txt;"
                "old=four;old folder/*5>;contiguous=c;volume*V>;a.txt=again;");
}

static void long_names(void)
{
    char name[301], want[2000], prefix[156];
    memset(name, 'n', 300);
    name[300] = 0;
    memset(prefix, 'p', 155);
    prefix[155] = 0;
    ar.size = 0;
    put_extension('L', name, 301); /* with its NUL, as GNU tar does */
    put_file("short", "1");
    uint8_t *h = put_header(name, '0', 0); /* all 100 bytes, and a prefix of all 155 */
    memcpy(h + 345, prefix, 155);
    sign(h);
    put_pax('x', "path", "from pax");
    put_extension('L', "from GNU", 8);
    put_file("short", "2");
    put_pax('x', "size", "4");
    put_header("size", '0', 0);
    put_data("four", 4);
    put_extension('L', "lost", 4); /* goes with the folder */
    put_header("folder", '5', 0);
    put_file("plain", "3");
    h = put_header("GNU's own magic", '0', 0); /* where others have a prefix GNU has times */
    memcpy(h + 257, "ustar  ", 8);
    memcpy(h + 345, "01234567", 8);
    sign(h);
    put_end();
    snprintf(want, sizeof(want), "%s=1;%s/%.100s=;from pax=2;size=four;plain=3;GNU's own magic=;",
             name, prefix, name);
    lists(NULL, want);
}

static void global_headers(void)
{
    ar.size = 0;
    put_pax('g', "comment", "of git");
    put_pax('g', "path", "everywhere");
    put_file("a", "1");
    put_pax('x', "path", "here");
    put_file("b", "2");
    put_pax('g', "path", ""); /* said no longer */
    put_file("c", "3");
    put_pax('X', "path", "Solaris");
    put_file("d", "4");
    put_extension('K', "far away", 8);
    put_header("e", '2', 0);
    put_pax('x', "linkpath", "further");
    put_header("f", '2', 0);
    put_pax('g', "comment", "at the end");
    put_end();
    lists(&ALL, "everywhere=1;here=2;c=3;Solaris=4;e*2>far away;f*2>further;");
}

static void numbers(void)
{
    ar.size = 0;
    uint8_t *h = put_header("base-256", '0', 0);
    memcpy(h + 124, "\x80\0\0\0\0\0\0\0\0\0\0\4", 12);
    sign(h);
    put_data("four", 4);
    h = put_header("blanks", '0', 0);
    memcpy(h + 124, "        4  \0", 12);
    sign(h);
    put_data("four", 4);
    h = put_header("no size at all", '0', 0);
    memset(h + 124, 0, 12);
    sign(h);
    put_end();
    lists(NULL, "base-256=four;blanks=four;no size at all=;");

    static const char *const sizes[] = {"\x80\0\0\0\x80\0\0\0\0\0\0\0",
                                        "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
                                        "00000000009\0",
                                        "0x000000004",
                                        "-0000000004",
                                        "4 4 4 4 4 4 "};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        ar.size = 0;
        put_file("good", "");
        h = put_header("bad", '0', 0);
        memcpy(h + 124, sizes[i], 12);
        sign(h);
        put_end();
        fails(NULL, STK_ECORRUPT, "size in the header at byte 512 is no number");
    }
    ar.size = 0;
    h = put_header("huge", '0', 0); /* 2^63 - 1 */
    memcpy(h + 124, "\x80\0\0\0\x7f\xff\xff\xff\xff\xff\xff\xff", 12);
    sign(h);
    put_end();
    stk_diag diag;
    CHECK_EQ(list(NULL, &diag), STK_ECORRUPT);
    CHECK(strstr(diag.text, "huge has 9223372036854775807 bytes from byte 512 on"));
    CHECK_EQ(list_stream(99, NULL, &diag), STK_ELIMIT);
    h[156] = 'V'; /* no file: skipped, as far as there is anything */
    sign(h);
    CHECK_EQ(list_stream(99, NULL, &diag), STK_ECORRUPT);
}

static void broken_pax(void)
{
    static const char *const records[] = {
        "12 path=abcd\n",
        "14 path=abcd\n",
        "0 path=abcd\n",
        "x3 path=abcd\n",
        "13 path=abcdx",
        "13 path abcd\n",
        "13path=abcd\n",
        "6 =abc\n",
        "-3 path=abcd\n",
        " 13 path=abc\n",
        "99999999999999999999999 path=abcd\n",
        "13 path=abcd\n\n",
        "13 size=abcd\n",
        "12 size=-12\n",
        "29 size=99999999999999999999\n",
    };
    stk_diag diag;
    for (size_t i = 0; i < sizeof(records) / sizeof(*records); i++) {
        ar.size = 0;
        put_extension('x', records[i], strlen(records[i]));
        put_file("a", "");
        put_end();
        fails(NULL, STK_ECORRUPT, "pax header at byte 0");
    }
    ar.size = 0;
    put_extension('x', "13 path=abcd\n", 13);
    put_file("a", "");
    put_end();
    CHECK_EQ(list(NULL, &diag), STK_OK);
    CHECK(!strcmp(listing, "abcd=;"));
}

static void what_is_wrong(void)
{
    stk_diag diag;
    ar.size = 0;
    put_file("good", "1");
    put_header("sparse", 'S', 0);
    put_end();
    fails(NULL, STK_EUNSUPPORTED, "sparse, at byte 1024, is a sparse file");
    ar.size = 0;
    put_pax('x', "GNU.sparse.major", "1");
    put_pax('x', "GNU.sparse.name", "real name");
    put_file("GNUSparseFile.0/name", "1");
    put_end();
    fails(NULL, STK_EUNSUPPORTED, "real name, at byte 2048, is a sparse file");

    ar.size = 0;
    put_file("good", "1");
    uint8_t *h = put_header("bad", '0', 0);
    h[0] ^= 1;
    put_end();
    fails(NULL, STK_ECORRUPT, "the checksum of the header at byte 1024 is wrong");
    ar.size = 0;
    put_file("good", "1");
    ar.data[0] ^= 1;
    fails(NULL, STK_ECORRUPT, "this is no tar archive");
    static const char *const magics[][2] = {{"BZh91", "bzip2"},
                                            {"\xfd"
                                             "7zXZ",
                                             "xz"},
                                            {"PK\3\4", "zip"}};
    for (size_t i = 0; i < 3; i++) {
        memcpy(ar.data, magics[i][0], strlen(magics[i][0]));
        fails(NULL, STK_EUNSUPPORTED, magics[i][1]);
    }
    ar.size = 0;
    fails(NULL, STK_ECORRUPT, "ends at byte 0");
    put_end();
    lists(NULL, ""); /* empty, and says so */
    ar.size = 512;
    lists(NULL, "");

    ar.size = 0; /* signed sums, of old implementations */
    h = put_header("caf\xc3\xa9", '0', 0);
    snprintf((char *)h + 148, 8, "%06o", (unsigned)(strtoul((char *)h + 148, NULL, 8) - 2 * 256));
    put_end();
    lists(NULL, "caf\xc3\xa9=;");
    CHECK_EQ(list(&(stk_tar_opts){.max_header = 1}, &diag), STK_OK);
}

static void limits(void)
{
    ar.size = 0;
    put_extension('L', "0123456789", 10);
    put_extension('x', "13 path=abcd\n", 13);
    put_file("a", "four");
    put_end();
    lists(&(stk_tar_opts){.max_header = 23, .max_member = 4}, "abcd=four;");
    fails(&(stk_tar_opts){.max_header = 22}, STK_ELIMIT, "the limit for one member is 22");
    stk_diag diag;
    CHECK_EQ(list_stream(9999, &(stk_tar_opts){.max_member = 3}, &diag), STK_ELIMIT);
    CHECK(strstr(diag.text, "abcd has 4 bytes, the limit of one member is 3"));
    CHECK_EQ(list(&(stk_tar_opts){.max_member = 3}, &diag), STK_OK); /* a view costs nothing */
    ar.size = 0;
    put_header("x", 'x', (uint64_t)1 << 32);
    fails(NULL, STK_ELIMIT, "4294967296");
}

static void make_sample(void)
{
    ar.size = 0;
    put_pax('g', "comment", "all kinds");
    put_file("one", "1");
    put_extension('L', "a long one", 11);
    put_file("two", "22");
    put_pax('x', "path", "a pax one");
    put_file("three", "333");
    put_header("folder", '5', 0);
    put_end();
}

/* At every length: an error that names an offset, unless the archive had ended by then. */
static void truncated(void)
{
    make_sample();
    const size_t whole = ar.size;
    stk_diag diag;
    for (ar.size = 0; ar.size < whole; ar.size++) {
        const bool ended = ar.size >= whole - 512;
        CHECK_EQ(list(NULL, &diag), ended ? STK_OK : STK_ECORRUPT);
        CHECK(ended || strstr(diag.text, "byte"));
        CHECK_EQ(list_stream(1 + ar.size % 600, NULL, &diag), ended ? STK_OK : STK_ECORRUPT);
        CHECK(ended || strstr(diag.text, "byte"));
        list_at(NULL, ended ? STK_OK : STK_ECORRUPT);
    }
    ar.size = whole - 1024;
    lists(&(stk_tar_opts){.open_end = true}, "one=1;a long one=22;a pax one=333;");
    ar.size = 1024 + 1024 + 1024; /* behind a long name, whose member is missing */
    fails(&(stk_tar_opts){.open_end = true}, STK_ECORRUPT, "that is missing");
}

static void flipped(void)
{
    make_sample();
    stk_diag diag;
    for (size_t i = 0; i < ar.size * 8; i++) {
        ar.data[i / 8] ^= (uint8_t)(1 << i % 8);
        const stk_err err = list(&ALL, &diag);
        CHECK(err == STK_OK || err == STK_ECORRUPT || err == STK_EUNSUPPORTED);
        ar.data[i / 8] ^= (uint8_t)(1 << i % 8);
    }
}

/* Larger than the block: parts of members are read straight to where they are wanted. */
static void large_members(void)
{
    enum { SIZE = 1000003 };
    uint8_t *archive = malloc(2 * SIZE), *copy = malloc(SIZE);
    stk_diag diag = {0};
    stk_tar_member m;
    size_t size = 0;
    for (int i = 0; i < 3; i++) {
        static const uint32_t sizes[] = {SIZE, 300, 300000};
        ar.size = 0;
        put_header("x", '0', sizes[i]);
        memcpy(archive + size, ar.data, 512);
        size += 512;
        for (size_t k = 0; k < sizes[i]; k++) archive[size + k] = (uint8_t)(k * 7 + k / 251);
        size += (sizes[i] + 511) / 512 * 512;
    }
    memset(archive + size, 0, 1024);
    size += 1024;
    for (size_t part = 1; part <= SIZE; part = part * 31) {
        struct pieces p = {archive, size, 100000};
        stk_stream *s;
        stk_tar *t;
        CHECK_EQ(stk_stream_from(read_piece, &p, NULL, &s), STK_OK);
        CHECK_EQ(stk_tar_from(&s, NULL, &t), STK_OK);
        for (int i = 0; i < 3;) {
            const stk_err err = stk_tar_next(t, &m, &diag);
            if (err == STK_EAGAIN) {
                CHECK_EQ(stk_tar_fill(t, &diag), STK_OK);
                continue;
            }
            CHECK_EQ(err, STK_OK);
            const size_t wanted = part < m.size ? part : (size_t)m.size;
            CHECK(stk_tar_buffered(t) <= m.size);
            CHECK_EQ(stk_tar_read(t, copy, wanted / 2, &diag), STK_OK);
            CHECK_EQ(stk_tar_read(t, copy + wanted / 2, wanted - wanted / 2, &diag), STK_OK);
            CHECK(!memcmp(copy, archive + m.offset, wanted));
            CHECK_EQ(stk_tar_read(t, copy, m.size - wanted + 1, &diag), STK_EINVAL);
            i++;
        }
        stk_tar_free(&t);
    }
    free(archive);
    free(copy);
}

/* What is behind the end is read where that was asked for, and not otherwise. */
static void drains(void)
{
    for (int drain = 0; drain < 2; drain++) {
        stk_tar *t;
        stk_stream *s;
        stk_diag diag;
        make_sample();
        memset(ar.data + ar.size, 1, 5000);
        struct pieces p = {ar.data, ar.size + 5000, 600};
        CHECK_EQ(stk_stream_from(read_piece, &p, NULL, &s), STK_OK);
        CHECK_EQ(stk_tar_from(&s, &(stk_tar_opts){.drain = drain}, &t), STK_OK);
        CHECK_EQ(list_with(t, &diag), STK_OK);
        CHECK((p.left == 0) == drain);
        stk_tar_free(&t);
    }
}

static void without_memory(void)
{
    stk_err err = STK_OK;
    make_sample();
    TORTURE (err) {
        stk_tar *t;
        stk_diag diag;
        err = stk_tar_over(ar.data, ar.size, NULL, &t);
        if (!err) err = list_with(t, &diag);
        CHECK(!err || err == STK_ENOMEM);
        stk_tar_free(&t);
    }
    TORTURE (err) {
        stk_tar *t = NULL;
        stk_stream *s;
        stk_diag diag;
        struct pieces p = {ar.data, ar.size, 600};
        err = stk_stream_from(read_piece, &p, NULL, &s);
        if (!err) err = stk_tar_from(&s, NULL, &t);
        if (!err) err = list_with(t, &diag);
        CHECK(!err || err == STK_ENOMEM);
        stk_tar_free(&t);
        stk_stream_free(&s);
    }
}

TESTS(TEST(files_and_others), TEST(long_names), TEST(global_headers), TEST(numbers),
      TEST(broken_pax), TEST(what_is_wrong), TEST(limits), TEST(truncated), TEST(flipped),
      TEST(large_members), TEST(drains), TEST(without_memory))
