#include "codec/exif.h"

#include "tests/check.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const int32_t of_tiff = stk_exif_orientation(data, size);
    const int32_t of_jpeg = stk_exif_orientation_of_jpeg(data, size);
    CHECK(of_tiff >= 1 && of_tiff <= 8);
    CHECK(of_jpeg >= 1 && of_jpeg <= 8);
    return 0;
}
