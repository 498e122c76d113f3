#include <stoker/zip.h>

#include <sys/stat.h>

#include "base/alloc.h"
#include "tests/zip_make.h"

static struct zip_file file; /* large: not on the stack */

static void begin(void)
{
    memset(&file, 0, sizeof(file));
}

static void two(void)
{
    begin();
    zip_add(&file, "first.txt", STK_ZIP_STORED, "one", 3);
    zip_add(&file, "folder/../second", STK_ZIP_DEFLATED, "two two two two two", 19);
}

static stk_zip *open_file(void)
{
    const stk_zip_input in = zip_input(&file);
    stk_zip *zip;
    stk_diag diag = {0};
    const stk_err err = stk_zip_new(&in, NULL, &zip, &diag);
    if (err) fprintf(stderr, "%s\n", diag.text);
    CHECK_EQ(err, STK_OK);
    return zip;
}

static void check_two(void)
{
    stk_zip *zip = open_file();
    CHECK_EQ(stk_zip_count(zip), 2);
    const stk_zip_entry *e = stk_zip_get(zip, 0);
    CHECK(e->name_size == 9 && !memcmp(e->name, "first.txt", 9));
    CHECK(e->size == 3 && e->compressed == 3 && e->method == STK_ZIP_STORED);
    char text[19];
    CHECK_EQ(stk_zip_read(zip, 0, text, NULL), STK_OK);
    CHECK(!memcmp(text, "one", 3));
    CHECK_EQ(stk_zip_read(zip, 1, text, NULL), STK_OK);
    CHECK(!memcmp(text, "two two two two two", 19));
    uint64_t at;
    CHECK_EQ(stk_zip_locate(zip, 0, &at, NULL), STK_OK);
    CHECK(!memcmp(file.data + at, "one", 3));
    stk_zip_free(&zip);
    CHECK(!zip);
    stk_zip_free(&zip);
}

static void refused(stk_err want, const char *text)
{
    const stk_zip_input in = zip_input(&file);
    stk_zip *zip;
    stk_diag diag = {0};
    const stk_err err = stk_zip_new(&in, NULL, &zip, &diag);
    if (err != want || !strstr(diag.text, text)) fprintf(stderr, "%d, \"%s\"\n", err, diag.text);
    CHECK_EQ(err, want);
    CHECK(!zip && strstr(diag.text, text));
}

static void says_what_is_there(void)
{
    two();
    zip_finish(&file);
    check_two();
}

static void empty(void)
{
    begin();
    zip_finish(&file);
    stk_zip *zip = open_file();
    CHECK_EQ(stk_zip_count(zip), 0);
    stk_zip_free(&zip);
}

static void around_the_archive(void)
{
    for (size_t prefix = 0; prefix < 200; prefix += 99) {
        begin();
        file.size = file.prefix = prefix;
        zip_add(&file, "first.txt", STK_ZIP_STORED, "one", 3);
        zip_add(&file, "folder/../second", STK_ZIP_DEFLATED, "two two two two two", 19);
        zip_finish(&file);
        check_two();
        zip_put(&file, "\0\0\0\0 PK\5 and more", 18); /* belongs to nobody */
        check_two();
    }
    two();
    zip_finish(&file);
    file.data[file.size - 2] = 20;
    zip_put(&file, "a comment of 20 byte", 19);
    refused(STK_ECORRUPT, "Failed to locate the end of the central directory.");
    zip_put(&file, "s", 1);
    check_two();
}

