#include <string.h>

#include <stoker/npy.h>

#include "tests/check.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    stk_npy npy;
    stk_diag diag = {0};
    const stk_err err = stk_npy_parse(data, size, &npy, &diag);
    CHECK(err == STK_OK || err == STK_ECORRUPT || err == STK_EUNSUPPORTED);
    CHECK(!err == !diag.text[0]);
    if (err) return 0;
    CHECK(npy.data_offset <= size && npy.data_size <= size - npy.data_offset);
    CHECK(npy.ndim >= 0 && npy.ndim <= STK_NPY_MAX_NDIM);
    CHECK(strlen(npy.descr) > 0 && npy.kind);
    CHECK(!npy.dtype || stk_dtype_size(npy.dtype) == npy.item_size);
    size_t bytes = npy.item_size;
    for (int32_t i = 0; i < npy.ndim; i++) {
        CHECK(npy.shape[i] >= 0);
        bytes *= (size_t)npy.shape[i];
    }
    CHECK(bytes == npy.data_size);
    return 0;
}
