#include "ops/image_decoder.h"
#include "tests/fuzz/codec.h"

static void *state;
static stk_image_decoder *decoder;

static void draw(void *ctx, uint32_t n, uint32_t out[4])
{
    uint64_t *seed = ctx;
    const uint64_t a = stk_mix64(*seed + n), b = stk_mix64(a);
    out[0] = (uint32_t)a, out[1] = (uint32_t)(a >> 32);
    out[2] = (uint32_t)b, out[3] = (uint32_t)(b >> 32);
}

/* Header, geometry, window, resampling, as the op does it. */
static void whole_way(const uint8_t *data, size_t size, uint64_t seed)
{
    enum { SIDE = 24 };
    static uint8_t pixels[SIDE * SIDE * 3];
    const stk_image_opts opts = {.width = 1 + fuzz_below(&seed, SIDE),
                                 .height = 1 + fuzz_below(&seed, SIDE),
                                 .crop = (stk_crop)fuzz_below(&seed, 3),
                                 .filter = (stk_filter)fuzz_below(&seed, 5),
                                 .quality = (stk_quality)(fuzz_below(&seed, 3) == 0),
                                 .color = (stk_color)(fuzz_below(&seed, 4) == 0),
                                 .flip = 0.5,
                                 .max_pixels = 1 << 15};
    stk_image_opts o;
    int32_t width, height;
    stk_geometry g;
    stk_diag diag = {0};
    CHECK_EQ(stk_image_opts_check(&opts, &o, NULL), STK_OK);
    if (!decoder) CHECK_EQ(stk_image_decoder_new(&decoder, NULL), STK_OK);
    stk_err err = stk_image_decoder_begin(decoder, &o, data, size, &width, &height, &diag);
    if (!err) {
        stk_geometry_draw(&o, width, height, draw, &seed, &g);
        const stk_spec spec = stk_image_spec(&o, 0, g.width, g.height);
        const stk_tensor dst = stk_tensor_over(pixels, &spec);
        err = stk_image_decoder_run(decoder, &o, 0, &g, &dst, &diag);
    }
    CHECK(err == diag.err && !err == !diag.text[0]);
    CHECK(err != STK_EINVAL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint64_t seed = size;
    for (size_t i = 0; i < size; i += 5) seed = seed * 31 + data[i];
    fuzz_codec(&stk_codec_jpeg, &state, data, size);
    whole_way(data, size, seed);
    return 0;
}
