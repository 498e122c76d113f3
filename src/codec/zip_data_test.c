#include <errno.h>

#include "base/alloc.h"
#include "tests/zip_make.h"

static struct zip_file file; /* large: not on the stack */
static char text[5000];

static void begin(void)
{
    memset(&file, 0, sizeof(file));
    for (size_t i = 0; i < sizeof(text); i++) text[i] = (char)(i * i >> 5);
}

static void both(void)
{
    begin();
    zip_add(&file, "stored", STK_ZIP_STORED, text, sizeof(text));
    zip_add(&file, "deflated", STK_ZIP_DEFLATED, text, sizeof(text));
}

static stk_zip *open_with(const stk_zip_opts *opts)
{
    const stk_zip_input in = zip_input(&file);
    stk_zip *zip;
    CHECK_EQ(stk_zip_new(&in, opts, &zip, NULL), STK_OK);
    return zip;
}

/* Entry `i` says `want`, with that text. */
static void fails(const stk_zip_opts *opts, size_t i, stk_err want, const char *what)
{
    stk_zip *zip = open_with(opts);
    char *dst = malloc(stk_zip_get(zip, i)->size <= ZIP_ROOM ? ZIP_ROOM : 1);
    CHECK(dst);
    stk_diag diag = {0};
    const stk_err err = stk_zip_read(zip, i, dst, &diag);
    if (err != want || !strstr(diag.text, what)) fprintf(stderr, "%d, \"%s\"\n", err, diag.text);
    CHECK_EQ(err, want);
    CHECK(strstr(diag.text, what));
    free(dst);
    stk_zip_free(&zip);
}

static void unpacks(void)
{
    both();
    zip_finish(&file);
    stk_zip *zip = open_with(NULL);
    char got[sizeof(text)];
    for (size_t i = 0; i < 2; i++) {
        memset(got, 0, sizeof(got));
        CHECK_EQ(stk_zip_read(zip, i, got, NULL), STK_OK);
        CHECK(!memcmp(got, text, sizeof(text)));
    }
    uint64_t at;
    CHECK_EQ(stk_zip_locate(zip, 0, &at, NULL), STK_OK);
    CHECK(!memcmp(file.data + at, text, sizeof(text)));
    CHECK_EQ(stk_zip_unpack(zip, 0, file.data + at, NULL, NULL), STK_OK);
    CHECK_EQ(stk_zip_unpack(zip, 0, text, text, NULL), STK_OK); /* read in place */
    CHECK_EQ(stk_zip_locate(zip, 1, &at, NULL), STK_OK);
    CHECK_EQ(stk_zip_unpack(zip, 1, file.data + at, NULL, NULL), STK_EINVAL);
    stk_zip_free(&zip);
}

static void nothing_in_it(void)
{
    begin();
    zip_add(&file, "stored", STK_ZIP_STORED, "", 0);
    struct zip_entry *e = zip_add(&file, "deflated", STK_ZIP_DEFLATED, "", 0);
    CHECK(e->compressed > 0);
    zip_add(&file, "wrong", STK_ZIP_STORED, "", 0)->crc = 1;
    zip_finish(&file);
    stk_zip *zip = open_with(NULL);
    char none;
    CHECK_EQ(stk_zip_read(zip, 0, &none, NULL), STK_OK);
    CHECK_EQ(stk_zip_read(zip, 1, &none, NULL), STK_OK);
    CHECK_EQ(stk_zip_read(zip, 2, &none, NULL), STK_ECORRUPT);
    stk_zip_free(&zip);
}

