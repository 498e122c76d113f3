/* JPEG files for tests, made by libjpeg: every sampling, progressive or not, with restarts. */
#ifndef STK_TESTS_JPEG_MAKE_H
#define STK_TESTS_JPEG_MAKE_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <jpeglib.h>

#include "tests/check.h"

typedef struct jpeg_make {
    int width, height;
    int channels;         /* 1, 3 or 4 (CMYK); 0: 3 */
    J_COLOR_SPACE stored; /* JCS_UNKNOWN: libjpeg's choice */
    int h, v;             /* of luma against chroma; 0: 1 */
    int quality;          /* 0: 90 */
    int restart;          /* MCUs */
    bool progressive;
    int orientation; /* 0: no EXIF */
    bool flat;       /* one colour */
} jpeg_make;

/* Something like a photograph: slopes, an edge, a little noise. */
static inline uint8_t jpeg_make_value(int x, int y, int channel, unsigned *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    const double wave = 60 * sin(x * (0.05 + 0.02 * channel)) + 50 * cos(y * 0.07 + channel);
    const double edge = (x + 2 * y) % 97 < 30 ? 25 : -20;
    const double v = 128 + wave + edge + (double)(*seed >> 28) - 8;
    return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
}

static inline void jpeg_make_exif(struct jpeg_compress_struct *c, int orientation)
{
    const uint8_t exif[] = {'E', 'x',  'i', 'f', 0,
                            0,   'I',  'I', '*', 0,
                            8,   0,    0,   0,   1,
                            0,   0x12, 1,   3,   0,
                            1,   0,    0,   0,   (uint8_t)orientation,
                            0,   0,    0};
    jpeg_write_marker(c, JPEG_APP0 + 1, exif, sizeof(exif));
}

/* Gives *out, to be freed with free(). */
static inline size_t jpeg_make_file(const jpeg_make *m, uint8_t **out)
{
    const int channels = m->channels ? m->channels : 3;
    struct jpeg_compress_struct c;
    struct jpeg_error_mgr err;
    c.err = jpeg_std_error(&err);
    jpeg_create_compress(&c);
    unsigned char *data = NULL;
    unsigned long size = 0;
    jpeg_mem_dest(&c, &data, &size);
    c.image_width = (JDIMENSION)m->width;
    c.image_height = (JDIMENSION)m->height;
    c.input_components = channels;
    c.in_color_space = channels == 1 ? JCS_GRAYSCALE : channels == 3 ? JCS_RGB : JCS_CMYK;
    jpeg_set_defaults(&c);
    if (m->stored != JCS_UNKNOWN) jpeg_set_colorspace(&c, m->stored);
    jpeg_set_quality(&c, m->quality ? m->quality : 90, TRUE);
    if (channels > 1) {
        c.comp_info[0].h_samp_factor = m->h ? m->h : 1;
        c.comp_info[0].v_samp_factor = m->v ? m->v : 1;
        if (channels == 4) { /* black is as fine as luma */
            c.comp_info[3].h_samp_factor = c.comp_info[0].h_samp_factor;
            c.comp_info[3].v_samp_factor = c.comp_info[0].v_samp_factor;
        }
    }
    c.restart_interval = (unsigned)m->restart;
    if (m->progressive) jpeg_simple_progression(&c);
    jpeg_start_compress(&c, TRUE);
    if (m->orientation) jpeg_make_exif(&c, m->orientation);
    uint8_t *row = malloc((size_t)m->width * (size_t)channels);
    CHECK(row);
    unsigned seed = 7;
    for (int y = 0; y < m->height; y++) {
        for (int x = 0; x < m->width; x++)
            for (int i = 0; i < channels; i++)
                row[x * channels + i] =
                    m->flat ? (uint8_t)(100 + 20 * i) : jpeg_make_value(x, y, i, &seed);
        CHECK_EQ(jpeg_write_scanlines(&c, &row, 1), 1);
    }
    jpeg_finish_compress(&c);
    jpeg_destroy_compress(&c);
    free(row);
    *out = data;
    return size;
}

#endif /* STK_TESTS_JPEG_MAKE_H */
