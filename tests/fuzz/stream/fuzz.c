#include <stoker/stream.h>

#include "tests/check.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t out[4096];
    stk_stream *s;
    const stk_stream_opts opts = {.max_bytes = 1 << 20};
    CHECK_EQ(stk_stream_over(data, size, &opts, &s), STK_OK);
    uint64_t total = 0;
    for (size_t got = 1; got;) {
        if (stk_stream_read(s, out, sizeof(out), &got, NULL)) break;
        CHECK(got <= sizeof(out));
        total += got;
    }
    CHECK(total <= (1 << 20) || stk_stream_packing(s) == STK_PACKING_NONE);
    stk_stream_free(&s);
    return 0;
}
