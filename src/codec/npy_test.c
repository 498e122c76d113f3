#include <stoker/npy.h>

#include "tests/check.h"

struct file {
    uint8_t data[4096];
    size_t size;
};

/* A file of that version with that dict, and so many bytes of elements. */
static struct file make(int major, const char *dict, size_t elements)
{
    struct file f = {.size = 0};
    const size_t n = strlen(dict), length = major == 1 ? 2 : 4;
    CHECK(8 + length + n + elements <= sizeof(f.data));
    memcpy(f.data, "\x93NUMPY", 6);
    f.data[6] = (uint8_t)major;
    for (size_t i = 0; i < length; i++) f.data[8 + i] = (uint8_t)(n >> 8 * i);
    memcpy(f.data + 8 + length, dict, n);
    f.size = 8 + length + n + elements;
    return f;
}

static stk_err parse(const char *dict, size_t elements, stk_npy *out, stk_diag *diag)
{
    const struct file f = make(1, dict, elements);
    return stk_npy_parse(f.data, f.size, out, diag);
}

static void fails(stk_err want, const char *dict, size_t elements, const char *text)
{
    stk_npy npy;
    stk_diag diag = {0};
    const stk_err err = parse(dict, elements, &npy, &diag);
    if (err != want || !strstr(diag.text, text))
        fprintf(stderr, "%s: %d, \"%s\"\n", dict, err, diag.text);
    CHECK_EQ(err, want);
    CHECK(strstr(diag.text, text));
}

static void says_what_is_there(void)
{
    const char *dict = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }  \n";
    for (int major = 1; major <= 3; major++) {
        const struct file f = make(major, dict, 24 + 5);
        stk_npy npy;
        CHECK_EQ(stk_npy_parse(f.data, f.size, &npy, NULL), STK_OK);
        CHECK(!strcmp(npy.descr, "<f4"));
        CHECK_EQ(npy.kind, 'f');
        CHECK_EQ(npy.dtype, STK_FLOAT32);
        CHECK_EQ(npy.item_size, 4);
        CHECK(!npy.fortran && !npy.big_endian);
        CHECK_EQ(npy.ndim, 2);
        CHECK_EQ(npy.shape[0], 2);
        CHECK_EQ(npy.shape[1], 3);
        CHECK_EQ(npy.data_size, 24);
        CHECK_EQ(npy.data_offset, f.size - 29);
    }
}

static void elements(void)
{
    static const struct {
        const char *descr;
        char kind;
        size_t size;
        stk_dtype dtype;
        bool big_endian;
    } cases[] = {
        {"|b1", 'b', 1, STK_BOOL, false},
        {"|u1", 'u', 1, STK_UINT8, false},
        {"|i1", 'i', 1, STK_INT8, false},
        {">i1", 'i', 1, STK_INT8, false},
        {"<u2", 'u', 2, STK_UINT16, false},
        {">u2", 'u', 2, STK_DTYPE_NONE, true},
        {"<i8", 'i', 8, STK_INT64, false},
        {"=i8", 'i', 8, STK_INT64, false},
        {"i8", 'i', 8, STK_INT64, false},
        {"<f2", 'f', 2, STK_FLOAT16, false},
        {">f8", 'f', 8, STK_DTYPE_NONE, true},
        {"<f16", 'f', 16, STK_DTYPE_NONE, false},
        {"<c8", 'c', 8, STK_DTYPE_NONE, false},
        {"<c32", 'c', 32, STK_DTYPE_NONE, false},
        {"|S5", 'S', 5, STK_DTYPE_NONE, false},
        {"|S0", 'S', 0, STK_DTYPE_NONE, false},
        {">U3", 'U', 12, STK_DTYPE_NONE, true},
        {"|V2", 'V', 2, STK_DTYPE_NONE, false},
        {"<M8", 'M', 8, STK_DTYPE_NONE, false},
        {"<M8[ns]", 'M', 8, STK_DTYPE_NONE, false},
        {">m8[25us]", 'm', 8, STK_DTYPE_NONE, true},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char dict[128];
        stk_npy npy;
        snprintf(dict, sizeof(dict), "{'descr': '%s', 'fortran_order': True, 'shape': (4,)}",
                 cases[i].descr);
        CHECK_EQ(parse(dict, 4 * cases[i].size, &npy, NULL), STK_OK);
        CHECK(!strcmp(npy.descr, cases[i].descr));
        CHECK_EQ(npy.kind, cases[i].kind);
        CHECK_EQ(npy.item_size, cases[i].size);
        CHECK_EQ(npy.dtype, cases[i].dtype);
        CHECK_EQ(npy.big_endian, cases[i].big_endian);
        CHECK_EQ(npy.data_size, 4 * cases[i].size);
        CHECK(npy.fortran);
    }
}