static void zip64(void)
{
    for (int kind = 0; kind < 8; kind++) {
        begin();
        file.size = file.prefix = kind & 4 ? 77 : 0;
        zip_add(&file, "first.txt", STK_ZIP_STORED, "one", 3)->wide = true;
        zip_add(&file, "folder/../second", STK_ZIP_DEFLATED, "two two two two two", 19);
        zip_directory(&file);
        if (kind & 2 && kind & 4) continue; /* nothing says where it is */
        zip_end64(&file, kind & 2 ? 33 : 0);
        zip_end(&file, kind & 1);
        check_two();
        if (kind & 1) {
            file.data[file.size - 22 - 20 - 4 - (kind & 2 ? 33 : 0)] ^= 1; /* the offset */
            refused(STK_ECORRUPT, "outside of the archive");
        }
    }
    two();
    zip_directory(&file);
    zip_end64(&file, 0);
    zip_end(&file, true);
    struct zip_file whole = file;
    const size_t locator = file.size - 22 - 20;
    file.data[locator - 56] ^= 1;
    refused(STK_ECORRUPT, "no zip64 end");
    file = whole;
    file.data[locator - 56 + 4] ^= 1; /* its size */
    refused(STK_ECORRUPT, "no zip64 end");
    file = whole;
    file.data[locator + 4] = 1;
    refused(STK_EUNSUPPORTED, "several disks");
    file = whole;
    file.data[locator + 16] = 2;
    refused(STK_EUNSUPPORTED, "several disks");
    file = whole;
    file.data[locator - 56 + 16] = 1;
    refused(STK_EUNSUPPORTED, "several disks");
    file = whole;
    file.data[locator - 56 + 24] = file.data[locator - 56 + 32] = 3; /* entries */
    refused(STK_ECORRUPT, "has 2 entries, not 3");
    file = whole;
    memset(file.data + locator - 56 + 40, 0xff, 8); /* bytes of the directory */
    refused(STK_ECORRUPT, "outside of the archive");
    file = whole;
    memset(file.data + locator - 56 + 48, 0xff, 8); /* its offset */
    refused(STK_ECORRUPT, "outside of the archive");
}

/* More entries than 16 bits count, in an archive without zip64. */
static void numbers_overflow(void)
{
    two();
    zip_finish(&file);
    file.data[file.size - 22 + 8] = file.data[file.size - 22 + 10] = 3;
    refused(STK_ECORRUPT, "has 2 entries, not 3");
    file.data[file.size - 22 + 8] = 2;
    refused(STK_ECORRUPT, "two numbers");
    const size_t n = 65536 + 3, each = 30 + 46 + 2 * 5, size = n * each + 22;
    uint8_t *data = malloc(size);
    CHECK(data);
    for (size_t i = 0; i < n; i++) {
        begin();
        char name[16];
        snprintf(name, sizeof(name), "%05x", (unsigned)i);
        struct zip_entry *e = zip_add(&file, name, STK_ZIP_STORED, "", 0);
        file.data[28] = 0; /* no extra field */
        memcpy(data + i * 35, file.data, 35);
        file.size = 0;
        e->offset = i * 35;
        zip_header(&file, e);
        memcpy(data + n * 35 + i * 51, file.data, 51);
    }
    begin();
    file.n = n & 0xffff;
    zip_end(&file, false);
    for (int i = 0; i < 4; i++) {
        file.data[12 + i] = (uint8_t)(n * 51 >> 8 * i);
        file.data[16 + i] = (uint8_t)(n * 35 >> 8 * i);
    }
    memcpy(data + n * 86, file.data, 22);
    stk_zip *zip;
    const stk_zip_input in = {.data = data, .size = size};
    CHECK_EQ(stk_zip_new(&in, NULL, &zip, NULL), STK_OK);
    CHECK_EQ(stk_zip_count(zip), n);
    CHECK(!memcmp(stk_zip_get(zip, n - 1)->name, "10002", 5));
    stk_zip_free(&zip);
    const stk_zip_opts tight = {.max_directory = n * 51 - 1};
    stk_diag diag = {0};
    CHECK_EQ(stk_zip_new(&in, &tight, &zip, &diag), STK_ELIMIT);
    CHECK(strstr(diag.text, "the limit is 3342488"));
    free(data);
}

