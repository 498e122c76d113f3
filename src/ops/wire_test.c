#include "ops/wire.h"

#include <sys/mman.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/failpoint.h"
#include "tests/check.h"

static void offsets(void)
{
    stk_wire_request r = {.num_parts = 4, .sizes = {1, STK_WIRE_NO_BYTES, 0, 65}};
    const uint64_t want[] = {0, 64, 64, 64, 192};
    uint64_t at;
    for (size_t i = 0; i < 5; i++) {
        CHECK_EQ(stk_wire_offset(&r, i, &at), STK_OK);
        CHECK_EQ(at, want[i]);
    }
    r.sizes[0] = INT64_MAX;
    CHECK_EQ(stk_wire_offset(&r, 1, &at), STK_ELIMIT);
    r.sizes[0] = STK_WIRE_NO_BYTES - 1;
    CHECK_EQ(stk_wire_offset(&r, 1, &at), STK_ELIMIT);
    r.sizes[0] = r.sizes[3] = (uint64_t)INT64_MAX / 2 + 1;
    CHECK_EQ(stk_wire_offset(&r, 4, &at), STK_ELIMIT);
}

static stk_wire_reply good(void)
{
    return (stk_wire_reply){
        .number = 7,
        .num_parts = 2,
        .arrays = {{{.dtype = STK_UINT8, .ndim = 1, .shape = {100}}, 0},
                   {{.dtype = STK_FLOAT32, .ndim = 2, .shape = {5, 2}}, 128}},
    };
}

static stk_err look(stk_wire_reply r, size_t size)
{
    const stk_wire_expected e = {
        .num_parts = 2,
        .taken = {true, true},
        .known = {{.dtype = STK_UINT8, .ndim = 1, .shape = {100}}},
    };
    stk_diag diag = {0};
    const stk_err err = stk_wire_check(&r, size, 7, &e, 168, &diag);
    CHECK(!err || diag.text[0]);
    return err;
}

static stk_err look_at(stk_wire_reply r)
{
    return look(r, sizeof(r));
}

/* Of a part that is not taken nothing is looked at, and nothing must be. */
static void parts_that_stay(void)
{
    stk_wire_reply r = good();
    stk_wire_expected e = {.num_parts = 2, .taken = {false, true}};
    stk_diag diag = {0};
    r.arrays[0] = (stk_wire_array){{.dtype = 99, .ndim = 77}, UINT64_MAX};
    CHECK_EQ(stk_wire_check(&r, sizeof(r), 7, &e, 168, &diag), STK_OK);
    e.taken[0] = true;
    CHECK_EQ(stk_wire_check(&r, sizeof(r), 7, &e, 168, &diag), STK_EINVAL);
}

/* Everything that can be wrong, one at a time. */
static void lies(void)
{
    stk_wire_reply r = good();
    CHECK_EQ(look_at(r), STK_OK);
    for (size_t size = 0; size < 2 * sizeof(r); size += 8)
        CHECK_EQ(look(r, size), size == sizeof(r) ? STK_OK : STK_EINVAL);
    r.number = 6;
    CHECK_EQ(look_at(r), STK_EINVAL);
    for (uint64_t n = 0; n < 12; n++) {
        r = good(), r.num_parts = n;
        CHECK_EQ(look_at(r), n == 2 ? STK_OK : STK_EINVAL);
    }
    for (int part = -2; part < 12; part++) {
        r = good(), r.diag.part = part;
        CHECK_EQ(look_at(r), part >= 0 && part < STK_MAX_PARTS ? STK_OK : STK_EINVAL);
    }
    r = good(), r.arrays[0].spec.shape[0] = 99; /* another is known */
    CHECK_EQ(look_at(r), STK_EINVAL);
    r = good(), r.arrays[1].spec.shape[0] = 6; /* too long */
    CHECK_EQ(look_at(r), STK_EINVAL);
    r = good(), r.arrays[1].offset = 129;
    CHECK_EQ(look_at(r), STK_EINVAL);
    r = good(), r.arrays[1].offset = UINT64_MAX - 8;
    CHECK_EQ(look_at(r), STK_EINVAL);
    r = good(), r.arrays[1].spec.shape[0] = -1;
    CHECK_EQ(look_at(r), STK_EINVAL);
    r = good(), r.arrays[1].spec.ndim = STK_MAX_NDIM + 1;
    CHECK_EQ(look_at(r), STK_EINVAL);
    r = good(), r.arrays[1].spec.dtype = (stk_dtype)99;
    CHECK_EQ(look_at(r), STK_EINVAL);
    r = good(), r.arrays[1].spec.shape[0] = r.arrays[1].spec.shape[1] = INT64_C(1) << 40;
    CHECK_EQ(look_at(r), STK_EINVAL);
}

static void errors(void)
{
    static const stk_err believed[] = {STK_ENOMEM,   STK_EINVAL,    STK_EIO,          STK_ECORRUPT,
                                       STK_ETIMEOUT, STK_ENOTFOUND, STK_EUNSUPPORTED, STK_ELIMIT};
    for (int err = -40; err < 40; err++) {
        stk_wire_reply r = {.number = 7, .num_parts = 99, .diag.err = (stk_err)err};
        bool want = false;
        for (size_t i = 0; i < sizeof(believed) / sizeof(*believed); i++)
            want |= err == (int)believed[i];
        CHECK_EQ(look_at(r), want ? STK_OK : STK_EINVAL);
    }
    stk_wire_reply r = {.number = 1, .diag.err = STK_EIO};
    stk_diag diag;
    memset(r.diag.text, 'x', sizeof(r.diag.text));
    CHECK_EQ(stk_wire_check(&r, sizeof(r), 1, &(stk_wire_expected){0}, 0, &diag), STK_OK);
    CHECK_EQ(strlen(r.diag.text), sizeof(r.diag.text) - 1);
}

static void memory(void)
{
    const int fd = memfd_create("test", MFD_CLOEXEC);
    char text[8] = "";
    stk_diag diag;
    CHECK(fd >= 0);
    CHECK_EQ(stk_wire_put(fd, 100, "1234567", 8, &diag), STK_OK);
    CHECK_EQ(stk_wire_get(fd, 102, text, 6, &diag), STK_OK);
    CHECK(!strcmp(text, "34567"));
    CHECK_EQ(stk_wire_get(fd, 101, text, 8, &diag), STK_EIO);
    CHECK(strstr(diag.text, "ends"));
    CHECK_EQ(ftruncate(fd, 0), 0);
    CHECK_EQ(stk_wire_get(fd, 100, text, 1, &diag), STK_EIO);
    CHECK_EQ(stk_wire_get(fd, 100, text, 0, &diag), STK_OK);
    CHECK(stk_failpoints_set("wire.put=ENOSPC;wire.get=EIO"));
    CHECK_EQ(stk_wire_put(fd, 0, text, 1, &diag), STK_ENOMEM);
    CHECK_EQ(stk_wire_get(fd, 0, text, 1, &diag), STK_EIO);
    CHECK(stk_failpoints_set(NULL));
    close(fd);
}

TESTS(TEST(offsets), TEST(parts_that_stay), TEST(lies), TEST(errors), TEST(memory))
