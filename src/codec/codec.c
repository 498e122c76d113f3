#include "codec/codec.h"

/* One line a format. */
static const stk_codec *const codecs[] = {
    &stk_codec_jpeg, &stk_codec_png, &stk_codec_webp, &stk_codec_avif,
    &stk_codec_bmp,  &stk_codec_gif, &stk_codec_tiff,
};
_Static_assert(sizeof(codecs) / sizeof(codecs[0]) <= STK_MAX_CODECS, "raise STK_MAX_CODECS");

const char *stk_image_format_str(stk_image_format format)
{
    switch (format) {
    case STK_IMAGE_UNKNOWN: break;
    case STK_IMAGE_JPEG: return "JPEG";
    case STK_IMAGE_PNG: return "PNG";
    case STK_IMAGE_WEBP: return "WebP";
    case STK_IMAGE_AVIF: return "AVIF";
    case STK_IMAGE_BMP: return "BMP";
    case STK_IMAGE_GIF: return "GIF";
    case STK_IMAGE_TIFF: return "TIFF";
    }
    return "unknown";
}

stk_err stk_image_probe(const void *data, size_t size, stk_image_info *out, stk_diag *diag)
{
    *out = (stk_image_info){0};
    const stk_codec *codec = stk_codec_find(data, size);
    if (!codec)
        return stk_diag_set(diag, STK_EUNSUPPORTED,
                            size ? "not a JPEG, PNG, WebP, AVIF, BMP, GIF or TIFF image"
                                 : "no data: an empty file");
    return codec->probe(data, size, out, diag);
}

const stk_codec *stk_codec_find(const uint8_t *data, size_t size)
{
    for (size_t i = 0; i < sizeof(codecs) / sizeof(codecs[0]); i++)
        if (codecs[i]->match(data, size)) return codecs[i];
    return NULL;
}
