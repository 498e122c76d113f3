#include "tests/fuzz/fuzz.h"

#include <stoker/image.h>

#include "tests/check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    stk_image_info info;
    stk_diag diag = {0};
    const stk_err err = stk_image_probe(data, size, &info, &diag);
    if (err) {
        CHECK(err == STK_EUNSUPPORTED || err == STK_ECORRUPT || err == STK_ELIMIT);
        CHECK(diag.err == err && diag.text[0]);
        return 0;
    }
    CHECK(info.format != STK_IMAGE_UNKNOWN);
    CHECK(info.width > 0 && info.height > 0);
    CHECK(info.channels >= 1 && info.channels <= 4);
    CHECK(info.orientation >= 1 && info.orientation <= 8);
    CHECK(memchr(info.detail, 0, sizeof(info.detail)));
    return 0;
}