static void kinds(void)
{
    static const struct {
        const char *name;
        uint16_t made_by;
        mode_t mode;
        stk_zip_kind kind;
    } cases[] = {
        {"a", 0, 0, STK_ZIP_FILE},
        {"a/", 0, 0, STK_ZIP_FOLDER},
        {"a", 0, S_IFLNK, STK_ZIP_FILE}, /* of a system that has no such bits */
        {"a", 3 << 8, 0644, STK_ZIP_FILE},
        {"a", 3 << 8, S_IFREG | 0644, STK_ZIP_FILE},
        {"a", 3 << 8, S_IFDIR, STK_ZIP_FOLDER},
        {"a", 3 << 8 | 30, S_IFLNK | 0777, STK_ZIP_LINK},
        {"a", 19 << 8, S_IFLNK, STK_ZIP_LINK},
        {"a", 3 << 8, S_IFIFO, STK_ZIP_DEVICE},
        {"a", 3 << 8, S_IFCHR, STK_ZIP_DEVICE},
        {"", 3 << 8, S_IFREG, STK_ZIP_FILE},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        begin();
        struct zip_entry *e = zip_add(&file, cases[i].name, STK_ZIP_STORED, "x", 1);
        e->made_by = cases[i].made_by;
        e->attributes = (uint32_t)cases[i].mode << 16;
        e->flags = i & 1 ? 1 << 11 : 0;
        zip_finish(&file);
        stk_zip *zip = open_file();
        CHECK_EQ(stk_zip_get(zip, 0)->kind, cases[i].kind);
        CHECK_EQ(stk_zip_get(zip, 0)->utf8, i & 1);
        stk_zip_free(&zip);
    }
}

static void entries_lie_apart(void)
{
    two();
    file.entries[1].offset = 0;
    zip_finish(&file);
    refused(STK_ECORRUPT, "overlaps");
    two();
    file.entries[1].offset = file.entries[0].offset + 1;
    zip_finish(&file);
    refused(STK_ECORRUPT, "overlaps");
    two();
    file.entries[0].compressed += 4; /* up to the next one there are 3 of the extra field */
    zip_finish(&file);
    refused(STK_ECORRUPT, "first.txt: the entry overlaps");
    static const uint64_t far[] = {1000, UINT32_MAX - 1, UINT32_MAX, UINT64_MAX, INT64_MAX};
    for (size_t i = 0; i < sizeof(far) / sizeof(*far); i++)
        for (int field = 0; field < 2; field++) {
            two();
            struct zip_entry *e = &file.entries[1];
            *(field ? &e->offset : &e->compressed) = far[i];
            e->wide = far[i] >= UINT32_MAX;
            zip_finish(&file);
            refused(STK_ECORRUPT, "folder/../second: the entry lies outside");
        }
    two(); /* in another order it is the same archive */
    const struct zip_entry first = file.entries[0];
    file.entries[0] = file.entries[1];
    file.entries[1] = first;
    zip_finish(&file);
    stk_zip *zip = open_file();
    char text[19];
    CHECK_EQ(stk_zip_read(zip, 0, text, NULL), STK_OK);
    CHECK_EQ(stk_zip_read(zip, 1, text, NULL), STK_OK);
    stk_zip_free(&zip);
}