/* What people and other software write. */
static void spellings(void)
{
    stk_npy npy;
    static const char *const dicts[] = {
        "{'descr': '<i2', 'fortran_order': False, 'shape': (2, 3)}",
        "{\"shape\": (2, 3,), \"descr\": \"<i2\", \"fortran_order\": False}",
        " { 'fortran_order' : False , 'shape' : ( 2 , 3 , ) , 'descr' : '<i2' , } \r\n",
        "{'descr':'<i2','fortran_order':False,'shape':(2L,3L)}",
        "{'descr':'<i2','fortran_order':False,'shape':(0000000000000000000000002,3)}",
    };
    for (size_t i = 0; i < sizeof(dicts) / sizeof(*dicts); i++) {
        CHECK_EQ(parse(dicts[i], 12, &npy, NULL), STK_OK);
        CHECK_EQ(npy.ndim, 2);
        CHECK_EQ(npy.data_size, 12);
    }
    CHECK_EQ(parse("{'descr': '<i2', 'fortran_order': False, 'shape': ()}", 2, &npy, NULL), STK_OK);
    CHECK_EQ(npy.ndim, 0);
    CHECK_EQ(npy.data_size, 2);
    CHECK_EQ(parse("{'descr': '<i2', 'fortran_order': False, 'shape': (7, 0)}", 0, &npy, NULL),
             STK_OK);
    CHECK_EQ(npy.data_size, 0);
}

#define REST "'fortran_order': False, 'shape': (2,)}"
#define FRONT "{'descr': '<i2', 'fortran_order': False, "

static void refused_by_name(void)
{
    fails(STK_EUNSUPPORTED, "{'descr': '|O', " REST, 99, "an array of objects (dtype '|O')");
    fails(STK_EUNSUPPORTED, "{'descr': 'O8', " REST, 99, "unpickled");
    fails(STK_EUNSUPPORTED, "{'descr': [('a', '<i4')], " REST, 99, "a structured dtype");
    fails(STK_EUNSUPPORTED, "{'descr': ('<i4', (2,)), " REST, 99, "a structured dtype");
    static const char *const unknown[] = {
        "",
        "<",
        "<q8",
        "<i3",
        "<f12x",
        "<f4,<f4",
        "|T16",
        "<M8[xs]",
        "<M8[ns",
        "<M8[]",
        "<M8[",
        "<M8[0s]",
        "<M4",
        "<i4[ns]",
        "<M8ns]",
        "|S",
        "|S-1",
        "float4",
        "|S2147483648",
        "<U536870912",
        "<i8 ",
        "<<i8",
        "<M8[99999999999s]",
        "|S99999999999999999999999999",
    };
    for (size_t i = 0; i < sizeof(unknown) / sizeof(*unknown); i++) {
        char dict[128], text[64];
        snprintf(dict, sizeof(dict), "{'descr': '%s', " REST, unknown[i]);
        snprintf(text, sizeof(text), "unknown dtype '%s'", unknown[i]);
        fails(STK_EUNSUPPORTED, dict, 99, text);
    }
}

static void too_many_dimensions(void)
{
    char dict[1024];
    int n = snprintf(dict, sizeof(dict), "%s", FRONT "'shape': (");
    for (int i = 0; i <= STK_NPY_MAX_NDIM; i++)
        n += snprintf(dict + n, sizeof(dict) - (size_t)n, "1,");
    snprintf(dict + n, sizeof(dict) - (size_t)n, ")}");
    fails(STK_EUNSUPPORTED, dict, 99, "more than 64 dimensions");
}

static void versions(void)
{
    struct file f = make(1, FRONT "'shape': (2,)}", 4);
    stk_npy npy;
    stk_diag diag = {0};
    for (int version = 0; version < 512; version++) {
        f.data[6] = (uint8_t)(version >> 1);
        f.data[7] = (uint8_t)(version & 1);
        const stk_err err = stk_npy_parse(f.data, f.size, &npy, &diag);
        const bool known = f.data[6] >= 1 && f.data[6] <= 3 && !f.data[7];
        CHECK_EQ(err == STK_EUNSUPPORTED, !known);
    }
}