static void refused_by_name(void)
{
    static const struct {
        uint16_t flags, method;
        const char *what;
    } cases[] = {
        {1 << 0, 0, "stored: an encrypted entry"},
        {1 << 6, 0, "stored: an encrypted entry"},
        {1 << 13, 0, "stored: an encrypted entry"},
        {1 << 5, 0, "stored: patches"},
        {0, 1, "method 1, shrink"},
        {0, 6, "method 6, implode"},
        {0, 9, "method 9, deflate64"},
        {0, 12, "method 12, bzip2"},
        {0, 14, "method 14, LZMA"},
        {0, 93, "method 93, Zstandard"},
        {0, 95, "method 95, XZ"},
        {0, 98, "method 98, PPMd"},
        {0, 99, "method 99, AES encryption"},
        {0, 77, "method 77, an unknown one"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        both();
        file.entries[0].flags = cases[i].flags;
        file.entries[0].method = cases[i].method;
        zip_finish(&file);
        fails(NULL, 0, STK_EUNSUPPORTED, cases[i].what);
    }
}

static void sizes_are_not_believed(void)
{
    both();
    file.entries[0].size++;
    zip_finish(&file);
    fails(NULL, 0, STK_ECORRUPT, "two sizes");
    both();
    file.entries[1].size++;
    zip_finish(&file);
    fails(NULL, 1, STK_ECORRUPT, "shorter than declared");
    both();
    file.entries[1].size--;
    zip_finish(&file);
    fails(NULL, 1, STK_ECORRUPT, "longer than declared");
    both();
    file.entries[1].compressed--;
    zip_finish(&file);
    fails(NULL, 1, STK_ECORRUPT, "broken");
    both();
    zip_put(&file, "x", 1);
    file.entries[1].compressed++;
    zip_finish(&file);
    fails(NULL, 1, STK_ECORRUPT, "ends early");
    static const uint64_t sizes[] = {ZIP_ROOM * 100, INT64_MAX, (uint64_t)1 << 63, UINT64_MAX};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        both();
        file.entries[1].size = sizes[i];
        file.entries[1].wide = true;
        zip_finish(&file);
        fails(NULL, 1, STK_ECORRUPT, "can't stand for so many bytes");
    }
}

static void ratios(void)
{
    static char zeros[ZIP_ROOM];
    begin();
    struct zip_entry *e = zip_add(&file, "zeros", STK_ZIP_DEFLATED, zeros, sizeof(zeros));
    const uint64_t ratio = (e->size + e->compressed - 1) / e->compressed;
    CHECK(ratio > 500);
    zip_finish(&file);
    stk_zip *zip = open_with(&(stk_zip_opts){.max_ratio = ratio});
    CHECK_EQ(stk_zip_read(zip, 0, zeros, NULL), STK_OK);
    stk_zip_free(&zip);
    fails(&(stk_zip_opts){.max_ratio = ratio - 1}, 0, STK_ELIMIT, "zeros: ");
}

static void damaged(void)
{
    both();
    zip_finish(&file);
    stk_zip *zip = open_with(NULL);
    uint64_t at[2];
    for (size_t i = 0; i < 2; i++) CHECK_EQ(stk_zip_locate(zip, i, &at[i], NULL), STK_OK);
    for (size_t i = 0; i < 2; i++) {
        const uint64_t n = stk_zip_get(zip, i)->compressed;
        for (uint64_t byte = 0; byte < n; byte += i ? 1 : 97) {
            char got[sizeof(text)];
            file.data[at[i] + byte] ^= 0x10;
            const stk_err err = stk_zip_read(zip, i, got, NULL);
            const bool unused = byte == n - 1; /* the bits behind the last code */
            CHECK(err == STK_ECORRUPT || (unused && !err && !memcmp(got, text, sizeof(text))));
            file.data[at[i] + byte] ^= 0x10;
        }
    }
    stk_diag diag = {0};
    file.data[at[0]] ^= 1;
    CHECK_EQ(stk_zip_unpack(zip, 0, file.data + at[0], NULL, &diag), STK_ECORRUPT);
    CHECK(!strcmp(diag.text, "zip: stored: wrong CRC-32"));
    stk_zip_free(&zip);
}

static void local_headers(void)
{
    both();
    zip_finish(&file);
    const struct zip_file whole = file;
    file.data[0] ^= 1;
    fails(NULL, 0, STK_ECORRUPT, "stored: no local header");
    file = whole;
    file.data[26]++;
    fails(NULL, 0, STK_ECORRUPT, "stored: the local header has another name");
    file = whole;
    file.data[31] ^= 1;
    fails(NULL, 0, STK_ECORRUPT, "stored: the local header has another name");
    file = whole;
    file.data[28]++; /* of the extra field */
    fails(NULL, 0, STK_ECORRUPT, "stored: the entry overlaps another one");
    file = whole;
    file.data[29] = 255;
    fails(NULL, 0, STK_ECORRUPT, "stored: the entry overlaps another one");
}

