/*
 * stk_avif: what the boxes of an AVIF file say of its main picture.
 *
 * Nothing is kept; sizes and places are as the file has them, and to be checked.
 *
 * Threads: any.
 */
#ifndef STK_CODEC_AVIF_BOXES_H
#define STK_CODEC_AVIF_BOXES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { STK_AVIF_EXTENTS = 16 };

typedef struct stk_avif {
    bool has_meta;   /* false: the rest is nothing */
    bool has_movie;  /* there is a sequence, as in a video */
    uint8_t type[4]; /* of the main item: "av01", "grid" */
    uint32_t width, height;
    int turns;      /* by 90 degrees against the clock, 0 to 3 */
    int mirror;     /* afterwards; 1: top to bottom, 2: left to right */
    int bits;       /* a channel; 0: not said */
    int subsampled; /* chroma: 0 no, 1 along rows, 2 along columns too */
    bool monochrome, alpha;
    int matrix;           /* of ITU-T H.273, 0: not said */
    int range;            /* 0: not said, 1: 16 is black, 2: full */
    unsigned num_extents; /* of the item; more than STK_AVIF_EXTENTS are only counted */
    struct {
        uint64_t at, size; /* in the file; size 0: to its end */
    } extents[STK_AVIF_EXTENTS];
} stk_avif;

/* False: a box is broken, or the data ends in one that matters. */
bool stk_avif_read(const uint8_t *data, size_t size, stk_avif *out);

#endif /* STK_CODEC_AVIF_BOXES_H */
