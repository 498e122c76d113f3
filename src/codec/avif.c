/* AVIF: AOM's "AV1 Image File Format": the boxes of ISO/IEC 14496-12 and 23008-12 (HEIF) around
 * what is one frame of AV1.  FFmpeg gets that frame alone. */
#include "codec/avif_boxes.h"

#include <stdio.h>
#include <string.h>

#include "codec/still.h"

static bool avif_match(const uint8_t *data, size_t size)
{
    if (size < 16 || memcmp(data + 4, "ftyp", 4) != 0) return false;
    size_t end = (size_t)data[0] << 24 | (size_t)data[1] << 16 | (size_t)data[2] << 8 | data[3];
    if (end > size) end = size;
    for (size_t at = 8; at + 4 <= end; at += at == 8 ? 8 : 4) /* behind the first: its version */
        if (!memcmp(data + at, "avif", 4) || !memcmp(data + at, "avis", 4)) return true;
    return false;
}

static stk_err ends_early(stk_diag *diag)
{
    return stk_diag_set(diag, STK_ECORRUPT, "AVIF: the data ends before the image");
}

/* Rotated against the clock, then mirrored: the orientation of Exif that means the same. */
static int32_t orientation_of(const stk_avif *a)
{
    static const int8_t orientations[3][4] = {
        {1, 8, 3, 6}, /* not mirrored */
        {4, 5, 2, 7}, /* top to bottom */
        {2, 7, 4, 5}, /* left to right */
    };
    return orientations[a->mirror][a->turns];
}

static stk_err check_item(const stk_avif *a, stk_diag *diag)
{
    if (!a->has_meta && !a->has_movie) return ends_early(diag);
    if (!a->has_meta)
        return stk_diag_set(diag, STK_EUNSUPPORTED, "AVIF: a sequence without a still picture");
    if (memcmp(a->type, "grid", 4) == 0)
        return stk_diag_set(diag, STK_EUNSUPPORTED, "AVIF: a grid of pictures");
    if (memcmp(a->type, "av01", 4) != 0)
        return stk_diag_set(diag, STK_EUNSUPPORTED, "AVIF: the main item is not AV1");
    if (!a->width || !a->height || a->width > INT32_MAX || a->height > INT32_MAX)
        return stk_diag_set(diag, STK_ECORRUPT, "AVIF: no pixels");
    return STK_OK;
}

static stk_err avif_parse(const uint8_t *data, size_t size, stk_still *out, stk_diag *diag)
{
    stk_avif a;
    if (!avif_match(data, size)) return stk_diag_set(diag, STK_ECORRUPT, "AVIF: no header");
    if (!stk_avif_read(data, size, &a))
        return stk_diag_set(diag, STK_ECORRUPT, "AVIF: a box is broken, or the data ends in it");
    const stk_err err = check_item(&a, diag);
    if (err) return err;
    if (!a.num_extents) return stk_diag_set(diag, STK_ECORRUPT, "AVIF: there is no image");
    if (a.num_extents > STK_STILL_PIECES)
        return stk_diag_set(diag, STK_EUNSUPPORTED, "AVIF: an image in %u pieces", a.num_extents);
    for (unsigned i = 0; i < a.num_extents; i++)
        if (!stk_still_add(out, data, size, a.extents[i].at,
                           a.extents[i].size ? a.extents[i].size : size - a.extents[i].at))
            return ends_early(diag);
    out->info = (stk_image_info){
        .width = (int32_t)a.width,
        .height = (int32_t)a.height,
        .channels = (a.monochrome ? 1 : 3) + a.alpha,
        .bits = a.bits ? a.bits : 8,
        .orientation = orientation_of(&a),
        .animated = !memcmp(data + 8, "avis", 4),
    };
    static const char *const chroma[] = {"4:4:4", "4:2:2", "4:2:0"};
    snprintf(out->info.detail, sizeof(out->info.detail), "%s",
             a.monochrome ? "gray" : chroma[a.subsampled]);
    out->matrix = a.matrix;
    out->range = (stk_picture_range)a.range;
    return STK_OK;
}

static const stk_still_format avif = {
    .codec = &stk_codec_avif, .decoder = "av1", .parse = avif_parse};

static stk_err avif_probe(const uint8_t *data, size_t size, stk_image_info *out, stk_diag *diag)
{
    return stk_still_probe(&avif, data, size, out, diag);
}

static stk_err avif_open(void **state, stk_diag *diag)
{
    return stk_still_open(&avif, state, diag);
}

const stk_codec stk_codec_avif = {
    .format = STK_IMAGE_AVIF,
    .name = "AVIF",
    .match = avif_match,
    .probe = avif_probe,
    .open = avif_open,
    .close = stk_still_close,
    .begin = stk_still_begin,
    .window = stk_still_window,
    .rows = stk_still_rows,
};
