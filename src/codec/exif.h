/*
 * EXIF orientation: which way up a picture was taken.
 *
 * Broken or missing metadata never makes a picture fail: it counts as upright.
 *
 * Threads: any; nothing is kept.
 */
#ifndef STK_CODEC_EXIF_H
#define STK_CODEC_EXIF_H

#include <stddef.h>
#include <stdint.h>

/* The orientation, 1 to 8, that a TIFF block ("II*\0" or "MM\0*" first; an "Exif\0\0" before it
 * is skipped) holds in its first directory; 1 when it holds none, or nonsense. */
int32_t stk_exif_orientation(const uint8_t *tiff, size_t size);

/* The same for a JPEG file: finds the APP1 segment before the first scan. */
int32_t stk_exif_orientation_of_jpeg(const uint8_t *data, size_t size);

#endif /* STK_CODEC_EXIF_H */
