/* What a helper process answers: nothing of it is believed before it is checked. */
#include "tests/fuzz/fuzz.h"
#include "ops/wire.h"
#include "tests/check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const stk_wire_expected e = {
        .num_parts = 2,
        .taken = {true, true},
        .known = {{.dtype = STK_UINT8, .ndim = 3, .shape = {4, 4, 3}}},
    };
    stk_wire_reply r = {0};
    stk_diag diag;
    const uint64_t memory = 4096;
    memcpy(&r, data, size < sizeof(r) ? size : sizeof(r));
    if (stk_wire_check(&r, size, 1, &e, memory, &diag)) return 0;
    for (size_t i = 0; !r.diag.err && i < 2; i++) {
        size_t bytes;
        CHECK_EQ(stk_spec_bytes(&r.arrays[i].spec, &bytes), STK_OK);
        CHECK(r.arrays[i].offset <= memory && bytes <= memory - r.arrays[i].offset);
    }
    CHECK(strlen(r.diag.text) < sizeof(r.diag.text));
    return 0;
}
