/* The formats that FFmpeg decodes.  Without the module, which STOKER_AV_MODULE names, their headers
 * alone. */
#include "tests/fuzz/codec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const stk_codec *const codecs[] = {&stk_codec_avif, &stk_codec_bmp, &stk_codec_gif,
                                              &stk_codec_tiff};
    static void *states[sizeof(codecs) / sizeof(*codecs)];
    for (size_t i = 0; i < sizeof(codecs) / sizeof(*codecs); i++)
        fuzz_codec(codecs[i], &states[i], data, size);
    return 0;
}
