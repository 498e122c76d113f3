#include <stoker/wav.h>

#include "tests/check.h"
#include "tests/fuzz/fuzz.h"

/* What it says lies inside the data, and agrees with itself. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    stk_wav_info info;
    uint64_t first, frames;
    if (stk_wav_parse(data, size, &info, NULL)) return 0;
    CHECK(info.data_offset <= size && info.data_size <= size - info.data_offset);
    if (!info.dtype) return 0;
    CHECK_EQ(info.frames * info.block_align, info.data_size);
    if (stk_wav_window(&info, (double)size / 1e6, size % 3 ? 1e-4 : 1e300, &first, &frames, NULL))
        return 0;
    CHECK(first <= info.frames && frames <= info.frames - first);
    if (!info.widened || !frames) return 0;
    const size_t samples = (size_t)(frames * info.channels);
    int32_t *wide = malloc(4 * samples);
    CHECK(wide);
    stk_wav_widen(data + info.data_offset + first * info.block_align, samples, wide);
    for (size_t i = 0; i < samples; i++) CHECK(!(wide[i] & 0xff));
    free(wide);
    return 0;
}