/* A data descriptor, and local headers that say nothing, as streams have them. */
static void descriptors(void)
{
    begin();
    zip_add(&file, "deflated", STK_ZIP_DEFLATED, text, sizeof(text))->flags = 1 << 3;
    memset(file.data + 14, 0, 12);
    zip_put(&file, "PK\7\10 a descriptor", 16);
    zip_add(&file, "stored", STK_ZIP_STORED, text, sizeof(text))->flags = 1 << 3;
    zip_put(&file, "no magic 12b", 12);
    zip_finish(&file);
    stk_zip *zip = open_with(NULL);
    char got[sizeof(text)];
    for (size_t i = 0; i < 2; i++) {
        CHECK_EQ(stk_zip_read(zip, i, got, NULL), STK_OK);
        CHECK(!memcmp(got, text, sizeof(text)));
    }
    stk_zip_free(&zip);
}

/* Reads from `file`, and fails from the call on that *ctx counts down to. */
static stk_err read_file(void *ctx, uint64_t offset, void *dst, size_t size, stk_diag *diag)
{
    int *left = ctx;
    CHECK(size && offset <= file.size && size <= file.size - offset);
    if ((*left)-- == 0) return stk_diag_errno(diag, EIO, "read");
    memcpy(dst, file.data + offset, size);
    return STK_OK;
}

static stk_err read_all(int *left, stk_diag *diag)
{
    const stk_zip_input in = {.size = file.size, .read = read_file, .ctx = left};
    char got[sizeof(text)];
    stk_zip *zip;
    stk_err err = stk_zip_new(&in, NULL, &zip, diag);
    for (size_t i = 0; !err && i < stk_zip_count(zip); i++) {
        err = stk_zip_read(zip, i, got, diag);
        CHECK(err || !memcmp(got, text, sizeof(text)));
    }
    stk_zip_free(&zip);
    return err;
}

static void read_from_elsewhere(void)
{
    both();
    zip_directory(&file);
    zip_end64(&file, 3);
    zip_end(&file, true);
    stk_err err = STK_EIO;
    for (int at = 0; err; at++) {
        int left = at;
        stk_diag diag = {0};
        err = read_all(&left, &diag);
        CHECK(!err || (err == STK_EIO && !strcmp(diag.text, "read: Input/output error")));
        CHECK(at < 20);
    }
    TORTURE (err) {
        int left = INT32_MAX;
        err = read_all(&left, NULL);
        CHECK(err == STK_OK || err == STK_ENOMEM);
    }
}

static void long_names(void)
{
    begin();
    char name[2000];
    static const char zeros[24];
    memset(name, 'n', sizeof(name));
    zip_num(&file, 0x04034b50, 4);
    zip_put(&file, zeros, 22);
    zip_num(&file, sizeof(name), 2);
    zip_num(&file, 0, 2);
    zip_put(&file, name, sizeof(name));
    file.directory = file.size;
    zip_num(&file, 0x02014b50, 4);
    zip_put(&file, zeros, 24);
    zip_num(&file, sizeof(name), 2);
    zip_put(&file, zeros, 16);
    zip_put(&file, name, sizeof(name));
    file.n = 1;
    zip_end(&file, false);
    stk_zip *zip = open_with(NULL);
    uint64_t at;
    CHECK_EQ(stk_zip_locate(zip, 0, &at, NULL), STK_OK);
    CHECK_EQ(at, 2030);
    stk_diag diag = {0};
    file.data[2029] ^= 1;
    CHECK_EQ(stk_zip_locate(zip, 0, &at, &diag), STK_ECORRUPT);
    CHECK(strstr(diag.text, "another name"));
    stk_zip_free(&zip);
}

TESTS(TEST(unpacks), TEST(nothing_in_it), TEST(refused_by_name), TEST(sizes_are_not_believed),
      TEST(ratios), TEST(damaged), TEST(local_headers), TEST(descriptors),
      TEST(read_from_elsewhere), TEST(long_names))
