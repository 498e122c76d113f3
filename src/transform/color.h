/*
 * stk_color: rows of pixels from one colour model to another.
 *
 * `src` and `dst` may be the same where a pixel does not grow.
 *
 * Threads: any; no state.
 */
#ifndef STK_TRANSFORM_COLOR_H
#define STK_TRANSFORM_COLOR_H

#include <stdbool.h>
#include <stdint.h>

/* Full-range BT.601 (JFIF) to RGB, within 1 of libjpeg's; by the fastest kernel there is. */
void stk_color_ycc_to_rgb(const uint8_t *src, uint8_t *dst, int32_t pixels);

/* The same from three planes, Y, Cb and Cr, to interleaved RGB. */
void stk_color_planes_to_rgb(const uint8_t *const planes[3], uint8_t *dst, int32_t pixels);

/* One byte a pixel to three. */
void stk_color_gray_to_rgb(const uint8_t *src, uint8_t *dst, int32_t pixels);

/* RGB to one byte a pixel, with the weights that Pillow's convert("L") has. */
void stk_color_rgb_to_gray(const uint8_t *src, uint8_t *dst, int32_t pixels);

/* Four bytes a pixel to RGB as Pillow does: each colour lessened by its ink, then by black.
 * `inverted`: as Adobe's JPEGs store it, 255 being no ink. */
void stk_color_cmyk_to_rgb(const uint8_t *src, uint8_t *dst, int32_t pixels, bool inverted);

/* Turns a row of 1, 3 or 4 byte pixels around where it is. */
void stk_color_mirror(uint8_t *row, int32_t pixels, int32_t channels);

#endif /* STK_TRANSFORM_COLOR_H */