static void broken_directories(void)
{
    two();
    file.entries[0].disk = 1;
    zip_finish(&file);
    refused(STK_EUNSUPPORTED, "several disks");
    two();
    memcpy(file.entries[0].name + 3, "\0", 1);
    zip_finish(&file);
    refused(STK_ECORRUPT, "NUL");
    two();
    file.entries[0].wide = true;
    zip_finish(&file);
    struct zip_file whole = file;
    const size_t extra = file.directory + 46 + 9;
    file.data[extra + 8] = 23; /* of 24 bytes */
    refused(STK_ECORRUPT, "a broken extra field");
    file = whole;
    file.data[extra + 2] = 255;
    refused(STK_ECORRUPT, "a broken extra field");
    file = whole;
    file.data[extra + 6] = 2; /* none of zip64 */
    refused(STK_ECORRUPT, "a broken extra field");
    static const size_t places[] = {0, 1, 2, 3, 28, 30, 32};
    for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
        file = whole;
        file.data[file.directory + places[i]] ^= 0x40;
        refused(STK_ECORRUPT, "the central directory");
    }
    file = whole;
    file.data[file.size - 22 + 12]--; /* bytes of the directory: where it ends, nothing changes */
    refused(STK_ECORRUPT, "the central directory");
    file = whole;
    file.data[file.size - 22 + 4] = 1;
    refused(STK_EUNSUPPORTED, "several disks");
    file = whole;
    file.data[file.size - 22 + 6] = 1;
    refused(STK_EUNSUPPORTED, "several disks");
}

/* At every length: an error, and nothing is read beyond it. */
static void truncated(void)
{
    two();
    zip_directory(&file);
    zip_end64(&file, 5);
    zip_end(&file, true);
    for (size_t size = 0; size < file.size; size++) {
        uint8_t *data = malloc(size ? size : 1);
        CHECK(data);
        memcpy(data, file.data, size);
        stk_zip *zip;
        stk_diag diag = {0};
        const stk_zip_input in = {.data = data, .size = size};
        CHECK_EQ(stk_zip_new(&in, NULL, &zip, &diag), STK_ECORRUPT);
        CHECK(!strcmp(diag.text, size < 22 ? "The data is not a valid zip file."
                                           : "Failed to locate the end of the central directory."));
        free(data);
    }
}

/* Any byte may be any other: nothing but an error, or entries that lie inside. */
static void flipped(void)
{
    two();
    file.entries[0].wide = true;
    zip_directory(&file);
    zip_end64(&file, 0);
    zip_end(&file, true);
    static const uint8_t values[] = {0, 1, 0x7f, 0x80, 0xff};
    for (size_t at = 0; at < file.size; at++)
        for (size_t i = 0; i < sizeof(values); i++) {
            const uint8_t was = file.data[at];
            file.data[at] = values[i];
            const stk_zip_input in = zip_input(&file);
            stk_zip *zip;
            const stk_err err = stk_zip_new(&in, NULL, &zip, NULL);
            for (size_t n = 0; !err && n < stk_zip_count(zip); n++) {
                const stk_zip_entry *e = stk_zip_get(zip, n);
                uint64_t from;
                if (stk_zip_locate(zip, n, &from, NULL)) continue;
                CHECK(from <= file.directory && e->compressed <= file.directory - from);
                uint8_t *dst = malloc(e->size ? e->size : 1);
                CHECK(dst);
                (void)!stk_zip_read(zip, n, dst, NULL);
                free(dst);
            }
            stk_zip_free(&zip);
            file.data[at] = was;
        }
}

static void without_memory(void)
{
    two();
    struct zip_entry *e = &file.entries[0]; /* unsorted: an order of its own is made */
    const struct zip_entry first = *e;
    *e = file.entries[1];
    file.entries[1] = first;
    zip_finish(&file);
    const stk_zip_input in = zip_input(&file);
    stk_err err;
    TORTURE (err) {
        stk_zip *zip;
        stk_diag diag = {0};
        err = stk_zip_new(&in, NULL, &zip, &diag);
        CHECK(err == STK_OK || err == STK_ENOMEM);
        CHECK(!err == !!zip);
        stk_zip_free(&zip);
    }
}

TESTS(TEST(says_what_is_there), TEST(empty), TEST(around_the_archive), TEST(zip64),
      TEST(numbers_overflow), TEST(kinds), TEST(entries_lie_apart), TEST(broken_directories),
      TEST(truncated), TEST(flipped), TEST(without_memory))