static const char *const broken_dicts[] = {
    "",
    "[]",
    "{",
    "{}",
    "}",
    "{'descr'}",
    "{'descr':}",
    "{descr: '<i2', " REST,
    "{'descr' '<i2', " REST,
    "{'descr': <i2, " REST,
    "{'descr': '<i2}",
    "{'descr': '<\\i2', " REST,
    "{'descr': 3, " REST,
    "{'descr': '<i2', 'descr': '<i2', " REST,
    "{'descr': '<i2', 'more': 1, " REST,
    "{'descr': '<i2'}",
    "{'descr': '<i2' " REST,
    "{,'descr': '<i2', " REST,
    "{'descr': '<i2',, " REST,
    "{'descr': '<i2', 'fortran_order': 0, 'shape': (2,)}",
    "{'descr': '<i2', 'fortran_order': true, 'shape': (2,)}",
    FRONT "'shape': 2}",
    FRONT "'shape': [2]}",
    FRONT "'shape': (2)}",
    FRONT "'shape': (2}",
    FRONT "'shape': (",
    FRONT "'shape': (,)}",
    FRONT "'shape': (2,,)}",
    FRONT "'shape': (2 3)}",
    FRONT "'shape': (-2,)}",
    FRONT "'shape': (2.0,)}",
    FRONT "'shape': (True,)}",
    FRONT "'shape': (0x2,)}",
    FRONT "'shape': (2**8,)}",
    FRONT "'shape': (9223372036854775808,)}",
    FRONT "'shape': (2,)} + {}",
    FRONT "'shape': (2,)}\\",
};

static void broken(void)
{
    for (size_t i = 0; i < sizeof(broken_dicts) / sizeof(*broken_dicts); i++)
        fails(STK_ECORRUPT, broken_dicts[i], 99, "broken header");
}

static void sizes_are_not_believed(void)
{
    fails(STK_ECORRUPT, FRONT "'shape': (2,)}", 3, "the data ends after 3 of 4 bytes");
    fails(STK_ECORRUPT, FRONT "'shape': (9223372036854775807,)}", 99, "beyond all memory");
    fails(STK_ECORRUPT, FRONT "'shape': (4294967296, 4294967296)}", 99, "beyond all memory");
    fails(STK_ECORRUPT, FRONT "'shape': (0, 4294967296, 4294967296)}", 99, "beyond all memory");
    fails(STK_ECORRUPT, FRONT "'shape': (4611686018427387903,)}", 99, "the data ends after 99");
    fails(STK_ECORRUPT,
          "{'descr': '|S0', 'fortran_order': False, 'shape': (4294967296, 4294967296)}", 99,
          "beyond all memory");
    struct file f = make(2, FRONT "'shape': (2,)}", 4);
    stk_npy npy;
    stk_diag diag = {0};
    memset(f.data + 8, 0xff, 4);
    CHECK_EQ(stk_npy_parse(f.data, f.size, &npy, &diag), STK_ECORRUPT);
    CHECK(strstr(diag.text, "ends inside the header"));
}

/* At every length: an error, and nothing is read beyond it. */
static void truncated(void)
{
    for (int major = 1; major <= 3; major++) {
        const struct file f = make(major, FRONT "'shape': (2,)}", 4);
        for (size_t size = 0; size < f.size; size++) {
            uint8_t *data = malloc(size ? size : 1);
            CHECK(data);
            memcpy(data, f.data, size);
            stk_npy npy;
            stk_diag diag = {0};
            CHECK_EQ(stk_npy_parse(data, size, &npy, &diag), STK_ECORRUPT);
            CHECK(diag.text[0]);
            free(data);
        }
    }
    stk_npy npy;
    CHECK_EQ(stk_npy_parse(NULL, 0, &npy, NULL), STK_ECORRUPT);
    CHECK_EQ(stk_npy_parse("\x93NUMPX\x01", 8, &npy, NULL), STK_ECORRUPT);
}

/* Any byte may be any other: what is accepted lies inside the data. */
static void flipped(void)
{
    const struct file f = make(1, "{'descr': '<i2', 'fortran_order': True, 'shape': (2, 3)}", 12);
    for (size_t at = 0; at < f.size; at++)
        for (int value = 0; value < 256; value++) {
            struct file other = f;
            stk_npy npy;
            other.data[at] = (uint8_t)value;
            if (stk_npy_parse(other.data, other.size, &npy, NULL)) continue;
            CHECK(npy.data_offset <= other.size);
            CHECK(npy.data_size <= other.size - npy.data_offset);
        }
}

TESTS(TEST(says_what_is_there), TEST(elements), TEST(spellings), TEST(refused_by_name),
      TEST(too_many_dimensions), TEST(versions), TEST(broken), TEST(sizes_are_not_believed),
      TEST(truncated), TEST(flipped))
