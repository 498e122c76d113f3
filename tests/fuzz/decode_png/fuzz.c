#include "tests/fuzz/codec.h"

static void *state;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_codec(&stk_codec_png, &state, data, size);
    return 0;
}
